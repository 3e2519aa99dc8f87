#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A running daemon gets malformed input: lines on its control socket (control.c), private data of connections, and requests
# (tests/hostile). It refuses them with a message, goes on, and holds no object in the end that it did not hold before.
#
# FUZZ_KINDS: some of control, connects, requests. FUZZ_TIME: repeats each kind for so many seconds, from seed FUZZ_SEED on.
# FUZZ_ARGS: arguments of FUZZ_TARGET, which is the target control.c with replay.c or with libFuzzer.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"

: "${HOSTILE:?set HOSTILE to the path of the test client}"
: "${FUZZ_TARGET:?set FUZZ_TARGET to the path of the fuzz target for control sockets}"
: "${REDDN:?set REDDN to the path of the client tool}"
read -ra kinds <<<"${FUZZ_KINDS:-control connects requests}"
seed=${FUZZ_SEED:-1}
time=${FUZZ_TIME:-0}
limit=$((time + ${TEST_LIMIT:-240}))

make_table "$work/table" --seed 1 --max-value 200 < <(seq 100 | sed 's/.*/key &\tvalue &/')
head -c 4096 /dev/zero | tee "$memory/words" "$memory/registers" >"$memory/more"
start_nic
start_reddnd "control = \"$work/control\";
regions = (
  { name = \"t\"; kind = \"table\"; path = \"$work/table\"; },
  { name = \"w\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; },
  { name = \"r\"; kind = \"raw\"; path = \"$memory/registers\"; writable = true; },
  { name = \"m\"; kind = \"raw\"; path = \"$memory/more\"; writable = true; } );
offloads = (
  { name = \"get\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; },
  { name = \"both\"; mode = \"unrolled\"; program = \"hash-get-parallel\"; region = \"t\"; },
  { name = \"lap\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; },
  { name = \"compare\"; program = \"compare\"; },
  { name = \"scan\"; program = \"scan\"; region = \"w\"; },
  { name = \"wide\"; program = \"wide-compare\"; region = \"w\"; },
  { name = \"tickets\"; program = \"counter\"; region = \"w\"; },
  { name = \"indexed\"; program = \"mov-indexed\"; regions = { registers = \"r\"; memory = \"m\"; }; } );"
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

offloads=(get both lap compare scan wide tickets indexed)
able "requests to a recycled offload" "${recycling[@]}" || offloads=(get both compare scan wide tickets indexed)
# offloads of which every byte of an answer is known
declare -A known=([get]="$work/table" [both]="$work/table" [lap]="$work/table")

# Malformed lines on the control socket.
try_control() # SEED
{
	local args

	read -ra args <<<"${FUZZ_ARGS:---seed $1 --refuse 1000 ${BASH_SOURCE[0]%/*}/seeds/control}"
	FUZZ_CONTROL=$work/control timeout -k "$limit" "$limit" "$FUZZ_TARGET" "${args[@]}" >"$work/fuzz.log" 2>&1 || fail "control" "$work/fuzz.log" "$work/reddnd.log"
}

try_connects() # SEED
{
	on_nic fuzz.log "$HOSTILE" "$address" "$port" get connects "$1" 300 || fail "connects" "$work/fuzz.log" "$work/reddnd.log"
}

# Each offload has a client of its own, which waits most of the time.
try_requests() # SEED
{
	local offload clients=() malformed=0

	for offload in "${offloads[@]}"; do
		background "$offload.log" "$HOSTILE" "$address" "$port" "$offload" requests "$1" 250 ${known[$offload]+"${known[$offload]}"}
		clients+=("$child")
	done
	for offload in "${offloads[@]}"; do
		expect_exit "${clients[0]}" "requests to $offload" "$offload.log"
		clients=("${clients[@]:1}")
		ok "$offload: $(tail -n 1 "$work/$offload.log")"
		malformed=$((malformed + $(sed -n 's/^requests: .* \([0-9]*\) of a wrong length$/\1/p' "$work/$offload.log")))
	done
	[[ $malformed -ge $((${#offloads[@]} * 125)) ]] || fail "only $malformed requests had a wrong length"
	printf '%d requests of a wrong length\n' "$malformed" >"$work/fuzz.log"
}

for kind in "${kinds[@]}"; do
	begin=$SECONDS
	round=$seed
	while
		"try_$kind" "$round"
		still_fine "$kind, seed $round"
		ok "$kind, seed $round: $(tail -n 1 "$work/fuzz.log")"
		round=$((round + 1))
		[[ -z ${FUZZ_ARGS-} && $((SECONDS - begin)) -lt $time ]]
	do :; done
done
stop_reddnd
done_testing
