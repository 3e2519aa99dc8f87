#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Handles of libreddn outlive their sessions: the server is killed, stopped, taken out of service, and gets other tables. Gets see no
# error and no old value; calls that may have changed something learn that nobody knows.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
# shellcheck source=tests/lib/table.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
: "${REDDN:?set REDDN to the path of the client tool}"
: "${LASTING:?set LASTING to the path of the test client}"
table=$work/table
settings="control = \"$control\";"
served="$settings regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; }, { name = \"counters\"; kind = \"raw\"; path = \"$memory/counters\"; writable = true; } );
offloads = ( { name = \"users\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; }, { name = \"seats\"; mode = \"unrolled\"; program = \"counter\"; region = \"counters\"; },
	{ name = \"order\"; mode = \"unrolled\"; program = \"compare\"; } );"

# prints CLIENT LINE [N]: so many times at least
prints()
{
	[[ $(grep -c -x -e "$2" "$work/$1.log") -ge ${3:-1} ]]
}

# expect_line CLIENT LINE TEXT
expect_line()
{
	until_true prints "$1" "$2" || fail "$3" "$work/$1.log" "$work/reddnd.log"
	ok "$3"
}

no_error() # CLIENT
{
	! grep -q '^error' "$work/$1.log" || fail "$1: an error" "$work/$1.log" "$work/reddnd.log"
}

kill_reddnd()
{
	kill -KILL "$(program_of "$reddnd")"
	wait "$reddnd" 2>/dev/null
}

truncate -s 4096 "$memory/counters"
make_table "$table" <<<$'alice\tfirst'
start_nic
start_reddnd "$served"
background users.log "$LASTING" "$address" "$port" users alice
users=$child
background seats.log "$LASTING" "$address" "$port" seats
seats=$child
background order.log "$LASTING" "$address" "$port" order
order=$child
expect_line users "value first" "a client gets a value"
expect_line seats "replies" "another one calls a program that writes"
expect_line order "replies" "and a third one that does not"

# All that is armed is used up when it is killed: requests are outstanding
kill -STOP "$(program_of "$reddnd")"
expect_line users silent "the daemon is stopped"
expect_line seats silent "for the second"
expect_line order silent "and the third"
kill_reddnd
expect_line seats "error -115 .*" "it is killed: a call that may have changed something learns that"
start_reddnd "$served"
expect_line users "session 2" "another one is started: the first client has a session"
expect_line seats "session 2" "the second, too"
until_true prints seats replies 2 || fail "no calls" "$work/seats.log"
until_true prints order replies 2 || fail "no calls" "$work/order.log"
no_error order
ok "calls that write nothing are answered, all of them"
make_table "$table" --replace <<<$'alice\tsecond'
ctl reload || fail "reload" "$work/ctl.err"
expect_line users "value second" "a replaced table"
make_table "$work/other" <<<$'alice\tthird'
mv "$work/other" "$table"
ctl reload || fail "reload" "$work/ctl.err"
expect_line users "value third" "a renamed table"
"$REDDN_TABLE" create --quiet --capacity 5000 --max-key 100 --max-value 8000 --replace "$table" || fail "no table"
load_table "$table" <<<$'alice\tfourth'
ctl reload || fail "reload" "$work/ctl.err"
expect_line users "value fourth" "a table of longer records and more buckets"
no_error users
# A table is empty when it takes the name of the one before
grep '^value' "$work/users.log" | grep -vx "value absent" | cmp - <(printf 'value %s\n' first second third fourth) || fail "a value that was replaced" "$work/users.log"
ok "no get had an error, or an old value after a new one"

# The tool compares the values, and reports how often it connected again
asked_by_bench()
{
	reported sessions 'any(c["offload"] == "users" and c["requests"] > 1000 for c in d)'
}
printf 'alice\tfourth\n' >"$work/keys"
kill -INT "$users"
wait "$users" || fail "a client fails" "$work/users.log"
background bench.log "$REDDN" bench --lasting --json --port "$port" --timeout 100000 --rate 2000 --count 1000000000 --verify --keys "$work/keys" "$address" users
bench=$child
until_true asked_by_bench || fail "no gets" "$work/bench.log" "$work/ctl.out"
kill_reddnd
start_reddnd "$served"
until_true asked_by_bench || fail "no gets again" "$work/bench.log" "$work/ctl.out"
kill -INT "$bench"
wait "$bench" || fail "the bench fails" "$work/bench.log"
for part in '"errors": 0' '"wrong": 0' '"reconnects": 1'; do
	grep -q "${part}[,}]" "$work/bench.log" || fail "no $part" "$work/bench.log"
done
ok "reddn bench --lasting goes on, without an error or a wrong value"

# The server does not have the offload any more: that is an answer, for as long as it holds
background users.log "$LASTING" "$address" "$port" users alice
users=$child
expect_line users "value fourth" "another client"
kill_reddnd
start_reddnd "$settings regions = (); offloads = ();"
expect_line users "error -2 .*connecting again: refused by the server: .*" "an offload that is none any more"
sessions=$(grep -c '^session' "$work/users.log")
kill_reddnd
start_reddnd "$served"
more_sessions()
{
	[[ $(grep -c '^session' "$work/users.log") -gt $sessions ]]
}
until_true more_sessions || fail "no session" "$work/users.log"
ok "and that is one again"

for child in "$users" "$seats" "$order"; do
	kill -INT "$child"
	wait "$child" || fail "a client fails" "$work/users.log" "$work/seats.log" "$work/order.log"
done
stop_reddnd
done_testing
