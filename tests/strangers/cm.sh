#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The other programs of rdmacm-utils, between two hosts.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

two_hosts
start_nic

b=$address
# SERVER|CLIENT
runs=(
	"ucmatose -c 10 -C 20|ucmatose -s $b -c 10 -C 20"
	"ucmatose -b $b|ucmatose -s $b -b 127.0.0.1"
	"ucmatose -b 127.1.0.2|ucmatose -s 127.1.0.2 -b 127.0.0.2"
	"ucmatose -f ip -c 2|ucmatose -f ip -s $b -c 2"
	"ucmatose -p 9000|ucmatose -s $b -p 9000 -t 32 -a 14"
	"ucmatose -c 4 -C 10 -m|ucmatose -s $b -c 4 -C 10 -m"
	"ucmatose -c 200 -C 2|ucmatose -s $b -c 200 -C 2"
	"ucmatose -P ib -c 2 -C 5|ucmatose -P ib -s $b -c 2 -C 5"
	"udaddy -c 3 -C 10|udaddy -s $b -c 3 -C 10"
	"udaddy -b 127.1.0.2|udaddy -s 127.1.0.2 -b 127.0.0.2 -t 8"
	"rdma_server -p 7471|rdma_client -s $b -p 7471"
	"rdma_xserver -c r|rdma_xclient -s $b -c r"
)
# rsocket.c asks for 64 bytes of inline data, for which libmlx5 needs WQEs of 260 bytes with RC (qp.c, sq_overhead())
sockets=true
able "sockets over RDMA" 'limits.send_wqe>=512' || sockets=false
! $sockets || runs+=(
	"rstream -S 4096 -I 50 -T v|rstream -s $b -S 4096 -I 50 -T v"
	"rstream -b $b -S all -I 5|rstream -s $b -S all -I 5"
	"riostream -S 4096 -I 50 -T v|riostream -s $b -S 4096 -I 50 -T v"
	"riostream -S 65536 -I 5 -T a|riostream -s $b -S 65536 -I 5 -T a"
)
for i in "${!runs[@]}"; do
	cm_pair "${runs[i]#*|}" "${runs[i]%|*}" "${runs[i]#*|}"
	ok "$((i + 1))/${#runs[@]} ${runs[i]#*|}"
done
# the newer one: both ends meet by TCP first, and end
if cmtime -h 2>&1 | grep -qe '-C controller_address'; then
	free_port
	tcp_pair cmtime "$port" "cmtime -L -b $b -C $b -p $port -c 50" "cmtime -b 127.0.0.1 -C $b -p $port -c 50"
else
	cm_serve cmtime "cmtime -c 50" "cmtime -s $b -c 50"
fi
ok "cmtime, 50 connections"

# the server keeps running; the copy equals the file
if $sockets; then
	head -c 300000 /dev/urandom >"$work/sent"
	cm_serve rcopy rcopy "rcopy $work/sent $b:$work/copied"
	cmp "$work/sent" "$work/copied" || fail "the copy differs" "$work/client.log"
	ok "rcopy"
fi
expect_work a/mlx5_0 a/mlx5_1 b/mlx5_0 b/mlx5_1

# These must fail: WORDS|PROGRAM OPTIONS. The emulator has no multicast, RoCE has no InfiniBand addresses, and each host has its
# own addresses.
expect_refusals <<END
mckey: failure joining: Function not implemented|mckey -m 239.1.1.1 -b 127.0.0.1
mckey: failure joining: Function not implemented|mckey -m 239.1.1.1 -b 127.0.0.1 -s
Cannot assign requested address|mckey -m 239.1.1.1 -b $b
RDMA_CM_EVENT_REJECTED, error: 8|ucmatose -s $b
RDMA_CM_EVENT_UNREACHABLE, error: 1|udaddy -s $b
Cannot assign requested address|ucmatose -b $b
No such device|ucmatose -f gid -s ::ffff:127.1.0.1
Cannot assign requested address|rdma_server -s $b
RDMA_CM_EVENT_ADDR_ERROR, error: -110|ucmatose -s 192.0.2.1
END

# udpong cannot work on any RoCE device: librdmacm makes its address handles without a GRH (ds_add_qp_dest() in rsocket.c), which
# mlx5_create_ah() refuses; the message is about the consequence.
! able "addresses without a GRH, which RoCE refuses" port.link=Ethernet || expect_refusals <<END
rconnect: No such file or directory|udpong -s $b
END

done_testing
