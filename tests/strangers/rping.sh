#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rping: rdma_cm, SEND, READ and WRITE with validated data.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

two_hosts
start_nic

for size in 64 100 4096 65000; do
	cm_pair "rping of $size bytes" "rping -s -a $address -C 100 -S $size -v -V" "rping -c -a $address -C 100 -S $size -v -V"
	# -v prints the data of every ping
	[[ $(grep -c '^ping data: rdma-ping-' "$work/client.log") -eq 100 ]] ||
		fail "not every ping of $size bytes came back" "$work/client.log" "$work/server.log"
	ok "100 pings of $size bytes"
done

cm_pair "rping with queues of its own" "rping -s -a $address -C 10 -q -V" "rping -c -a $address -C 10 -q -V"
ok "the program modifies its QPs itself"

cm_pair "rping by the address of the second device" "rping -s -C 10 -V" "rping -c -a 127.1.0.2 -C 10 -V"
ok "a listener without address"

# ::1 belongs to each host
client_on=("${server_on[@]}")
cm_pair "rping by IPv6" "rping -s -a ::1 -C 10 -V" "rping -c -a ::1 -C 10 -V"
client_on=(--host a)
ok "IPv6"

# Clients are killed: a server of many continues, and no object of them stays.
background server.log "${server_on[@]}" rping -s -P -a "$address" -V
server=$child
server_ready "$server" "rping -P" server.log cm_listens
connected() # NUMBER of ids, two for each connection
{
	[[ $(object connections) -eq $1 ]]
}
clients=()
# one after the other: rping -P keeps one request, and a second one replaces it
for i in 1 2 3; do
	background "client$i.log" "${client_on[@]}" rping -c -a "$address" -V -C 1000000
	clients+=("$child")
	until_true connected $((2 * i)) || fail "client $i is not connected" "$work/server.log" "$work/client$i.log"
done
for pid in "${clients[@]}"; do
	kill_hard "$pid"
done
until_true connected 0 || fail "dead clients stay connected" "$work/server.log"
on_nic client.log "${client_on[@]}" rping -c -a "$address" -V -C 20 || fail "the server does not serve" "$work/client.log" "$work/server.log"
ok "clients killed, the server serves the next"
kill_hard "$server"
expect_no_leak

if on_nic client.log "${client_on[@]}" rping -c -a "$address" -C 1; then
	fail "rping succeeds without a listener" "$work/client.log"
fi
grep -q 'RDMA_CM_EVENT_REJECTED' "$work/client.log" || fail "no REJECTED event" "$work/client.log"
ok "no listener: rejected"

"$SOFTCX" fault add port-down --device b/mlx5_0 >/dev/null
if on_nic client.log "${client_on[@]}" rping -c -a "$address" -C 1; then
	fail "rping reaches a host that is down" "$work/client.log"
fi
grep -q 'RDMA_CM_EVENT_ADDR_ERROR, error -110' "$work/client.log" || fail "no ADDR_ERROR event" "$work/client.log"
ok "the host is down: its address is not resolved"

done_testing
