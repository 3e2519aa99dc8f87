#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# reddnd against clients that break the protocol (misuse.c): each gets an error, the next client is served, and no object stays in
# the device.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"

limit=${TEST_LIMIT:-240}
: "${MISUSE:?set MISUSE to the path of the test client}"
: "${REDDN:?set REDDN to the path of the client tool}"

make_table "$work/table" --max-value 1000 <<<$'alice\twonder'
start_nic
# the questions of "why" come right after many refusals
start_reddnd "refusal_rate = 1000; regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = (
  { name = \"sequential\"; program = \"hash-get\"; region = \"t\"; mode = \"unrolled\"; },
  { name = \"parallel\"; program = \"hash-get-parallel\"; region = \"t\"; },
  { name = \"several\"; program = \"hash-mget\"; region = \"t\"; mode = \"unrolled\"; } );"

idle_objects on_nic get.log "$REDDN" get --port "$port" --timeout 50000 "$address" sequential alice

as_before()
{
	[[ $(objects) == "$idle" ]]
}

# After CASE the daemon lives, serves, and holds the objects of an idle daemon.
expect_unharmed()
{
	alive "$reddnd" || fail "$1: the daemon has died" "$work/reddnd.log"
	on_nic get.log "$REDDN" get --port "$port" --timeout 50000 "$address" "$mode" alice || fail "$1: the next client is not served" \
		"$work/get.log" "$work/reddnd.log"
	[[ $(cat "$work/get.log") == wonder ]] || fail "$1: the next client gets a wrong answer" "$work/get.log"
	until_true as_before || {
		diff <(printf '%s\n' "$idle") <(objects) >"$work/leaked"
		fail "$1: objects are left (< before, > now)" "$work/leaked" "$work/reddnd.log"
	}
	ok "$1"
}

for mode in sequential parallel; do
	on_nic misuse.log "$MISUSE" "$address" "$port" "$mode" refusals || fail "refusals" "$work/misuse.log" "$work/reddnd.log"
	expect_unharmed "$mode: $(wc -l <"$work/misuse.log") wrong requests for a connection are refused with words"
	for case in why wrong-rkey short-send long-send outside-window no-receives flood leave-in-flight; do
		# nobody looks at the completions of a recycled session
		[[ $mode != parallel || $case != short-send ]] || continue
		on_nic misuse.log "$MISUSE" "$address" "$port" "$mode" "$case" || fail "$mode: $case" "$work/misuse.log" \
			"$work/reddnd.log"
		expect_unharmed "$mode: $case"
	done
	on_nic misuse.log "$MISUSE" "$address" "$port" "$mode" no-immediates || fail "$mode: no-immediates" "$work/misuse.log" "$work/reddnd.log"
	words="refused: the server's NIC answers offload $mode with immediates, which the client's device cannot take"
	! by_cpu || words="answered by a SEND"
	grep -qF "$words" "$work/misuse.log" || fail "a client without immediates: not \"$words\"" "$work/misuse.log"
	expect_unharmed "$mode: a client without immediates"
	for round in 1 2 3; do
		background killed.log "$MISUSE" "$address" "$port" "$mode" until-killed
		until_true grep -q running "$work/killed.log" || fail "no client" "$work/killed.log"
		sleep "0.$round"
		kill_hard "$child"
		expect_unharmed "$mode: a client is killed while the chain runs for it"
	done
done

# a request with four keys, some of which are missing, or go anywhere
mode=several
for case in short-send long-send outside-window; do
	on_nic misuse.log "$MISUSE" "$address" "$port" "$mode" "$case" || fail "$mode: $case" "$work/misuse.log" "$work/reddnd.log"
	expect_unharmed "$mode: $case"
done

# The log has a line for each. A device that flushes a queue to its doorbell record hides the step that failed.
lines=('step (hit\[0\]|done) failed: remote access error' 'request 0 had [0-9]+ bytes, not [0-9]+' 'a request was longer than [0-9]+ bytes'
	'step (hit\[0\]|done) failed: receiver-not-ready retries exceeded')
! able "the step that reads outside" "${named_steps[@]}" || lines+=('step look\[0\] failed: remote access error')
for words in "${lines[@]}"; do
	grep -qE "session [0-9]+: ends after [0-9]+ requests: $words" "$work/reddnd.log" ||
		fail "the log has no line: $words" "$work/reddnd.log"
	ok "in the log: $words"
done

# A client with outstanding requests notices the end of the daemon.
background killed.log "$MISUSE" "$address" "$port" sequential until-killed
until_true grep -q running "$work/killed.log" || fail "no client" "$work/killed.log"
last=$child
stop_reddnd
wait "$last"
ok "a client notices the end of the daemon"
done_testing
