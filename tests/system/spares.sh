#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Queues of sessions that ended serve others: those of the same tenant and offload, from where their CQs are, and not for long. Those of
# a session that was cut off, or that failed, serve nobody, and none outlives the daemon.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}" "${named_steps[@]}" managed.reset=ignored

: "${REDDN:?set REDDN to the path of the client tool}"
: "${MISUSE:?set MISUSE to the path of the test program}"

many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
configure() # SPARE_TIME
{
	configure_reddnd <<END
control = "$work/control";
spare_time = "$1";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "armed"; program = "hash-get"; region = "t"; },
  { name = "both"; program = "hash-get-parallel"; region = "t"; },
  { name = "kept"; program = "hash-get"; region = "t"; mode = "recycled"; depth_max = 128; } );
tenants = ( { name = "open"; }, { name = "keyed"; key = "$work/key"; } );
END
}
configure 1000s
printf 'the key of a tenant\n' >"$work/key"
chmod 600 "$work/key"

start_nic
serve_supervised

nobody()
{
	[[ $(asked status 'd["sessions"]') == 0 ]]
}

serves()
{
	[[ $(asked status 'd["sessions"]') == 1 ]]
}

lacks_first()
{
	! spares | grep -qFxf "$work/first"
}

counts() # of objects that sessions have
{
	objects | grep -E '[.](qps|cqs|mkeys|mems) '
}

depth=16
load() # OFFLOAD REQUESTS [OPTIONS...]: verified answers
{
	on_nic bench.log "$REDDN" bench --timeout 100000 --depth "$depth" --count "$2" --verify --keys "$work/data.tsv" "${@:3}" "$address" "$1" ||
		fail "$1: wrong or missing answers" "$work/bench.log" "$work/run.log"
	until_true nobody || fail "the session does not end" "$work/run.log"
}

reload()
{
	"$REDDNCTL" --socket "$work/control" reload >"$work/ctl.log" 2>&1 || fail "no reload" "$work/ctl.log"
}

idle=$(counts)
as_idle()
{
	[[ $(counts) == "$idle" ]]
}

# numbers of requests that leave CQs in the middle of a lap, and more than one lap of the rings
for offload in armed both kept; do
	load $offload 1
	spares >"$work/first"
	[[ $(wc -l <"$work/first") -eq 1 ]] || fail "$offload: the queues of the first session are not kept" "$work/first" "$work/run.log"
	for requests in 333 1 7; do
		load $offload $requests
		spares >"$work/now"
		cmp -s "$work/first" "$work/now" ||
			fail "$offload: the next session has other queues" "$work/first" "$work/now"
	done
	ok "$offload: four sessions, one after the other, have the same queues and memory, and the right answers"
	# the time of each begins when it is kept
	configure 20ms
	reload
	load $offload 3
	until_true nothing_kept || fail "$offload: the queues are kept for ever" "$work/run.log"
	configure 1000s
	reload
done
until_true as_idle || fail "objects are left over" <(printf '%s\n' "$idle" --- "$(counts)")
ok "after their time nothing is left of them"

# Queues that failed when the client had left, and before the daemon looked
load kept 40
spares >"$work/first"
background broken.log "$REDDN" bench --timeout 100000 --depth 16 --seconds 800 --keys "$work/data.tsv" "$address" kept
until_true serves || fail "no client" "$work/broken.log" "$work/run.log"
qpn=$("${BASH_SOURCE[0]%/*}/ledger-read.py" "$(daemon)" qpn "$(asked clients 'd[0]["session"]')" 0)
daemon=$(daemon)
kill -STOP "$daemon"
kill -9 "$(program_of "$child")"
wait "$child"
"$SOFTCX" fault add qp-error --qp "$qpn" >"$work/fault.log" || fail "no fault" "$work/fault.log"
kill -CONT "$daemon"
until_true nobody || fail "the session does not end" "$work/run.log"
until_true lacks_first || fail "CQs of queues that failed are kept" "$work/first" <(spares) "$work/run.log"
load kept 300
reload
ok "CQs of queues that failed serve nobody"

# What requests have left in CQs whose client did not wait for answers is counted when their queues are kept
depth=8 # of that client
for offload in armed both kept; do
	load $offload 1
	spares >"$work/first"
	for ((i = 1; i <= 5; i++)); do
		on_nic left.log "$MISUSE" "$address" "$port" $offload leave-in-flight || fail "$offload: leave-in-flight" "$work/left.log" "$work/run.log"
		until_true nobody || fail "$offload: the session does not end" "$work/run.log"
		load $offload $((i * 23))
		spares >"$work/now"
		cmp -s "$work/first" "$work/now" || fail "$offload: what the client left serves nobody" "$work/first" "$work/now" "$work/run.log"
	done
	ok "$offload: queues of clients that left in the middle of requests give others the right answers"
	reload
done

# CQE numbers of 256 slots share lanes (reddnd/chain/ring/recycle-template.h): the queues are new ones, in the same memory
depth=128
load kept 5
spares >"$work/first"
load kept 333
spares >"$work/now"
[[ $(wc -l <"$work/now") -eq 1 && $(awk '{print $NF}' "$work/first") == $(awk '{print $NF}' "$work/now") ]] ||
	fail "256 slots: the next session has other memory" "$work/first" "$work/now"
! cmp -s "$work/first" "$work/now" || fail "256 slots: the next session has the same CQs" "$work/now"
load kept 7
depth=16
ok "a recycled session of 256 slots leaves its memory"

for ((i = 1; i <= 20; i++)); do
	load kept $((i * 37))
done
ok "recycled sessions that end and begin many times have the right answers"
reload

# nothing is handed from one tenant to another, not even by way of a client of both
for offload in armed kept; do
	load $offload 1
	spares >"$work/open"
	load $offload 1 --token-file "$work/key"
	spares >"$work/both"
	[[ $(wc -l <"$work/both") -eq 2 ]] || fail "$offload: not one for each tenant" "$work/both" "$work/run.log"
	grep -qFxf "$work/open" "$work/both" || fail "$offload: the client of one tenant got what the other left" "$work/open" "$work/both"
	[[ -z $(grep -oE '0x[0-9a-f]+' "$work/both" | sort | uniq -d) ]] || fail "$offload: tenants share a queue or a key" "$work/both"
	load $offload 1
	[[ $(spares | wc -l) -eq 2 ]] || fail "$offload: a client got nothing" "$work/both" "$work/run.log"
	# neither does anything outlive the configuration, or come from before it
	background before.log "$REDDN" bench --timeout 100000 --depth 16 --seconds 800 --keys "$work/data.tsv" "$address" $offload
	until_true serves || fail "no client" "$work/before.log" "$work/run.log"
	reload
	[[ -z $(spares) ]] || fail "$offload: a reload keeps what sessions have left" "$work/run.log"
	kill "$child"
	wait "$child"
	until_true nobody || fail "the session does not end" "$work/run.log"
	until_true nothing_kept || fail "$offload: a session from before a reload leaves its queues" "$work/run.log"
done
ok "queues and memory stay with their tenant, and do not outlive a reload"

on_nic misuse.log "$MISUSE" "$address" "$port" armed long-send || fail "long-send" "$work/misuse.log" "$work/run.log"
until_true nobody || fail "the session of a client that broke a rule does not end" "$work/misuse.log" "$work/run.log"
[[ -z $(spares) ]] || fail "the queues of a session that broke are kept" "$work/misuse.log" "$work/run.log"
ok "a session that broke leaves nothing"

# A spare when the daemon dies: the next one destroys it
load armed 5
[[ -n $(spares) ]] || fail "there is no spare" "$work/run.log"
kill -9 "$(daemon)"
until_true taken_over 1 || fail "nobody takes over" "$work/run.log"
[[ -z $(spares) ]] || fail "the next daemon has the spare" "$work/run.log"
load armed 5
ok "the next daemon destroys spares"

# One on queues of others goes on under the next daemon, which learns from the ledger where their CQs are
load kept 77
spares >"$work/first"
# the rate leaves 15 seconds to kill the daemon under it
background over.log "$REDDN" bench --timeout 100000 --depth 16 --rate 10000 --count 150000 --verify --keys "$work/data.tsv" "$address" kept
until_true serves || fail "no client" "$work/over.log" "$work/run.log"
kill -9 "$(daemon)"
until_true taken_over 2 || fail "nobody takes over" "$work/run.log"
wait "$child" || fail "wrong or missing answers across a restart" "$work/over.log" "$work/run.log"
until_true nobody || fail "the session does not end" "$work/run.log"
load kept 33
load kept 1
[[ $(spares | wc -l) -eq 1 ]] || fail "there is no spare" "$work/run.log"
configure 20ms
reload
load kept 3
until_true nothing_kept || fail "queues are kept for ever" "$work/run.log"
until_true as_idle || fail "objects are left over" <(printf '%s\n' "$idle" --- "$(counts)")
ok "a recycled session goes on under the next daemon on queues of others, and no object is left over"

kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
