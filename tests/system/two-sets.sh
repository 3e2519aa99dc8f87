#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two sets of code queues (code_sets): right answers in both modes, queues that serve the next session, a queue of either set that
# fails, and daemons that go on with sessions of the one before.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}" "${named_steps[@]}" managed.reset=ignored

: "${REDDN:?set REDDN to the path of the client tool}"
# that clients stay, at most: a test that takes longer fails
seconds=1000
background_limit=$((seconds + 100))

many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
head -c 4096 /dev/zero >"$work/counters"
configure() # SETS of the recycled offload
{
	configure_reddnd <<END
control = "$work/control";
spare_time = "1000s";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "armed"; program = "hash-get"; region = "t"; code_sets = 2; },
  { name = "kept"; program = "hash-get"; region = "t"; code_sets = $1; mode = "recycled"; } );
END
}

# ---- what is refused ----------------------------------------------------------------------

configure 3
rc=0
"$REDDND" --config "$work/reddnd.conf" --check-config >"$work/check.log" 2>&1 || rc=$?
[[ $rc -ne 0 ]] || fail "three sets are not refused" "$work/check.log"
grep -q '"code_sets" is 3; it must be a number of sets from 1 to 2' "$work/check.log" || fail "no reason" "$work/check.log"
configure 2
sed "s|^regions.*|regions = ( { name = \"t\"; kind = \"raw\"; path = \"$work/counters\"; writable = true; } );|; s/\"hash-get\"/\"counter\"/" "$work/reddnd.conf" >"$work/wrong.conf"
rc=0
"$REDDND" --config "$work/wrong.conf" --check-config >"$work/check.log" 2>&1 || rc=$?
[[ $rc -ne 0 ]] || fail "a program that changes a region is not refused" "$work/check.log"
grep -q 'its program has mistakes, or cannot have two sets of code queues ("code_sets")' "$work/check.log" || fail "no hint at the setting" "$work/check.log"
grep -q 'changes a region, while the head is in queue "code"' "$work/check.log" || fail "no reason" "$work/check.log"
ok "a program that cannot have two sets is refused, with its line and the reason"

start_nic
serve_supervised

load() # OFFLOAD REQUESTS: verified answers
{
	on_nic bench.log "$REDDN" bench --timeout 100000 --depth 16 --port "$port" --count "$2" --verify --keys "$work/data.tsv" "$address" "$1" ||
		fail "$1: wrong or missing answers" "$work/bench.log" "$work/run.log"
	until_true has_clients 0 || fail "the session does not end" "$work/run.log"
}

bench() # OFFLOAD: a client that stays
{
	background "$1.log" "$REDDN" bench --port "$port" --timeout 100000 --depth 16 --verify --keys "$work/data.tsv" --seconds "$seconds" "$address" "$1"
}

# ---- answers ------------------------------------------------------------------------------

# numbers of requests that leave the sets in the middle of a lap, each at another place, and more than one lap
for offload in armed kept; do
	load $offload 1
	spares >"$work/first"
	[[ $(wc -l <"$work/first") -ge 1 ]] || fail "$offload: the queues of the first session are not kept" "$work/run.log"
	for requests in 332 1 7 500; do
		load $offload $requests
		spares >"$work/now"
		cmp -s "$work/first" "$work/now" || fail "$offload: the next session has other queues" "$work/first" "$work/now"
	done
	ok "$offload: five sessions, one after the other, have the same queues, and the right answers"
done

# ---- a queue fails ------------------------------------------------------------------------

for offload in armed kept; do
	for part in 1 2; do
		rc=0
		bench $offload
		process=$child
		until_true more_requests $offload 100 || fail "$offload: no answers" "$work/$offload.log" "$work/run.log"
		qpn=$("${BASH_SOURCE[0]%/*}/ledger-read.py" "$(daemon)" qpn "$(clients 'd[0]["session"]')" $part)
		"$SOFTCX" fault add qp-error --qp "$qpn" >"$work/fault.log" || fail "no fault" "$work/fault.log"
		wait "$process" || rc=$?
		[[ $rc -eq 2 ]] || fail "$offload: the client ends with status $rc" "$work/$offload.log" "$work/run.log"
		grep -qE '^wrong +0$' "$work/$offload.log" || fail "$offload: wrong answers" "$work/$offload.log"
		until_true has_clients 0 || fail "the session does not end" "$work/run.log"
	done
	[[ $(grep -cE "offload $offload: (a queue failed|the device reports that queue pair)" "$work/run.log") -eq 2 ]] || fail "$offload: the daemon does not see that a queue failed" "$work/run.log"
	ok "$offload: a session of which a queue of either set fails ends, without a wrong answer"
done

# ---- daemons --------------------------------------------------------------------------------

declare -A client
for offload in armed kept; do
	bench $offload
	client[$offload]=$child
done
undisturbed() # WHEN OFFLOAD...: these clients go on, and what they ask is counted
{
	local offload

	for offload in "${@:2}"; do
		alive "${client[$offload]}" || fail "$1: the client of $offload was disturbed" "$work/$offload.log" "$work/run.log"
		until_true more_requests "$offload" "$(requests "$offload")" || fail "$1: requests of $offload are not counted on" "$work/run.log"
	done
}
until_true has_clients 2 || fail "no clients" "$work/run.log"
undisturbed "at first" kept armed
kill -9 "$(daemon)"
until_true taken_over 1 || fail "nobody takes over" "$work/run.log"
undisturbed "the second daemon" kept armed
# the offload is another one with one set
configure 1
kill -9 "$(daemon)"
until_true taken_over 2 || fail "nobody takes over" "$work/run.log"
undisturbed "the third daemon, with another offload" kept armed
[[ $(clients "[o['note'] for o in d if o['offload'] == 'kept'][0]") == *'the offload is another one now'* ]] ||
	fail "the session of the offload before is not known as such" "$work/run.log"
"$REDDNCTL" --socket "$work/control" limit "$(clients "[o['session'] for o in d if o['offload'] == 'kept'][0]")" --rate 3000 >"$work/ctl.log" 2>&1 || fail "no limit" "$work/ctl.log"
undisturbed "with a limit" kept armed
ok "daemons go on with sessions of the ones before, and of an offload that has one set now"
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
