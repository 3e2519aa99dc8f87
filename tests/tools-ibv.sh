#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of ibverbs-utils see a ConnectX-5 and move data through it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start_nic

on_nic devices ibv_devices || fail ibv_devices "$work/devices"
grep -q '^ *mlx5_0 ' "$work/devices" || fail "ibv_devices does not list mlx5_0" "$work/devices"
ok "ibv_devices lists the device"

on_nic devinfo ibv_devinfo -v || fail "ibv_devinfo -v" "$work/devinfo"
for line in 'hca_id: mlx5_0' 'transport: InfiniBand' 'state: PORT_ACTIVE' 'link_layer: Ethernet' 'vendor_id: 0x02c9' \
	'atomic_cap: ATOMIC_HCA' 'GID\[ *1\]: ::ffff:.*, RoCE v2'; do
	tr -s '\t ' ' ' <"$work/devinfo" | grep -qE "$line" || fail "ibv_devinfo does not say \"$line\"" "$work/devinfo"
done
ok "ibv_devinfo -v describes it"

pingpong() # WHAT PROGRAM OPTIONS...
{
	local what=$1 port
	shift
	port=$(free_port)
	tcp_pair "$what" "$port" "$* -p $port" "$* -p $port $address"
	grep -q 'usec/iter' "$work/client.log" || fail "$what reports nothing" "$work/client.log"
	ok "$what"
}

pingpong "RC" ibv_rc_pingpong -g 0
pingpong "RC, IPv4 GID" ibv_rc_pingpong -g 1
pingpong "RC, sleeping on events" ibv_rc_pingpong -g 0 -e -n 200
pingpong "RC, data validated" ibv_rc_pingpong -g 0 -c
pingpong "RC, 1 MiB messages validated" ibv_rc_pingpong -g 0 -c -s 1048576 -n 20 -r 20
pingpong "RC, new post API" ibv_rc_pingpong -g 0 -N -n 200
pingpong "RC, CQE timestamps" ibv_rc_pingpong -g 0 -t -n 200
pingpong "UC" ibv_uc_pingpong -g 0 -c
pingpong "UD" ibv_ud_pingpong -g 0 -s 1024 -c
pingpong "SRQ" ibv_srq_pingpong -g 0 -c
pingpong "SRQ, sleeping on events" ibv_srq_pingpong -g 0 -e -n 100

done_testing
