#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon is killed at one store into the ledger after the other while the CPU executes requests. They are counted over both threads,
# in the order in which they come; what one thread stores in the moment in which another one stores is not counted, and kills nobody.
# A program that writes to no region goes on, and no request is lost or answered twice. One that writes goes on if it was between two
# requests; else its session ends in words, and what it has written is written once.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ledger-stores.sh"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${TICKETS:?set TICKETS to the path of the test client}"
# How many stores of a request and of what surrounds it
stores=${TEST_STORES:-16}

many_records 100 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
head -c 4096 /dev/zero >"$memory/words"
configure_reddnd <<END
arena = "16M";
engine = "cpu";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; }, { name = "words"; kind = "raw"; path = "$memory/words"; writable = true; } );
offloads = ( { name = "get"; program = "hash-get"; region = "t"; }, { name = "counter"; program = "counter"; region = "words"; } );
END

# Requests follow each other, so it dies
dies() # WHAT
{
	overs=$((overs + 1))
	until_true taken_over $overs || fail "$1: nobody takes over" "$work/run.log"
}

start_nic
serve_until_stores
overs=0

# ---- a program that writes to no region ----

background bench.log "$REDDN" bench --port "$port" --timeout 100000 --depth 4 --rate 500 --seconds 3000 --verify --keys "$work/data.tsv" "$address" get
bench=$child
until_true grep -q 'client .*, offload get' "$work/run.log" || fail "the client is not served" "$work/bench.log" "$work/run.log"
for when in before after; do
	for ((n = 1; n <= stores; n++)); do
		arm $when $n
		dies "get, $when store $n"
		alive "$bench" || fail "get, $when store $n: the client has ended" "$work/bench.log" "$work/run.log"
	done
done
kill -INT "$bench"
wait "$bench"
for what in errors wrong; do
	grep -qE "^$what +0$" "$work/bench.log" || fail "$what" "$work/bench.log" "$work/run.log"
done
ok "killed at $overs stores, and a client of hash-get has its answers: $(grep ^gets "$work/bench.log")"

# ---- one that does ----

words='the server was restarted in the middle of a request that may have written to a region'
amid=0
bought=0
tickets() # prints how many are gone
{
	od -An -t u8 -N 8 "$memory/words" | tr -d ' '
}

sells()
{
	[[ $(tickets) -gt $bought ]]
}

goes_on_or_ends()
{
	[[ $(tickets) -gt $was ]] || ! alive "$client"
}

dies_while_it_sells() # WHAT WHEN N [begun]: sets rc to the client's status
{
	arm before 0
	background tickets.log "$TICKETS" "$address" "$port" counter
	client=$child
	until_true sells || fail "$1: the client is not served" "$work/tickets.log" "$work/run.log"
	arm "${@:2}"
	dies "$1"
	was=$(tickets)
	until_true goes_on_or_ends || fail "$1: no ticket is sold any more" "$work/tickets.log" "$work/run.log"
	kill -INT "$client" 2>/dev/null
	rc=0
	wait "$client" || rc=$?
	[[ $rc -eq 0 || $rc -eq 3 ]] || fail "$1: status $rc" "$work/tickets.log" "$work/run.log"
	[[ $rc -eq 0 ]] || grep -q "$words" "$work/tickets.log" || fail "$1: no reason" "$work/tickets.log" "$work/run.log"
	read -r _ got <"$work/tickets.log"
	gone=$(($(tickets) - bought))
	# what was cut off has been done, or not
	[[ $gone -eq $got || ($rc -eq 3 && $gone -eq $((got + 1))) ]] ||
		fail "$1: $gone tickets are gone, and the client has $got" "$work/tickets.log" "$work/run.log"
	bought=$(tickets)
}

for when in before after; do
	for ((n = 1; n <= stores; n++)); do
		dies_while_it_sells "counter, $when store $n" $when $n
		amid=$((amid + (rc == 3)))
	done
done
ok "$bought tickets are sold once each; $amid sessions ended because a request was cut off in the middle"

# which store that is depends on the threads, but this one cuts a request off
dies_while_it_sells "counter, after a request has begun" after 1 begun
[[ $rc -eq 3 ]] || fail "a request was cut off, and its session goes on" "$work/tickets.log" "$work/run.log"
dies_while_it_sells "counter, before a request begins" before 1 begun
[[ $rc -eq 0 ]] || fail "no request was cut off, and its session has ended" "$work/tickets.log" "$work/run.log"
ok "a session ends if a request was cut off, and goes on between two"

kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
