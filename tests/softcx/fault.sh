#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# softcx fault: programs that know nothing of it, the client library and the daemon meet a NIC that fails on demand.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
with_daemon=false
if able "the daemon and its clients" has.devx; then
	with_daemon=true
	. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
fi

: "${REDDN:?set REDDN to the path of the client tool}"

make_table "$work/table" --max-value 1000 <<<$'alice\twonder'
start_nic

fault() # WORD...
{
	"$SOFTCX" fault "$@" >"$work/fault.log" 2>&1 || fail "softcx fault $*" "$work/fault.log"
}

struck() # how often all faults that are listed
{
	"$SOFTCX" fault list --json | python3 -c 'import json, sys; print(sum(f["struck"] for f in json.load(sys.stdin)))'
}

expect_struck() # WHAT: some did; they are cleared
{
	[[ $(struck) -gt 0 ]] || fail "$1: no fault struck" "$work/client.log"
	fault clear
	[[ -z $("$SOFTCX" fault list) ]] || fail "faults are not cleared"
}

# ---- the tool -----------------------------------------------------------------------------

while IFS='|' read -r words answer; do
	read -ra w <<<"$words"
	if "$SOFTCX" fault "${w[@]}" >"$work/fault.log" 2>&1; then
		fail "softcx fault $words is accepted" "$work/fault.log"
	fi
	grep -q -e "$answer" "$work/fault.log" || fail "softcx fault $words: \"$answer\" is not said" "$work/fault.log"
done <<'END'
add|add what
add melt|fault melt: not one of drop delay
add error|error of what
add error 77|error 77: not one of local-length
add delay soon|delay soon: not a number
add split|split of what
add split soon|split soon: not a number
add split 10 --opcode cas|split does not go with
add drop --qp|--qp: a value is missing
add drop --qp 0xffff|no such queue pair
add mkey-revoke 0x123|no such memory key
add drop --opcode wait|--opcode wait: not one of nop
add drop --opcode nop|drop does not go with
add drop --at 1 --probability 0.5|exclude each other
add drop --probability 2|--probability 2: not a number
add drop --device mlx5_7|--device mlx5_7: not one of mlx5_0
add qp-error|qp-error does not go with
add drop --often|a value is missing
add kill-after --qp 5|--qp: not an option of kill-after
add kill-before --program a-name-of-16-chr|more than 15 bytes
add kill-before --at 0|--at 0: not a number
clear 99|there is no fault 99
forget|not one of add list clear
END
ok "what makes no sense is refused with words"
fault add drop --probability 0.5 --opcode write --count 3
fault add error remote-access --at 1000
"$SOFTCX" fault list >"$work/fault.log"
[[ $(wc -l <"$work/fault.log") -eq 2 ]] || fail "two faults are not listed" "$work/fault.log"
grep -q 'kind error, syndrome remote-access' "$work/fault.log" || fail "a fault is not described" "$work/fault.log"
fault clear 1
fault clear
ok "add, list, clear"

# ---- a program that dies at each of its calls ---------------------------------------------

for moment in kill-before kill-after; do
	fault add $moment --program ibv_devices
	on_nic client.log ibv_devinfo || fail "$moment: a program with another name dies" "$work/client.log"
	fault clear
	for ((n = 1; ; n++)); do
		fault add $moment --program ibv_devinfo --at $n
		on_nic client.log ibv_devinfo
		rc=$?
		until_true same_objects || fail "$moment $n: objects are left over"
		"$SOFTCX" fault list | grep -q "kind $moment, program ibv_devinfo, at $n, count 1" || fail "$moment is not described"
		[[ $rc -eq 0 ]] && break
		[[ $rc -eq 137 && $(struck) -eq 1 ]] || fail "$moment $n: exit status $rc" "$work/client.log"
		fault clear
	done
	[[ $n -gt 3 && $(struck) -eq 0 ]] || fail "$moment: ibv_devinfo survives its call $n" "$work/client.log"
	fault clear
	ok "$moment: ibv_devinfo dies at each of its $((n - 1)) calls"
done

# ---- programs of others -------------------------------------------------------------------

fault add drop --probability 0.02
cm_pair "rping with losses" "rping -s -a $address -C 100 -V" "rping -c -a $address -C 100 -V"
expect_struck "rping with losses"
ok "rping gets every byte through losses"

fault add delay 2000 --probability 0.05
fault add split 200 --probability 0.05
fault add rnr --probability 0.05
cm_pair "rping, late and not ready" "rping -s -a $address -C 100 -V" "rping -c -a $address -C 100 -V"
expect_struck "rping, late and not ready"
ok "rping gets every byte through delays, messages that are read in parts, and RNR NAKs"

free_port
tcp=$port
fault add drop --at 100 --count 3
tcp_pair "ib_write_bw with losses" "$tcp" "ib_write_bw -F -n 500 -s 4096 -p $tcp" "ib_write_bw -F -n 500 -s 4096 -p $tcp $address"
expect_struck "ib_write_bw with losses"
ok "ib_write_bw ends well after losses"

rping_fails() # WHAT WORDS
{
	local rc=0

	background server.log rping -s -a "$address" -C 100 -V
	server_ready "$child" "$1" server.log cm_listens
	on_nic client.log rping -c -a "$address" -C 100 -V || rc=$?
	wait "$child" && [[ $rc -eq 0 ]] && fail "$1: both ends succeed" "$work/client.log" "$work/server.log"
	grep -q -e "$2" "$work/client.log" "$work/server.log" || fail "$1: \"$2\" is not said" "$work/client.log" "$work/server.log"
	expect_struck "$1"
	ok "$1: $(cat "$work/client.log" "$work/server.log" | grep -m 1 -e "$2")"
}

fault add drop --at 50 --count 100
rping_fails "a packet that never arrives" "status 12"
fault add error local-protection --opcode write --at 3
rping_fails "rping, an error of its own" "status 4"
fault add error remote-access --opcode read --at 3
rping_fails "rping, an error of the peer" "status 10"

# A key as softcx status names it
rping_runs()
{
	"$SOFTCX" status --objects | grep -q 'state RTS.* sq done [1-9]'
}
# until then it goes on
background server.log rping -s -a "$address" -C 100000 -V
server=$child
server_ready "$server" "a key that goes" server.log cm_listens
fault add delay 20000 --probability 1
background client.log rping -c -a "$address" -C 100000 -V
until_true rping_runs || fail "rping does not run" "$work/client.log"
key=$("$SOFTCX" status --objects | sed -n 's/.*key \(0x[0-9a-f]*\),.*remote read.*/\1/p' | head -n 1)
fault add mkey-revoke "$key"
wait "$child" && wait "$server" && fail "a key that goes: both ends succeed" "$work/client.log" "$work/server.log"
grep -q 'status \(4\|10\)$' "$work/client.log" "$work/server.log" || fail "a key that goes: no error" "$work/client.log" "$work/server.log"
fault clear
ok "rping, a key that goes: $(cat "$work/client.log" "$work/server.log" | grep -m 1 'status')"
until_true same_objects || fail "objects are left over"

# ---- the port and the device --------------------------------------------------------------

background watch.log ibv_asyncwatch -d mlx5_0
watch=$child
until_true grep -q 'async event' "$work/watch.log" || fail "ibv_asyncwatch does not watch" "$work/watch.log"
fault add port-down
until_true grep -q '(10)' "$work/watch.log" || fail "nobody hears that the port is down" "$work/watch.log"
on_nic client.log ibv_devinfo || fail "ibv_devinfo" "$work/client.log"
grep -q 'PORT_DOWN' "$work/client.log" || fail "the port is not down" "$work/client.log"
[[ $(cat "$SOFTCX_DIR/sys/class/infiniband/mlx5_0/ports/1/state") == "1: DOWN" ]] || fail "the port is not down in sysfs"
fault add port-up
until_true grep -q '(9)' "$work/watch.log" || fail "nobody hears that the port is up" "$work/watch.log"
on_nic client.log ibv_devinfo || fail "ibv_devinfo" "$work/client.log"
grep -q 'PORT_ACTIVE' "$work/client.log" || fail "the port is not up" "$work/client.log"
fault add device-fatal
until_true grep -q '(8)' "$work/watch.log" || fail "nobody hears that the device failed" "$work/watch.log"
kill "$watch"
wait "$watch" 2>/dev/null
ok "ibv_asyncwatch sees the port go and come, and the device fail"

# down for two retries of a packet, as the NIC counts them
fault add port-down --at 50 --count 1
fault add port-up --at 52 --count 1
cm_pair "rping and the port" "rping -s -a $address -C 100 -V" "rping -c -a $address -C 100 -V"
[[ $(struck) -eq 2 ]] || fail "the port was not down" "$work/client.log"
fault clear
ok "rping goes on when the port is up again"

# ---- reddnd and libreddn ------------------------------------------------------------------

$with_daemon || {
	done_testing
	exit
}
config="regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = ( { name = \"get\"; program = \"hash-get\"; region = \"t\"; mode = \"unrolled\"; } );"
start_reddnd "$config"
idle=$(objects)

as_before()
{
	[[ $(objects) == "$idle" ]]
}

expect_served()
{
	alive "$reddnd" || fail "$1: the daemon has died" "$work/reddnd.log"
	on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" get alice || fail "$1: the next client is not served" \
		"$work/get.log" "$work/reddnd.log"
	[[ $(cat "$work/get.log") == wonder ]] || fail "$1: the next client gets a wrong answer" "$work/get.log"
	until_true as_before || {
		diff <(printf '%s\n' "$idle") <(objects) >"$work/leaked"
		fail "$1: objects are left over (< before, > now)" "$work/leaked" "$work/reddnd.log"
	}
	ok "$1"
}

printf 'alice\n' >"$work/keys"
bench=("$REDDN" bench -p "$port" -t 50000 -c 2000 -k "$work/keys" "$address" get)

fault add drop --probability 0.002
fault add delay 100 --probability 0.01
on_nic client.log "${bench[@]}" || fail "reddn bench with losses" "$work/client.log" "$work/reddnd.log"
expect_struck "reddn bench with losses"
expect_served "requests get through losses and delays"

# A session that fails: the client learns of it in words, the next one is served.
while IFS='|' read -r words said; do
	read -ra w <<<"$words"
	fault add "${w[@]}"
	on_nic client.log "${bench[@]}" && fail "$words: the client succeeds" "$work/client.log" "$work/reddnd.log"
	[[ $? -ne 124 ]] || fail "$words: the client hangs" "$work/client.log" "$work/reddnd.log"
	grep -q -i -e "$said" "$work/client.log" || fail "$words: \"$said\" is not said" "$work/client.log" "$work/reddnd.log"
	expect_struck "$words"
	expect_served "$words: $(grep -m 1 -i -e "$said" "$work/client.log")"
done <<'END'
error remote-access --opcode send --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
error retry-exceeded --opcode send --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
error remote-operation --opcode write-imm --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
error local-protection --opcode read --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
error local-protection --opcode cas --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
error local-qp-operation --opcode send-enable --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
qp-error --opcode send --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
qp-error --opcode write-imm --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
qp-error --opcode read --at 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
drop --opcode send --at 100 --count 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
drop --opcode write-imm --at 100 --count 100|^reddn: \(the NIC reports\|the connection was lost\|the server closed\)
END
if able "the step that failed" "${named_steps[@]}"; then
	grep -q 'step look\[0\] failed: local protection error' "$work/reddnd.log" || fail "the daemon does not name what failed" "$work/reddnd.log"
	ok "the daemon names the step that failed"
fi
# which of the two, the event of the queue pair or that of the completion queue decides by coming first
grep -qE 'a queue failed, though no step of it did|the device reports that queue pair .* is broken' "$work/reddnd.log" || fail "the daemon blames a step for what the NIC did" \
	"$work/reddnd.log"
! grep -q 'step .* failed: flushed' "$work/reddnd.log" || fail "the daemon blames a step that was flushed" "$work/reddnd.log"
ok "the daemon blames no step for a queue that the NIC ended"

# The first enabling WQE is that of the master QP, which lets the queues of a new session begin while the client is answered. When it
# fails, that session ends, and the next client is served.
while IFS='|' read -r words said; do
	read -ra w <<<"$words"
	fault add "${w[@]}"
	on_nic client.log "$REDDN" get -p "$port" -t 50000 "$address" get alice &&
		fail "$words, master QP: the client succeeds" "$work/client.log" "$work/reddnd.log"
	[[ $? -ne 124 ]] || fail "$words, master QP: the client hangs" "$work/client.log" "$work/reddnd.log"
	grep -q -e "$said" "$work/reddnd.log" || fail "$words: \"$said\" is not in the log" "$work/client.log" "$work/reddnd.log"
	expect_struck "$words, master QP"
	expect_served "$words, master QP: $(cat "$work/client.log")"
done <<'END'
error remote-access --opcode send-enable --count 1|the master QP failed: remote access error
qp-error --opcode send-enable --count 1|the master QP failed: flushed
delay 60000000 --opcode send-enable --count 1|timed out waiting for a completion of the master QP
END
[[ $(grep -c 'the NIC did not begin with its queues' "$work/reddnd.log") -eq 3 ]] || fail "the daemon gives another reason for the end" "$work/reddnd.log"

# All stands still while the master QP works, as a machine that is paused, and the daemon runs again before the NIC does.
daemon=$(program_of "$reddnd") || exit
fault add delay 800000 --opcode send-enable --count 1
background paused.log "$REDDN" get -p "$port" -t 50000 "$address" get alice
paused=$child
has_struck()
{
	[[ $("$SOFTCX" fault list --json) == *'"struck":1'* ]] # without python: there is little time
}
until_true has_struck || fail "the master QP is not delayed" "$work/paused.log" "$work/reddnd.log"
kill -STOP "$daemon" "$nic"
sleep 1.3
kill -CONT "$daemon"
sleep 0.1
kill -CONT "$nic"
expect_exit "$paused" "a client, while all stands still" paused.log
fault clear
ok "a pause of the whole machine is no failure of the master QP"

# Without a device the daemon ends, to be started again by who started it: it has nothing to serve with.
fault add device-fatal --opcode send --at 100
on_nic client.log "${bench[@]}" && fail "device-fatal: the client succeeds" "$work/client.log" "$work/reddnd.log"
[[ $? -ne 124 ]] || fail "device-fatal: the client hangs" "$work/client.log" "$work/reddnd.log"
expect_struck device-fatal
wait "$reddnd" && fail "device-fatal: the daemon ends as if all were well" "$work/reddnd.log"
grep -q 'local catastrophic error' "$work/reddnd.log" || fail "device-fatal: the daemon does not say why it ends" "$work/reddnd.log"
expect_no_leak
start_reddnd "$config"
expect_served "a failed device ends the daemon; the next one serves"
stop_reddnd
done_testing
