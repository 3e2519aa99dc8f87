#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma(8) of iproute2 asks the kernel over RDMA netlink for devices, links and resources.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

PATH=$PATH:/usr/sbin:/sbin
two_hosts
start_nic
firmware=$(fact identity.firmware)

# shows WORDS CMD...: a line has these words
shows()
{
	on_nic out "${client_on[@]}" "${@:2}" || fail "${*:2}" "$work/out"
	grep -qE -- "$1" "$work/out" || fail "${*:2} does not show \"$1\"" "$work/out"
	ok "${*:2}: $1"
}

shows "^0: mlx5_0: node_type ca (protocol roce |protocol ib )?fw $firmware node_guid [0-9a-f:]* sys_image_guid" rdma dev
shows '^1: mlx5_1: node_type ca' rdma dev
[[ $(wc -l <"$work/out") -eq 2 ]] || fail "there are other devices" "$work/out"
shows '^link mlx5_0/1 .*state ACTIVE physical_state LINK_UP' rdma link
shows '^link mlx5_1/1 ' rdma link show mlx5_1/1
if able "the network interface of a link" port.link=Ethernet; then
	shows '^link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev lo' rdma link
else
	shows '^link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid [0-9]+ sm_lid 1 lmc 0 state ACTIVE' rdma link
fi
shows '^0: mlx5_0: pd 0 cq 0 qp 0' rdma res
background server.log "${client_on[@]}" rping -s -a 127.0.0.1 -P
server_ready "$child" rping server.log cm_listens
"$SOFTCX" fault add port-down >"$work/out" 2>&1 || fail "port-down" "$work/out"
shows '^link mlx5_0/1 .*state DOWN physical_state DISABLED' rdma link
"$SOFTCX" fault add port-up >"$work/out" 2>&1 || fail "port-up" "$work/out"
kill "$child"
wait "$child" 2>/dev/null

# A device that is not there, and a question that nobody answers
on_nic out "${client_on[@]}" rdma link show mlx5_9/1 && fail "there is a link of no device" "$work/out"
on_nic out "${client_on[@]}" rdma res show qp && fail "resources one by one are shown" "$work/out"
ok "other questions are refused"
done_testing
