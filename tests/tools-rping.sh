#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rping: rdma_cm, SEND, READ and WRITE with validated data.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start_nic

for size in 64 100 4096 65000; do
	cm_pair "rping of $size bytes" "rping -s -a $address -C 100 -S $size -v -V" "rping -c -a $address -C 100 -S $size -v -V"
	# -v shows the data of every ping
	[[ $(grep -c '^ping data: rdma-ping-' "$work/client.log") -eq 100 ]] ||
		fail "not every ping of $size bytes came back" "$work/client.log" "$work/server.log"
	ok "100 pings of $size bytes"
done

cm_pair "rping with queues of its own" "rping -s -a $address -C 10 -q -V" "rping -c -a $address -C 10 -q -V"
ok "QPs that the program moves itself"

cm_pair "rping by another address of the machine" "rping -s -C 10 -V" "rping -c -a 127.0.0.2 -C 10 -V"
ok "a listener without address"

if on_nic client.log rping -c -a "$address" -C 1; then
	fail "rping succeeds though nobody listens" "$work/client.log"
fi
grep -q 'RDMA_CM_EVENT_REJECTED' "$work/client.log" || fail "no REJECTED event" "$work/client.log"
ok "nobody listens: rejected"

done_testing
