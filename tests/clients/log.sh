#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A log that clients append to and follow, of unrolled and recycled offloads, over the end of the ring: clients are killed, and the daemon is. Whatever
# was appended is read, once, whole, under its number.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${REDDN:?}" "${PYTHON:?}" "${PYTHONPATH:?}" "${SOFTCX:?}"
export PYTHONDONTWRITEBYTECODE=1
log=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/log.py

events=(append append.r) reads=(read read.r) modes=(unrolled recycled)
able "recycled offloads" "${recycling[@]}" || modes[1]=unrolled
server=$address:$port
[[ $address != *:* ]] || server="[$address]:$port"
serve() # [SETTINGS]: of the offloads
{
	local i offloads=

	for i in 0 1; do
		offloads+="${offloads:+,} { name = \"${events[i]}\"; program = \"log-append\"; mode = \"${modes[i]}\"; ${1-} region = \"events\"; },
  { name = \"${reads[i]}\"; program = \"log-read\"; mode = \"${modes[i]}\"; ${1-} region = \"events\"; }"
	done
	start_reddnd "regions = ( { name = \"events\"; kind = \"raw\"; path = \"$memory/events\"; writable = true; } );
offloads = ( $offloads );"
}

append() # NAME OFFLOAD: sets $child
{
	background "$1.log" "$PYTHON" "$log" append "$server" "$2" "$1" "$work/append.$1" "$work/stop"
}

# appended N NAME...: each has done so N times more than when `remember` was called
declare -A before
appended()
{
	local name

	for name in "${@:2}"; do
		[[ $(grep -c '^appended' "$work/append.$name") -ge $((${before[$name]-0} + $1)) ]] || return
	done
}
remember() # NAME...
{
	local name

	for name; do
		before[$name]=$(grep -c '^appended' "$work/append.$name")
	done
}

"$PYTHON" "$log" fill "$memory/events" || fail "no log"
start_nic
serve
declare -A pid
which=0
for name in one two three; do
	append "$name" "${events[which++ % 2]}"
	pid[$name]=$child
done
for name in early same; do
	background "$name.log" "$PYTHON" "$log" follow "$server" "${reads[which++ % 2]}" $((65536 - 100)) "$work/follow.$name" "$work/done"
	pid[$name]=$child
done
for name in early same; do # has connected
	until_true test -e "$work/follow.$name" || fail "nobody follows" "$work/$name.log" "$work/reddnd.log"
done
until_true appended 60 one two three || fail "nobody appends" "$work"/{one,two,three,reddnd}.log
for name in one two; do
	kill_hard "${pid[$name]}"
done
append four "${events[0]}"
pid[four]=$child
append five "${events[1]}"
pid[five]=$child
until_true appended 40 four five || fail "nobody appends after others were killed" "$work"/{four,five,reddnd}.log
kill_hard "$reddnd"
remember three four five
serve
until_true appended 40 three four five || fail "nobody appends after the daemon was killed" "$work"/{three,four,five,reddnd}.log
touch "$work/stop"
for name in three four five; do
	expect_exit "${pid[$name]}" "a client that appends" "$name.log"
done
"$PYTHON" "$log" last "$work"
# the first entry that there was is not there any more
background late.log "$PYTHON" "$log" follow "$server" "${reads[0]}" 0 "$work/follow.late" "$work/late"
pid[late]=$child
for name in early same late; do
	expect_exit "${pid[$name]}" "a client that follows" "$name.log"
done
"$PYTHON" "$log" check "$work" >"$work/check.log" 2>&1 || fail "the log is wrong" "$work/check.log" "$work/reddnd.log"
cat "$work/check.log"
ok "what is appended is read, whatever is killed"

reddn() # STATUS TEXT COMMAND...: the exit status of the tool, and what it prints
{
	local rc=0

	on_nic tool.log "$REDDN" "$3" --port "$port" --timeout 100000 "${@:4}" || rc=$?
	# shellcheck disable=SC2053 # TEXT is a pattern
	[[ $rc -eq $1 && $(<"$work/tool.log") == $2 ]] || fail "reddn ${*:3}: status $rc" "$work/tool.log" "$work/reddnd.log"
}
append=("$address" "${events[0]}") read=("$address" "${reads[0]}")
rm "$memory/events"
stop_reddnd
truncate -s $(((16 << 20) + 64)) "$memory/events"
serve
reddn 0 '' log "${read[@]}"
reddn 0 0 append "${append[@]}" one
reddn 0 '{"number": 1}' append --json "${append[@]}" ''
printf 'three\nfour' | timeout -k "$limit" "$limit" "$SOFTCX" run "$REDDN" append --port "$port" "${append[@]}" >"$work/lines.log" 2>&1 || fail "lines" "$work/lines.log"
[[ $(<"$work/lines.log") == $'2\n3' ]] || fail "numbers of lines" "$work/lines.log"
reddn 0 $'one\n\nthree\nfour' log "${read[@]}"
reddn 0 $'2\tthree\n3\tfour' log --escape --from 2 "${read[@]}"
reddn 0 '{"number": 3, "value": "four"}' log --json --from 3 "${read[@]}"
reddn 2 '*room for 248 bytes, and the value has 249' append "${append[@]}" "$(printf '%249s' '')"
reddn 2 '*fewer entries than that*' log --from 5 "${read[@]}"
reddn 2 '*one host, and an offload of log-append.rdn' append "${read[@]}" x
reddn 2 '*one host, and an offload of log-read.rdn' log "${append[@]}"
background follow.log "$REDDN" log --port "$port" --follow --from 3 "${read[@]}"
follower=$child
until_true grep -q four "$work/follow.log" || fail "no entry" "$work/follow.log"
reddn 0 4 append "${append[@]}" five
until_true grep -q five "$work/follow.log" || fail "an entry that is appended later" "$work/follow.log"
kill "$(program_of "$follower")"
wait "$follower" 2>/dev/null
# As if a request of a lap ago had ended in the middle. Nobody has the number then, and whoever appends gets the next one.
"$PYTHON" "$log" stick "$memory/events"
reddn 0 6 append "${append[@]}" six
reddn 1 $'five\nreddn: numbers without an entry, from 5 on: 1\nsix' log --from 4 --patience 1 "${read[@]}"
reddn 1 $'{"number": 4, "value": "five"}\n{"from": 5, "lost": 0, "skipped": 1}\nreddn: numbers without an entry, from 5 on: 1\n{"number": 6, "value": "six"}' \
	log --json --from 4 --patience 1 "${read[@]}"
# Behind the end of the ring: the chain ends in the middle
printf '\xf8\xff\xff\0\0\0\0\0' | dd of="$memory/events" bs=1 seek=$((16 << 20)) conv=notrunc status=none
reddn 2 '*not known whether it was appended: *' append "${append[@]}" x
# One who goes on with the next daemon does not take entries of another size for its own
background order.log "$REDDN" log --port "$port" --follow --lasting --from 6 "${read[@]}"
until_true grep -q six "$work/order.log" || fail "no entry" "$work/order.log"
stop_reddnd
serve 'params = { order = 7; };'
until_true grep -q 'the offload is another one now' "$work/order.log" || fail "another order" "$work/order.log"
ok "reddn append and log"
stop_reddnd
done_testing
