#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Applications of redis-py and hiredis whose reads the NIC answers.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN_TABLE:?}" "${COMMANDS:?set COMMANDS to the path of the test client}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
table=$memory/table

"$REDDN_TABLE" create --quiet --grow --max-key 16 --max-value 64 "$table" || fail "no table"
start_nic
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; } ); offloads = ( { name = \"t\"; program = \"hash-get\"; region = \"t\"; } );"
on_nic client.log "$PYTHON" "$here/dropin.py" "$table" "$address:$port" t "$reddnd" "$COMMANDS" || fail "redis-py" "$work/client.log" "$work/reddnd.log"
while read -r line; do
	ok "${line#ok }"
done < <(grep '^ok' "$work/client.log")
wait "$reddnd" "$COMMANDS" || true
done_testing
