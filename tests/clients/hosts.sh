#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A client of two hosts notices nothing of what happens to one of them: killed, stopped, unplugged, rebooted, with other tables, started
# again, full. No get has an error, a wrong value, or an old one after both hosts have reported the new one. On a busy machine a client goes
# over to the other host also by itself, at any time.
# shellcheck source=tests/lib/lib.sh
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/hosts.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/hosts.sh"
# shellcheck source=tests/lib/table.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
: "${LASTING:?set LASTING to the path of the test client}"
: "${REDDNCTL:?set REDDNCTL to the path of reddnctl}"
: "${REDDN:?set REDDN to the path of reddn}"
declare -A at=([a]=127.1.0.1 [b]=127.2.0.1)

# start HOST [SETTINGS]: without settings it serves the table, unrolled: without its daemon the NIC does not go on.
start()
{
	local served="regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/$1.table\"; } );
		offloads = ( { name = \"users\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; } );"

	start_host "$1" "$(with_engine "${2-$served}")"
}

other() # HOST
{
	[[ $1 == a ]] && printf b || printf a
}

lines()
{
	grep -c -x -e "$1" "$work/client.log"
}

more() # LINE N
{
	[[ $(lines "$1") -gt $2 ]]
}

state() # WORD: the host that the client reported last: "host" or "standby"
{
	grep "^$1 " "$work/client.log" | tail -n 1 | cut -d ' ' -f 2
}

asks_host() # HOST
{
	[[ $(state host) == "${at[$1]}" ]]
}

has() # HOST: a session with it
{
	asks_host "$1" || [[ $(state standby) == "${at[$1]}" ]]
}

# happens TEXT COMMAND...: the command happens to the host that is asked, $from, and the client goes over to the other one, $to.
happens()
{
	from=a
	! asks_host b || from=b
	to=$(other "$from")
	"${@:2}" "$from"
	until_true asks_host "$to" || fail "$1 $from: no other host" "$work/client.log" "$work/$from.log" "$work/$to.log"
	ok "$1 $from: the client goes over to $to"
}

# returns HOST COMMAND...: the command brings HOST back, and the client has a session with it.
returns()
{
	"${@:2}"
	until_true has "$1" || fail "no session with $1" "$work/client.log" "$work/$1.log"
	ok "$1 is back"
}

port() # up|down HOST
{
	"$SOFTCX" fault add "port-$1" --device "$2/mlx5_0" >"$work/fault.log" 2>&1 || fail "no fault" "$work/fault.log"
}

shut_down() # HOST
{
	port down "$1"
	kill_host "$1"
}

boot() # HOST
{
	port up "$1"
	start "$1"
}

send() # SIGNAL HOST
{
	kill "-$1" "$(program_of "${daemon[$2]}")"
}

nic_options+=(--hosts "c,a,b")
for host in a b; do
	make_table "$work/$host.table" <<<$'alice\tfirst'
done
start_nic
start a
start b
background client.log --host c "$LASTING" "${at[a]},${at[b]}" "$port" users alice
client=$child
until_true more "value first" 0 || fail "no value" "$work/client.log" "$work/a.log"
until_true has b || fail "no standby" "$work/client.log" "$work/b.log"
[[ $(grep -m 1 '^host' "$work/client.log") == "host ${at[a]}" ]] || fail "not the first host" "$work/client.log"
if [[ -n ${PYTHON-} ]]; then
	background aio.log --host c env PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$here/lasting.py" "${at[a]}:$port,${at[b]}:$port" users alice first second
	aio=$child
	until_true grep -qx "value first" "$work/aio.log" || fail "asyncio has no value" "$work/aio.log"
fi
ok "the first host is asked, and there is a session with the second"

happens "after the death of" kill_host
returns "$from" start "$from"
happens "while nothing goes on at" send STOP
returns "$from" send CONT "$from"
happens "without the port of" port down
returns "$from" port up "$from"
happens "while it reboots, without" shut_down
returns "$from" boot "$from"

# Tables are replaced at both before that is reported to anybody
for host in a b; do
	make_table "$work/$host.table" --replace <<<$'alice\tsecond'
done
for host in a b; do
	timeout "$limit" "$REDDNCTL" --socket "$work/$host.control" reload >"$work/ctl.out" || fail "reload" "$work/$host.log"
done
until_true more "value second" 0 || fail "no new value" "$work/client.log"
kill -USR1 "$(program_of "$client")" ${aio+"$(program_of "$aio")"}
until_true more mark 0 || fail "no result of what was in flight" "$work/client.log"
[[ -z ${aio-} ]] || until_true grep -qx last "$work/aio.log" || fail "asyncio has no new value" "$work/aio.log"
ok "a replaced table"
for host in a b; do
	until_true has "$host" || fail "no session with $host" "$work/client.log"
done

terminate() # HOST
{
	kill "${daemon[$1]}"
}
happens "when it is over with" terminate
wait "${daemon[$from]}"
unset "daemon[$from]"
# It comes back without what the client wants: an answer, and no reason to leave the other one
start "$from" "regions = (); offloads = ();"
until_true grep -q "refused" "$work/$from.log" || fail "no refusal" "$work/$from.log" "$work/client.log"
n=$(lines "host ${at[$to]}")
kill_host "$to"
start "$to"
until_true more "host ${at[$to]}" "$n" || fail "no session" "$work/client.log" "$work/$to.log"
ok "a host that refuses is left out"

kill -INT "$client"
wait "$client" || fail "the client fails" "$work/client.log"
! grep -q '^error' "$work/client.log" || fail "an error" "$work/client.log"
! sed '1,/^mark/d' "$work/client.log" | grep '^value' | grep -vx "value second" || fail "a value that was replaced" "$work/client.log"
! grep '^value' "$work/client.log" | grep -vxE 'value (first|second|absent)' || fail "a wrong value" "$work/client.log"
ok "no get had an error, or an old value after a new one"
if [[ -n ${PYTHON-} ]]; then
	kill -INT "$(program_of "$aio")"
	wait "$aio" || fail "asyncio fails" "$work/aio.log"
	ok "nor had one of asyncio: $(tail -n 1 "$work/aio.log")"
fi

# Tables that follow a source, and how long ago they were as new as it
stated() # HOST SECONDS
{
	python3 -c 'if True:
		import struct, sys, time
		with open(sys.argv[1], "r+b") as f:
			for at, word in ((24, 1), (48, time.time_ns() - int(sys.argv[2]) * 10**9)):
				f.seek(128 + at)
				f.write(struct.pack("<Q", word))' "$work/$1.table" "$2"
}
asks() # the value of a get from both, a first, that may be a thousand seconds old
{
	on_nic get.log --host c "$REDDN" get --lasting --timeout 100000 --max-age 1000000 --port "$port" "${at[a]},${at[b]}" users alice
}
kill_host "$from"
start "$from"
for host in a b; do
	make_table "$work/$host.table" --replace <<<$'alice\tof '"$host"
done
stated a 0
stated b 100000
asks || fail "no value" "$work/get.log" "$work/a.log" "$work/b.log"
grep -qx "of a" "$work/get.log" || fail "a value that is too old" "$work/get.log"
stated a 100000
stated b 0
asks || fail "no value of another host" "$work/get.log" "$work/a.log" "$work/b.log"
grep -qx "of b" "$work/get.log" || fail "a value that is too old" "$work/get.log"
stated b 100000
asks && fail "a value that is too old" "$work/get.log"
grep -q Stale "$work/get.log" || fail "no reason" "$work/get.log"
ok "a host whose table is too old is asked last, and no value is older than wanted"

# Nobody answers where its only host was: it does not wait long for that
background alone.log --host c "$LASTING" "${at[a]}" "$port" users alice
alone=$child
until_true grep -q '^value' "$work/alone.log" || fail "no value" "$work/alone.log" "$work/a.log"
port down a
until_true grep -qx unanswered "$work/alone.log" || fail "it waits for one attempt" "$work/alone.log"
port up a
until_true grep -qx "session 2" "$work/alone.log" || fail "no other session" "$work/alone.log" "$work/a.log"
kill -INT "$alone"
wait "$alone" || fail "the client fails" "$work/alone.log"
! grep -q '^error' "$work/alone.log" || fail "an error" "$work/alone.log"
ok "a client of one host without its port asks again and again"
end_hosts
done_testing
