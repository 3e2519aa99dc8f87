#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Four memcacheds and four daemons on four hosts are one pool for a client on a fifth: libmemcached's ketama chooses the server, the NIC
# answers where there is one, and a server that fails is ejected and comes back by libmemcached's rules.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/memcached/stock.sh
. "$here/stock.sh"
# shellcheck source=tests/memcached/shell.sh
. "$here/shell.sh"
# the answer of memcached-get with two items has 16 data segments
needs 'limits.send_wqe>=512'

hosts=(a b c d)
addresses=(127.0.0.1 127.1.0.1 127.2.0.1 127.3.0.1)
# @i: process, port
mcs=() ports=(-1 -1 -1 -1) daemons=()

mc_of() # I: the memcached that functions of stock.sh mean
{
	mc=${mcs[$1]-} mc_port=${ports[$1]} mc_address=${addresses[$1]} cache=$memory/${hosts[$1]}
}

start_mc() # I
{
	mc_of "$1"
	start_memcached "$mc_port" -m 4 -o hashpower=12
	mcs[$1]=$mc ports[$1]=$mc_port
}

daemon_listens()
{
	grep -q '^listening' "$work/reddnd-$1.log"
}

start_daemon() # I
{
	local host=${hosts[$1]}

	mc_of "$1"
	cat >"$work/$host.conf" <<END
listen = "$mc_address:$port";
programs = "$programs";
regions = ( { name = "cache"; kind = "memcached"; path = "$cache"; server = "$mc_address:$mc_port"; } );
offloads = ( { name = "memcached"; program = "memcached-get"; region = "cache"; params = { n = 2; most = 500; }; } );
END
	background "reddnd-$host.log" --host "$host" "$REDDND" --config "$work/$host.conf"
	daemons[$1]=$child
	server_ready "$child" "reddnd on $host" "reddnd-$host.log" daemon_listens "$host"
}

nic_options=(--hosts "a,b,c,d,e")
client_on=(--host e)
start_nic
servers=
for i in 0 1 2 3; do
	start_mc "$i"
	start_daemon "$i"
	servers+="--SERVER=$mc_address:$mc_port "
done
pool_of_shell=("$servers--DISTRIBUTION=consistent --REMOVE-FAILED-SERVERS=1 --RETRY-TIMEOUT=1" dead_timeout=1
	connect_ms=60000 reply_ms=60000 flush_ms=60000)
start_shell "${pool_of_shell[@]}"

expect 'fill key 400 200' 400
expect 'mget key 400' 'hits=400 nic=(39[0-9]|400) misses=0 errors=0 wrong=0'
expect servers "${addresses[0]}:${ports[0]} nic pid=${mcs[0]} ; .*; ${addresses[3]}:${ports[3]} nic pid=${mcs[3]}"
for ((k = 0; k < 40; k++)); do
	ask "owner key$k"
	for i in 0 1 2 3; do
		mc_of "$i"
		[[ $answer == "$mc_address:$mc_port" ]] && wanted=HD || wanted=EN
		memcached_answers "mg key$k" "^$wanted" || fail "key$k of $answer, and $mc_address:$mc_port has not $wanted"
	done
done
ok "keys are where another client of libmemcached looks for them, and come by the NIC of that host"

# libmemcached sorts them, and forgets them
reversed=
for server in $servers; do
	reversed="$server $reversed"
done
start_shell "$reversed--DISTRIBUTION=consistent" connect_ms=60000 reply_ms=60000 flush_ms=60000
expect 'mget key 400' 'hits=400 nic=(39[0-9]|400) misses=0 errors=0 wrong=0'
expect sort SUCCESS
expect 'mget key 400' 'hits=400 nic=(39[0-9]|400) misses=0 errors=0 wrong=0'
expect reset SUCCESS
expect 'get key7' 'error Transport endpoint is not connected: .*'
start_shell "${pool_of_shell[@]}"
expect 'mget key 400' 'hits=400 nic=(39[0-9]|400) misses=0 errors=0 wrong=0'
ok "the order of the servers in libmemcached may change"

kill_hard "${daemons[3]}"
expect 'mget key 400' 'hits=400 nic=[23][0-9][0-9] misses=0 errors=0 wrong=0'
expect servers "${addresses[0]}:${ports[0]} nic .*; ${addresses[3]}:${ports[3]} tcp .*"
start_daemon 3
until_true answers 'mget key 400' 'hits=400 nic=(39[0-9]|400) misses=0 errors=0 wrong=0' || fail "a daemon that is back is not used: $answer"
ok "a host without a daemon is asked over TCP, until it has one again"

# a host fails
mc_of 2
kill_memcached
kill_hard "${daemons[2]}"
until_true answers 'mget key 400' 'hits=[23][0-9][0-9] .* errors=0 wrong=0' || fail "a host that failed is not ejected: $answer"
until_true answers 'fill key 400 200' 400 || fail "keys of a host that failed cannot be set: $answer"
# the ejected one is tried now and then
until_true answers 'mget key 400' 'hits=400 nic=(3[5-9][0-9]|400) misses=0 errors=0 wrong=0' || fail "keys of a host that failed are not on others: $answer"
ok "a host that fails is ejected"

start_mc 2
start_daemon 2
back()
{
	ask 'fill key 400 200'
	ask 'mget key 400'
	answers servers ".*; $mc_address:$mc_port nic pid=$mc ; .*"
}
mc_of 2
until_true back || fail "a host that is back is not used: $answer" "$work/reddnd-c.log"
expect 'fill key 400 200' 400
expect 'mget key 400' 'hits=400 nic=(39[0-9]|400) misses=0 errors=0 wrong=0'
ok "a host comes back"

stop_shell
for i in 0 1 2 3; do
	kill "${daemons[i]}"
	expect_exit "${daemons[i]}" "reddnd on ${hosts[i]}" "reddnd-${hosts[i]}.log"
done
done_testing
