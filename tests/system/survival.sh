#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon dies and the next one goes on: clients notice nothing, and nothing is left over.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${MISUSE:?set MISUSE to the path of the test client}"
: "${GAP_CLIENTS:?set GAP_CLIENTS to the path of the test client}"
# how many calls apart the daemon that takes over is killed; 1 is every call
step=${TEST_STEP:-137}
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
  { name = "armed"; program = "hash-get"; region = "t"; },
  { name = "other"; program = "hash-get"; region = "t"; },
  { name = "strict"; program = "hash-get"; region = "t"; on_error = { request = "ban:600s"; }; } );
END

start_nic
serve_supervised

answers()
{
	[[ $(on_nic get.log timeout 60 "$REDDN" get -p "$port" "$address" kept 'key 7' && cat "$work/get.log") == 'value 7 of many' ]]
}

bench() # LOG OFFLOAD OPTIONS...
{
	background "$1" "$REDDN" bench --port "$port" --timeout 100000 --depth 16 --rate 3000 --verify --keys "$work/data.tsv" "${@:3}" "$address" "$2"
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
bench armed.log armed --seconds "$seconds"
armed=$child
until_true grep -q 'client .*, offload armed' "$work/run.log" || fail "the client is not served" "$work/armed.log" "$work/run.log"
until_true more_requests kept 100 || fail "the client gets no answers" "$work/kept.log" "$work/run.log"

undisturbed() # WHEN: both clients go on, and what they ask is counted: it is more than $kept_before and $armed_before
{
	alive "$kept" || fail "$1: the client of the recycled offload was disturbed" "$work/kept.log" "$work/run.log"
	alive "$armed" || fail "$1: the client of the unrolled offload was disturbed" "$work/armed.log" "$work/run.log"
	until_true more_requests kept "$kept_before" || fail "$1: requests are not counted on" "$work/run.log"
	until_true more_requests armed "$armed_before" || fail "$1: requests of the unrolled offload are not counted on" "$work/run.log"
}

count()
{
	kept_before=$(requests kept)
	armed_before=$(requests armed)
}

limit_sessions() # RATE
{
	local session

	for session in 1 2; do
		"$REDDNCTL" --socket "$work/control" limit $session --rate "$1" >"$work/ctl.log" 2>&1 || fail "no limit" "$work/ctl.log"
	done
}

# Two generations find a busy NIC, the others leave time for other tests
for generation in {1..6}; do
	[[ $generation -ne 3 ]] || limit_sessions 2000
	count
	# every second one is killed, the others leave their sessions
	signal=USR2
	[[ $((generation % 2)) -eq 0 ]] || signal=KILL
	kill -"$signal" "$(daemon)"
	until_true taken_over "$generation" || fail "generation $generation does not take over" "$work/run.log"
	until_true answers || fail "generation $generation does not answer a new client" "$work/get.log" "$work/run.log"
	undisturbed "generation $generation"
	until_true has_clients 2 || fail "generation $generation: clients that have left are still there" "$work/run.log"
	if [[ $generation -eq 2 ]]; then
		objects >"$work/objects.2"
	fi
done
ok "a client of a recycled offload and one of an unrolled one have their sessions through 3 kills and 3 restarts of the daemon, and their requests are counted on"
until_true as_in_second || fail "objects grow with the generations" "$work/objects.2" <(objects)
ok "the sixth daemon has no more objects than the second"

limit_sessions 1000
"$REDDNCTL" --socket "$work/control" limit everyone --rate 1000000 >"$work/ctl.log" 2>&1 || fail "no limit of the tenant" "$work/ctl.log"

tenant_rate()
{
	asked tenants 'd[0]["rate"]'
}

limited()
{
	[[ $(clients 'sum(o["rate"] == 1000 for o in d)') -eq 2 ]]
}
until_true limited || fail "the clients are not limited" "$work/run.log"

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
# making a session that the CPU executes takes fewer calls
[[ ${ENGINE-nic} == nic ]] || serving_step=$((step / 6 + 1))
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
	grep -qE 'refused by the server: |the server was restarted while the session began' "$work/get.log" ||
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
		until_true has_clients 2 || fail "$moment, call $n of serving: clients are left" "$work/ctl.err" "$work/run.log" <(clients d)
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
	until_true has_clients 3 || fail "the client is not served" "$work/leaver.log" "$work/run.log"
	count
	arm kill-after $n
	kill "$leaver"
	overs=$((overs + 1))
	until_true taken_over $overs || fail "call $n after a client has left: nobody takes over" "$work/run.log"
	struck || fail "the daemon makes fewer than $n calls when a client leaves" "$work/run.log"
	until_true has_clients 2 || fail "call $n after a client has left: it is still there" "$work/run.log"
	undisturbed "call $n after a client has left"
done
ok "a client that left just before is gone for the next daemon"

# What the CPU executes waits while no daemon runs, and ends with its program
if [[ ${ENGINE-nic} == nic ]]; then

	# ---- while no daemon runs -----------------------------------------------------------------

	# A client that leaves meanwhile has gone, and one that comes waits
	dead() # PID: it has ended, whether or not its parent knows
	{
		[[ ! -e /proc/$1 || $(awk '{ print $3 }' "/proc/$1/stat") == Z ]]
	}


	in_the_gap=()
	for offload in kept armed; do
		background "gap.$offload" "$GAP_CLIENTS" "$address" "$port" $offload there "$work/gap"
		in_the_gap+=("$child")
		until_true grep -q connected "$work/gap.$offload" || fail "the clients of $offload are not served" "$work/gap.$offload" "$work/run.log"
	done
	bench leaver.log kept --seconds "$seconds"
	leaver=$child
	until_true has_clients 9 || fail "the client is not served" "$work/leaver.log" "$work/run.log"
	supervisor=$(program_of "$run")
	stop_program "$supervisor"
	old=$(daemon)
	# The third client of each: a queue of its chain. The last one of "kept" has nothing enabled, and leaves no CQE when it breaks; that
	# of "armed" waits for the next request, so the WAIT is flushed
	broken=()
	queue=2
	for session in $(clients '" ".join(str(o["session"]) for o in sorted(d, key=lambda o: o["session"])[4::3])'); do
		broken+=("$("${BASH_SOURCE[0]%/*}/ledger-read.py" "$old" qpn "$session" $queue)")
		queue=1
	done
	kill -9 "$old"
	until_true dead "$old" || fail "the daemon does not die"
	kill_hard "$leaver"
	: >"$work/gap"
	for offload in kept armed; do
		until_true grep -q 'done' "$work/gap.$offload" || fail "the clients of $offload do not leave" "$work/gap.$offload"
	done
	[[ ${#broken[@]} -eq 2 ]] || fail "there are no queues to break: ${broken[*]}" "$work/run.log"
	for qpn in "${broken[@]}"; do
		"$SOFTCX" fault add qp-error --qp "$qpn" >"$work/fault.log" || fail "no fault" "$work/fault.log"
	done
	"$SOFTCX" fault clear >"$work/fault.log"
	comers=128
	background come.log "$GAP_CLIENTS" "$address" "$port" kept come "$comers"
	come=$child
	until_true grep -q asked "$work/come.log" || fail "not all connect" "$work/come.log" <(objects)
	kill -CONT "$supervisor"
	expect_exit "$come" "$comers clients that came while no daemon ran" come.log
	for gap in "${in_the_gap[@]}"; do
		expect_exit "$gap" "clients whose queues broke while no daemon ran" gap.kept
	done
	until_true has_clients 2 || fail "who left is still there" "$work/run.log"
	declare -A found=([kept]='queue pair 0x.* broke while no daemon ran' [armed]='a queue failed, though no step of it did')
	# One that is flushed to its doorbell record runs through all of its ring, so that it depends on the CQ's owner bits what is seen
	[[ $(fact managed.flush) == enabled ]] || found[armed]="(${found[kept]}|${found[armed]})"
	for offload in kept armed; do
		grep "offload $offload: " "$work/run.log" >"$work/found.log"
		[[ $(grep -cE "${found[$offload]}" "$work/found.log") -eq 1 ]] || fail "a broken queue of $offload is not found" "$work/found.log"
		grep -q "offload $offload: a request was longer than 18 bytes" "$work/run.log" || fail "a broken client of $offload is not found" "$work/run.log"
	done
	ok "while no daemon runs clients leave, die and break their queues, which is noticed later, and $comers others come at once, which wait"

	# ---- another configuration ----------------------------------------------------------------

	bench other.log other --seconds "$seconds"
	other=$child
	bench ended.log kept --seconds "$seconds"
	ended=$child
	until_true has_clients 4 || fail "the clients are not served" "$work/other.log" "$work/ended.log" "$work/run.log"
	until_true more_requests other 1 || fail "the client gets no answers" "$work/other.log"
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
	sed -i '/"kept"/s/hash-get-parallel"/hash-get"/; /"other"/s/hash-get"/hash-get-parallel"/' "$work/reddnd.conf"
	count
	kill -9 "$(daemon)"
	until_true ended "$other" || fail "the client of another program does not end" "$work/other.log" "$work/run.log"
	rc=0
	wait "$other" || rc=$?
	[[ $rc -eq 2 ]] || fail "the client of another program: status $rc" "$work/other.log" "$work/run.log"
	grep -q 'the server was upgraded' "$work/other.log" || fail "the client of another program gets no reason" "$work/other.log" "$work/run.log"
	undisturbed "another program"
	ok "a client whose offload is another one gets the reason: $(grep -o 'the server was upgraded.*' "$work/other.log" | head -n 1)"
	until_true answers || fail "a new client of another program is not answered" "$work/get.log" "$work/run.log"
	until_true notes_are "['$another', '$another']" || fail "what the sessions run is not reported: $(notes)" "$work/run.log"
	limited || fail "the limits of a session without its offload are forgotten" "$work/ctl.err"
	kill "$ended"
	wait "$ended"
	until_true has_clients 2 || fail "a client without its offload has left and is still there" "$work/run.log"
	ok "sessions of a recycled offload go on with the program that they began with, and end with their clients"
	count
	cp "$work/right.conf" "$work/reddnd.conf"
	kill -9 "$(daemon)"
	undisturbed "the program of before"
	until_true notes_are "['']" || fail "the program is there again: $(notes)" "$work/run.log"
	until_true answers || fail "a new client is not answered" "$work/get.log" "$work/run.log"

	# ---- bans ---------------------------------------------------------------------------------

	on_nic misuse.log "$MISUSE" "$address" "$port" strict long-send || fail "long-send" "$work/misuse.log" "$work/run.log"
	count
	was=$(takeovers)
	kill -9 "$(daemon)"
	until_true taken_over $((was + 1)) || fail "nobody takes over" "$work/run.log"
	on_nic get.log timeout 100 "$REDDN" get -p "$port" "$address" kept 'key 1' && fail "a ban is forgotten" "$work/run.log"
	grep -q 'refused for [0-9]* s more' "$work/get.log" || fail "a banned client is refused without a reason" "$work/get.log"
	undisturbed "a ban"
	ok "a ban stays: $(tail -n 1 "$work/get.log")"

	# ---- nothing of it is configured any more ---------------------------------------------------

	count
	sed -i '/name = "kept"/d; $a tenants = ( { name = "others"; networks = ( "0.0.0.0/0" ); } );' "$work/reddnd.conf"
	kill -9 "$(daemon)"
	undisturbed "nothing of it is configured"
	notes_are "['the server was restarted, and the offload is no longer configured']" || fail "what the session runs is not reported: $(notes)" "$work/run.log"
	count
	kill -9 "$(daemon)"
	undisturbed "nothing of it is configured, once more"
	ok "sessions go on whose tenant is gone from the configuration, and a recycled one whose offload is gone, too"

fi

# ---- the end ------------------------------------------------------------------------------

kill "$run"
expect_exit "$run" reddnd-run run.log
for client in kept armed; do
	wait "${!client}"
	[[ $? -eq 2 ]] || fail "the client does not notice the end" "$work/$client.log"
	# what was outstanding then
	[[ $(awk '$1 == "errors" { print $2 }' "$work/$client.log") -le 17 ]] || fail "requests failed before" "$work/$client.log"
	grep -qE '^wrong +0$' "$work/$client.log" || fail "wrong answers" "$work/$client.log"
	ok "$client: no error before the end, and no wrong answer: $(grep ^gets "$work/$client.log")"
done
done_testing
