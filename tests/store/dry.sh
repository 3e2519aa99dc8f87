#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Sessions that put hold nearly all extents of a small store, and put more keys than it has room for. The daemon goes on, afterwards each
# extent is free or that of an entry, and the next daemon opens the store with what was put.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
needs has.cross_channel
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}" "${DRY:?set DRY to the path of the test client}"
: "${REDDNCTL:?set REDDNCTL to the path of reddnctl}"
operations=${TEST_OPERATIONS:-20000}
store=$memory/small.store

regions() # EXPRESSION in "r", the region
{
	"$REDDNCTL" --socket "$work/control" --json regions >"$work/regions" &&
		python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))[0]; sys.exit(not eval(f"({sys.argv[2]})"))' "$work/regions" "$1"
}

accounted()
{
	regions 'r["state"] == "serving" and r["contradictions"] == 0 and sum(e["held"] for e in r["extents"]) == 0 and
		sum(e["used"] for e in r["extents"]) == r["entries"] + r["deleted"] > 0'
}

"$REDDN_TABLE" create --quiet --store --buckets 2048 --max-key 16 --max-value 64 --heap 128K "$store" || fail "no store"
start_nic
start_reddnd "control = \"$work/control\"; regions = ( { name = \"small\"; kind = \"store\"; path = \"$store\"; } );
offloads = ( { name = \"small\"; program = \"hash-get\"; region = \"small\"; }, { name = \"put\"; program = \"store-put\"; region = \"small\"; } );"

on_nic dry.log "$DRY" "$address" "$port" put 1 8 2000 300 || fail "no puts" "$work/dry.log" "$work/reddnd.log"
on_nic dry.log "$DRY" "$address" "$port" put 16 64 "$operations" 3000 || fail "puts do not go on" "$work/dry.log" "$work/reddnd.log"
cat "$work/dry.log"
grep -q '[1-9][0-9]* refused (.*[1-9][0-9]* found no room' "$work/dry.log" || fail "the store had room for all" "$work/dry.log"
alive "$reddnd" || fail "the daemon has ended" "$work/reddnd.log"
until_true accounted || fail "extents are not accounted for" "$work/regions" "$work/reddnd.log"
ok "each extent is free or that of an entry"

"$REDDN_TABLE" dump "$store" | sort >"$work/before" || fail "no dump"
kill -9 "$(program_of "$reddnd")"
wait "$reddnd" 2>/dev/null
background again.log "$REDDND" --config "$work/reddnd.conf"
reddnd=$child
server_ready "$reddnd" reddnd again.log reddnd_listens
until_true accounted || fail "the next daemon has other extents" "$work/regions" "$work/again.log"
"$REDDN_TABLE" dump "$store" | sort | cmp - "$work/before" || fail "the next daemon has other entries" "$work/again.log"
on_nic dry.log "$DRY" "$address" "$port" put 1 8 2000 300 || fail "no puts after that" "$work/dry.log" "$work/again.log"
ok "the next daemon opens the store, and clients put there"
kill "$(program_of "$reddnd")"
wait "$reddnd"
done_testing
