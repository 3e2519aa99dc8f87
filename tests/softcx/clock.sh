#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Timestamps: of the machine's clock, and of a modelled one.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

# of a free-running clock, which verbs ask for
needs 'has.clocks!=real-time'
gid=
! able "an address of RoCE" port.link=Ethernet || gid="-g 1"
run=(--devices 2)

on_nic machine.log --dir "$memory/nic-machine" "${run[@]}" "$CLOCK" machine || fail "timestamps without --clock" "$work/machine.log"
ok "timestamps are those of the machine's clock"

# for which libmlx5 needs WQEs of 260 bytes with RC (qp.c, sq_overhead())
if able "the times of 64 bytes inline" 'limits.send_wqe>=512'; then
	on_nic cx5.log --dir "$memory/nic-cx5" "${run[@]}" --clock cx5 "$CLOCK" 1600 1800 || fail "--clock cx5" "$work/cx5.log"
	ok "--clock cx5: a WRITE takes 1.6 us, a READ 1.8 us, each time"
fi

on_nic unknown.log --dir "$work/nic-unknown" --clock cx4 true && fail "--clock cx4"
grep -q -- '--clock cx4: .*/cx4.conf: No such file' "$work/unknown.log" || fail "--clock cx4 does not say what is wrong" "$work/unknown.log"
on_nic unknown.log --dir "$work/nic-unknown" --clock mine.conf true && fail "--clock mine.conf without the file"
grep -q -- '--clock mine.conf: mine.conf: No such file' "$work/unknown.log" || fail "--clock mine.conf does not say what is wrong" "$work/unknown.log"
ok "an unknown clock is refused"
cp "$(dirname "${BASH_SOURCE[0]}")/../../costs/cx5.conf" "$work/mine.conf"
(cd "$work" && on_nic mine.log --dir "$memory/nic-mine" --clock mine.conf true) || fail "--clock mine.conf" "$work/mine.log"
ok "a name with .conf behind is a file of the current directory"

# ---- a tool that knows nothing of it ------------------------------------------------------

two_hosts
nic_options+=(--clock cx5)
start_nic
[[ $("$SOFTCX" status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["clock"])') == cx5 ]] ||
	fail "softcx status does not tell the clock"
on_nic other.log --clock cx6 true && fail "--clock cx6 on a NIC with another clock"
grep -q -- 'another --clock' "$work/other.log" || fail "--clock cx6 on a NIC with another clock" "$work/other.log"
ok "a NIC has one clock"

for n in 1 2; do
	free_port
	tcp_pair "ibv_rc_pingpong -t" "$port" "ibv_rc_pingpong $gid -s 64 -n 100 -t -p $port" "ibv_rc_pingpong $gid -s 64 -n 100 -t -p $port $address"
	# the way there and back, of 1.6 us less half of the network each, and 0.32 for data that are not inline
	grep -q 'Max receive completion clock cycles = 359[34]$' "$work/client.log" || fail "pingpong $n" "$work/client.log"
done
ok "ibv_rc_pingpong -t: 3.59 us for a message of 64 bytes and its answer"

free_port
server_on+=(--think 10)
tcp_pair "ibv_rc_pingpong -t" "$port" "ibv_rc_pingpong $gid -s 64 -n 100 -t -p $port" "ibv_rc_pingpong $gid -s 64 -n 100 -t -p $port $address"
grep -q 'Max receive completion clock cycles = 1359[34]$' "$work/client.log" || fail "--think 10" "$work/client.log"
ok "--think 10: 10 us more"
done_testing
