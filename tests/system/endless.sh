#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Offloads with unbounded loops: answers; clients, operators and reloads in the middle of a loop; loops that do not end; and the
# same programs run by reddnc.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
needs "${endless[@]}"
# ends of the names of offloads: loops that the daemon arms requests for, and recycled ones
modes=("") judged=(list-endless.c)
if able "loops of recycled offloads" "${recycling[@]}"; then
	modes+=(.r)
	judged+=(list-endless.cr)
fi

: "${REDDNC:?}" "${ENDLESS:?}" "${REDDND_RUN:?}"
seed=${TEST_SEED:-1}
mkdir "$memory/a" "$memory/b"
for dir in a b; do
	"$ENDLESS" make "$memory/$dir" || fail "no regions"
done
# after the 5000 nodes of the list there is a node that points to itself
circle=$((5000 * 19))

same_as_idle()
{
	[[ $(objects) == "$idle" ]]
}

expect_idle() # WORDS
{
	until_true same_as_idle || {
		diff <(printf '%s\n' "$idle") <(objects) >"$work/leaked"
		fail "$1: objects are left (< before, > now)" "$work/leaked" "$work/reddnd.log"
	}
	expect_unpaid "$1: nothing is left over, nothing charged"
}

expect_unpaid() # WORDS
{
	becomes tenants "$1" 'all(t["queue_bytes"] == t["slot_bytes"] == t["depth"] == t["sessions"] == 0 for t in d)'
}

ask() # OFFLOAD DIR DEPTH COUNT
{
	on_nic ask.log "$ENDLESS" ask "$address" "$port" "$1" "$memory/$2" "$3" "$4" "$seed" ||
		fail "$1, depth $3 (seed $seed)" "$work/ask.log" "$work/reddnd.log"
	ok "$1, depth $3: $(tail -n 1 "$work/ask.log")"
}

# begins LOG ARGUMENTS...: starts a client whose loop does not end; sets $child
begins()
{
	background "$1" "$ENDLESS" one "$address" "$port" "${@:2}"
	until_true grep -q '^session' "$work/$1" || fail "no session" "$work/$1" "$work/reddnd.log"
	in_loop="any(c['session'] == $(sed -n 's/^session //p' "$work/$1") and c['iterations'] > 1000 for c in d)"
	becomes sessions "${*:2}: in the loop" "$in_loop"
}

# ends LOG WORDS: the client ends with WORDS as the reason
ends()
{
	wait "$child"
	[[ $? -eq 3 ]] || fail "wrong exit status of the client" "$work/$1" "$work/reddnd.log"
	grep -qE "$2" "$work/$1" || fail "the client got no reason \"$2\"" "$work/$1" "$work/reddnd.log"
	ok "$(tail -n 1 "$work/$1")"
}

list() # DIR
{
	printf 'program = "list-endless"; loop_rate = 10000000; regions = { nodes = "nodes.%s"; heap = "heap.%s"; };' "$1" "$1"
}
machine()
{
	printf 'program = "turing"; loop_rate = 10000000; regions = { rules = "rules.%s"; tape = "tape.%s"; links = "links.%s"; };' "$1" "$1" "$1"
}
regions=
for dir in a b; do
	for name in array nodes heap rules tape links; do
		regions+="{ name = \"$name.$dir\"; kind = \"raw\"; path = \"$memory/$dir/$name\"; writable = $([[ $name == tape ]] && echo true || echo false); }, "
	done
done
settings()
{
	printf 'control = "%s"; regions = ( %s ); offloads = ( %s ); tenants = ( { name = "all"; depth = 200; queue_bytes = "64M"; } );' \
		"$control" "${regions%, }" "$1"
}
loop_rate=20000
offloads="{ name = \"while-recycled\"; mode = \"unrolled\"; program = \"while-recycled\"; region = \"array.a\"; time_budget = \"10m\"; },
  { name = \"while-recycled.r\"; program = \"while-recycled\"; region = \"array.a\"; time_budget = \"10m\"; mode = \"recycled\"; },
  { name = \"list-endless\"; mode = \"unrolled\"; $(list a) loop_budget = 100000; on_error = \"log\"; },
  { name = \"list-endless.r\"; $(list a) loop_budget = 100000; mode = \"recycled\"; },
  { name = \"list-endless.log\"; $(list a) loop_budget = 1000; on_error = { loop = \"log\"; }; },
  { name = \"turing\"; mode = \"unrolled\"; $(machine a) time_budget = \"10m\"; },
  { name = \"turing.r\"; $(machine b) time_budget = \"10m\"; mode = \"recycled\"; },
  { name = \"patient\"; $(list a) time_budget = \"10m\"; },
  { name = \"list-endless.c\"; mode = \"unrolled\"; $(list a) loop_budget = 20000; },
  { name = \"list-endless.cr\"; $(list a) loop_budget = 20000; mode = \"recycled\"; },
  { name = \"timed\"; $(list a) time_budget = \"200ms\"; },
  { name = \"paced\"; mode = \"unrolled\"; program = \"while-recycled\"; region = \"array.a\"; loop_rate = $loop_rate; time_budget = \"2s\"; },
  { name = \"paced.r\"; program = \"while-recycled\"; region = \"array.a\"; loop_rate = $loop_rate; time_budget = \"2s\"; mode = \"recycled\"; },
  { name = \"slow\"; program = \"while-recycled\"; region = \"array.a\"; loop_rate = 2000; time_budget = \"40s\"; },
  { name = \"paced.c\"; program = \"while-recycled\"; region = \"array.a\"; loop_rate = $loop_rate; time_budget = \"2s\"; engine = \"cpu\"; }"

nic_options=(--seed "$seed")
start_nic
start_reddnd "$(settings "$offloads")"
daemon=$(program_of "$reddnd") || exit
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"
idle_objects ask while-recycled a 1 4

# ---- answers ------------------------------------------------------------------------------

for depth in 1 8; do # a request goes round thousands of times
	for mode in "${modes[@]}"; do
		ask "while-recycled$mode" a "$depth" $((4 + 2 * depth))
		ask "list-endless$mode" a "$depth" $((4 + 2 * depth))
	done
done
ask turing a 1 20
[[ ${#modes[@]} -eq 1 ]] || ask turing.r b 8 40
expect_idle "after all clients"
becomes offloads "iterations are counted" 'all(o["iterations"] > o["requests"] * 500 and o["wqes"] > 10 * o["iterations"] for o in d if o["offload"].startswith("list-endless") and o["requests"])'

# ---- the rate of a loop -------------------------------------------------------------------

executed() # WQEs of the NIC since it started
{
	"$SOFTCX" status | sed -n 's/.*since start \([0-9]*\) WQEs.*/\1/p' | paste -sd+ | bc
}

# shellcheck disable=SC2317 # called by until_true
rests()
{
	local before
	before=$(executed)
	sleep 0.3
	[[ $(executed) -eq $before ]]
}

# While the daemon is stopped, a loop has the credits that it was given before, and no more
for offload in "${modes[@]/#/list-endless}"; do
	[[ ${ENGINE-} != cpu ]] || break # then the NIC executes no loop
	background ask.log "$ENDLESS" ask "$address" "$port" "$offload" "$memory/a" 4 0 "$seed"
	asking=$child
	until_true grep -q running "$work/ask.log" || fail "no client" "$work/ask.log" "$work/reddnd.log"
	stop_program "$daemon"
	until_true rests || fail "$offload: the NIC goes on while the daemon is stopped" "$work/reddnd.log"
	kill -CONT "$daemon"
	stopped=$(executed)
	goes_on()
	{
		[[ $(executed) -gt $((stopped + 100000)) ]]
	}
	until_true goes_on || fail "$offload: the loop does not go on with the daemon" "$work/ask.log" "$work/reddnd.log"
	kill "$asking"
	wait "$asking"
	ok "$offload: the loop rests while the daemon is stopped, and goes on with it"
done
expect_idle "after that"

# Loops that do not end have the WQEs of the rate of their session, and of the credits ahead: those of 40 ms, and two halves of a lap
# at least. Where a session has several connections, they share that
wqes_of() # OFFLOAD
{
	ctl --json offloads || fail "no offloads"
	python3 -c 'import json, sys; print([o["wqes"] for o in json.load(open(sys.argv[1])) if o["offload"] == sys.argv[2]][0])' "$work/ctl.out" "$1"
}

for offload in "${modes[@]/#/paced}" paced.c; do
	for connections in 1 8; do
		before=$(wqes_of "$offload")
		begin=$(date +%s%N)
		background one.log "$ENDLESS" each "$address" "$port" "$offload" $connections 281474976710655 0
		until_true grep -q '^session' "$work/one.log" || fail "no session" "$work/one.log" "$work/reddnd.log"
		wait "$child"
		took=$((($(date +%s%N) - begin) / 1000000))
		grep -q 'the time budget is 2000 ms' "$work/one.log" || fail "$offload: not ended by its budget" "$work/one.log" "$work/reddnd.log"
		wqes=$(($(wqes_of "$offload") - before))
		most=$((loop_rate * took / 1000 + loop_rate / 10 + 4000))
		[[ $wqes -gt 0 && $wqes -le $most ]] || fail "$offload: $wqes WQEs in $took ms, more than $most" "$work/reddnd.log"
		ok "$offload, $connections connections: $wqes WQEs in $took ms, of at most $most"
	done
done

# Where there is a credit from time to time, fewer than loops, each has its turn: these need 15 credits each, of 13 in a second
on_nic one.log "$ENDLESS" beside "$address" "$port" slow 4 100007 0 || # the value of element 100
	fail "a loop gets nothing beside one that does not end" "$work/one.log" "$work/reddnd.log"
ok "loops come to their end beside one that does not"

# ---- in the middle of a loop --------------------------------------------------------------

background other.log "$ENDLESS" ask "$address" "$port" while-recycled "$memory/a" 4 0 "$seed"
other=$child
until_true grep -q running "$work/other.log" || fail "no client" "$work/other.log" "$work/reddnd.log"

begins one.log patient "$circle" 1
ctl kick "$(sed -n 's/^session //p' "$work/one.log")" || fail "kick" "$work/ctl.err"
ends one.log 'lost after 0 answers, 5: .*the server ended session [0-9]+: the administrator ended it'
begins one.log patient "$circle" 1
kill_hard "$child"
becomes sessions "a client is killed in the middle of a loop" 'all(c["offload"] != "patient" for c in d)'

# ---- loops that do not end ----------------------------------------------------------------

for offload in "${judged[@]}"; do
	background one.log "$ENDLESS" one "$address" "$port" "$offload" "$circle" 1
	ends one.log 'lost after 0 answers, 4: .*request 0 was [0-9]+ times in the loop and is not answered; the loop budget is 20000 iterations'
	took=$(sed -n 's/.*request 0 was \([0-9]*\) times in the loop.*/\1/p' "$work/one.log" | tail -n 1)
	# the NIC executes more until the daemon looks again: some thousand, or more if the daemon gets no CPU
	[[ $took -gt 20000 && $took -le $((20 * 20000)) ]] || fail "$offload: stopped after $took iterations" "$work/one.log" "$work/reddnd.log"
	becomes audit "$offload is judged" "[e['verdict'] == 'loop' and e['action'] == 'terminate' for e in d if e['event'] == 'verdict' and e['offload'] == '$offload'] == [True]"
done
background one.log "$ENDLESS" one "$address" "$port" timed "$circle" 1
ends one.log 'lost after 0 answers, 4: .*request 0 was taken more than [0-9]+ ms ago and is not answered; the time budget is 200 ms'
background one.log "$ENDLESS" one "$address" "$port" list-endless $((1 << 30)) 1
failed='step read.* of the loop failed: .*, list-endless.rdn:23'
able "the step of a loop that reads outside" "${named_steps[@]}" || failed="($failed|a queue failed)"
ends one.log "lost after 0 answers, 1: .*$failed"
# The daemon looks at loops now and then: a request that is over before has no verdict
judged()
{
	reported offloads 'any(o["offload"] == "list-endless.log" and o["verdicts"]["loop"] > 0 for o in d)'
}
for ((asked = 10; asked < 1000; asked += 10)); do
	ask list-endless.log a 2 10
	! judged || break
done
becomes offloads "verdicts are counted" '{o["offload"]: (o["verdicts"]["loop"], o["verdicts"]["time"]) for o in d if o["offload"] in ("list-endless.c", "list-endless.cr", "timed")} == {"list-endless.c": (1, 0), "list-endless.cr": ('$((${#judged[@]} - 1))', 0), "timed": (0, 1)} and any(o["offload"] == "list-endless.log" and 0 < o["verdicts"]["loop"] <= '"$asked"' and o["failed_sessions"] == 0 for o in d)'
ask list-endless.c a 4 12

# ---- reload -------------------------------------------------------------------------------

refused() # OFFLOAD WORDS
{
	configure_reddnd "$(settings "$1")"
	ctl reload && fail "accepted: $1"
	grep -q -e "$2" "$work/ctl.err" || fail "$1: no message \"$2\"" "$work/ctl.err"
	ok "refused: $2"
}
refused "{ name = \"x\"; $(list a) }" 'its program has a loop without a bound; set "time_budget" or "loop_budget"'
refused '{ name = "x"; program = "while-break"; region = "array.a"; loop_budget = 5; }' 'all loops of its program have bounds'
refused "{ name = \"x\"; $(list a) loop_budget = 0; }" '"loop_budget" is 0; it must be a number of iterations'
refused "{ name = \"x\"; $(list a) time_budget = \"1s\"; wqe_budget = 5000; }" 'a "wqe_budget" needs a "loop_budget"'
refused "{ name = \"x\"; $(list a) loop_budget = 1000; wqe_budget = 5000; }" 'a request takes [0-9]* WQEs, "wqe_budget" is 5000'

begins one.log patient "$circle" 1
in_loop=$child
configure_reddnd "$(settings "{ name = \"while-recycled\"; mode = \"unrolled\"; program = \"while-recycled\"; region = \"array.b\"; loop_budget = \"1M\"; }")"
ctl reload || fail "reload" "$work/ctl.err"
becomes sessions "a reload leaves who is in a loop, and who is not" '[(c["offload"], c["current"]) for c in d] == [("while-recycled", False), ("patient", False)]'
ask while-recycled b 8 16
kill "$in_loop"
wait "$in_loop"
alive "$other" || fail "an unrelated client has ended" "$work/other.log" "$work/reddnd.log"
kill "$other"
wait "$other"
expect_unpaid "when all have gone nothing is charged"

# A daemon with idle clients is idle
on_cpu()
{
	cut -d ' ' -f 1 "/proc/$daemon/schedstat"
}
rests()
{
	local before

	before=$(on_cpu)
	sleep 0.5
	[[ $(on_cpu) == "$before" ]]
}
background hold.log "$ENDLESS" hold "$address" "$port" while-recycled 7 0
until_true grep -q '^0800000000000000' "$work/hold.log" || fail "no answer" "$work/hold.log" "$work/reddnd.log"
until_true rests || fail "the daemon uses the processor" "$work/reddnd.log"
ok "a daemon with idle clients uses no processor"
kill "$child"
wait "$child"
stop_reddnd

# ---- the daemon dies ----------------------------------------------------------------------

# Without direct commands reddnc runs no programs
able "loops of reddnc" has.devx || {
	done_testing
	exit
}

# Recycled loops come to rest for want of credits, in the middle of a request, and the next daemon gives them others
until_true same_objects || fail "objects of the daemon are left" "$work/reddnd.log"
if [[ ${#modes[@]} -gt 1 && ${ENGINE-} != cpu ]]; then
	configure_reddnd "$(settings "$offloads")"
	background run.log "$REDDND_RUN" "$REDDND" --config "$work/reddnd.conf"
	reddnd=$child
	server_ready "$reddnd" reddnd run.log reddnd_listens
	background asking.log "$ENDLESS" ask "$address" "$port" list-endless.r "$memory/a" 8 0 "$seed"
	asking=$child
	taken_over() # N: so many daemons have gone on with what was left
	{
		[[ $(grep -c 'of the daemon before this one go on' "$work/run.log") -ge $1 ]]
	}
	for generation in 1 2 3; do
		becomes sessions "list-endless.r: answers before kill $generation" \
			"any(c['offload'] == 'list-endless.r' and c['requests'] >= 8 * $generation and c['iterations'] > 0 for c in d)"
		kill -9 "$(program_of "$(program_of "$reddnd")")"
		until_true taken_over "$generation" || fail "nobody takes over" "$work/run.log"
	done
	becomes sessions "list-endless.r: answers after three kills" \
		"any(c['offload'] == 'list-endless.r' and c['requests'] >= 40 for c in d)"
	kill "$reddnd"
	expect_exit "$reddnd" reddnd-run run.log
	child=$asking
	ends asking.log 'lost after [0-9]+ answers, .*the server closed the connection'
fi

# ---- reddnc -------------------------------------------------------------------------------

run() # ARGUMENTS...
{
	on_nic run.log "$REDDNC" run "$@"
}
run -j -t 100000 -r "array=$memory/a/array" "$programs/while-recycled.rdn" 5999007 8 || fail "while-recycled" "$work/run.log"
python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(not (d["answered"] and d["reply"] == "80bb000000000000" and 5900 < d["loop"]["iterations"] < 6000))' <"$work/run.log" ||
	fail "while-recycled: a wrong answer" "$work/run.log"
"$ENDLESS" make "$memory/a" || fail "no regions"
run -t 100000 -r "rules=$memory/a/rules" -r "tape=$memory/a/tape" -r "links=$memory/a/links" "$programs/turing.rdn" $((4000 << 8 | 8)) || fail "turing" "$work/run.log"
grep -q '^    6b 00 00 00 00 00 00 00$' "$work/run.log" || fail "turing: not 107 steps" "$work/run.log"
run -t 300 -r "nodes=$memory/a/nodes" -r "heap=$memory/a/heap" "$programs/list-endless.rdn" "$circle" 1 && fail "a circular list ends" "$work/run.log"
grep -q 'no reply within 300 ms' "$work/run.log" || fail "no message" "$work/run.log"
ok "reddnc runs these programs"
done_testing
