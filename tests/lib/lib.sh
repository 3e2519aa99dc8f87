# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib.sh - sourced by process-level tests: a NIC of their own, programs on it, and the verdict.
#
# A test sources this, calls start_nic, runs programs with `on_nic` (waits) and `background` (does not), says
# `ok TEXT` for each thing it has seen to hold, `fail TEXT` for the first that does not, and `done_testing` last, which also
# checks that the NIC has exactly the objects it started with. Every wait is bounded; whatever was started is
# ended when the script exits. meson sets SOFTCX to the path of the tool; nothing of this is shared with
# other tests but TCP ports, for which there is free_port.

set -u
: "${SOFTCX:?set SOFTCX to the path of the softcx tool}"

work=$(mktemp -d)
export SOFTCX_DIR=$work/nic
mkdir -p "$SOFTCX_DIR"
pids=()
checks=0
started=
# seconds that one program may take: a guard against what hangs, not a measure of what is slow
limit=${TEST_LIMIT:-120}
# and one in the background, which is there for all of a test: if that is killed, so is this in the end
background_limit=900

# The address that tests connect to: rdma_cm ports are the NIC's, so nobody else is there.
# shellcheck disable=SC2034 # used by tests
address=127.0.0.1

end_processes()
{
	local pid

	# the newest first: programs before the NIC they run on
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		pid=${pids[i]}
		kill "$pid" 2>/dev/null || continue
		for _ in {1..50}; do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	pids=()
}

finish()
{
	local rc=$?

	end_processes
	rm -rf "$work"
	exit "$rc"
}
trap finish EXIT
trap 'exit 143' TERM INT HUP

ok() # TEXT
{
	checks=$((checks + 1))
	printf 'ok   %s\n' "$*"
}

fail() # TEXT [LOG...]: the logs are shown
{
	local log

	for log in "${@:2}" "$work"/nic.log; do
		[[ -s $log ]] || continue
		printf -- '---- %s\n' "${log##*/}" >&2
		tail -n 60 "$log" >&2
	done
	printf 'FAIL %s\n' "$1" >&2
	exit 1
}

# until_true CMD...: polls; false when it never came true. What a test waits for comes at once, or, on a machine that is busy with
# other things, much later: the limit only ends a test that hangs. It counts rounds, not what a clock says.
until_true()
{
	local i

	for ((i = 0; i < limit * 20; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	return 1
}

# ---- the NIC ------------------------------------------------------------------------------

nic_options=()
# of `softcx run`, for the two programs of a pair
server_on=() client_on=()

# Before start_nic: servers of pairs run on host b, at $address, clients on host a; each host has two devices.
two_hosts()
{
	nic_options+=(--hosts "a:2,b:2")
	client_on=(--host a)
	server_on=(--host b)
	# shellcheck disable=SC2034 # used by tests
	address=127.1.0.1
}

# expect_work DEVICE...: each has executed WQEs.
expect_work()
{
	local device

	for device; do
		"$SOFTCX" status | grep "^$device " | grep -q 'since start [1-9]' || fail "$device has had nothing to do"
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
	[[ -n $started ]] || fail "softcx status --json names no objects"
}

# What lives in the NIC now, of every kind, one "name count" per line. Tests ask so often that starting a parser of JSON each time
# took a third of what some of them took.
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

object() # NAME: how many there are now
{
	objects | awk -v name="$1" '$1 == name || $1 ~ "[.]" name "$" { n += $2 } END { print n + 0 }'
}

same_objects()
{
	[[ $(objects) == "$started" ]]
}

# What programs made is gone when they are: the NIC hears of their end a moment later.
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

# background LOG CMD...: the same without waiting; sets $child. A signal to it reaches the program; from then on that has $limit
# seconds to end.
background()
{
	local log=$work/$1
	shift

	# at once, not when the child gets to it: what the last program said is not said by this one
	: >"$log"
	timeout -k "$limit" "$background_limit" "$SOFTCX" run "$@" >>"$log" 2>&1 </dev/null &
	child=$!
	pids+=("$child")
}

# program_of PID: the process id of the program behind a background child, which is what guards its time.
program_of()
{
	until_true pgrep -P "$1" || fail "there is no program"
	pgrep -P "$1"
}

# kill_hard PID: kill -9 for the program behind a background child, not for what guards its time.
kill_hard()
{
	local pid

	pid=$(program_of "$1")
	kill -KILL "$pid"
	{ wait "$1"; } 2>/dev/null
}

# expect_exit PID WHAT LOG: the background program ends well.
expect_exit()
{
	local rc=0

	wait "$1" || rc=$?
	ended_well "$rc" "$3" || fail "$2: exit status $rc" "$work/$3"
}

# ended_well STATUS LOG: 0, or what rping makes of its end now and then: its main thread, done with all its work, closes the
# event channel, and if the thread that reads it happens to be between two reads, that one ends the process with -1.
ended_well()
{
	[[ $1 -eq 0 ]] && return 0
	[[ $1 -eq 255 ]] && grep -q 'rdma_get_cm_event: Bad file descriptor' "$work/$2"
}

# Sets $port: a TCP port that nobody uses, and that no other test is given as long as this one runs: a locked file says whose it is.
free_port()
{
	local locks=${TMPDIR:-/tmp}/reddnd-test-ports-$UID lock

	mkdir -p "$locks"
	while :; do
		# below the ephemeral range: connections of others do not take it
		port=$((10000 + SRANDOM % 22000))
		exec {lock}>"$locks/$port"
		if flock -n "$lock" && ! tcp_uses "$port"; then
			return
		fi
		exec {lock}>&-
	done
}

tcp_has() # PORT STATE: a socket in that state, an expression
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

# server_ready PID WHAT LOG CMD...: waits until CMD is true, which is when the server listens.
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

# cm_pair WHAT "SERVER CMD" "CLIENT CMD": both on rdma_cm, both have to end well.
cm_pair()
{
	local what=$1 server rc=0 s c
	read -ra s <<<"$2"
	read -ra c <<<"$3"

	# the listener to wait for is the new one
	until_true same_objects || fail "$what: something is left over from before"
	background server.log "${server_on[@]}" "${s[@]}"
	server=$child
	server_ready "$server" "$what" server.log cm_listens
	on_nic client.log "${client_on[@]}" "${c[@]}" || rc=$?
	ended_well "$rc" client.log || fail "$what: the client's exit status is $rc" "$work/client.log" "$work/server.log"
	expect_exit "$server" "$what: server" server.log
}

# cm_serve: the same with a server that does not end by itself.
cm_serve()
{
	local what=$1 server rc=0 s c
	read -ra s <<<"$2"
	read -ra c <<<"$3"

	until_true same_objects || fail "$what: something is left over from before"
	background server.log "${server_on[@]}" "${s[@]}"
	server=$child
	server_ready "$server" "$what" server.log cm_listens
	on_nic client.log "${client_on[@]}" "${c[@]}" || rc=$?
	ended_well "$rc" client.log || fail "$what: the client's exit status is $rc" "$work/client.log" "$work/server.log"
	alive "$server" || fail "$what: the server has ended" "$work/server.log"
	kill "$server"
	wait "$server"
}

# tcp_pair WHAT PORT "SERVER CMD" "CLIENT CMD": the same for programs that exchange addresses by TCP.
tcp_pair()
{
	local what=$1 port=$2 server rc=0 s c
	read -ra s <<<"$3"
	read -ra c <<<"$4"

	background server.log "${server_on[@]}" "${s[@]}"
	server=$child
	server_ready "$server" "$what" server.log tcp_listens "$port"
	on_nic client.log "${client_on[@]}" "${c[@]}" || rc=$?
	ended_well "$rc" client.log || fail "$what: the client's exit status is $rc" "$work/client.log" "$work/server.log"
	expect_exit "$server" "$what: server" server.log
}

done_testing()
{
	alive "$nic" || fail "the NIC has died"
	expect_no_leak
	printf '%d checks\n' "$checks"
}
