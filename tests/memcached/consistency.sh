#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# consistency.sh rules [HITS]: shows what a client gets that leaves out one rule of libclient/mc/judge.h, for each of them: counts of
# HITS accepted gets, or up to the first wrong one.
#
# consistency.sh [HITS [KILLS [GETS]]]: no get by the NIC returns a value that its key did not have meanwhile, while memcached is
# changed in every way, rests where that would show, and is killed KILLS times. Nor does a client of libreddn-mc that confirms misses
# miss a key that was there all the while, in GETS. A client that does not keep the rule about counters gets wrong values: so the
# test would see them.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/memcached/stock.sh
. "$here/stock.sh"
# the answer of memcached-get with two items has 16 data segments
needs 'limits.send_wqe>=512'
: "${CONFIRM:?}" "${CONSISTENCY:?}" "${SLOW_MEMCACHED:?}"
also_preloaded=$SLOW_MEMCACHED
hits=20000 kills=${2:-2} gets=${3:-3000}
[[ ${1-} == rules ]] && hits=${2:-100000} || hits=${1:-$hits}
options=(-m 6 -o 'hashpower=12,slab_automove=2')

nic_options=(--seed "${SEED:-$SRANDOM}")
start_nic
start_memcached -1 "${options[@]}"
start_reddnd "regions = ( { name = \"cache\"; kind = \"memcached\"; path = \"$cache\"; server = \"127.0.0.1:$mc_port\"; } );
offloads = ( { name = \"cache\"; program = \"memcached-get\"; region = \"cache\"; params = { n = 4; most = 800; }; depth_max = 64; },
  { name = \"cache-pieces\"; program = \"memcached-piece\"; region = \"cache\"; depth_max = 64; } );"

readers() # LOG HITS RULES
{
	background "$1" "$CONSISTENCY" "$address" "$port" cache "127.0.0.1:$mc_port" "$2" "$3"
	reader=$child
}

if [[ ${1-} == rules ]]; then
	# MC_RULE_...
	for rule in places:1 after:2 before:4 counter:8; do
		readers rule.json "$hits" "$((15 - ${rule#*:}))"
		wait "$reader" || true
		printf 'without the rule about %s: %s\n' "${rule%:*}" "$(tail -n 1 "$work/rule.json")"
		# the next reader begins with no keys
		kill_memcached
		start_memcached "$mc_port" "${options[@]}"
	done
	stop_reddnd
	done_testing
	exit
fi

# all rules but MC_RULE_COUNTER
readers without.json 10000000 7
rc=0
wait "$reader" || rc=$?
[[ $rc -eq 1 ]] || fail "no wrong value is seen without the rule about counters" "$work/without.json" "$work/reddnd.log"
ok "without the rule about counters: $(tail -n 1 "$work/without.json")"

# without the keys of that one
kill_memcached
start_memcached "$mc_port" "${options[@]}"
readers counts.json "$hits" 15
background confirm.json "$CONFIRM" "--SERVER=127.0.0.1:$mc_port" "$gets" cache
confirm=$child
for ((i = 0; i < kills; i++)); do
	sleep "0.$((SRANDOM % 10))"
	kill_memcached
	start_memcached "$mc_port" "${options[@]}"
done
wait "$reader" ||
	fail "a get by the NIC is wrong, or has no answer; seed ${nic_options[1]}" "$work/counts.json" "$work/reddnd.log" "$work/memcached.log"
ok "with all rules: $(tail -n 1 "$work/counts.json")"
wait "$confirm" || fail "a miss is false, or a value wrong; seed ${nic_options[1]}" "$work/confirm.json" "$work/reddnd.log" "$work/memcached.log"
ok "misses that are confirmed: $(tail -n 1 "$work/confirm.json")"
stop_reddnd
done_testing
