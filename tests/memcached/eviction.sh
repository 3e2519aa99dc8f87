#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A memcached that is full does not evict what is only got by the NIC: the client reports it, though far less often than it gets it.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/memcached/stock.sh
. "$here/stock.sh"
# shellcheck source=tests/memcached/shell.sh
. "$here/shell.sh"
needs 'limits.send_wqe>=512'

start_nic
start_memcached -1 -m 8 -o hashpower=16
start_reddnd "regions = ( { name = \"cache\"; kind = \"memcached\"; path = \"$cache\"; server = \"127.0.0.1:$mc_port\"; } );
offloads = ( { name = \"memcached\"; program = \"memcached-get\"; region = \"cache\"; params = { n = 2; most = 1000; }; } );"

# turns N OPTION: sets 1000 other keys N times, with gets of ten between; memcached has room for some 15000. False: one of the ten is gone.
turns()
{
	start_shell "--SERVER=127.0.0.1:$mc_port" reply_ms=60000 flush_ms=60000 connect_ms=60000 restart_ms=60000 "$2"
	expect 'fill hot 10 400' 10
	for ((i = 0; i < $1; i++)); do
		expect "fill other$i- 1000 400" 1000
		# items of the last two seconds are not reported
		for _ in {1..4}; do
			ask 'mget hot 10'
			sleep 0.05
		done
		[[ $answer =~ ^hits=10\ .*\ errors=0\ wrong=0$ ]] || return
	done
}

! turns 40 uses_per_s=4294967295 || fail "memcached does not evict what it does not see"
turns 40 uses_per_s=0 || fail "memcached evicts what the NIC gets: $answer"
ask stats
[[ $answer =~ \ nic_hits=([0-9]+)\ .*\ uses=([0-9]+)$ ]] || fail "no numbers: $answer"
((BASH_REMATCH[1] > 500 && BASH_REMATCH[2] < BASH_REMATCH[1] / 4)) || fail "too few gets by the NIC, or too many reports: $answer"
ok "what the NIC gets is not evicted"
stop_shell
stop_reddnd
done_testing
