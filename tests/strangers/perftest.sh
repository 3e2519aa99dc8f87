#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# perftest runs between two hosts and ends well, with addresses exchanged over TCP or, with -R, rdma_cm. The test ignores its
# results. Each run samples the speed of the processor (get_cpu_mhz() in get_clock.c), and -a does so for each size. Most runs
# therefore have one size, and all sizes take turns; and fast-clock.c makes a sample of 0.2 s one of 0.02 s.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

two_hosts
start_nic
: "${FAST_CLOCK_LIB:?set FAST_CLOCK_LIB to the path of the library}"
preloading "$FAST_CLOCK_LIB"
server_on+=("${preloading[@]}") client_on+=("${preloading[@]}")

# PROGRAM OPTIONS, the same at both ends. The options that perftest itself refuses are below.
runs=(
	"ib_send_lat"
	"ib_send_lat -e"
	"ib_send_lat -s 64 -I 64"
	"ib_send_lat -d mlx5_1 -i 1"
	"ib_send_lat -c UC"
	"ib_send_lat -c UC -e"
	"ib_send_lat -c UD -s 1024"
	"ib_send_lat -c UD -e -s 2"
	"ib_send_bw"
	"ib_send_bw -e"
	"ib_send_bw -b"
	"ib_send_bw -q 16"
	"ib_send_bw --use-srq"
	"ib_send_bw -c UC"
	"ib_send_bw -c UC -q 16"
	"ib_send_bw -c UD -s 4096"
	"ib_send_bw -c UD -q 16 -s 512"
	"ib_send_lat -c DC"
	"ib_send_bw -c DC"
	"ib_write_lat"
	"ib_write_lat -c DC"
	"ib_write_bw -c DC -q 4"
	"ib_read_bw -c DC"
	"ib_atomic_lat -c DC"
	"ib_write_lat -c UC"
	"ib_write_bw"
	"ib_write_bw -b"
	"ib_write_bw -q 16"
	"ib_write_bw -c UC"
	"ib_write_bw -c UC -q 16"
	"ib_read_lat"
	"ib_read_lat -e"
	"ib_read_bw"
	"ib_read_bw -e"
	"ib_read_bw -q 16"
	"ib_read_bw -o 1"
	"ib_atomic_lat"
	"ib_atomic_lat -e"
	"ib_atomic_lat -A CMP_AND_SWAP"
	"ib_atomic_bw"
	"ib_atomic_bw -e"
	"ib_atomic_bw -q 16 -A CMP_AND_SWAP"
	"ib_send_lat -R"
	"ib_send_lat -R -e"
	"ib_send_lat -R -c UD -s 16"
	"ib_send_bw -R"
	"ib_send_bw -R -e"
	"ib_send_bw -R -q 16"
	"ib_send_bw -R -c UD -s 128"
	"ib_write_lat -R"
	"ib_write_bw -R"
	"ib_write_bw -R -q 16"
	"ib_read_lat -R"
	"ib_read_lat -R -e"
	"ib_read_bw -R -e -q 16"
	"ib_atomic_lat -R"
	"ib_atomic_lat -R -e"
	"ib_atomic_bw -R -q 16"
	"ib_write_bw -a -n 5"
)

sized()
{
	[[ $1 == *atomic* || $1 == *' -s '* || $1 == *' -a '* ]]
}

if ! able "atomics of verbs" has.host_atomics; then
	with=("${runs[@]}") runs=()
	for run in "${with[@]}"; do
		[[ $run == ib_atomic* ]] || runs+=("$run")
	done
fi

bits=0
for i in "${!runs[@]}"; do
	run=${runs[i]}
	if ! sized "$run"; then
		run+=" -s $((1 << bits))"
		bits=$(((bits + 1) % 21))
	fi
	[[ $run == *' -n '* ]] || run+=" -n 50"
	if [[ $run == *' -R'* ]]; then
		# servers listen on a port of rdma_cm, first to exchange parameters, then for the queues
		cm_pair "$run" "$run -F" "$run -F $address"
	else
		free_port
		tcp_pair "$run" "$port" "$run -F -p $port" "$run -F -p $port $address"
	fi
	grep -qE '^ *[0-9]+ +[0-9]+ ' "$work/client.log" || fail "$run reports nothing" "$work/client.log"
	ok "$((i + 1))/${#runs[@]} $run"
done
expect_work a/mlx5_0 a/mlx5_1 b/mlx5_0 b/mlx5_1

# perftest_parameters.c refuses these before it looks at a device: WORDS|PROGRAM OPTIONS
expect_refusals <<'END'
Multiple QPs only available on bw tests|ib_read_lat -q 16
Events feature not available on WRITE verb|ib_write_bw -e
UC connection not possible in READ/ATOMIC verbs|ib_atomic_bw -c UC
UD connection only possible in SEND verb|ib_write_bw -c UD
UC is not supported in librdmacm|ib_send_lat -R -c UC
END

done_testing
