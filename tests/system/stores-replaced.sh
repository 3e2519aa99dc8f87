#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Another store takes the place of one that clients use: nobody gets from the old one what is older than what was put in the new one,
# also while a reload waits for the file system of another region, and when the daemon dies before it learns of the other one.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/lib/tables.sh
. "$here/../lib/tables.sh"
# shellcheck source=tests/lib/supervised.sh
. "$here/../lib/supervised.sh"
needs "${recycling[@]}"

: "${STALLED_FILE_LIB:?set STALLED_FILE_LIB to the path of the library that stalls}" "${PYTHON:?}" "${PYTHONPATH:?}"
named_table slow
"$REDDN_TABLE" create --quiet --store --capacity 100 --heap 2M --max-key 16 --max-value 16 "$memory/store" || fail "no store"
start_nic
export STALL=$work/stall
preloading "$STALLED_FILE_LIB"
server_on+=("${preloading[@]}")
start_reddnd "control = \"$control\"; regions = ( { name = \"slow\"; kind = \"table\"; path = \"$data/slow\"; },
  { name = \"store\"; kind = \"store\"; path = \"$memory/store\"; } );
offloads = ( { name = \"slow\"; program = \"hash-get\"; region = \"slow\"; }, { name = \"store\"; region = \"store\"; } );"
replace() # LOG ARGUMENTS...: of stores-replaced.py
{
	local line

	CONTROL=$control on_nic client.log "$PYTHON" "$here/stores-replaced.py" "$address:$port" "$memory/store" "${@:2}" || fail "an old store answers" "$work/client.log" "$work/$1"
	while read -r line; do
		ok "$line"
	done <"$work/client.log"
}

replace reddnd.log reload "$data/slow"
stop_reddnd

configure_reddnd "control = \"$control\"; regions = ( { name = \"store\"; kind = \"store\"; path = \"$memory/store\"; } );
offloads = ( { name = \"store\"; region = \"store\"; mode = \"recycled\"; }, { name = \"armed\"; region = \"store\"; mode = \"unrolled\"; },
  { name = \"cpu\"; region = \"store\"; engine = \"cpu\"; } );"
serve_supervised
for how in stays same larger late inside; do
	replace run.log "$how" "$(daemon)"
done
grep -q "the store was replaced" "$work/run.log" || fail "it is not said why they end" "$work/run.log"
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
