#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A daemon that gets malformed input of the kinds that need one: private data, requests, lines on its control socket. It refuses
# in words what is wrong, goes on, and holds in the end what it held.
#
# Lines and requests are those of tests/corpus. FUZZ_KINDS, FUZZ_TIME, FUZZ_SEED: at random for longer, see tests/fuzz/inputs. FUZZ_COLLECT is a
# file for a corpus that is made anew of FUZZ_COUNT inputs, see tests/fuzz/corpus.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"

: "${HOSTILE:?set HOSTILE to the path of the test client}"
: "${FUZZ_INPUTS:?set FUZZ_INPUTS to the path of the fuzzer}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
: "${REDDN:?set REDDN to the path of the client tool}"
read -ra kinds <<<"${FUZZ_KINDS:-control connects requests}"
seed=${FUZZ_SEED:-1}
time=${FUZZ_TIME:-0}
limit=$((time + ${TEST_LIMIT:-240}))

"$REDDN_TABLE" create --quiet --seed 1 --capacity 100 --max-key 16 --max-value 200 "$work/table" >/dev/null || fail "no table"
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

corpus=$(dirname "${BASH_SOURCE[0]}")/../corpus
offloads=(get both lap compare scan wide tickets indexed)
# those of which every byte of an answer is known
declare -A known=([get]="$work/table" [both]="$work/table" [lap]="$work/table")

# of lines on the control socket
fuzz() # ARGUMENT...
{
	timeout -k "$limit" "$limit" "$FUZZ_INPUTS" control "$@" "$work/control" >"$work/fuzz.log" 2>&1 ||
		fail "control" "$work/fuzz.log" "$work/reddnd.log"
}

# ask OFFLOAD ATTACK...
ask()
{
	on_nic fuzz.log "$HOSTILE" "$address" "$port" "$@" || fail "$*" "$work/fuzz.log" "$work/reddnd.log"
	[[ $2 == connects ]] || sed "s/^/$1: /" "$work/fuzz.log"
}

tried() # WHAT
{
	still_fine "$1"
	ok "$1: $(tail -n 1 "$work/fuzz.log")"
}

# Each offload has a client, which waits most of the time
all_at_once()
{
	local offload askers=() malformed=0

	for offload in "${offloads[@]}"; do
		background "$offload.log" "$HOSTILE" "$address" "$port" "$offload" requests "$corpus/requests" ${known[$offload]+"${known[$offload]}"}
		askers+=("$child")
	done
	for offload in "${offloads[@]}"; do
		expect_exit "${askers[0]}" "requests to $offload" "$offload.log"
		askers=("${askers[@]:1}")
		ok "$offload: $(tail -n 1 "$work/$offload.log")"
		malformed=$((malformed + $(sed -n 's/^requests: .* \([0-9]*\) of a wrong length$/\1/p' "$work/$offload.log")))
	done
	[[ $malformed -ge 1000 ]] || fail "the corpus has $malformed requests of a wrong length"
	ok "$malformed requests of a wrong length"
	cp "$work/$offload.log" "$work/fuzz.log"
}

from_corpus() # KIND
{
	case $1 in
	control) fuzz --corpus "$corpus/control" ;;
	connects) ask get connects "$seed" 300 ;;
	requests) all_at_once ;;
	*) fail "there is no kind $1" ;;
	esac
	tried "$1"
}

collect() # KIND
{
	case $1 in
	control) fuzz --seed "$seed" --count "$FUZZ_COUNT" --collect "$FUZZ_COLLECT" ;;
	requests)
		rm -f "$FUZZ_COLLECT"
		for offload in "${offloads[@]}"; do
			ask "$offload" any "$seed" $((FUZZ_COUNT / ${#offloads[@]})) "$FUZZ_COLLECT" ${known[$offload]+"${known[$offload]}"}
		done
		;;
	*) fail "of $1 there is no corpus" ;;
	esac
	tried "$1"
}

at_random() # KIND SEED
{
	case $1 in
	control) fuzz --seed "$2" --count 1200 ;;
	connects) ask get connects "$2" 1000 ;;
	requests)
		for offload in get both lap; do
			ask "$offload" bytes "$work/table" "$2" 100
		done
		for offload in "${offloads[@]}"; do
			ask "$offload" any "$2" 200 '' ${known[$offload]+"${known[$offload]}"}
		done
		;;
	*) fail "there is no kind $1" ;;
	esac
	tried "$1, seed $2"
}

for kind in "${kinds[@]}"; do
	if [[ -n ${FUZZ_COLLECT-} ]]; then
		collect "$kind"
		continue
	fi
	begin=$SECONDS
	[[ $time -gt 0 ]] || from_corpus "$kind"
	for ((round = seed; SECONDS - begin < time; round++)); do
		at_random "$kind" "$round"
	done
done
stop_reddnd
done_testing
