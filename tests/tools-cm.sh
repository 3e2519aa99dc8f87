#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The other programs of rdmacm-utils.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start_nic

cm_pair ucmatose "ucmatose -c 10 -C 20" "ucmatose -s $address -c 10 -C 20"
ok "ucmatose, 10 connections"
cm_pair "ucmatose -m" "ucmatose -c 4 -C 10 -m" "ucmatose -s $address -c 4 -C 10 -m"
ok "ucmatose, migrating ids between channels"
cm_pair "ucmatose -c 200" "ucmatose -c 200 -C 2" "ucmatose -s $address -c 200 -C 2"
ok "ucmatose, 200 connections"
cm_pair "ucmatose -P ib" "ucmatose -P ib -c 2 -C 5" "ucmatose -P ib -s $address -c 2 -C 5"
ok "ucmatose in the port space IB"
cm_pair udaddy "udaddy -c 3 -C 10" "udaddy -s $address -c 3 -C 10"
ok "udaddy, datagrams"
cm_pair rdma_client "rdma_server -p 7471" "rdma_client -s $address -p 7471"
ok "rdma_server and rdma_client"
cm_pair rdma_xclient "rdma_xserver -c r" "rdma_xclient -s $address -c r"
ok "rdma_xserver and rdma_xclient"
cm_serve cmtime "cmtime -c 50" "cmtime -s $address -c 50"
ok "cmtime, 50 connections"
cm_pair rstream "rstream -S 4096 -I 50 -T v" "rstream -s $address -S 4096 -I 50 -T v"
ok "rstream: sockets over RDMA, data verified"
cm_pair riostream "riostream -S 4096 -I 50 -T v" "riostream -s $address -S 4096 -I 50 -T v"
ok "riostream: WRITEs at offsets"

done_testing
