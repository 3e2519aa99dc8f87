#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that are not part of rdma-core: UCX, qperf, fio, libfabric. They run between two hosts and end well. Their figures are
# ignored: most of them spin without libibverbs, so that three processes share the processors.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

two_hosts
start_nic

# ---- UCX ----------------------------------------------------------------------------------

# TRANSPORTS|TEST OPTIONS; without transports: those that UCX chooses. rc_x, dc_x and ud_x work on queues without libibverbs.
runs=(
	"|tag_lat -s 64"
	"ib|tag_lat -s 64"
	"ib|tag_bw -s 100000"
	"rc_v|tag_lat -s 64"
	"ud_v|tag_lat -s 64"
)
direct_runs=(
	"rc_x|tag_lat -s 64"
	"rc_x|tag_bw -s 100000"
	"rc_x|ucp_put_lat -s 8"
	"rc_x|ucp_get -s 4096"
	"rc_x|ucp_fadd -s 8"
	"rc_x|ucp_cswap -s 8"
	"dc_x|tag_bw -s 100000"
	"dc_x|ucp_get -s 4096"
	"dc_x|ucp_fadd -s 8"
	"ud_x|tag_lat -s 64"
)
# it asks for 64 bytes inline, for which libmlx5 needs WQEs of 260 bytes with RC (qp.c, sq_overhead()), and for queues with
# timestamps of a free-running clock
able "UCX" 'limits.send_wqe>=512' 'has.clocks!=real-time' || runs=()
listed=(rc_verbs ud_verbs)
# ib_device.c of UCX 1.13 has no BlueField-3, and offers these for devices that it knows
if able "UCX on queues without libibverbs" 'identity.part!=41692'; then
	[[ ${#runs[@]} -eq 0 ]] || runs+=("${direct_runs[@]}")
	listed+=(rc_mlx5 ud_mlx5)
fi
for i in "${!runs[@]}"; do
	transports=${runs[i]%%|*}
	run="ucx_perftest -n 20 -w 5 -t ${runs[i]#*|}"
	unset UCX_TLS
	[[ -z $transports ]] || export UCX_TLS=$transports
	free_port
	tcp_pair "UCX_TLS=$transports $run" "$port" "ucx_perftest -p $port" "$run -p $port $address"
	grep -q '^Final:' "$work/client.log" || fail "UCX_TLS=$transports $run reports nothing" "$work/client.log"
	grep -qE 'ERROR|WARN' "$work/client.log" "$work/server.log" &&
		fail "UCX_TLS=$transports $run complains" "$work/client.log" "$work/server.log"
	ok "$((i + 1))/${#runs[@]} UCX_TLS=$transports $run"
done
unset UCX_TLS
if [[ ${#runs[@]} -gt 0 ]]; then
	expect_work a/mlx5_0 b/mlx5_0
	on_nic info "${client_on[@]}" ucx_info -d || fail "ucx_info -d" "$work/info"
	for transport in "${listed[@]}"; do
		grep -q "Transport: $transport" "$work/info" || fail "ucx_info -d lists no $transport" "$work/info"
	done
	grep -q 'ERROR' "$work/info" && fail "ucx_info -d complains" "$work/info"
	ok "ucx_info -d"
fi

# ---- qperf --------------------------------------------------------------------------------

# Without -cm it makes paths without a GRH, which no RoCE device takes.
free_port
background server.log "${server_on[@]}" qperf -lp "$port"
server=$child
server_ready "$server" qperf server.log tcp_listens "$port"
qperf_tests=(rc_lat rc_bw rc_rdma_read_lat rc_rdma_write_bw)
able "atomics of verbs" has.host_atomics && qperf_tests+=(ver_rc_compare_swap)
for test in "${qperf_tests[@]}"; do
	on_nic client.log "${client_on[@]}" qperf -lp "$port" -t 1 -cm 1 "$address" "$test" || fail "qperf $test" "$work/client.log"
	grep -q ' = ' "$work/client.log" || fail "qperf $test reports nothing" "$work/client.log" "$work/server.log"
	ok "qperf $test"
done
kill "$server"
wait "$server" 2>/dev/null

# ---- fio ----------------------------------------------------------------------------------

# Who reads or writes with the engine is the server or the client; the verb is chosen by the client.
for verb in write read; do
	common="--ioengine=rdma --port=$((7300 + ${#verb})) --bs=64k --size=1m"
	cm_pair "fio $verb" "fio --name=server --rw=read $common" \
		"fio --name=client --rw=write $common --hostname=$address --verb=$verb --iodepth=4"
	ok "fio, RDMA $verb"
done

# ---- libfabric ----------------------------------------------------------------------------

# It looks past loopback addresses. The first host has those of this machine.
read -ra own < <(hostname -I)
if [[ ${#own[@]} -eq 0 || ${own[0]} != *.* ]]; then
	printf 'skipped: libfabric, for which this machine needs an IPv4 address\n'
else
	server_on=("${client_on[@]}")
	for run in "msg|verbs" "dgram|verbs" "rdm|verbs;ofi_rxm" "rdm|verbs;ofi_rxd"; do
		free_port
		# ofi_rxd repeats the last message until it is acknowledged, and its peer ends as soon as it has it: the
		# acknowledgement is lost in some runs, with any NIC, and either side waits for it
		may_linger=
		[[ $run != *rxd ]] || may_linger=yes
		last=1m
		[[ $run != dgram* ]] || last=4k
		options="-p ${run#*|} -e ${run%%|*} -I 20 -c"
		tcp_pair "fi_pingpong $options" "$port" "fi_pingpong $options -B $port" "fi_pingpong $options -P $port ${own[0]}"
		grep -q "^$last " "$work/client.log" || fail "fi_pingpong $options reports nothing" "$work/client.log"
		ok "fi_pingpong $options"
	done
fi

done_testing
