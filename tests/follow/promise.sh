#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Answers of a table that follows Redis are right as of the moment that they state, whatever is killed: source, follower, connections,
# and the daemon. TEST_GETS: how many, TEST_SEED: of the choices.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
needs "${recycling[@]}"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN_TABLE:?}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
table=$memory/table
settings="regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; } );
offloads = ( { name = \"unrolled\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; }, { name = \"recycled\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; } );"

"$REDDN_TABLE" create --quiet --grow --buckets 256 --heap 64K --max-key 16 --max-value 64 "$table" || fail "no table"
start_nic
start_reddnd "$settings"
background client.log "$PYTHON" "$here/promise.py" "$table" "$address:$port" "${TEST_GETS:-60000}" "${TEST_SEED:-1}" unrolled recycled
client=$child
kills=0
RANDOM=${TEST_SEED:-1}
while alive "$client"; do
	sleep "$((1 + RANDOM % 4))"
	alive "$client" || break
	kill_hard "$reddnd"
	start_reddnd "$settings"
	kills=$((kills + 1))
done
wait "$client" || fail "the promise" "$work/client.log" "$work/reddnd.log"
while read -r line; do
	ok "${line#ok }; $kills daemons killed"
done < <(grep '^ok' "$work/client.log")
kill "$reddnd"
wait "$reddnd"
done_testing
