#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon dies and the next one goes on: clients of a recycled offload notice nothing, sessions that need the daemon end with a reason,
# libreddn is back by itself, and nothing is left over.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${MISUSE:?set MISUSE to the path of the test client}"
: "${GAP_CLIENTS:?set GAP_CLIENTS to the path of the test client}"
# how many calls apart the daemon that takes over is killed; 1 is every call
step=${TEST_STEP:-200}
# that clients stay, at most: a test that takes longer fails
seconds=${TEST_SECONDS:-3000}
background_limit=$((seconds + 100))

many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
configure_reddnd <<END
control = "$work/control";
arena = "64M";
connect_timeout = "300s";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "kept"; program = "hash-get-parallel"; region = "t"; mode = "recycled"; },
  { name = "armed"; program = "hash-get"; region = "t"; mode = "unrolled"; },
  { name = "cpu"; program = "hash-get"; region = "t"; engine = "cpu"; },
  { name = "strict"; program = "hash-get"; region = "t"; mode = "unrolled"; on_error = { request = "ban:600s"; }; } );
END

start_nic
serve_supervised

answers()
{
	[[ $(on_nic get.log timeout 60 "$REDDN" get -p "$port" "$address" kept 'key 7' && cat "$work/get.log") == 'value 7 of many' ]]
}

bench() # LOG OFFLOAD OPTIONS...
{
	background "$1" "$REDDN" bench --port "$port" --timeout 100000 --depth 4 --rate 25 --verify --keys "$work/data.tsv" "${@:3}" "$address" "$2"
}

ended() # PID
{
	! alive "$1"
}

as_in_second() # the NIC has the objects that it had under the second daemon, when no queues were left of clients that had gone
{
	[[ $(objects) == "$(cat "$work/objects.2")" ]]
}

# ---- killed while it serves ---------------------------------------------------------------

bench kept.log kept --seconds "$seconds"
kept=$child
until_true more_requests kept 20 || fail "the client gets no answers" "$work/kept.log" "$work/run.log"
for offload in armed cpu; do
	bench $offload.log $offload --lasting --seconds "$seconds"
	declare $offload="$child"
	until_true more_requests $offload 0 || fail "the client of $offload gets no answers" "$work/$offload.log" "$work/run.log"
done

goes_on() # WHEN: the client of the recycled offload, and what it asks is counted: it is more than $kept_before
{
	alive "$kept" || fail "$1: the client of the recycled offload was disturbed" "$work/kept.log" "$work/run.log"
	until_true more_requests kept "$kept_before" || fail "$1: requests are not counted on" "$work/run.log"
}

all_served()
{
	[[ $(clients "max(o['requests'] for o in d if o['offload'] == 'kept') > $kept_before and {o['offload'] for o in d if o['requests']} >= {'armed', 'cpu'}") == True ]]
}

undisturbed() # WHEN: it goes on, and the other clients are back
{
	until_true all_served || fail "$1: requests are not counted on, or clients are not back" "$work/armed.log" "$work/cpu.log" "$work/run.log" <(clients d)
	for client in kept armed cpu; do
		alive "${!client}" || fail "$1: the client of $client has ended" "$work/$client.log" "$work/run.log"
	done
}

count()
{
	kept_before=$(requests kept)
}

limit_session() # RATE
{
	"$REDDNCTL" --socket "$work/control" limit 1 --rate "$1" >"$work/ctl.log" 2>&1 || fail "no limit" "$work/ctl.log"
}

# Two generations find a busy NIC, the others leave time for other tests
for generation in {1..6}; do
	[[ $generation -ne 3 ]] || limit_session 500
	count
	# every second one is killed, the others leave their sessions
	signal=USR2
	[[ $((generation % 2)) -eq 0 ]] || signal=KILL
	kill -"$signal" "$(daemon)"
	until_true taken_over "$generation" || fail "generation $generation does not take over" "$work/run.log"
	until_true answers || fail "generation $generation does not answer a new client" "$work/get.log" "$work/run.log"
	undisturbed "generation $generation"
	until_true has_clients 3 || fail "generation $generation: clients that have left are still there" "$work/run.log"
	if [[ $generation -eq 2 ]]; then
		objects >"$work/objects.2"
	fi
done
ok "a client of a recycled offload has its session through 3 kills and 3 restarts of the daemon, and its requests are counted on"
until_true as_in_second || fail "objects grow with the generations" "$work/objects.2" <(objects)
ok "the sixth daemon has no more objects than the second"

limit_session 400
"$REDDNCTL" --socket "$work/control" limit everyone --rate 1000000 >"$work/ctl.log" 2>&1 || fail "no limit of the tenant" "$work/ctl.log"

tenant_rate()
{
	asked tenants 'd[0]["rate"]'
}

limited()
{
	[[ $(clients 'sum(o["rate"] == 400 for o in d)') -eq 1 ]]
}
until_true limited || fail "the client is not limited" "$work/run.log"

# ---- killed while it takes over -----------------------------------------------------------

arm() # MOMENT N: a daemon that is started now dies at its n-th call
{
	"$SOFTCX" fault add "$1" --program reddnd --at "$2" >"$work/fault.log" || fail "no fault" "$work/fault.log"
}

struck() # true if it has died; the fault is forgotten
{
	local n

	n=$("$SOFTCX" fault list --json | python3 -c 'import json, sys; print(sum(f["struck"] for f in json.load(sys.stdin)))')
	"$SOFTCX" fault clear >"$work/fault.log"
	((n)) && return
	# it may have died between these two commands
	until_true answers || fail "a new client is not answered" "$work/get.log" "$work/run.log"
	overs=$(takeovers)
	return 1
}

overs=6
serving_step=$((step / 3 + 1))
for moment in kill-before kill-after; do
	swept "calls-taking-over-${moment#kill-}" || continue
	points=0
	for ((n = 1 + part * step; ; n += parts * step)); do
		count
		old=$(daemon)
		arm $moment "$n"
		kill -9 "$old"
		overs=$((overs + 1))
		until_true taken_over $overs || fail "$moment, call $n: nobody takes over" "$work/run.log"
		undisturbed "$moment, call $n"
		struck || break
		points=$((points + 1))
	done
	[[ $points -gt 2 ]] || fail "$moment: the daemon takes over with fewer than $n calls" "$work/run.log"
	ok "$moment: killed at $points of the $n calls of taking over, and the next one takes over"
done
until_true answers || fail "a new client is not answered" "$work/get.log" "$work/run.log"
until_true as_in_second || fail "objects are left over" "$work/objects.2" <(objects)
limited || fail "the limits are forgotten" "$work/ctl.err"
[[ $(tenant_rate) == 1000000 ]] || fail "the limit of the tenant is forgotten: $(tenant_rate)" "$work/ctl.err"
ok "nothing of them is left over, and limits that an operator set are in force"

# ---- killed while clients come and go -----------------------------------------------------

comes() # WHAT OFFLOAD KEY: a client is answered, or refused with a reason
{
	on_nic get.log timeout 100 "$REDDN" get -p "$port" -t 50000 "$address" "$2" "$3" && return
	grep -qE 'refused by the server: |the server was restarted' "$work/get.log" ||
		fail "$1: a client of $2 is neither answered nor refused with a reason" "$work/get.log" "$work/run.log"
}

scenario() # WHAT: clients come and go, one of them in vain; the configuration is read again
{
	comes "$1" kept 'key 1'
	kill -HUP "$(daemon)" 2>/dev/null
	comes "$1" armed 'key 2'
	comes "$1" nothing 'key 3'
}

for moment in kill-before kill-after; do
	swept "calls-serving-${moment#kill-}" || continue
	points=0
	for ((n = 1 + part * serving_step; ; n += parts * serving_step)); do
		count
		arm $moment "$n"
		scenario "$moment, call $n of serving"
		struck || break
		overs=$((overs + 1))
		until_true taken_over $overs || fail "$moment, call $n of serving: nobody takes over" "$work/run.log"
		undisturbed "$moment, call $n of serving"
		until_true answers || fail "$moment, call $n of serving: a new client is not answered" "$work/get.log" "$work/run.log"
		until_true has_clients 3 || fail "$moment, call $n of serving: clients are left" "$work/ctl.err" "$work/run.log" <(clients d)
		points=$((points + 1))
	done
	[[ $points -gt 1 ]] || fail "$moment: serving takes fewer than $n calls" "$work/run.log"
	ok "$moment: killed at $points of the $n calls while clients come and go: those that were served go on"
done
kill -9 "$(daemon)"
overs=$((overs + 1))
until_true taken_over $overs || fail "nobody takes over" "$work/run.log"
until_true answers || fail "a new client is not answered" "$work/get.log" "$work/run.log"
until_true as_in_second || fail "objects are left over" "$work/objects.2" <(objects)

# The client is gone when the daemon dies: right after it has read that, or after one of the calls that follow
for n in 1 2 3; do
	bench leaver.log kept --seconds "$seconds"
	leaver=$child
	until_true has_clients 4 || fail "the client is not served" "$work/leaver.log" "$work/run.log"
	count
	arm kill-after $n
	kill "$leaver"
	overs=$((overs + 1))
	until_true taken_over $overs || fail "call $n after a client has left: nobody takes over" "$work/run.log"
	struck || fail "the daemon makes fewer than $n calls when a client leaves" "$work/run.log"
	until_true has_clients 3 || fail "call $n after a client has left: it is still there" "$work/run.log"
	undisturbed "call $n after a client has left"
done
ok "a client that left just before is gone for the next daemon"

# ---- while no daemon runs -----------------------------------------------------------------

# A client that leaves meanwhile has gone, and one that comes waits
dead() # PID: it has ended, whether or not its parent knows
{
	[[ ! -e /proc/$1 || $(awk '{ print $3 }' "/proc/$1/stat") == Z ]]
}

background gap.log "$GAP_CLIENTS" "$address" "$port" kept there "$work/gap"
in_the_gap=$child
until_true grep -q connected "$work/gap.log" || fail "the clients are not served" "$work/gap.log" "$work/run.log"
bench leaver.log kept --seconds "$seconds"
leaver=$child
until_true has_clients 7 || fail "the client is not served" "$work/leaver.log" "$work/run.log"
supervisor=$(program_of "$run")
stop_program "$supervisor"
old=$(daemon)
# The third client: a queue of its chain, which has nothing enabled, and leaves no CQE when it breaks
session=$(clients 'sorted(o["session"] for o in d if o["offload"] == "kept")[3]')
broken=$("${BASH_SOURCE[0]%/*}/ledger-read.py" "$old" qpn "$session" 2)
kill -9 "$old"
until_true dead "$old" || fail "the daemon does not die"
kill_hard "$leaver"
: >"$work/gap"
until_true grep -q 'done' "$work/gap.log" || fail "the clients do not leave" "$work/gap.log"
[[ -n $broken ]] || fail "there is no queue to break" "$work/run.log"
"$SOFTCX" fault add qp-error --qp "$broken" >"$work/fault.log" || fail "no fault" "$work/fault.log"
"$SOFTCX" fault clear >"$work/fault.log"
comers=128
background come.log "$GAP_CLIENTS" "$address" "$port" kept come "$comers"
come=$child
until_true grep -q asked "$work/come.log" || fail "not all connect" "$work/come.log" <(objects)
kill -CONT "$supervisor"
expect_exit "$come" "$comers clients that came while no daemon ran" come.log
expect_exit "$in_the_gap" "clients whose queues broke while no daemon ran" gap.log
until_true has_clients 3 || fail "who left is still there" "$work/run.log"
grep "offload kept: " "$work/run.log" >"$work/found.log"
[[ $(grep -cE 'queue pair 0x.* broke while no daemon ran' "$work/found.log") -eq 1 ]] || fail "a broken queue is not found" "$work/found.log"
grep -q "offload kept: a request was longer than 18 bytes" "$work/run.log" || fail "a broken client is not found" "$work/run.log"
ok "while no daemon runs clients leave, die and break their queues, which is noticed later, and $comers others come at once, which wait"

# ---- sessions that need the daemon --------------------------------------------------------

reason='the server was restarted, which ends sessions that are not recycled'
for offload in armed cpu; do
	bench ends.$offload $offload --seconds "$seconds"
	declare ends_$offload="$child"
done
until_true has_clients 5 || fail "the clients are not served" "$work/ends.armed" "$work/ends.cpu" "$work/run.log"
count
kill -9 "$(daemon)"
for offload in armed cpu; do
	client=ends_$offload rc=0
	until_true ended "${!client}" || fail "the client of $offload does not end" "$work/ends.$offload" "$work/run.log"
	wait "${!client}" || rc=$?
	[[ $rc -eq 2 ]] || fail "the client of $offload: status $rc" "$work/ends.$offload" "$work/run.log"
	grep -q "$reason" "$work/ends.$offload" || fail "the client of $offload gets no reason" "$work/ends.$offload" "$work/run.log"
done
undisturbed "clients that do not last"
ok "clients of an unrolled offload and of one of the CPU get the reason: $reason"

# ---- another configuration ----------------------------------------------------------------

bench ended.log kept --seconds "$seconds"
ended=$child
until_true has_clients 4 || fail "the client is not served" "$work/ended.log" "$work/run.log"
notes() # of the clients of the recycled offload, the oldest first
{
	clients "[o['note'] for o in d if o['offload'] == 'kept']"
}

notes_are() # LIST
{
	[[ $(notes) == "$1" ]]
}

another='the server was upgraded, and the offload is another one now'
cp "$work/reddnd.conf" "$work/right.conf"
sed -i '/"kept"/s/hash-get-parallel"/hash-get"/' "$work/reddnd.conf"
count
kill -9 "$(daemon)"
undisturbed "another program"
until_true answers || fail "a new client of another program is not answered" "$work/get.log" "$work/run.log"
until_true notes_are "['$another', '$another']" || fail "what the sessions run is not reported: $(notes)" "$work/run.log"
limited || fail "the limits of a session without its offload are forgotten" "$work/ctl.err"
kill "$ended"
wait "$ended"
until_true has_clients 3 || fail "a client without its offload has left and is still there" "$work/run.log"
ok "sessions of a recycled offload go on with the program that they began with, and end with their clients"
count
cp "$work/right.conf" "$work/reddnd.conf"
kill -9 "$(daemon)"
undisturbed "the program of before"
until_true notes_are "['']" || fail "the program is there again: $(notes)" "$work/run.log"
until_true answers || fail "a new client is not answered" "$work/get.log" "$work/run.log"

# ---- the end ------------------------------------------------------------------------------

# Before a ban of their address
for offload in armed cpu; do
	kill -INT "${!offload}"
	wait "${!offload}" || fail "the client of $offload fails" "$work/$offload.log"
	for what in errors wrong; do
		grep -qE "^$what +0$" "$work/$offload.log" || fail "$what" "$work/$offload.log"
	done
	grep -qE '^reconnects +[1-9]' "$work/$offload.log" || fail "the client of $offload has not connected again" "$work/$offload.log"
	ok "$offload: no error and no wrong answer: $(grep ^gets "$work/$offload.log"), $(grep ^reconnects "$work/$offload.log")"
done

on_nic misuse.log "$MISUSE" "$address" "$port" strict long-send || fail "long-send" "$work/misuse.log" "$work/run.log"
count
was=$(takeovers)
kill -9 "$(daemon)"
until_true taken_over $((was + 1)) || fail "nobody takes over" "$work/run.log"
on_nic get.log timeout 100 "$REDDN" get -p "$port" "$address" kept 'key 1' && fail "a ban is forgotten" "$work/run.log"
grep -q 'refused for [0-9]* s more' "$work/get.log" || fail "a banned client is refused without a reason" "$work/get.log"
goes_on "a ban"
ok "a ban stays: $(tail -n 1 "$work/get.log")"

# Nothing of it is configured any more
count
sed -i '/name = "kept"/d; $a tenants = ( { name = "others"; networks = ( "0.0.0.0/0" ); } );' "$work/reddnd.conf"
kill -9 "$(daemon)"
goes_on "nothing of it is configured"
notes_are "['the server was restarted, and the offload is no longer configured']" || fail "what the session runs is not reported: $(notes)" "$work/run.log"
count
kill -9 "$(daemon)"
goes_on "nothing of it is configured, once more"
ok "a recycled session goes on whose tenant and offload are gone from the configuration"

kill "$run"
expect_exit "$run" reddnd-run run.log
wait "$kept"
[[ $? -eq 2 ]] || fail "the client does not notice the end" "$work/kept.log"
# what was outstanding then
[[ $(awk '$1 == "errors" { print $2 }' "$work/kept.log") -le 5 ]] || fail "requests failed before" "$work/kept.log"
grep -qE '^wrong +0$' "$work/kept.log" || fail "wrong answers" "$work/kept.log"
ok "no error before the end, and no wrong answer: $(grep ^gets "$work/kept.log")"
done_testing
