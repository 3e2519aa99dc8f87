#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Address vectors of accepted connections: replies have the traffic class that the client asked for, the client's MAC address, and a
# source port of RoCE v2. The REQs of the emulated clients ask for a static rate, which the device refuses; the daemon sets none.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
needs port.link=Ethernet
: "${ONE_CLASS:?set ONE_CLASS to the path of one-class}"

modes=(plain)
able "recycled offloads" "${recycling[@]}" && modes+=(lap)
two_hosts
start_nic
cat >"$work/hello.rdn" <<END
program hello
write_imm 7 as be64 -> slot @ 0
END
start_reddnd "offloads = ( { name = \"plain\"; mode = \"unrolled\"; program = \"$work/hello.rdn\"; },
  { name = \"lap\"; program = \"$work/hello.rdn\"; mode = \"recycled\"; } );"

tracing()
{
	"$SOFTCX" status --json | python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin)["tracing"])'
}

not_tracing()
{
	! tracing
}

# replies OFFLOAD TOS: prints type of service, destination MAC, hop limit and source port of the frames to the client's queue
replies()
{
	until_true not_tracing || fail "tracing goes on without a reader"
	"$SOFTCX" trace --pcapng "$work/trace" >"$work/trace.log" 2>&1 &
	tracer=$!
	pids+=("$tracer")
	until_true tracing || fail "no trace" "$work/trace.log"
	on_nic client.log "${client_on[@]}" "$ONE_CLASS" "$address" "$port" "$1" "$2" || fail "no reply" "$work/client.log" "$work/reddnd.log"
	kill -INT "$tracer"
	wait "$tracer"
	python3 - "$work/trace" "$(<"$work/client.log")" <<-'END'
		import struct, sys
		data, qpn, at = open(sys.argv[1], "rb").read(), int(sys.argv[2]), 0
		while at < len(data):
		    kind, size = struct.unpack_from("<II", data, at)
		    frame = data[at + 28:at + size]
		    # Ethernet, IPv4, UDP, BTH
		    if kind == 6 and frame[12:14] == b"\x08\x00" and int.from_bytes(frame[47:50], "big") == qpn:
		        print(frame[15], frame[:6].hex(":"), frame[22], int.from_bytes(frame[34:36], "big"))
		    at += size
	END
}

for mode in "${modes[@]}"; do
	for tos in 0 104 184; do
		replies "$mode" "$tos" >"$work/frames"
		[[ -s $work/frames ]] || fail "$mode, $tos: the trace has no reply"
		while read -r got mac hops sport; do
			[[ $got == "$tos" ]] || fail "$mode: type of service $tos of the client, $got of the reply"
			[[ $mac == 02:00:7f:00:00:01 ]] || fail "$mode: the reply goes to $mac"
			[[ $hops -gt 0 && $sport -ge 49152 ]] || fail "$mode: hop limit $hops, source port $sport"
		done <"$work/frames"
		ok "$mode: replies have the type of service $tos of the client"
	done
done
stop_reddnd
done_testing
