#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Offloads in recycled mode: the NIC answers for many laps of its rings, even while the daemon is stopped.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${GET_PROPERTY:?set GET_PROPERTY to the path of the test program}"
seed=${TEST_SEED:-1}

"$GET_PROPERTY" make small "$seed" "$work/random" || fail "no random table"
many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"

nic_options=(--seed "$seed")
start_nic
start_reddnd "control = \"$control\"; regions = (
  { name = \"random\"; kind = \"table\"; path = \"$work/random\"; },
  { name = \"table\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = (
  { name = \"random\"; program = \"hash-get\"; region = \"random\"; mode = \"recycled\"; },
  { name = \"both\"; program = \"hash-get-parallel\"; region = \"random\"; mode = \"recycled\"; },
  { name = \"table\"; program = \"hash-get\"; region = \"table\"; mode = \"recycled\"; depth_max = 24; },
  { name = \"large\"; program = \"hash-get\"; region = \"table\"; mode = \"recycled\"; instances = 256; } );"
daemon=$(program_of "$reddnd") || exit

# at least 30 laps of 64 slots
for offload in random both; do
	for depth in 1 16; do
		on_nic ask.log "$GET_PROPERTY" ask "$address" "$port" "$offload" "$work/random" "$depth" 2000 "$seed" ||
			fail "$offload, depth $depth (seed $seed)" "$work/ask.log" "$work/reddnd.log"
		ok "$(tail -n 1 "$work/ask.log")"
	done
done

rc=0
on_nic odd.log "$REDDN" bench --timeout 100000 --depth 12 --count 10 --keys "$work/data.tsv" "$address" large || fail "a depth of 12" "$work/odd.log"
grep -q 'offload large, depth 16' "$work/reddnd.log" || fail "a depth of 12 is not 16" "$work/reddnd.log"
grep -q 'depth is 12' "$work/reddnd.log" && fail "a depth that is rounded up is reported as a refusal" "$work/reddnd.log"
ok "a depth that is no power of two is rounded up"
becomes offloads "the outcomes of the last lap are known" \
	"[(o['hits'] == o['requests'] > 0, o['misses'], o['unseen'], o['bytes_out'] > 64 * o['hits']) for o in d if o['offload'] == 'large'] == [(True, 0, 0, True)]"
"$SOFTCX" run "$REDDN" bench --timeout 100000 --depth 20 --count 10 --keys "$work/data.tsv" "$address" table >"$work/odd.log" 2>&1 || rc=$?
[[ $rc -eq 2 ]] || fail "a depth of 20: status $rc" "$work/odd.log"
grep -q 'depth is 20; offload table is recycled and takes a power of two, such as 16' "$work/odd.log" ||
	fail "a depth of 20 is refused without a reason" "$work/odd.log"
ok "one for which the next power of two is too large is refused with a reason"

on_cpu() # PID: nanoseconds it has run
{
	cut -d ' ' -f 1 "/proc/$1/schedstat"
}

connects() # OFFLOAD: a client of it gets replies
{
	until_true reported sessions "any(c['offload'] == '$1' and c['requests'] > 0 for c in d)" ||
		fail "the benchmark gets no replies" "$work/bench.log" "$work/ctl.out" "$work/reddnd.log"
}

# What the CPU executes needs the daemon
[[ ${ENGINE-} != cpu ]] || {
	stop_reddnd
	done_testing
	exit
}

# The daemon is stopped while a client sends requests: the 16-bit numbers of WQEs and requests wrap
# The rate leaves five seconds to stop it. On a busy machine a client may be done before that, and another one begins
clients=0
all_are_counted()
{
	[[ $(grep -c 'ends after 100000 requests' "$work/reddnd.log") == "$clients" ]]
}
asks_the_stopped()
{
	background bench.log "$REDDN" bench --timeout 100000 --depth 16 --rate 20000 --count 100000 --verify --keys "$work/data.tsv" "$address" large
	bench=$child
	clients=$((clients + 1))
	connects large
	stop_program "$daemon"
	alive "$bench"
}
until asks_the_stopped; do
	kill -CONT "$daemon"
	until_true all_are_counted || fail "not all were counted" "$work/reddnd.log"
	((clients < 20)) || fail "clients were done before the daemon was stopped"
done
before=$(on_cpu "$daemon")
expect_exit "$bench" "the benchmark" bench.log
[[ $(on_cpu "$daemon") == "$before" ]] || fail "the stopped daemon used the processor"
kill -CONT "$daemon"
grep -qE '^100000 gets|100000 ' "$work/bench.log" || fail "not all gets" "$work/bench.log"
until_true all_are_counted || fail "not all were counted" "$work/reddnd.log"
ok "100000 gets, 390 laps, with the daemon stopped, which counts them later"

# A running daemon is idle too, after the last message of connecting
background bench.log "$REDDN" bench --timeout 100000 --depth 16 --seconds 800 --keys "$work/data.tsv" "$address" table
bench=$child
connects table
idle()
{
	local before

	before=$(on_cpu "$daemon")
	sleep 1
	[[ $(on_cpu "$daemon") == "$before" ]]
}
until_true idle || fail "the daemon runs" "$work/reddnd.log"
alive "$bench" || fail "the benchmark has ended already" "$work/bench.log"
ok "a running daemon uses no processor"
kill "$bench"
wait "$bench"

# The reply queue fails while the daemon is stopped. The chain goes on to the end of its lap, and the recycler takes what is flushed
# for replies
answered() # LOG: gets without an error, by the client
{
	awk '$1 == "gets" { n += $2 } $1 == "errors" { n -= $2 } END { print n }' "$1"
}
executed() # WQEs, by the NIC
{
	"$SOFTCX" status --json | python3 -c 'import json, sys; print(sum(d["wqes"] for d in json.load(sys.stdin)["devices"]))'
}
rests() # the NIC
{
	[[ $(executed) == "$(executed)" ]]
}
for _ in {1..5}; do
	background bench.log "$REDDN" bench --timeout 100000 --depth 16 --seconds 800 --verify --keys "$work/data.tsv" "$address" table
	bench=$child
	until_true reported sessions "any(c['requests'] > 500 for c in d)" || fail "no replies" "$work/bench.log" "$work/reddnd.log"
	session=$(python3 -c "import json; print(json.load(open('$work/ctl.out'))[0]['session'])")
	qpn=$("${BASH_SOURCE[0]%/*}/ledger-read.py" "$daemon" qpn "$session" 0) || fail "no number of the reply queue"
	stop_program "$daemon"
	"$SOFTCX" fault add qp-error --qp "$qpn" >"$work/fault.log" || fail "no fault" "$work/fault.log"
	until_true rests || fail "the NIC does not come to rest"
	kill -CONT "$daemon"
	wait "$bench" # it ends with errors
	until_true grep -q "session $session: ends after" "$work/reddnd.log" || fail "the session does not end" "$work/reddnd.log"
	"$SOFTCX" fault clear >"$work/fault.log"
	counted=$(sed -n "s/.*session $session: ends after \([0-9]*\) .*/\1/p" "$work/reddnd.log")
	[[ $counted == "$(answered "$work/bench.log")" ]] ||
		fail "$counted requests are counted, $(answered "$work/bench.log") had an answer" "$work/bench.log" "$work/reddnd.log"
done
ok "what was answered before a queue failed is counted, with the daemon stopped"

stop_reddnd
done_testing
