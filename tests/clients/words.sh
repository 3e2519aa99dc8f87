#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Words that clients share: swaps are linearizable, a lock whose holders are killed and stopped loses nothing of what it protects, and
# sums are right, with clients of unrolled and recycled offloads on the same words; and the daemon is killed.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${REDDN:?set REDDN to the path of the client tool}"
: "${SHARING:?set SHARING to the path of the test client}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

swaps=swaps,swaps.r adds=adds,adds.r
able "recycled offloads" "${recycling[@]}" || swaps=swaps adds=adds
serve()
{
	local program more=

	for program in swaps:compare-and-swap adds:fetch-and-add; do
		more+="${more:+,} { name = \"${program%:*}\"; program = \"${program#*:}\"; mode = \"unrolled\"; region = \"words\"; },
  { name = \"${program%:*}.r\"; program = \"${program#*:}\"; region = \"words\"; mode = \"recycled\"; }"
	done
	start_reddnd "regions = ( { name = \"words\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; } );
offloads = ( $more );"
}

share() # LOG [ASK DONE]: as on_nic and background take it
{
	mkdir -p "$work/$1"
	echo python3 "$here/words.py" "$SHARING" "$address" "$port" "$work/$1" "$memory/words" "$swaps" "$adds" "${@:2}"
}

truncate -s 4096 "$memory/words"
start_nic
serve
read -ra command < <(share shared)
timeout -k "$limit" "$background_limit" "${command[@]}" >"$work/shared.log" 2>&1 || fail "clients that share words" "$work/shared.log" "$work/reddnd.log"
cat "$work/shared.log"
ok "words that clients share"

reddn() # STATUS TEXT COMMAND...: the exit status of the tool, and what it prints
{
	local rc=0

	on_nic tool.log "$REDDN" "$3" --port "$port" --timeout 100000 "${@:4}" || rc=$?
	# shellcheck disable=SC2053 # TEXT is a pattern
	[[ $rc -eq $1 && $(<"$work/tool.log") == $2 ]] || fail "reddn ${*:3}: status $rc" "$work/tool.log" "$work/reddnd.log"
}
reddn 0 0 cas "$address" swaps 8 0 18446744073709551615
reddn 1 18446744073709551615 cas "$address" swaps 8 0 1
reddn 1 18446744073709551615 cas "$address" swaps -- 8 0 1
reddn 1 '{"was": 18446744073709551615, "swapped": false}' cas --json "$address" swaps 8 0 1
reddn 0 18446744073709551615 faa "$address" adds 8 6
reddn 0 '{"was": 5}' faa --json "$address" adds 8 0
reddn 2 '*one host, and an offload of compare-and-swap.rdn' cas "$address" adds 8 0 1
reddn 2 '*no offset of the offload reaches the word' faa "$address" adds 8192 0
reddn 2 '*"x" is no number*' cas "$address" swaps 8 x 1
ok "reddn cas and faa"
reddn 0 REDDN_TOKEN=1 lock "$address" swaps 9 -- sh -c 'env | grep ^REDDN_TOKEN'
reddn 7 '' lock "$address" swaps 9 sh -c 'exit 7'
reddn 2 '*none: No such file*' lock "$address" swaps 9 none
rc=0
on_nic lock.log env --ignore-signal=CHLD "$REDDN" lock --port "$port" "$address" swaps 9 sh -c 'exit 8' || rc=$?
[[ $rc -eq 8 ]] || fail "a command whose end is not reported by a signal: $rc" "$work/lock.log"
mkfifo "$work/hold"
background held.log "$REDDN" lock --port "$port" --lease 500 --timeout 100000 "$address" swaps 9 sh -c "echo; read -r < $work/hold; exit 3"
holder=$child
until_true test -s "$work/held.log" || fail "no lock" "$work/held.log" "$work/reddnd.log"
reddn 1 '*another client has the lock' lock --lease 500 --wait 0 "$address" swaps 9 true
stop_program "$(program_of "$holder")"
reddn 0 REDDN_TOKEN=6 lock --lease 500 "$address" swaps 9 sh -c 'env | grep ^REDDN_TOKEN'
kill -CONT "$(program_of "$holder")"
rc=0
wait "$holder" || rc=$?
[[ $rc -eq 2 ]] || fail "a command runs on when another client has the lock: $rc" "$work/held.log"
grep -q 'was ended: the lease was over' "$work/held.log" || fail "no message" "$work/held.log"
# A command that ignores SIGTERM, and has lost the lock, ends when the tool is to end
background deaf.log "$REDDN" lock --port "$port" --lease 500 --timeout 100000 "$address" swaps 10 sh -c "trap 'echo asked' TERM; exec 3<>$work/hold; echo; while :; do read -r line <&3 && echo \"\$line\"; done"
holder=$child
until_true test -s "$work/deaf.log" || fail "no lock" "$work/deaf.log" "$work/reddnd.log"
stop_program "$(program_of "$holder")"
reddn 0 REDDN_TOKEN=2 lock --lease 500 "$address" swaps 10 sh -c 'env | grep ^REDDN_TOKEN'
kill -CONT "$(program_of "$holder")"
until_true grep -q asked "$work/deaf.log" || fail "the lock is not lost" "$work/deaf.log" "$work/reddnd.log"
# nor sooner: the tool may be stopped and go on
tool=$(program_of "$holder")
stop_program "$tool"
kill -CONT "$tool"
rests() # or has ended
{
	! grep -q '^State:.[RT]' "/proc/$tool/status" 2>/dev/null
}
until_true rests || fail "the tool does not go on" "$work/deaf.log"
echo 'goes on' 1<>"$work/hold"
until_true grep -q 'goes on' "$work/deaf.log" || fail "a command that ignores SIGTERM is killed at once" "$work/deaf.log"
kill -TERM "$(program_of "$holder")"
rc=0
wait "$holder" || rc=$?
[[ $rc -eq 2 ]] || fail "a command that ignores SIGTERM: $rc" "$work/deaf.log"
ok "reddn lock"

rm "$memory/words"
stop_reddnd
truncate -s 4096 "$memory/words"
serve
read -ra command < <(share outage "$work/ask" "$work/done")
timeout -k "$limit" "$background_limit" "${command[@]}" >"$work/outage.log" 2>&1 &
clients=$!
pids+=("$clients")
until_true test -e "$work/ask" || fail "no clients" "$work/outage.log" "$work/reddnd.log"
kill_hard "$reddnd"
serve
touch "$work/done"
expect_exit "$clients" "clients that share words when the daemon is killed" outage.log
cat "$work/outage.log"
ok "the daemon is killed"
stop_reddnd
done_testing
