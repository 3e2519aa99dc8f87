#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The NIC answers out of the distribution's memcached: keys that are set over TCP come back by memcached-get, with each number of
# items; also after memcached was killed, and not after it was started again.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
: "${REDDN:?}" "${REDDN_MEMCACHED:?}" "${LIBREDDN_MEMCACHED:?}"
memcached=$(PATH=$PATH:/usr/bin command -v memcached) || {
	echo "there is no memcached"
	exit 77
}
cache=$memory/cache

start_memcached()
{
	local root=()

	[[ $EUID -ne 0 ]] || root=(-u root)
	rm -f "$work/port"
	LD_PRELOAD=$LIBREDDN_MEMCACHED REDDN_CACHE_FILE=$cache MEMCACHED_PORT_FILENAME=$work/port \
		"$memcached" "${root[@]}" -p -1 -l 127.0.0.1 -m 8 -t 2 -o hashpower=12 >"$work/memcached.log" 2>&1 </dev/null &
	mc=$!
	pids+=("$mc")
	until_true test -s "$work/port" || fail "memcached does not listen" "$work/memcached.log"
	mc_port=$(sed -n 's/^TCP INET: //p' "$work/port")
	"$REDDN_MEMCACHED" check --json -f "$cache" -s "127.0.0.1:$mc_port" >"$work/proof.json" || fail "no proof" "$work/proof.json"
	"$here/ask.py" places "$work/proof.json" >"$work/places"
}

# look N KEY: what the NIC sends of its bucket is in $work/reply.json
look()
{
	on_nic reply.json "$REDDN" call --json --timeout 100000 --port "$port" "$address" "cache$1" "$(sed -n "s/^$2 //p" "$work/places")"
}

has() # N KEY
{
	look "$1" "$2" || fail "no answer about $2" "$work/reply.json" "$work/reddnd.log"
	"$here/ask.py" items "$work/reply.json" "$1" "$2" 2>"$work/items.log"
}

start_nic
start_memcached
"$here/ask.py" set "$mc_port" || fail "no keys"
length=$(($(python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import stock
print(stock.CacheFile(sys.argv[2]).header()["pages_off"])' "$here" "$cache") - 131072))
offloads=
for n in 1 2 3 4; do
	offloads+="${offloads:+, }{ name = \"cache$n\"; program = \"memcached-get\"; params = { n = $n; most = 300; };
  regions = { buckets = \"tables\"; items = \"items\"; live = \"live\"; }; }"
done
start_reddnd "control = \"$control\";
regions = ( { name = \"tables\"; kind = \"raw\"; path = \"$cache\"; offset = 131072; length = $length; },
  { name = \"items\"; kind = \"raw\"; path = \"$cache\"; },
  { name = \"live\"; kind = \"raw\"; path = \"$cache\"; offset = 65664; length = 64; } );
offloads = ( $offloads );"
reported offloads 'all(o["state"] == "serving" for o in d)' || fail "an offload does not serve" "$work/ctl.out" "$work/reddnd.log"

for n in 1 2 3 4; do
	has "$n" "key$n" || fail "memcached-get with $n items does not find key$n" "$work/items.log" "$work/reply.json"
done
ok "keys come back with 1 to 4 items of a bucket"
look 2 none || fail "no answer about a key that was never set" "$work/reply.json"
ok "a bucket without items"

kill -KILL "$mc"
{ wait "$mc"; } 2>/dev/null
has 2 key5 || fail "a memcached that was killed is not served" "$work/items.log"
ok "a memcached that was killed is served"

inode=$(stat -c %i "$cache")
start_memcached
[[ $(stat -c %i "$cache") == "$inode" ]] || fail "the next memcached has another file"
has 2 key5 && fail "the next memcached has the keys of the one before"
"$here/ask.py" set "$mc_port" || fail "no keys"
has 2 key5 || fail "the next memcached is not served" "$work/items.log"
ok "the next memcached is served from the same file"
stop_reddnd
done_testing
