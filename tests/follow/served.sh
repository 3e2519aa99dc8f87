#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The NIC answers gets of a table that follows a Redis server, while the table grows, and connections and the follower are killed.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
needs "${recycling[@]}"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN_TABLE:?}" "${REDDN:?}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
table=$memory/table

"$REDDN_TABLE" create --quiet --grow --buckets 256 --heap 64K --max-key 16 --max-value 64 "$table" || fail "no table"
start_nic
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; } );
offloads = ( { name = \"unrolled\"; program = \"hash-get\"; region = \"t\"; }, { name = \"recycled\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; } );"
on_nic client.log "$PYTHON" "$here/served.py" "$table" "$address:$port" unrolled recycled ||
	fail "gets of a table that follows" "$work/client.log" "$work/reddnd.log"
while read -r line; do
	ok "${line#ok }"
done < <(grep '^ok' "$work/client.log")

# Nobody follows any more
on_nic get.log "$REDDN" ping --count 1 --port "$port" "$address" unrolled || fail "ping" "$work/get.log"
grep -q '^as new as its source [0-9.]* s ago$' "$work/get.log" || fail "ping does not show how new the table is" "$work/get.log"
on_nic get.log "$REDDN" get --max-age 1000000 --port "$port" "$address" recycled mine || fail "a get within a time" "$work/get.log"
on_nic get.log "$REDDN" get --max-age 1 --port "$port" "$address" recycled mine && fail "a get of an old table" "$work/get.log"
grep -q "Stale" "$work/get.log" || fail "not the reason" "$work/get.log"
ok "reddn refuses what is too old"
kill "$reddnd"
wait "$reddnd"
done_testing
