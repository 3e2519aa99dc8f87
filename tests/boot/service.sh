# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# service.sh - what tests in a booted machine do with reddnd.service and its clients. Sourced, with "set -u".

export SOFTCX_DIR=/run/softcx SYSTEMD_PAGER='' LC_ALL=C.UTF-8
conf=/etc/reddnd/reddnd.conf
work=$(mktemp -d)

ok()
{
	printf 'ok   %s\n' "$*"
}

fail() # TEXT [FILE...]
{
	local f

	for f in "${@:2}"; do
		printf -- '---- %s\n' "$f"
		tail -n 40 "$f"
	done
	printf -- '---- systemctl status, journal\n'
	systemctl --no-pager -l status reddnd
	journalctl --no-pager -q -n 60
	printf 'FAIL %s\n' "$1"
	exit 1
}

until_true() # CMD...: the limit only ends what hangs
{
	local i

	for ((i = 0; i < 3000; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}

property() # NAME
{
	systemctl show --value -p "$1" reddnd
}

is() # NAME VALUE: of a property
{
	[[ $(property "$1") == "$2" ]]
}

expect() # NAME VALUE
{
	until_true is "$1" "$2" || fail "$1 of reddnd.service is $(property "$1"), not $2"
}

# Prints the log of the service since the last call of forget. It counts lines, because after a cursor journalctl skips the first
# matching message (systemd 252).
said() # EXTENDED-REGULAR-EXPRESSION
{
	journalctl -q -o cat -u reddnd | tail -n "+$((known + 1))" | grep -E -- "$1"
}

forget()
{
	journalctl --sync
	known=$(journalctl -q -o cat -u reddnd | wc -l)
}

expect_said()
{
	until_true said "$1" || fail "\"$1\" is not in the journal"
}

start()
{
	forget
	systemctl start reddnd || fail "systemctl start reddnd fails"
	is ActiveState active || fail "reddnd.service is not active"
}

# Runs a client as an unrelated user.
client()
{
	timeout 1800 runuser -u client -- softcx run reddn "$@"
}

get()
{
	[[ $(client get --timeout 30000 127.0.0.1 users alice 2>"$work/get.err") == wonder ]] || fail "no answer $1" "$work/get.err"
	ok "a client of another user is answered $1"
}

answers() # how many the client that pings has had
{
	grep -c "^reply" "$work/ping.log"
}

more_answers()
{
	[[ $(answers) -gt $1 ]]
}

bench() # OFFLOAD [OPTIONS]: loads it until it gets a signal
{
	client bench --timeout 120000 --depth 4 --rate 500 --verify --keys "$work/keys" --seconds 3000 "${@:2}" 127.0.0.1 "$1" >"$work/bench.$1" 2>&1 &
}

sessions()
{
	reddnctl --json sessions | grep -oE '"session":[0-9]+' | wc -l
}

sessions_are() # N
{
	[[ $(sessions) -eq $1 ]]
}

kill_client() # COMMAND OFFLOAD
{
	local process

	for process in /proc/[0-9]*; do
		[[ $(tr '\0' ' ' <"$process/cmdline") != "reddn $1 "*" $2 " ]] || kill "${process#/proc/}"
	done
}

# The session of a recycled offload has had as many requests as the client answers: none is lost, none is answered twice
ends_well() # OFFLOAD PID
{
	local gets

	kill_client bench "$1"
	wait "$2" || fail "the client of $1 has failed" "$work/bench.$1"
	gets=$(awk '$1 == "gets" { print $2 }' "$work/bench.$1")
	grep -qE '^errors +0$' "$work/bench.$1" || fail "errors at the client of $1" "$work/bench.$1"
	grep -qE '^wrong +0$' "$work/bench.$1" || fail "wrong answers at the client of $1" "$work/bench.$1"
	! grep -q unanswered "$work/bench.$1" || fail "answers are lost at the client of $1" "$work/bench.$1"
	[[ $1 != kept ]] || expect_said "ends after $gets requests"
	ok "$1: $gets gets over these daemons, none wrong or lost; the longest took $(awk '/^latency/ { print $(NF - 1) }' "$work/bench.$1") us"
}
