#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Walks along lists, which answer before their chains end. Clients send the next request at once, with one and with sixteen
# outstanding; the daemon or the NIC arms the chains. Also: the counters, and a list that points outside of its region.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
walks=(armed recycled break)
able "a recycled walk" "${recycling[@]}" || walks=(armed break)

: "${LIST_ASK:?set LIST_ASK to the path of the test program}"
: "${REDDNCTL:?set REDDNCTL to the path of the admin tool}"
seed=${TEST_SEED:-1}
requests=800

"$LIST_ASK" make "$work/nodes" "$work/heap" 0 || fail "no list"
"$LIST_ASK" make "$work/nowhere" "$work/heap" 0xffffffffff || fail "no list"
uses='regions = { nodes = "nodes"; heap = "heap"; };'
nic_options=(--seed "$seed")
start_nic
start_reddnd "control = \"$work/control\";
regions = (
  { name = \"nodes\"; kind = \"raw\"; path = \"$work/nodes\"; },
  { name = \"nowhere\"; kind = \"raw\"; path = \"$work/nowhere\"; },
  { name = \"heap\"; kind = \"raw\"; path = \"$work/heap\"; } );
offloads = (
  { name = \"armed\"; program = \"list-walk\"; $uses mode = \"unrolled\"; },
  { name = \"recycled\"; program = \"list-walk\"; $uses mode = \"recycled\"; },
  { name = \"break\"; program = \"list-walk\"; params = { stop = 1; }; $uses },
  { name = \"lost\"; program = \"list-walk\"; regions = { nodes = \"nowhere\"; heap = \"heap\"; }; } );"

ask() # OFFLOAD DEPTH
{
	on_nic ask.log "$LIST_ASK" ask "$address" "$port" "$1" "$2" "$requests" "$seed"
}

counted() # OFFLOAD: requests, hits, misses, and those that are neither
{
	timeout "$limit" "$REDDNCTL" --socket "$work/control" --json offloads >"$work/counted" 2>&1 || fail "reddnctl" "$work/counted"
	python3 -c 'import json, sys
for o in json.load(open(sys.argv[1])):
	if o["offload"] == sys.argv[2]:
		print(o["requests"], o["hits"], o["misses"], o["unseen"])' "$work/counted" "$1"
}

# An unrolled one counts each; of the others nobody has asked before
is_counted() # OFFLOAD REQUESTS HITS
{
	local all hits misses unseen

	read -r all hits misses unseen < <(counted "$1")
	[[ $all -eq $2 && $hits -le $3 && $misses -le $(($2 - $3)) && $((hits + misses + unseen)) -eq $all ]] &&
		[[ $1 != armed || $unseen -eq 0 ]]
}

for offload in "${walks[@]}"; do
	hits=0
	for depth in 1 16; do
		ask "$offload" "$depth" || fail "$offload, depth $depth (seed $seed)" "$work/ask.log" "$work/reddnd.log"
		hits=$((hits + $(cat "$work/ask.log")))
		ok "$offload, depth $depth: every answer equals the value in the list"
	done
	until_true is_counted "$offload" $((2 * requests)) "$hits" || fail "$offload: $(counted "$offload"), not $hits hits" "$work/reddnd.log"
	ok "$offload: the answers are hits and misses"
done

ask lost 16 && fail "a node outside of the region is read"
reason='step .*read.* failed: remote access error'
able "the step that reads outside" "${named_steps[@]}" || reason='(step .* failed|a queue failed|the device reports)'
until_true grep -qE "session [0-9]+: ends after .*$reason" "$work/reddnd.log" ||
	fail "no reason for the end of the session" "$work/ask.log" "$work/reddnd.log"
ok "a node outside of the region ends the session with a reason"
stop_reddnd
done_testing
