#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A daemon that gets malformed input of the kinds that need one: private data, requests, lines on its control socket. It refuses
# in words what is wrong, goes on, and holds in the end what it held.
#
# FUZZ_KINDS, FUZZ_TIME, FUZZ_SEED: for longer runs, see tests/fuzz/inputs.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/reddnd.sh"

: "${HOSTILE:?set HOSTILE to the path of the test client}"
: "${FUZZ_INPUTS:?set FUZZ_INPUTS to the path of the fuzzer}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
: "${REDDN:?set REDDN to the path of the client tool}"
read -ra kinds <<<"${FUZZ_KINDS:-control connects requests}"
seed=${FUZZ_SEED:-1}
time=${FUZZ_TIME:-0}
limit=$((time + ${TEST_LIMIT:-240}))

"$REDDN_TABLE" create --quiet --capacity 100 --max-key 16 --max-value 200 "$work/table" >/dev/null || fail "no table"
seq 100 | sed 's/.*/key &\tvalue &/' | "$REDDN_TABLE" load --quiet "$work/table" || fail "no data"
head -c 4096 /dev/zero | tee "$work/words" >"$work/more"
start_nic
start_reddnd "control = \"$work/control\";
regions = (
  { name = \"t\"; kind = \"table\"; path = \"$work/table\"; },
  { name = \"w\"; kind = \"raw\"; path = \"$work/words\"; writable = true; },
  { name = \"m\"; kind = \"raw\"; path = \"$work/more\"; writable = true; } );
offloads = (
  { name = \"get\"; program = \"hash-get\"; region = \"t\"; },
  { name = \"both\"; program = \"hash-get-parallel\"; region = \"t\"; },
  { name = \"lap\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; },
  { name = \"compare\"; program = \"compare\"; },
  { name = \"scan\"; program = \"scan\"; region = \"w\"; },
  { name = \"wide\"; program = \"wide-compare\"; region = \"w\"; },
  { name = \"tickets\"; program = \"counter\"; region = \"w\"; },
  { name = \"indexed\"; program = \"mov-indexed\"; regions = { registers = \"w\"; memory = \"m\"; }; } );"
idle=$(objects)
as_idle()
{
	[[ $(objects) == "$idle" ]]
}

still_fine() # WHAT
{
	alive "$reddnd" || fail "$1: the daemon has died" "$work/reddnd.log"
	[[ $(grep -cE 'ERROR: AddressSanitizer|runtime error' "$work/reddnd.log") -eq 0 ]] || fail "$1" "$work/reddnd.log"
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" get 'key 7' || fail "$1: no answer" "$work/get.log" "$work/reddnd.log"
	[[ $(cat "$work/get.log") == 'value 7' ]] || fail "$1: a wrong answer" "$work/get.log"
	until_true as_idle || {
		diff <(printf '%s\n' "$idle") <(objects) >"$work/leaked"
		fail "$1: objects are left over (< before, > now)" "$work/leaked" "$work/reddnd.log"
	}
}

for kind in "${kinds[@]}"; do
	round=$seed
	while :; do
		case $kind in
		control)
			timeout -k "$limit" "$limit" "$FUZZ_INPUTS" control --seed "$round" --count 1200 "$work/control" >"$work/fuzz.log" 2>&1 ||
				fail "control" "$work/fuzz.log" "$work/reddnd.log"
			;;
		connects)
			on_nic fuzz.log "$HOSTILE" "$address" "$port" get connects "$round" 1000 ||
				fail "connects" "$work/fuzz.log" "$work/reddnd.log"
			;;
		requests)
			for offload in get both lap; do
				on_nic fuzz.log "$HOSTILE" "$address" "$port" "$offload" bytes "$work/table" "$round" 100 ||
					fail "requests to $offload" "$work/fuzz.log" "$work/reddnd.log"
				sed "s/^/$offload: /" "$work/fuzz.log"
			done
			for offload in compare scan wide tickets indexed; do
				on_nic fuzz.log "$HOSTILE" "$address" "$port" "$offload" any "$round" 200 ||
					fail "requests to $offload" "$work/fuzz.log" "$work/reddnd.log"
				sed "s/^/$offload: /" "$work/fuzz.log"
			done
			;;
		*) fail "there is no kind $kind" ;;
		esac
		still_fine "$kind, seed $round"
		ok "$kind, seed $round: $(tail -n 1 "$work/fuzz.log")"
		round=$((round + 1))
		[[ $SECONDS -lt $time ]] || break
	done
done
stop_reddnd
done_testing
