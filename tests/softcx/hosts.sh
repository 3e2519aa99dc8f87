#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Emulated hosts: each has devices, addresses and ports of its own, and all are on one network.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

# of RoCE, by which the addresses of a host show; InfiniBand has one GID, of the port's GUID
by_gid=false
! able "the GIDs of a host's addresses" port.link=Ethernet || by_gid=true
nic_options=(--hosts "a:2,b")
start_nic

expect_line() # LOG LINE...: each is in the log
{
	local line

	for line in "${@:2}"; do
		tr -s '\t ' ' ' <"$work/$1" | grep -qE -- "$line" || fail "$1 does not say \"$line\"" "$work/$1"
	done
}

refused() # STATUS WORDS OPTIONS OF softcx run...
{
	local rc=0

	on_nic refused "${@:3}" || rc=$?
	[[ $rc -eq $1 ]] || fail "${*:3}: exit status $rc, not $1" "$work/refused"
	expect_line refused "$2"
}

on_nic a-devices --host a ibv_devices || fail "ibv_devices on a" "$work/a-devices"
on_nic b-devices --host b ibv_devices || fail "ibv_devices on b" "$work/b-devices"
expect_line a-devices '^ mlx5_0 ' '^ mlx5_1 '
expect_line b-devices '^ mlx5_0 '
! grep -q mlx5_1 "$work/b-devices" || fail "b has a device of a" "$work/b-devices"
[[ $(cat "$work"/[ab]-devices | awk '/mlx5/ { print $2 }' | sort -u | wc -l) -eq 3 ]] || fail "two devices have one GUID" "$work/a-devices" "$work/b-devices"
on_nic devinfo --host a ibv_devinfo -v -d mlx5_1 -i 1 || fail ibv_devinfo "$work/devinfo"
expect_line devinfo 'hca_id: mlx5_1'
! $by_gid || expect_line devinfo 'GID\[ *3\]: ::ffff:127.0.0.2, RoCE v2'
on_nic devinfo --host b ibv_devinfo -v || fail ibv_devinfo "$work/devinfo"
expect_line devinfo 'hca_id: mlx5_0'
! $by_gid || expect_line devinfo 'GID\[ *3\]: ::ffff:127.1.0.1, RoCE v2'
on_nic devices ibv_devices
cmp -s "$work/devices" "$work/a-devices" || fail "a command without --host is not on the first one" "$work/devices"
ok "each host has its devices"

"$SOFTCX" status --json >"$work/status"
python3 - "$work/status" <<'END' || fail "softcx status reports something else" "$work/status"
import json, sys
status = json.load(open(sys.argv[1]))
assert [(h["name"], h["devices"]) for h in status["hosts"]] == [("a", 2), ("b", 1)]
assert [d["name"] for d in status["devices"]] == ["a/mlx5_0", "a/mlx5_1", "b/mlx5_0"]
END
refused 125 '--host c: the hosts of the NIC in .* are a b' --host c true
refused 125 'another --hosts already runs' --hosts a,b true
refused 125 'a/b: not a name of a host' --hosts a/b true
ok "what there is not is refused"

refused 255 'rdma_bind_addr: Cannot assign requested address' --host b rping -s -a 127.0.0.1
refused 255 'rdma_bind_addr: Cannot assign requested address' --host a rping -s -a 127.1.0.1
ok "an address of another host cannot be bound"

# both listen at one port and say nothing of the other
# ucmatose, not rping: a thread of rping may ask for an event of the channel that its main thread has closed
background a.log --host a ucmatose -p 7171
a=$child
background b.log --host b ucmatose -p 7171
b=$child
listeners() # NUMBER
{
	[[ $(object listeners) -eq $1 ]]
}
until_true listeners 2 || fail "two servers do not listen at one port of two hosts" "$work/a.log" "$work/b.log"
on_nic client.log --host a ucmatose -s 127.1.0.1 -p 7171 || fail "a does not reach b" "$work/client.log"
expect_exit "$b" "server on b" b.log
on_nic client.log --host b ucmatose -s 127.0.0.2 -p 7171 || fail "b does not reach a" "$work/client.log"
expect_exit "$a" "server on a" a.log
ok "a port of rdma_cm belongs to a host"

# connections come from the address that was asked for, else from the first device's
background server.log --host b ucmatose
server=$child
server_ready "$server" ucmatose server.log cm_listens
on_nic client.log --host a ucmatose -s 127.1.0.1 -b 127.0.0.2 ||
	fail "a connection from the second device" "$work/client.log" "$work/server.log"
expect_exit "$server" "server" server.log
ok "a connection from the second device"

"$SOFTCX" fault add port-down --device b/mlx5_0 >/dev/null || fail "softcx fault add port-down --device b/mlx5_0"
on_nic devinfo --host b ibv_devinfo && expect_line devinfo 'state: PORT_DOWN'
on_nic devinfo --host a ibv_devinfo && expect_line devinfo 'state: PORT_ACTIVE'
"$SOFTCX" fault add port-up --device b/0 >/dev/null || fail "softcx fault add port-up --device b/0"
ok "faults of a device of another host"

# a NIC that "run" starts, and a command that runs another one
"$SOFTCX" run --dir "$work/other" --hosts x,y --host y "$SOFTCX" run ibv_devinfo -v >"$work/devinfo" 2>&1 ||
	fail "softcx run --hosts x,y --host y" "$work/devinfo" "$work/other/nic.log"
expect_line devinfo 'hca_id: mlx5_0'
! $by_gid || expect_line devinfo 'GID\[ *3\]: ::ffff:127.1.0.1'
"$SOFTCX" stop --dir "$work/other"
ok "run starts a NIC with hosts, and a command on a host stays there"

done_testing
