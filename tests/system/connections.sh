#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Sessions of several connections: requests go over all of them; to quotas, rates, reddnctl and the audit they are one; they end
# together; recycled ones go on together with the daemon after the one that was killed.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/lib/supervised.sh
. "$here/../lib/supervised.sh"
: "${REDDN:?}" "${MISUSE:?}"
offloads=(plain)
able "sessions of recycled offloads" "${recycling[@]}" && offloads+=(lap)

for i in {1..50}; do
	printf 'key %d\tthe value of key %d\n' "$i" "$i"
done >"$work/keys"
make_table "$work/table" --max-value 1000 <"$work/keys"
configure_reddnd <<END
control = "$control";
# those who may not join use it up, and then nobody learns why a session ended
refusal_rate = 1000;
arena = "64M";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = ( { name = "plain"; program = "hash-get"; region = "t"; mode = "unrolled"; },
  { name = "lap"; program = "hash-get"; region = "t"; mode = "recycled"; } );
tenants = ( { name = "all"; sessions = 1; depth = 256; } );
END

bench() # OFFLOAD OPTIONS...: in the background; sets $child
{
	background "$1.log" "$REDDN" bench --timeout 100000 --verify --keys "$work/keys" --absent 10 --depth 8 --connections 4 "${@:2}" \
		--port "$port" "$address" "$1"
}

finishes() # OFFLOAD OPTIONS...
{
	bench "$@"
	expect_exit "$child" "reddn bench" "$1.log"
}

session_of() # OFFLOAD
{
	ctl --json sessions || fail "no clients" "$work/ctl.err"
	value "[c['session'] for c in d if c['offload'] == '$1'][0]"
}

# begins OFFLOAD OPTIONS...: a client that stays; sets $child and $session
begins()
{
	bench "$1" --seconds 800 "${@:2}"
	becomes sessions "$1: one session of four connections" \
		"len(d) == 1 and d[0]['connections'] == 4 and d[0]['depth'] == 32 and d[0]['requests'] > 100"
	session=$(session_of "$1")
}

gone() # OFFLOAD WORDS: the client has ended, with the reason, and its tenant has everything back
{
	wait "$child" && fail "$1: the client has not noticed" "$work/$1.log"
	grep -q "$2" "$work/$1.log" || fail "$1: no reason \"$2\"" "$work/$1.log"
	becomes tenants "$1: all of it is refunded" "[d[0][m] for m in ('sessions', 'depth', 'queue_bytes', 'slot_bytes')] == [0] * 4"
}

start_nic
serve_supervised
for offload in "${offloads[@]}"; do
	finishes "$offload" --count 2000
	ok "$offload: right answers over four connections"
	finishes "$offload" --count 200 --connections 1
	finishes "$offload" --count 200 --connections 16
	ok "$offload: and over one, and over sixteen"

	begins "$offload"
	becomes tenants "$offload: the quota counts one session, and the depth of all" "d[0]['sessions'] == 1 and d[0]['depth'] == 32"
	on_nic more.log "$REDDN" get --timeout 100000 --port "$port" "$address" "$offload" "key 1" && fail "the quota counts nothing"
	grep -q 'has used up its quota "sessions" of 1' "$work/more.log" || fail "no quota" "$work/more.log"
	ok "$offload: the quota is used up by it"
	ctl --json audit || fail "no audit" "$work/ctl.err"
	[[ $(value "[e['event'] for e in d if e.get('session') == $session]") == "['begins']" ]] || fail "the audit has more" "$work/ctl.out"
	ok "$offload: the audit has one session"
	ctl kick "$session" || fail "no kick" "$work/ctl.err"
	gone "$offload" 'the administrator ended it'
	ctl --json audit || fail "no audit" "$work/ctl.err"
	[[ $(value "[e['event'] for e in d if e.get('session') == $session]") == "['begins', 'ends']" ]] || fail "the audit has more" "$work/ctl.out"
	grep -q "ends after [0-9]* requests of 4 connections: the administrator ended it" "$work/run.log" || fail "the journal" "$work/run.log"
	ok "$offload: a kick ends all connections"

	on_nic joins.log "$MISUSE" "$address" "$port" "$offload" joins || fail "joins" "$work/joins.log" "$work/run.log"
	becomes tenants "$offload: who may join, and a verdict on one connection ends all" "d[0]['sessions'] == 0 and d[0]['slot_bytes'] == 0"
done

# a rate that four connections share: had each its own, the requests would take a quarter of that time
for offload in "${offloads[@]}"; do
	begins "$offload"
	ctl limit "$session" --rate 200 --burst 10 || fail "no limit" "$work/ctl.err"
	# what was posted before there was a limit
	sleep 0.5
	session_requests()
	{
		{ ctl --json sessions && value "d[0]['requests']"; } || fail "no requests of session $session" "$work/ctl.out" "$work/ctl.err" "$work/run.log"
	}
	# the time begins before the first look and ends after the second: what happens between is in it
	from=$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)
	before=$(session_requests) || exit
	sleep 2
	after=$(session_requests) || exit
	done=$((after - before))
	took=$(($(awk '{ printf "%d", $1 * 1000 }' /proc/uptime) - from))
	# two bursts, and a RECV of each connection
	most=$((took * 200 / 1000 + 2 * 10 + 4 + 200))
	[[ $done -le $most && $done -gt 0 ]] || fail "$offload: $done requests in $took ms at 200 per second" "$work/run.log"
	ok "$offload: they share the rate of the session: $done requests in $took ms, $most at most"
	ctl kick "$session" || fail "no kick" "$work/ctl.err"
	gone "$offload" 'the administrator ended it'
done

for offload in "${offloads[@]}"; do
	begins "$offload"
	ctl limit "$session" --rate 100000 || fail "no limit" "$work/ctl.err"
	kills=$((${kills:-0} + 1))
	kill -9 "$(daemon)"
	until_true taken_over "$kills" || fail "nobody takes over" "$work/run.log"
	if [[ $offload == plain || ${ENGINE-} == cpu ]]; then
		gone "$offload" 'the server was restarted, which ends sessions that are not recycled'
		ok "$offload: it ended whole with the daemon"
		continue
	fi
	becomes sessions "$offload: the next daemon has one session of four connections" \
		"len(d) == 1 and d[0]['session'] == $session and d[0]['connections'] == 4 and d[0]['rate'] == 100000"
	goes_on()
	{
		ctl --json sessions && [[ $(value "d[0]['requests']") -gt $((before + 100)) ]]
	}
	before=$(session_requests)
	until_true goes_on || fail "$offload: it does not go on" "$work/run.log"
	alive "$child" || fail "the client has ended" "$work/$offload.log" "$work/run.log"
	becomes tenants "$offload: it is charged as before" "d[0]['sessions'] == 1 and d[0]['depth'] == 32"
	ctl kick "$session" || fail "no kick" "$work/ctl.err"
	gone "$offload" 'the administrator ended it'
	ok "$offload: it went on with the next daemon, whole, and ended whole"
done

kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
