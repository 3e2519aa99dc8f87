#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of ibverbs-utils see the device, and move data between two hosts.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

# an InfiniBand port has LIDs, and paths need no GID
link=$(fact port.link) path='GID\[ *3\]: ::ffff:.*, RoCE v2' atomics=ATOMIC_HCA
[[ $link == Ethernet ]] || path='port_lid: [1-9]'
[[ $(fact has.host_atomics) == true ]] || atomics=ATOMIC_NONE

two_hosts
start_nic

on_nic devices ibv_devices || fail ibv_devices "$work/devices"
grep -q '^ *mlx5_0 ' "$work/devices" || fail "ibv_devices does not list mlx5_0" "$work/devices"
ok "ibv_devices lists the device"

on_nic devinfo ibv_devinfo -v || fail "ibv_devinfo -v" "$work/devinfo"
for line in 'hca_id: mlx5_0' 'hca_id: mlx5_1' 'transport: InfiniBand' 'state: PORT_ACTIVE' "link_layer: $link" \
	'vendor_id: 0x02c9' "atomic_cap: $atomics" "$path"; do
	tr -s '\t ' ' ' <"$work/devinfo" | grep -qE "$line" || fail "no line \"$line\" from ibv_devinfo" "$work/devinfo"
done
ok "ibv_devinfo -v describes the device"

# ---- pingpong -----------------------------------------------------------------------------

# PROGRAM OPTIONS, the same at both ends
runs=(
	"ibv_rc_pingpong -g 0"
	"ibv_rc_pingpong -g 1 -d mlx5_1 -i 1"
	"ibv_rc_pingpong -g 1 -e -n 200"
	"ibv_rc_pingpong -g 1 -c"
	"ibv_rc_pingpong -g 1 -e -c -n 200"
	"ibv_rc_pingpong -g 1 -c -s 1048576 -n 20 -r 20"
	"ibv_rc_pingpong -g 1 -N -n 200"
	"ibv_rc_pingpong -g 1 -t -n 200"
	"ibv_uc_pingpong -g 1"
	"ibv_uc_pingpong -g 1 -e -n 200"
	"ibv_uc_pingpong -g 0 -c"
	"ibv_ud_pingpong -g 1"
	"ibv_ud_pingpong -g 1 -e -n 200"
	"ibv_ud_pingpong -g 0 -s 1024 -c"
	"ibv_srq_pingpong -g 1"
	"ibv_srq_pingpong -g 1 -e -n 100"
	"ibv_srq_pingpong -g 0 -c"
)
timestamps=true
able "timestamps of a free-running clock" 'has.clocks!=real-time' || timestamps=false
for i in "${!runs[@]}"; do
	run=${runs[i]}
	[[ $run != *' -t '* ]] || $timestamps || continue
	[[ $link == Ethernet ]] || run=${run/ -g [01]/}
	free_port
	tcp_pair "$run" "$port" "$run -p $port" "$run -p $port $address"
	grep -q 'usec/iter' "$work/client.log" || fail "$run reports nothing" "$work/client.log"
	ok "$((i + 1))/${#runs[@]} $run"
done
expect_work a/mlx5_0 a/mlx5_1 b/mlx5_0 b/mlx5_1

# Refused: the emulator lacks these features. WORDS|PROGRAM OPTIONS
expect_refusals <<'END'
IB device mlx5_2 not found|ibv_rc_pingpong -d mlx5_2
Failed to modify QP to INIT|ibv_rc_pingpong -i 2 -g 0
Couldn't Open the XRC Domain 95|ibv_xsrq_pingpong -g 1
END

# ---- events -------------------------------------------------------------------------------

background watch.log --host b ibv_asyncwatch -d mlx5_1
watch=$child
until_true grep -q 'async event' "$work/watch.log" || fail "ibv_asyncwatch does not start" "$work/watch.log"
while read -r fault number; do
	for device in a/mlx5_0 b/mlx5_1; do # b/mlx5_1 is watched, a/mlx5_0 is not
		"$SOFTCX" fault add "$fault" --device "$device" >/dev/null || fail "softcx fault add $fault --device $device"
	done
	until_true grep -q "($number)" "$work/watch.log" || fail "no event reports $fault" "$work/watch.log"
	[[ $(grep -c "($number)" "$work/watch.log") -eq 1 ]] || fail "$fault is reported twice" "$work/watch.log"
	ok "ibv_asyncwatch: $(tail -n 1 "$work/watch.log" | tr -s ' ')"
done <<'END'
port-down 10
port-up 9
device-fatal 8
END
kill "$watch"
wait "$watch" 2>/dev/null

done_testing
