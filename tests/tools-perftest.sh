#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# perftest runs to its end, with addresses exchanged by TCP and with rdma_cm. What it measures is not looked at.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start_nic

perf() # PROGRAM OPTIONS...
{
	local port
	port=$(free_port)
	tcp_pair "$*" "$port" "$* -F -p $port" "$* -F -p $port $address"
	grep -qE '^ *[0-9]+ +[0-9]+ ' "$work/client.log" || fail "$* reports nothing" "$work/client.log"
	ok "$*"
}

# -R: servers listen at a port of rdma_cm, first for the exchange of parameters, then for the queues
perf_cm()
{
	cm_pair "$* -R" "$* -F -R" "$* -F -R $address"
	grep -qE '^ *[0-9]+ +[0-9]+ ' "$work/client.log" || fail "$* -R reports nothing" "$work/client.log"
	ok "$* -R"
}

for test in "ib_send_lat -n 200" "ib_write_lat -n 200" "ib_read_lat -n 200" "ib_atomic_lat -n 200" \
	"ib_write_bw -n 200" "ib_read_bw -n 200" "ib_send_bw -n 200"; do
	read -ra words <<<"$test"
	perf "${words[@]}"
	perf_cm "${words[@]}"
done
perf ib_atomic_lat -n 100 -A CMP_AND_SWAP
perf ib_send_lat -n 100 -s 64 -I 64
perf ib_send_lat -n 100 -e
perf ib_send_bw -n 100 -c UC
perf ib_send_bw -n 100 -c UD -s 1024
perf ib_write_bw -n 50 -q 16
perf ib_send_bw -n 100 --use-srq
perf ib_write_bw -n 20 -s 1048576
perf_cm ib_send_lat -n 100 -e
perf_cm ib_write_bw -n 100 -q 8
perf_cm ib_send_bw -n 100 -c UD -s 512

done_testing
