# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib.sh - sourced by process-level tests: a NIC for each test, programs on it, and the result.
#
# A test sources this file, calls start_nic, and runs programs with `on_nic` (waits) and `background` (does not wait). It calls
# `ok TEXT` for each check that holds, `fail TEXT` for the first that does not, and `done_testing` at the end, which also checks
# that the NIC has exactly the objects it started with. Every wait is bounded. All programs end with the script. meson sets
# SOFTCX to the path of the tool. Tests share TCP ports only; free_port reserves one. $SOFTCX_DEVICE, if it is set, chooses the
# device that the NIC is.

set -u
: "${SOFTCX:?set SOFTCX to the path of the softcx tool}"

work=$(realpath "$(mktemp -d)")
# for files that NICs change: Linux lets them do that in memory only; and for those that NICs make, hundreds of small ones, which takes
# ten times as long on a disk
memory=$(mktemp -d -p /dev/shm)
export SOFTCX_DIR=$memory/nic
mkdir -p "$SOFTCX_DIR"
pids=()
checks=0
started=
# seconds until a program counts as hanging; slow machines need far less
limit=${TEST_LIMIT:-120}
# the same for a background program, which runs for the whole test
background_limit=${TEST_SECONDS:-900}

# The address that tests connect to, of IPv6 if $TEST_IP is 6. rdma_cm ports belong to the NIC of the test, so no other test uses them.
# shellcheck disable=SC2034 # used by tests
address=127.0.0.1
if [[ ${TEST_IP-} == 6 ]]; then
	grep -q lo /proc/net/if_inet6 2>/dev/null || {
		echo "this machine has no IPv6" >&2
		exit 77
	}
	address=::1
fi

# Others get the numbers of children that have ended, when 32768 processes have begun
is_child() # PID
{
	[[ $(cat "/proc/$1/status" 2>/dev/null) == *$'\nPPid:\t'"$$"$'\n'* ]]
}

end_processes()
{
	local pid

	# newest first: programs end before their NIC
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		pid=${pids[i]}
		is_child "$pid" || continue
		kill "$pid" 2>/dev/null
		for _ in {1..50}; do
			is_child "$pid" || break
			sleep 0.1
		done
		! is_child "$pid" || kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	pids=()
}

finish()
{
	local rc=$?

	end_processes
	rm -rf "$work" "$memory"
	exit "$rc"
}
trap finish EXIT
trap 'exit 143' TERM INT HUP

# needs FACT[=VALUE|!=VALUE|>=NUMBER]...: skips the test unless the device has these facts, as `softcx devices --json` prints them.
needs()
{
	"$(dirname "${BASH_SOURCE[0]}")/needs" "$SOFTCX" "$@" || exit
}

# What chains need that renew themselves: loops without a bound, and mode = "recycled"
endless=(has.masked_atomics 'limits.send_wqe>=512')
# shellcheck disable=SC2034 # used by tests
recycling=("${endless[@]}" has.recv_enable)

# What verdicts need that name a step: a queue that is flushed further than it was enabled overwrites the CQE of what failed
# shellcheck disable=SC2034 # used by tests
named_steps=(managed.flush=enabled)

# fact NAME: prints the value of a fact of the device
fact()
{
	"$SOFTCX" devices --json | python3 -IS -c '
import json, os, sys
name = os.environ.get("SOFTCX_DEVICE") or "cx5"
value = next(d["facts"][sys.argv[1]]["value"] for d in json.load(sys.stdin) if d["name"] == name)
print(value if isinstance(value, str) else json.dumps(value))' "$1"
}

# able WORDS FACT...: true if the device has these facts. If not, prints that the test leaves out what WORDS say, and why.
able()
{
	local why

	why=$("$(dirname "${BASH_SOURCE[0]}")/needs" "$SOFTCX" "${@:2}" 2>&1) && return
	printf 'left out: %s: %s\n' "$1" "$why"
	return 1
}

ok() # TEXT
{
	checks=$((checks + 1))
	printf 'ok   %s\n' "$*"
}

fail() # TEXT [LOG...]: prints the logs too
{
	local log

	for log in "${@:2}" "$work"/nic.log; do
		[[ -s $log || -p $log ]] || continue
		printf -- '---- %s\n' "${log##*/}" >&2
		tail -n 60 "$log" >&2
	done
	printf 'FAIL %s\n' "$1" >&2
	exit 1
}

# the monotonic clock
now_ms()
{
	awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime
}

# until_true CMD...: polls until CMD succeeds, after a second less often; fails after $limit seconds of rounds. The limit only ends a
# test that hangs: on a busy machine a condition may come true late. It counts rounds, because a clock would count the time of other
# processes too.
until_true()
{
	local i pause=0.05

	for ((i = 0; i < 20 + limit * 5; i++)); do
		"$@" >/dev/null 2>&1 && return
		((i < 20)) || pause=0.2
		sleep $pause
	done
	return 1
}

# ---- the NIC ------------------------------------------------------------------------------

nic_options=()
# options of `softcx run` for the two programs of a pair
server_on=() client_on=()

# Before start_nic: servers of pairs run on host b, at $address, clients on host a; each host has two devices.
two_hosts()
{
	nic_options+=(--hosts "a:2,b:2")
	client_on=(--host a)
	server_on=(--host b)
	# shellcheck disable=SC2034 # used by tests
	address=127.1.0.1
	[[ ${TEST_IP-} != 6 ]] || address=fe80::e42:a1ff:fea2:2%lo # the link-local address of the third device
}

# expect_work DEVICE...: each device has executed WQEs.
expect_work()
{
	local device

	for device; do
		"$SOFTCX" status | grep "^$device " | grep -q 'since start [1-9]' || fail "$device has executed no WQE"
	done
	ok "WQEs were executed by $*"
}

start_nic()
{
	"$SOFTCX" nic "${nic_options[@]}" >"$work/nic.log" 2>&1 </dev/null &
	nic=$!
	pids+=("$nic")
	until_true "$SOFTCX" status || fail "the NIC does not answer"
	started=$(objects)
	[[ -n $started ]] || fail "softcx status --json lists no objects"
}

# Prints a line "name count" for each kind of object in the NIC. It parses with awk because some tests call it so often that a
# JSON parser took a third of their time.
objects()
{
	"$SOFTCX" status --json | awk -F '[ ":,]+' '
		{ gsub(/\\/, "") }
		/^  "/ { section = $2 }
		section == "files" { print $2, $3 }
		section == "cm" && /^    "/ { print $2, $3 }
		section == "devices" && $2 == "name" { device = $3 }
		section == "devices" && $2 ~ /^(pds|mkeys|uars|cqs|qps|srqs|mems)$/ { print device "." $2, $3 }'
}

object() # NAME: prints the count of this kind
{
	objects | awk -v name="$1" '$1 == name || $1 ~ "[.]" name "$" { n += $2 } END { print n + 0 }'
}

same_objects()
{
	[[ $(objects) == "$started" ]]
}

# The objects of a program are gone when it has ended. The NIC notices the end a moment later.
expect_no_leak()
{
	until_true same_objects || {
		diff <(printf '%s\n' "$started") <(objects) >"$work/leaked"
		fail "objects are left over (< at the start, > now)" "$work/leaked"
	}
	ok "no object is left over"
}

# ---- programs -----------------------------------------------------------------------------

# on_nic LOG CMD...: runs CMD on the NIC with its output in $work/LOG; returns its exit status.
on_nic()
{
	local log=$work/$1
	shift

	timeout -k "$limit" "$limit" "$SOFTCX" run "$@" >"$log" 2>&1 </dev/null
}

# background LOG CMD...: the same without waiting; sets $child. A signal to $child reaches the program, which then has $limit
# seconds to end.
background()
{
	local log=$work/$1
	shift

	# truncated here and not by the child, so that nobody reads the output of an earlier program
	: >"$log"
	timeout -k "$limit" "$background_limit" "$SOFTCX" run "$@" >>"$log" 2>&1 </dev/null &
	child=$!
	pids+=("$child")
}

# plain_name LIBRARY: prints a name of it for LD_PRELOAD, where ld.so(8) separates names by spaces and colons.
plain_name()
{
	ln -sfn "$(realpath "$1")" "$work/${1##*/}"
	printf '%s\n' "$work/${1##*/}"
}

# preloading LIBRARY: sets $preloading to words before the command of a program on the NIC, behind the options that choose its host:
# LIBRARY is preloaded into it, in front of that of the NIC.
preloading()
{
	# shellcheck disable=SC2016,SC2034 # expanded by the inner shell; used by tests
	preloading=(sh -c 'library=$1; shift; LD_PRELOAD="$library $LD_PRELOAD" exec "$@"' sh "$(plain_name "$1")")
}

# program_of PID: prints the process id of the program below a background child. The child itself is timeout(1).
program_of()
{
	local program

	until_true find_child "$1" || fail "there is no program"
	printf '%s\n' "$program"
}

# On a busy machine pgrep(1) may miss a process that it has seen before
find_child() # PID: sets $program
{
	program=$(pgrep -P "$1")
}

# kill_hard PID: sends SIGKILL to the program below a background child, and not to timeout(1).
kill_hard()
{
	local pid

	pid=$(program_of "$1")
	kill -KILL "$pid"
	{ wait "$1"; } 2>/dev/null
}

threads_stopped() # PID
{
	! grep -h '^State:' "/proc/$1/task/"*/status | grep -qv stopped
}

# stop_program PID: stops it until it gets SIGCONT. kill(1) returns while its threads still run
stop_program()
{
	kill -STOP "$1"
	until_true threads_stopped "$1" || fail "a program does not stop"
}

# expect_exit PID WHAT LOG: the background program ends well.
expect_exit()
{
	local rc=0

	wait "$1" || rc=$?
	ended_well "$rc" "$3" || fail "$2: exit status $rc" "$work/$3"
}

# ended_well STATUS LOG: true for 0, and for two races of programs that have done all their work. The main thread of rping closes
# the event channel then; if the thread that reads the channel is between two reads, that thread ends the process with -1.
# fi_pingpong over ofi_rxm looks at the completion queue, which is empty, and then at the events; if its last completion and the
# end of the connection come between the two, it discards the completion with what was outstanding (libfabric
# prov/verbs/src/verbs_ep.c, vrb_flush_sq), and ends with ECANCELED.
ended_well()
{
	case $1 in
	0) ;;
	125) grep -q 'cq_readerr: Work Request Flushed Error' "$work/$2" && grep -q '^1m ' "$work/$2" ;;
	255) grep -q 'rdma_get_cm_event: Bad file descriptor' "$work/$2" ;;
	*) return 1 ;;
	esac
}

# Sets $port to an unused TCP port. A locked file reserves it until the test ends.
free_port()
{
	local locks=${TMPDIR:-/tmp}/reddnd-test-ports-$UID lock

	mkdir -p "$locks"
	while :; do
		# below the ephemeral range, from which other connections take ports
		port=$((10000 + SRANDOM % 22000))
		exec {lock}>"$locks/$port"
		if flock -n "$lock" && ! tcp_uses "$port"; then
			return
		fi
		exec {lock}>&-
	done
}

tcp_has() # PORT STATE: a socket has this port and a state that matches the expression
{
	# a kernel without IPv6 has the first file only
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
		awk -v port="$(printf '%04X' "$1")" -v state="$2" '{ split($2, a, ":") } a[2] == port && $4 ~ state { found = 1 } END { exit !found }'
}

tcp_uses() # PORT
{
	tcp_has "$1" .
}

tcp_listens() # PORT
{
	tcp_has "$1" 0A
}

unix_listens() # PATH
{
	# __SO_ACCEPTCON of linux/net.h
	awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' /proc/net/unix
}

cm_listens()
{
	[[ $(object listeners) -gt 0 ]]
}

alive() # PID
{
	kill -0 "$1" 2>/dev/null
}

# server_ready PID WHAT LOG CMD...: waits until CMD succeeds, which means that the server listens.
server_ready()
{
	local pid=$1 what=$2 log=$3 i
	shift 3

	for ((i = 0; i < limit * 20; i++)); do
		"$@" >/dev/null 2>&1 && return
		alive "$pid" || break
		sleep 0.05
	done
	fail "$what: the server does not listen" "$work/$log"
}

# cm_run WHAT "SERVER CMD" "CLIENT CMD": starts the server and runs the client, both on rdma_cm; the client has to end well.
cm_run()
{
	local what=$1 rc=0 s c
	read -ra s <<<"$2"
	read -ra c <<<"$3"

	# the next listener is the new one
	until_true same_objects || fail "$what: objects of an earlier program are left"
	background server.log "${server_on[@]}" "${s[@]}"
	server=$child
	server_ready "$server" "$what" server.log cm_listens
	on_nic client.log "${client_on[@]}" "${c[@]}" || rc=$?
	ended_well "$rc" client.log || fail "$what: the client's exit status is $rc" "$work/client.log" "$work/server.log"
}

# cm_pair WHAT "SERVER CMD" "CLIENT CMD": the server has to end well too.
cm_pair()
{
	local server

	cm_run "$@"
	expect_exit "$server" "$1: server" server.log
}

# cm_serve WHAT "SERVER CMD" "CLIENT CMD": for a server that runs until it is killed.
cm_serve()
{
	local server

	cm_run "$@"
	alive "$server" || fail "$1: the server has ended" "$work/server.log"
	kill "$server"
	wait "$server"
}

# tcp_pair WHAT PORT "SERVER CMD" "CLIENT CMD": a pair that exchanges addresses over TCP. If may_linger is set, either may wait for the
# end of the other in vain: the caller looks whether all of their work is done.
tcp_pair()
{
	local what=$1 port=$2 server rc=0 s c
	read -ra s <<<"$3"
	read -ra c <<<"$4"

	background server.log "${server_on[@]}" "${s[@]}"
	server=$child
	server_ready "$server" "$what" server.log tcp_listens "$port"
	on_nic client.log "${client_on[@]}" "${c[@]}" || rc=$?
	# the time limit of on_nic
	[[ -z ${may_linger-} || $rc -ne 124 ]] || rc=0
	ended_well "$rc" client.log || fail "$what: the client's exit status is $rc" "$work/client.log" "$work/server.log"
	[[ -z ${may_linger-} ]] || end_lingering "$server" || return 0
	expect_exit "$server" "$what: server" server.log
}

# end_lingering PID: false if it does not end by itself in the next seconds, and was ended
end_lingering()
{
	local i

	for ((i = 0; i < 200; i++)); do
		alive "$1" || return 0
		sleep 0.05
	done
	kill "$1"
	{ wait "$1"; } 2>/dev/null
	return 1
}

# Reads lines WORDS|CMD from stdin. Each CMD has to fail with a message that matches WORDS.
expect_refusals()
{
	local words run argv

	while IFS='|' read -r words run; do
		read -ra argv <<<"$run"
		on_nic refused "${client_on[@]}" "${argv[@]}" && fail "$run succeeds" "$work/refused"
		grep -qE -- "$words" "$work/refused" || fail "$run does not report \"$words\"" "$work/refused"
		ok "$run: $words"
	done
}

done_testing()
{
	alive "$nic" || fail "the NIC has died"
	expect_no_leak
	printf '%d checks\n' "$checks"
}
