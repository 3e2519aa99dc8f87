#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# plain.sh DEVICE: the daemon and its clients on a NIC that runs no chains: it reports why, and the CPU executes all offloads: gets of random
# tables, and atomics. The device `plain` ends a queue with an immediate, so that replies end with SENDs there.
export SOFTCX_DEVICE=$1 ENGINE=auto
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${GET_PROPERTY:?set GET_PROPERTY to the path of the test program}"

case $1 in
plain) why='it takes no direct commands (DEVX)' ;;
no-cross-channel) why='it lacks: cross-channel work requests (WAIT, SEND_EN)' ;;
no-message-limit) why='it failed the self-test (see the log)' ;;
*) fail "usage: plain.sh DEVICE" ;;
esac
"$GET_PROPERTY" make small 1 "$work/table" || fail "no table"
python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<512Q", 258, *[0] * 511))' >"$memory/words"

start_nic
start_reddnd "control = \"$control\";
regions = ( { name = \"table\"; kind = \"table\"; path = \"$work/table\"; },
  { name = \"words\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; } );
offloads = ( { name = \"get\"; program = \"hash-get\"; region = \"table\"; depth_max = 64; },
  { name = \"parallel\"; program = \"hash-get-parallel\"; region = \"table\"; mode = \"recycled\"; },
  { name = \"counter\"; program = \"counter\"; region = \"words\"; } );"
grep -qF "mlx5_0 runs no chains: $why" "$work/reddnd.log" || fail "the log does not say why there are no chains" "$work/reddnd.log"
ctl --json offloads
[[ $(value "all(o['engine'] == 'cpu' and 'runs no chains' in o['why'] for o in d)") == True ]] || fail "reddnctl reports something else" "$work/ctl.out"
ok "the CPU executes all offloads: $why"

for offload in get parallel; do
	for depth in 1 4 64; do
		[[ $offload != parallel || $depth -lt 64 ]] || continue
		on_nic ask.log "$GET_PROPERTY" ask "$address" "$port" "$offload" "$work/table" "$depth" 1000 1 ||
			fail "$offload, depth $depth" "$work/ask.log" "$work/reddnd.log"
		ok "$(tail -n 1 "$work/ask.log")"
	done
done
for ticket in 258 259; do
	on_nic ask.log "$REDDN" call --timeout 100000 --json "$address" counter 0 260 || fail "no ticket" "$work/ask.log" "$work/reddnd.log"
	python3 -c 'import json, struct, sys
sys.exit(struct.unpack_from("<B7xQ", bytes.fromhex(json.load(open(sys.argv[1]))["reply"])) != (1, int(sys.argv[2])))' "$work/ask.log" "$ticket" ||
		fail "ticket $ticket is not sold" "$work/ask.log"
done
ok "atomics of the CPU"

stop_reddnd
done_testing
