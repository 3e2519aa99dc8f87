#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A table that grows while sessions use it: the daemon gives new sessions the larger one, without a reload.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
needs "${recycling[@]}"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN_TABLE:?}"
export PYTHONDONTWRITEBYTECODE=1
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
table=$memory/table

"$REDDN_TABLE" create --quiet --grow --buckets 256 --heap 64K --max-key 16 --max-value 64 "$table" || fail "no table"
start_nic
start_reddnd "control = \"$control\"; regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; } );
offloads = ( { name = \"unrolled\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; }, { name = \"recycled\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; },
	{ name = \"cpu\"; program = \"hash-get\"; region = \"t\"; engine = \"cpu\"; } );"
CONTROL=$control on_nic client.log "$PYTHON" "$here/growth.py" "$table" "$address:$port" unrolled recycled cpu ||
	fail "sessions of a table that grows" "$work/client.log" "$work/reddnd.log"
while read -r line; do
	ok "$line"
done <"$work/client.log"
grep -q "1 tables were replaced: new sessions get the new ones" "$work/reddnd.log" || fail "the daemon does not say it" "$work/reddnd.log"

stop_reddnd
done_testing
