#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The NIC answers gets of a table that follows a Redis server, while the table grows, and connections and the follower are killed.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
needs "${recycling[@]}"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN_TABLE:?}" "${REDDN:?}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
table=$memory/table

"$REDDN_TABLE" create --quiet --grow --buckets 256 --heap 64K --max-key 16 --max-value 64 "$table" || fail "no table"
start_nic
start_reddnd "control = \"$control\"; regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; } );
offloads = ( { name = \"unrolled\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; }, { name = \"recycled\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; } );"
reported regions '"source" not in d[0] and d[0]["entries"] == 0' || fail "a table that nobody has filled" "$work/ctl.out" "$work/ctl.err"
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
# The daemon may have the table of before it grew for some seconds
until_true reported regions 'd[0]["source"] == "complete" and d[0]["entries"] > 1500' || fail "regions" "$work/ctl.out" "$work/ctl.err"
age=$(reported regions 'd[0]["as_of_source"] > 1e15' && value 'd[0]["age_us"]') || fail "regions" "$work/ctl.out"
older()
{
	reported regions "d[0][\"age_us\"] > $age"
}
until_true older || fail "the age stands still" "$work/ctl.out"
ctl metrics || fail "metrics" "$work/ctl.err"
for metric in 'complete{region="t"} 1$' 'entries{region="t"} [0-9]'; do
	grep -q "^reddnd_region_$metric" "$work/ctl.out" || fail "no metric $metric" "$work/ctl.out"
done
now=$(date +%s)
awk -v now="$now" '/^reddnd_region_as_of_seconds\{region="t"\}/ {found = $2 > now - 3600 && $2 <= now + 1} END {exit !found}' "$work/ctl.out" ||
	fail "the as-of among the metrics" "$work/ctl.out"
ok "reddnctl regions and metrics show how new the table is"
kill "$reddnd"
wait "$reddnd"
done_testing
