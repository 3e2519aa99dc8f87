#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A client of libreddn-mc gets by the NIC what it may, over TCP the rest, and never a value that is over: flags, CAS ids, expiry,
# flush_all, long values, misses, a daemon that is stopped, another memcached behind the NIC, one that is killed and started again.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/memcached/stock.sh
. "$here/stock.sh"
# shellcheck source=tests/memcached/shell.sh
. "$here/shell.sh"
: "${REDDN:?}" "${NO_RESOLVER_LIB:?}"
# the answer of memcached-get with two items has 16 data segments
needs 'limits.send_wqe>=512'

# a test machine may stand still for seconds: gets do not go over TCP for that
patient=(reply_ms=60000 flush_ms=60000 connect_ms=60000 restart_ms=60000)

start_nic
start_memcached -1 -m 8 -o hashpower=12
pool=--SERVER=127.0.0.1:$mc_port
start_reddnd "regions = ( { name = \"cache\"; kind = \"memcached\"; path = \"$cache\"; server = \"127.0.0.1:$mc_port\"; } );
offloads = ( { name = \"memcached\"; mode = \"unrolled\"; program = \"memcached-get\"; region = \"cache\"; params = { n = 2; most = 1000; }; },
  { name = \"memcached-pieces\"; mode = \"unrolled\"; program = \"memcached-piece\"; region = \"cache\"; },
  { name = \"recycled\"; program = \"memcached-get\"; region = \"cache\"; params = { n = 2; most = 1000; }; mode = \"recycled\"; },
  { name = \"recycled-pieces\"; program = \"memcached-piece\"; region = \"cache\"; mode = \"recycled\"; },
  { name = \"few\"; program = \"memcached-get\"; region = \"cache\"; params = { n = 2; most = 1000; }; },
  { name = \"few-pieces\"; program = \"memcached-piece\"; region = \"cache\"; depth_max = 3; } );"

start_shell "$pool" "${patient[@]}"
expect 'set alpha 7 0 the value' SUCCESS
expect 'get alpha' 'hit nic flags=7 ttl=0 the value'
# the application changes the memcached_st
expect 'namespace one:' SUCCESS
expect 'get alpha' 'miss tcp'
expect 'set alpha 0 0 first' SUCCESS
expect 'get alpha' 'hit nic .* first'
expect 'namespace a-longer-one:' SUCCESS
expect 'get alpha' 'miss tcp'
expect 'namespace ' SUCCESS
expect 'get alpha' 'hit nic .* the value'
expect 'buffer 1' SUCCESS
expect 'set alpha 7 0 newer' '.*QUEUED'
expect 'get alpha' 'hit tcp .* newer'
expect 'get alpha' 'hit nic .* newer'
expect 'buffer 0' SUCCESS
expect 'set empty 0 0 ' SUCCESS
expect 'get empty' 'hit nic flags=0 ttl=0'
expect 'cas alpha other' SUCCESS
expect 'get alpha' 'hit nic flags=7 ttl=0 other'
expect 'delete alpha' SUCCESS
expect 'get alpha' 'miss tcp'
expect 'fill key 500 300' 500
expect 'mget key 500' 'hits=500 nic=4[0-9][0-9] misses=0 errors=0 wrong=0|hits=500 nic=500 misses=0 errors=0 wrong=0'
expect 'mget other 40' 'hits=0 nic=0 misses=40 errors=0 wrong=0'
expect 'set bad%s 0 0 x' SUCCESS
expect 'get bad%s' 'hit nic .* x'
# a number that was changed is asked for again, and then its CAS id is known
expect 'set number 0 0 41' SUCCESS
expect 'get number' 'hit nic .* 41'
asked_again()
{
	ask stats
	[[ $answer =~ repeated=([0-9]+) ]] && repeated=${BASH_REMATCH[1]}
}
asked_again
before=$repeated
memcached_answers 'incr number 1' '^42' || fail "memcached cannot count"
expect 'get number' 'hit nic .* 42'
asked_again
[[ $repeated -gt $before ]] || fail "a number with an unknown CAS id is not asked for again"
expect stats '.* absent_wrong=[0-9]+ .*'
ok "values, flags and CAS ids by the NIC; misses over TCP"

expect 'fill long 3 5000' 3
expect 'mget long 3' 'hits=3 nic=3 misses=0 errors=0 wrong=0'
# of a memcached that moves items with their CAS ids, what takes more than 100 ms goes over TCP
pieces=2
[[ -z ${MEMCACHED-} ]] || pieces='[0-2]'
for bytes in 16000 16384 65536 300000 520000; do
	expect "fill longer$bytes 2 $bytes" 2
	expect "mget longer$bytes 2" "hits=2 nic=$pieces misses=0 errors=0 wrong=0"
done
ok "long values by the NIC, in pieces"

start_shell "$pool" "${patient[@]}" nics=127.0.0.1=127.0.0.1/few
# a get waits for one attempt to connect, and there are three: of depth 16, 4 and 1
for by_nic in 0 0 "$pieces"; do
	expect 'mget longer65536 1' "hits=1 nic=${by_nic/2/1} misses=0 errors=0 wrong=0"
done
ok "where less depth is granted than pieces ask for, too"

# a daemon that is stopped arms nothing again
start_shell "$pool" "${patient[@]}" nics=127.0.0.1=127.0.0.1/recycled
daemon=$(program_of "$reddnd")
for daemon_is in running stopped; do
	expect 'get empty' 'hit nic flags=0 ttl=0'
	expect 'mget longer65536 2' "hits=2 nic=$pieces misses=0 errors=0 wrong=0"
	[[ $daemon_is == running ]] || stop_program "$daemon"
	for ((i = 0; i < 3; i++)); do
		expect 'mget key 500' 'hits=500 nic=4[0-9][0-9] misses=0 errors=0 wrong=0|hits=500 nic=500 misses=0 errors=0 wrong=0'
	done
done
expect 'mget longer65536 2' "hits=2 nic=$pieces misses=0 errors=0 wrong=0"
kill -CONT "$daemon"
start_shell "$pool" "${patient[@]}"
ok "the same by a recycled offload, whose daemon need not run"

expect 'fill huge 1 700000' 1
expect 'mget huge 1' 'hits=1 nic=0 misses=0 errors=0 wrong=0'
ok "values in chunks over TCP"

expect 'set soon 0 3 x' SUCCESS
expect 'get soon' 'hit (nic|tcp) flags=0 ttl=[0-5?] x'
until_true answers 'get soon' 'miss tcp' || fail "an item does not expire: $answer"
expect 'set later 0 1000 x' SUCCESS
expect 'get later' 'hit nic flags=0 ttl=(99[0-9]|100[01]) x'
ok "expiry"

expect 'set beta 0 0 x' SUCCESS
memcached_answers 'me beta' ' fetch=no ' || fail "a get before the first one"
seen() # with the next get, if there was one less than 100 ms before
{
	answers 'get beta' 'hit nic .*' && memcached_answers 'me beta' ' fetch=yes '
}
until_true seen || fail "memcached does not see a get by the NIC"
expect stats '.* uses=[1-9].*'
# it is the only item of its size, so memcached has it in the list that it evicts from, until it is used
expect "set gamma 0 0 $(printf 'x%.0s' {1..900})" SUCCESS
memcached_answers 'me gamma' ' cls=([0-9]+) ' || fail "memcached does not name the class of an item"
class=${BASH_REMATCH[1]}
warmed()
{
	answers 'get gamma' 'hit nic .*' && memcached_answers_line 'stats items' "items:$class:moves_to_warm [1-9]"
}
until_true warmed || fail "memcached has what the NIC gets where it evicts from"
start_shell "$pool" "${patient[@]}" uses_per_s=1000000
expect 'set delta 0 0 x' SUCCESS
expect 'set epsilon 0 0 x' SUCCESS
expect 'get delta' 'hit nic .*'
# gathered, and no reply follows
expect 'get epsilon' 'hit nic .*'
reported()
{
	answers poll 0 && memcached_answers 'me epsilon' ' fetch=yes '
}
until_true reported || fail "a report waits for a reply of the NIC"
start_shell "$pool" "${patient[@]}" uses_per_s=4294967295
expect 'get beta' 'hit nic .*'
expect stats '.* uses=0'
ok "the LRU lists of memcached see gets by the NIC"

start_shell "$pool" "${patient[@]}" misses=fast
expect 'get absent' 'miss (nic|tcp)'
expect 'mget absent 20' 'hits=0 nic=0 misses=20 errors=0 wrong=0'
expect stats '.* nic_misses=[1-9].*'
ok "fast misses"

seq 60 | sed 's/.*/tool-&\tvalue &/' >"$work/keys"
on_nic bench.json "$REDDN" mc bench --json --fill --verify --zipf 0.99 --count 2000 --keys "$work/keys" "127.0.0.1:$mc_port" ||
	fail "reddn mc bench" "$work/bench.json"
grep -qE '"hits": 2000, "misses": 0, .*"over_tcp": [0-9]+, "wrong": 0' "$work/bench.json" || fail "reddn mc bench prints something else" "$work/bench.json"
on_nic get.out "$REDDN" mc get -- "$pool" tool-7 tool-8 || fail "reddn mc get" "$work/get.out"
[[ $(<"$work/get.out") == "value 7"$'\n'"value 8" ]] || fail "reddn mc get prints something else" "$work/get.out"
stats()
{
	on_nic stats.json "$REDDN" mc stats --json "127.0.0.1:$mc_port" && grep -qE "\"nic\": true, \"pid\": $mc," "$work/stats.json"
}
# it waits for a second
until_true stats || fail "reddn mc stats prints something else" "$work/stats.json"
on_nic get.out "$REDDN" mc get "127.0.0.1:$mc_port" not-there && fail "a key that is not there is got"
# a key is no command
for key in $'no\r\nflush_all' 'two words' ''; do
	on_nic get.out "$REDDN" mc get --tcp "127.0.0.1:$mc_port" "$key" && fail "a key that is none is got"
	grep -q 'a key has 1 to 250 bytes' "$work/get.out" || fail "a key that is none is not refused" "$work/get.out"
done
expect 'get beta' 'hit nic .*'
for place in '127.0.0.1:99999' 'a,' ',a' '[::1]:11211' ''; do
	on_nic get.out "$REDDN" mc get --tcp "$place" tool-7 && fail "$place is a pool"
	grep -q 'is no HOST\[:PORT\]' "$work/get.out" || fail "$place is not refused" "$work/get.out"
done
on_nic get.out "$REDDN" mc get --nics x "127.0.0.1:$mc_port" not-there && fail "a malformed list is accepted"
grep -q 'nics: "x"' "$work/get.out" || fail "a malformed list is not named" "$work/get.out"
ok "reddn mc"

# neither an offload that is away nor the one of another memcached
start_shell "$pool" "${patient[@]}" "nics=127.0.0.1=127.0.0.1/away"
expect 'get beta' 'hit tcp .* x'
expect servers '.* tcp pid=0 refused by the server: .*'
start_shell "$pool" tcp_only=1
expect 'get beta' 'hit tcp flags=0 ttl=\? x'
first=$mc first_port=$mc_port
cache=$memory/second start_memcached -1 -m 8 -o hashpower=12
start_shell "--SERVER=127.0.0.1:$mc_port" "${patient[@]}"
expect 'get beta' 'miss tcp'
expect servers '.* tcp pid=0 offload memcached has the items of another memcached than this server'
ok "a NIC of another memcached is not asked"

kill_memcached
mc=$first

# killed: what it had is got, and what it had not is a miss
start_shell "$pool" "${patient[@]}"
expect 'fill more 50 100' 50
expect 'mget more 50' 'hits=50 .* wrong=0'
kill_memcached
dead()
{
	answers 'get absent' 'miss nic'
}
until_true dead || fail "nothing is known of a memcached that was killed: $answer"
expect 'get more7' 'hit nic .* more7 more7 .*'
expect 'set more7 0 0 z' '.*(REFUSED|refused|FAILURE|DISABLED|ERROR|MARKED).*'
ok "a memcached that was killed is got from"

# a get that meets neither of the two waits
start_memcached "$first_port" -m 8 -o hashpower=12
expect 'mget more 50' 'hits=0 nic=0 misses=50 errors=0 wrong=0'
again()
{
	answers 'set more7 5 0 new' SUCCESS && answers 'get more7' 'hit nic flags=5 ttl=0 new'
}
until_true again || fail "the next memcached is not got from: $answer" "$work/reddnd.log"
expect 'get more8' 'miss tcp'
expect servers ".* nic pid=$mc"
ok "the next memcached is"

# No name server answers any more. The client keeps the addresses that it has: memcached may die, and the next one begin
export NO_RESOLVER=$work/no-resolver LIB=$NO_RESOLVER_LIB
# shellcheck disable=SC2016 # sh expands it
client_on=(sh -c 'LD_PRELOAD="$LD_PRELOAD $LIB" exec "$@"' sh)
start_shell "--SERVER=localhost:$first_port" "${patient[@]}"
expect 'get more7' 'hit nic flags=5 ttl=0 new'
: >"$NO_RESOLVER"
kill_memcached
expect 'get more7' 'hit nic flags=5 ttl=0 new'
start_memcached "$first_port" -m 8 -o hashpower=12
until_true stats || fail "another client does not use the NIC" "$work/stats.json"
memcached_answers $'set more7 5 0 5\r\nnewer' STORED || fail "memcached does not take an item"
until_true answers 'get more7' 'hit nic flags=5 ttl=0 newer' || fail "the next memcached is not got from: $answer"
# one that it has not yet is not waited for
start_shell "$pool" connect_ms=100 nics=127.0.0.1=localhost
expect 'get more7' 'hit tcp flags=5 ttl=[?] newer'
expect servers '.* tcp pid=0 localhost: not looked up in time'
rm "$NO_RESOLVER"
until_true answers 'get more7' 'hit nic flags=5 ttl=0 newer' || fail "the NIC is not connected to: $answer"
client_on=()
ok "a name server that does not answer"

# It dies before the client has asked who it is, and the daemon sees neither that nor the next one: the NIC is not lost for that, and
# the get has its answer when the next one listens. The NIC answers all the while, as it does by a recycled offload
start_shell "$pool --RETRY-TIMEOUT=600" "${patient[@]}" nics=127.0.0.1=127.0.0.1/recycled
expect 'get more7' 'hit nic flags=5 ttl=0 newer'
kill_memcached
start_memcached "$first_port" -m 8 -o hashpower=12
until_true stats || fail "another client does not use the NIC" "$work/stats.json"
stop_program "$daemon"
# nor the one after that, which comes before it is known that the one before listened
for round in first second; do
	kill_memcached
	printf 'get more8\n' >&"$to_shell"
	# it asks over TCP meanwhile, which libmemcached does not do again for ten minutes
	sleep 0.1
	start_memcached "$first_port" -m 8 -o hashpower=12
	read -r -t "$limit" answer <&"$from_shell" || fail "a get does not end"
	[[ $answer == 'miss tcp' ]] || fail "a get that nobody answers for a moment, the $round time: $answer"
	expect 'mget more 50' 'hits=0 nic=0 misses=50 errors=0 wrong=0'
done
kill -CONT "$daemon"
until_true again || fail "the next memcached is not got from: $answer" "$work/reddnd.log"
ok "one that dies before it is known"

# What the NIC said before the next one began, which answers by now, is no reason to give the NIC up
start_shell "$pool" "${patient[@]}" nics=127.0.0.1=127.0.0.1/recycled
expect 'get more7' 'hit nic .* new'
expect 'submit more7' 0
kill_memcached
start_memcached "$first_port" -m 8 -o hashpower=12
until_true stats || fail "another client does not use the NIC" "$work/stats.json"
until_true answers poll 1 || fail "a get has no answer"
expect servers ".* nic pid=$mc"
until_true again || fail "the next memcached is not got from: $answer" "$work/reddnd.log"
ok "a reply from before the next one"

# It dies, and one without the library has its port, and a copy of the item by which reddnd knows the first, as one that was warmed. The
# daemon sees neither
identity_key()
{
	local line talk

	key=
	exec {talk}<>"/dev/tcp/$mc_address/$mc_port"
	printf 'lru_crawler metadump all\r\n' >&"$talk"
	while read -r -t "$limit" line <&"$talk" && [[ $line != END* && $line != BUSY* ]]; do
		[[ ! $line =~ key=(reddn-identity-[^\ ]*) ]] || key=${BASH_REMATCH[1]}
	done
	exec {talk}>&-
	[[ -n $key ]]
}
until_true identity_key || fail "memcached has no identity"
exec {talk}<>"/dev/tcp/$mc_address/$mc_port"
printf 'get %s\r\n' "$key" >&"$talk"
{ read -r -t "$limit" _ && read -r -t "$limit" copy; } <&"$talk"
exec {talk}>&-
stop_program "$daemon"
expect 'get more7' 'hit nic .* new'
kill_memcached
expect 'get more7' 'hit nic .* new'
library='' start_memcached "$first_port" -m 8
copy=${copy%$'\r'}
memcached_answers "add $key 0 0 ${#copy}"$'\r\n'"$copy" STORED || fail "the item is not copied"
until_true answers 'get more7' 'miss tcp' || fail "a memcached that was replaced is got from: $answer"
expect 'set more7 0 0 newest' SUCCESS
kill_memcached
# the daemon has seen nothing of it, and serves what the one before had
kill -CONT "$daemon"
is_doubted()
{
	answers 'get more7' 'hit .*' || answers servers '.* memcached does not say whether this is its NIC'
}
until_true is_doubted || fail "the NIC is not connected to again: $answer"
[[ $answer != hit* ]] || fail "what was replaced is got: $answer"
start_memcached "$first_port" -m 8 -o hashpower=12
until_true again || fail "the next memcached is not got from: $answer" "$work/reddnd.log"
ok "another memcached in the place of a dead one"

expect 'fill key 100 100' 100
expect flush SUCCESS
until_true answers 'get key7' 'miss tcp' || fail "a flush_all is not seen: $answer"
until_true answers 'mget key 100' 'hits=0 nic=0 misses=100 errors=0 wrong=0' || fail "a flush_all is not seen: $answer"
# an item of the second of the flush may be gone, or is asked for over TCP
expect 'set beta 0 0 y' SUCCESS
renewed()
{
	answers 'set beta 0 0 y' SUCCESS && answers 'get beta' 'hit nic .* y'
}
until_true renewed || fail "nothing is got after a flush_all: $answer"
ok "flush_all"

# the daemon is killed: gets go on over TCP, and by the next one
kill_hard "$reddnd"
until_true answers 'get beta' 'hit tcp .* y' || fail "gets do not go on without a daemon: $answer"
stop_shell
done_testing
