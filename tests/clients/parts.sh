#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Parts of an offload, when the handle has a session with another table, or another host, than they have; and while one of two hosts is
# killed, stopped, and without parts.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/hosts.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
: "${PARTS:?set PARTS to the path of the test client}"
: "${REDDNCTL:?set REDDNCTL to the path of reddnctl}"
declare -A at=([a]=127.1.0.1 [b]=127.2.0.1)
parts='mget = { keys = [4]; }; exists = { keys = [8]; };'

nic_options+=(--hosts "client,a,b")
start_nic
make_entries()
{
	printf 'k%s\tvalue\n' 1 2
	[[ $# -eq 0 ]] || printf '%s\tvalue\n' "$1"
}
# Unrolled: without its daemon the NIC does not go on.
start() # HOST [PARTS]
{
	start_host "$1" "regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/$1.table\"; } ); offloads = ( { name = \"t\"; region = \"t\"; mode = \"unrolled\"; ${2-} } );"
}

# sessions HOST OFFLOAD EXPRESSION: prints it of the list s of the sessions; false if there is none
sessions()
{
	"$REDDNCTL" --socket "$work/$1.control" --json sessions | python3 -c "import json, sys
s = [s for s in json.load(sys.stdin) if s['offload'] == '$2']
print($3 if s else 0)
sys.exit(not s)" 2>/dev/null
}

answers() # HOST OFFLOAD: more requests than it has had
{
	local n

	n=$(sessions "$1" "$2" 'sum(s["requests"] for s in s)')
	until_true more_than "$n" "$1" "$2"
}

more_than() # N HOST OFFLOAD
{
	[[ $(sessions "$2" "$3" 'sum(s["requests"] for s in s)') -gt $1 ]]
}

run() # MODE: starts the client $client
{
	background "$1.log" --host client "$PARTS" "$1" "${at[a]},${at[b]}" "$port"
	client=$child
	until_true grep -q ready "$work/$1.log" || fail "no client" "$work/$1.log" "$work/a.log"
}

for host in a b; do
	"$REDDN_TABLE" create --quiet --capacity 100 --max-key 16 --max-value 100 "$work/$host.table"
	make_entries | load_table "$work/$host.table"
done
start a "$parts"
start b

run moved
until_true sessions a t.exists8 1 || fail "no session with the part" "$work/moved.log" "$work/a.log"
"$REDDNCTL" --socket "$work/a.control" kick "$(sessions a t 's[0]["session"]')" || fail "kick" "$work/a.log"
until_true more_than -1 b t || fail "no session with the other host" "$work/moved.log" "$work/b.log"
answers a t.exists8 || fail "the part does not answer a handle that has moved" "$work/moved.log" "$work/a.log"
kill_host a
start a
wait "$client" || fail "absent keys" "$work/moved.log" "$work/a.log" "$work/b.log"
ok "keys are asked for of a host that can tell which exist, until none can: $(tail -1 "$work/moved.log")"

for host in a b; do
	kill_host "$host"
	start "$host" "$parts"
done
run lasting
for part in t.mget4 t.exists8; do
	for host in a b; do
		until_true sessions "$host" "$part" 1 || fail "no session of $part with $host" "$work/lasting.log" "$work/$host.log"
	done
	answers a "$part" || fail "the first host does not answer" "$work/lasting.log" "$work/a.log"
done
ok "parts have sessions with both hosts, and the first one answers"
kill_host a
for part in t.mget4 t.exists8; do
	answers b "$part" || fail "the second host does not answer" "$work/lasting.log" "$work/b.log"
done
ok "after the death of a host the other one answers at its parts"
start a "$parts"
for part in t t.mget4 t.exists8; do
	until_true sessions a "$part" 1 || fail "no session of $part with the first host" "$work/lasting.log" "$work/a.log"
done
kill -STOP "$(program_of "${daemon[b]}")"
for part in t.mget4 t.exists8; do
	answers a "$part" || fail "the first host does not answer" "$work/lasting.log" "$work/a.log"
done
kill -CONT "$(program_of "${daemon[b]}")"
ok "so it does while a host is late"
kill_host a
for part in t.mget4 t.exists8; do
	answers b "$part" || fail "the second host does not answer" "$work/lasting.log" "$work/b.log"
done
start a
kill_host b
answers a t || fail "gets of several keys are not answered one by one" "$work/lasting.log" "$work/a.log"
kill -USR1 "$(program_of "$client")"
until_true grep -qx "no get is left" "$work/lasting.log" || fail "gets wait for a part that is lost" "$work/lasting.log" "$work/a.log"
start b "$parts"
answers b t.exists8 || fail "questions are not answered" "$work/lasting.log" "$work/b.log"
ok "of a host without parts gets go to the offload, and questions wait for another host"
kill -INT "$(program_of "$client")"
wait "$client" || fail "wrong answers" "$work/lasting.log" "$work/a.log" "$work/b.log"
ok "no answer was wrong: $(tail -1 "$work/lasting.log")"
kill_host a
start a "$parts"

mkfifo "$work/go"
"$SOFTCX" run --host client "$PARTS" replaced "${at[a]}" "$port" <"$work/go" >"$work/replaced.log" 2>&1 &
client=$!
exec {go}>"$work/go"
until_true grep -q ready "$work/replaced.log" || fail "no client" "$work/replaced.log" "$work/a.log"
"$REDDN_TABLE" create --replace --quiet --capacity 100 --max-key 64 --max-value 100 "$work/a.table" || fail "no replacement"
make_entries 'a key that is longer than the table before takes' | load_table "$work/a.table"
echo >&"$go"
wait "$client" || fail "long keys" "$work/replaced.log" "$work/a.log"
ok "keys that are longer than those of the table before"
