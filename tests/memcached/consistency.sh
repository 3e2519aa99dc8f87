#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# consistency.sh [HITS [KILLS [GETS]]]: no get by the NIC returns a value that its key did not have meanwhile, while memcached is
# changed in every way, rests where that would show, and is killed KILLS times, and while the NIC reads items in parts. Nor does a
# client of libreddn-mc that confirms misses miss a key that was there all the while, in GETS. Half of the gets are by a recycled
# offload. Clients that leave out one rule of libclient/mc/judge.h get wrong values, for each rule: so the test would see them. What
# breaks without the rule of places needs a memcached that moves an item at one of a few moments, to where a walk comes by a pointer
# that is over: moved.c makes this moment. What breaks without that of known CAS ids needs a NIC that takes two words of a header at two
# moments, one before and one in the midst of a change: counter.c makes those.
#
# consistency.sh rules [HITS]: these moments; then, for each rule, counts of HITS gets without it, or up to the first wrong one.
#
# ITEMS: params.n of the offload, 4.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/memcached/stock.sh
. "$here/stock.sh"
# the answer of memcached-get with two items has 16 data segments
needs 'limits.send_wqe>=512'
: "${CONFIRM:?}" "${CONSISTENCY:?}" "${COUNTER:?}" "${MOVED:?}" "${SLOW_MEMCACHED:?}"
export SLOW_HOLD=$work/hold
also_preloaded=$(plain_name "$SLOW_MEMCACHED")
hits=20000 kills=${2:-2} gets=${3:-3000}
[[ ${1-} == rules ]] && hits=${2:-100000} || hits=${1:-$hits}
# With 15 pages of a class, and a move to it, memcached 1.6.18 writes behind its list of these pages: "malloc(): corrupted top size"
# (slabs.c, slab_rebalance_finish). No class gets that many out of 12.
options=(-m 12 -f 2 -o 'hashpower=12,slab_automove=0')

nic_options=(--seed "${SEED:-$SRANDOM}")
start_nic
start_memcached -1 "${options[@]}"
start_reddnd "regions = ( { name = \"cache\"; kind = \"memcached\"; path = \"$cache\"; server = \"127.0.0.1:$mc_port\"; } );
offloads = ( { name = \"cache\"; mode = \"unrolled\"; program = \"memcached-get\"; region = \"cache\"; params = { n = ${ITEMS:-4}; most = 800; }; depth_max = 64; },
  { name = \"cache-pieces\"; mode = \"unrolled\"; program = \"memcached-piece\"; region = \"cache\"; depth_max = 64; },
  { name = \"recycled\"; program = \"memcached-get\"; region = \"cache\"; params = { n = ${ITEMS:-4}; most = 800; }; depth_max = 64; mode = \"recycled\"; },
  { name = \"recycled-pieces\"; program = \"memcached-piece\"; region = \"cache\"; depth_max = 64; mode = \"recycled\"; },
  { name = \"first\"; program = \"memcached-get\"; region = \"cache\"; params = { n = 1; most = 9000; }; } );"

readers() # LOG HITS RULES [OFFLOAD]
{
	background "$1" "$CONSISTENCY" "$address" "$port" "${4-cache}" "127.0.0.1:$mc_port" "$2" "$3"
	reader=$child
}

# The NIC reads in parts, or late, by these probabilities
unsteady() # SPLIT DELAY
{
	"$SOFTCX" fault clear
	"$SOFTCX" fault add split 100 --opcode read --probability "$1" && "$SOFTCX" fault add delay 100 --opcode read --probability "$2"
} >"$work/fault.log"

# The next reader begins with no keys
restart_memcached()
{
	kill_memcached
	start_memcached "$mc_port" "${options[@]}"
}

# without RULE NUMBER HITS: status 0 if a value is wrong. The numbers are MC_RULE_...
without()
{
	readers rule.json "$3" "$((31 - $2))"
	rc=0
	wait "$reader" || rc=$?
	[[ $rc -le 1 ]] || fail "without the rule about $1: the reader fails" "$work/rule.json" "$work/reddnd.log" "$work/memcached.log"
	ok "without the rule about $1: $(tail -n 1 "$work/rule.json")"
	restart_memcached
	[[ $rc -eq 1 ]]
}

# Without the rule about places a value is torn, and with all rules that reply is unsure; the NIC waits for memcached, if need be longer
moved()
{
	local ms

	for ms in 1000 4000 16000; do
		rc=0
		on_nic moved.json "$MOVED" "$address" "$port" first "127.0.0.1:$mc_port" "$SLOW_HOLD" "$ms" || rc=$?
		rm -f "$SLOW_HOLD" "$SLOW_HOLD.held"
		restart_memcached
		[[ $rc -eq 3 ]] || break
	done
	[[ $rc -eq 0 ]] || fail "what only the rule about places refuses: status $rc" "$work/moved.json" "$work/reddnd.log" "$work/memcached.log"
	ok "what only the rule about places refuses: $(tail -n 1 "$work/moved.json")"
}

# Without the rule about known ids a number is torn that memcached is changing, and with all rules it is not
counter()
{
	on_nic counter.json "$COUNTER" "$address" "$port" first "127.0.0.1:$mc_port" "$SLOW_HOLD" ||
		fail "what only the rule about known ids refuses" "$work/counter.json" "$work/reddnd.log" "$work/memcached.log"
	ok "what only the rule about known ids refuses: $(tail -n 1 "$work/counter.json")"
	"$SOFTCX" fault clear >"$work/fault.log"
	restart_memcached
}

moved
counter
if [[ ${1-} == rules ]]; then
	unsteady 0.1 0.01 || fail "no faults" "$work/fault.log"
	for rule in places:1 after:2 before:4 counter:8 known:16; do
		without "${rule%:*}" "${rule#*:}" "$hits"
	done
	stop_reddnd
	done_testing
	exit
fi
# Known ids make what both headers are for rare, too: without them it is seen twenty times sooner
for rule in counter:8 'after, and known ids:18' 'before, and known ids:20'; do
	without "${rule%:*}" "${rule#*:}" 10000000 || fail "no wrong value is seen" "$work/rule.json"
	unsteady 0.1 0.01 || fail "no faults" "$work/fault.log"
done

unsteady 0.002 0.0005 || fail "no faults" "$work/fault.log"
for offload in cache recycled; do
	readers counts.json "$(((hits + 1) / 2))" 31 "$offload"
	background confirm.json "$CONFIRM" "--SERVER=127.0.0.1:$mc_port" "$(((gets + 1) / 2))" "$offload"
	confirm=$child
	for ((i = 0; i < (kills + 1) / 2; i++)); do
		sleep "0.$((SRANDOM % 10))"
		restart_memcached
	done
	wait "$reader" ||
		fail "a get by the NIC is wrong, or has no answer; seed ${nic_options[1]}" "$work/counts.json" "$work/reddnd.log" "$work/memcached.log"
	ok "$offload, with all rules: $(tail -n 1 "$work/counts.json")"
	wait "$confirm" || fail "a miss is false, or a value wrong; seed ${nic_options[1]}" "$work/confirm.json" "$work/reddnd.log" "$work/memcached.log"
	ok "$offload, misses that are confirmed: $(tail -n 1 "$work/confirm.json")"
	restart_memcached
done
stop_reddnd
done_testing
