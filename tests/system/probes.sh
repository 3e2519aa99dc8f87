#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# probes.sh fenced|unfenced|unasked|unchecked: no source documents whether a NIC obeys the fence of a SEND_EN, and whether it checks
# index and QPN of a WQE. The daemon probes both, the fence if it is asked to, and compiles for the result: a walk through a list and one along an array take as many WRs
# as the NIC allows. All answers are right.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
needs has.masked_atomics
strict=(checks.index checks.qpn)

: "${REDDN:?set REDDN to the path of the client tool}"

heeded=yes checked=yes copies=13 syncs=11 setting="fenced_enables = true;"
case $1 in
fenced) needs "${strict[@]}" checks.sync_fence ;;
unfenced) needs "${strict[@]}" && heeded="no, or unknown" syncs=18 nic_options=(--no-sync-fence) ;;
unasked) needs "${strict[@]}" && heeded="not asked for \(fenced_enables\)" syncs=18 setting= ;;
unchecked) needs checks.sync_fence && checked="no: operands may stand there" copies=11 nic_options=(--no-index-check --no-qpn-check) ;;
*) fail "usage: probes.sh fenced|unfenced|unasked|unchecked" ;;
esac

# Nodes: next be40, key le48, length be24, value be40. Node i has key 100 + i and the value byte i
python3 -c '
import sys
nodes = b"".join((19 * (i + 1)).to_bytes(5, "big") + (100 + i).to_bytes(6, "little") + (1).to_bytes(3, "big") +
                 i.to_bytes(5, "big") for i in range(8))
open(sys.argv[1], "wb").write(nodes.ljust(4096, b"\0"))
open(sys.argv[2], "wb").write(bytes(range(8)).ljust(4096, b"\0"))' "$work/nodes" "$work/heap"

start_nic
start_reddnd "$setting
regions = (
  { name = \"nodes\"; kind = \"raw\"; path = \"$work/nodes\"; },
  { name = \"heap\"; kind = \"raw\"; path = \"$work/heap\"; } );
offloads = ( { name = \"list\"; program = \"list-walk\"; params = { stop = 1; }; regions = { nodes = \"nodes\"; heap = \"heap\"; }; },
  { name = \"array\"; program = \"while-unrolled\"; params = { n = 4; }; region = \"nodes\"; mode = \"unrolled\"; } );"

grep -qE "a fence holds back a SEND_EN: $heeded; it checks index and QPN of a WQE: $checked\$" "$work/reddnd.log" ||
	fail "the probe has another result" "$work/reddnd.log"
ok "the probe has the right result"
grep -q "offload list: list_walk, .* $syncs waits and enables per request" "$work/reddnd.log" ||
	fail "list-walk is not compiled for this NIC" "$work/reddnd.log"
ok "list-walk takes $syncs waits and enables"
grep -q "offload array: while_unrolled, $copies copies, " "$work/reddnd.log" ||
	fail "while-unrolled is not compiled for this NIC" "$work/reddnd.log"
ok "while-unrolled takes $copies copies"

for key in 0 3 7; do
	on_nic call.log "$REDDN" call --timeout 100000 --json "$address" list 0 $((100 + key)) || fail "no answer" "$work/call.log" "$work/reddnd.log"
	value=$(python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["reply"][16:18], 16))' "$work/call.log")
	[[ $value -eq $key ]] || fail "the value of node $key is not $value" "$work/call.log"
	ok "node $key is found"
done
stop_reddnd
done_testing
