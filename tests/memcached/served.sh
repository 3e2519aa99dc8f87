#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The NIC answers out of the distribution's memcached: keys that are set over TCP come back by memcached-get, with each number of
# items, and the same of a recycled offload; also after memcached was killed, and not after it was started again, which the daemon proves anew.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/memcached/stock.sh
. "$here/stock.sh"
# the answer of memcached-get with two items has 16 data segments
needs 'limits.send_wqe>=512'
: "${REDDN:?}" "${SLOW_MEMCACHED:?}"

# start PORT [MEGABYTES]: a memcached, and the places of keys in its file
start()
{
	start_memcached "$1" -m "${2:-8}" -o hashpower=12
	places
}

places()
{
	"$REDDN_MEMCACHED" check --json -f "$cache" -s "127.0.0.1:$mc_port" >"$work/proof.json" ||
		fail "no proof" "$work/proof.json"
	"$here/ask.py" places "$work/proof.json" >"$work/places"
}

# look N KEY [OFFLOAD]: what the NIC sends of its bucket is in $work/reply.json
look()
{
	on_nic reply.json "$REDDN" call --json --timeout 100000 --port "$port" "$address" "${3-cache}$1" "$(sed -n "s/^$2 //p" "$work/places")"
}

# has N KEY: offloads of both modes send it
has()
{
	local offload found=0

	for offload in cache recycled; do
		if look "$1" "$2" "$offload" && "$here/ask.py" items "$work/reply.json" "$1" "$2" 2>"$work/items.log"; then
			found=$((found + 1))
		fi
	done
	[[ $found -eq 2 ]]
}

has_not() # N KEY
{
	local offload

	for offload in cache recycled; do
		look "$1" "$2" "$offload" || return 1
		! "$here/ask.py" items "$work/reply.json" "$1" "$2" 2>"$work/items.log" || return 1
	done
}

# lines EXPRESSION: of the live line and what the daemon knows, in a reply
lines()
{
	look 2 none && "$here/ask.py" lines "$work/reply.json" "$1" 2>"$work/lines.log"
}

shows() # COMMAND LINE...: reddnctl prints such a line
{
	ctl "$1" && grep -qE "$2" "$work/ctl.out"
}

states() # STATE...: of the regions
{
	reported regions "[r['state'] for r in d] == '$*'.split()"
}

start_nic
start -1
"$here/ask.py" set "$mc_port" || fail "no keys"
offloads=
for n in 1 2 3 4; do
	for mode in unrolled recycled; do
		offloads+="{ name = \"${mode/unrolled/cache}$n\"; program = \"memcached-get\"; params = { n = $n; most = 300; }; region = \"cache\"; mode = \"$mode\"; }, "
	done
done
port_of_region=$mc_port
region() # NAME SETTINGS
{
	printf '{ name = "%s"; kind = "memcached"; path = "%s"; %s }' "$1" "$cache" "$2"
}
start_reddnd "control = \"$control\";
regions = ( $(region cache "server = \"127.0.0.1:$port_of_region\";"),
  $(region strict "server = \"127.0.0.1:$port_of_region\"; stale_max = \"1s\";"),
  $(region silent "server = \"$work/no.socket\";") );
offloads = ( $offloads{ name = \"strict\"; program = \"memcached-get\"; region = \"strict\"; } );"
states serving serving bad || fail "the state of regions" "$work/ctl.out" "$work/reddnd.log"
reported regions 'd[2]["why"].endswith("no.socket: No such file or directory") and not d[2]["proved"]' || fail "no reason" "$work/ctl.out"
reported regions "d[0]['kind'] == 'memcached' and d[0]['pid'] == $mc and d[0]['hash'] == 'murmur3' and d[0]['power'] == 12" ||
	fail "facts of a region" "$work/ctl.out"
reported regions 'd[0]["proved"] and d[0]["dead_us"] == 0 and d[0]["version"][:2] == "1."' || fail "facts of a region" "$work/ctl.out"
# one is the identity
until_true reported regions 'd[0]["items"] == 21' || fail "the number of items" "$work/ctl.out"
shows metrics '^reddnd_memcached_up{region="cache"} 1$' || fail "metric" "$work/ctl.out"
shows metrics '^reddnd_memcached_items{region="cache"} 21$' || fail "metric" "$work/ctl.out"
ok "the daemon proves a memcached, and refuses one that does not answer"

for n in 1 2 3 4; do
	has "$n" "key$n" || fail "memcached-get with $n items does not find key$n" "$work/items.log" "$work/reply.json"
done
ok "keys come back with 1 to 4 items of a bucket, in both modes"
lines "generation == proved and generation % 2 == 0 and tables == 1 << 12 and hash == 0 and died == 0 and 60 <= clock < 1000 and pid == $mc and flushed == 0" ||
	fail "the lines before the items" "$work/lines.log"
ok "replies have the live line, and what the daemon knows"

identity=$(lines 'print(identity) or True')
"$here/ask.py" flush "$mc_port"
until_true lines "60 <= flushed <= clock and asked >= flushed" || fail "flush_all is not published" "$work/lines.log"
until_true lines "identity not in (0, $identity)" || fail "an identity that is gone is not stored again" "$work/lines.log"
"$here/ask.py" set "$mc_port" || fail "no keys"
ok "replies have the time of a flush_all"

# without memcached
kill_memcached
until_true lines "generation == proved and now - 100 < died <= now" || fail "the end of memcached is not published" "$work/lines.log"
has 2 key5 || fail "a memcached that was killed is not served" "$work/items.log"
until_true states serving bad bad || fail "stale_max" "$work/ctl.out"
reported regions 'd[0]["dead_us"] > 0 and "has ended" in d[0]["why"] and "ended 1 s ago" in d[1]["why"]' || fail "no reason" "$work/ctl.out"
shows metrics '^reddnd_memcached_up{region="cache"} 0$' || fail "metric" "$work/ctl.out"
ok "a memcached that was killed is served, for stale_max"

# the next one, which does not come to its port
inode=$(stat -c %i "$cache")
export SLOW_START=$work/hold
: >"$SLOW_START"
also_preloaded=$(plain_name "$SLOW_MEMCACHED")
launch_memcached "$port_of_region" -m 8 -o hashpower=12
until_true test -e "$SLOW_START.held" || fail "memcached does not start" "$work/memcached.log"
looked=$(lines 'print(clock) or True')
until_true lines "clock > $looked + 1" || fail "the daemon does not look" "$work/lines.log"
lines "generation == proved and died > 0" || fail "a memcached that has no port is not dead" "$work/lines.log"
has 2 key5 || fail "items are not served while the next memcached starts" "$work/items.log"
ok "items are served until the next memcached has its port"

# at the same address
rm "$SLOW_START.held"
memcached_listens
places
[[ $(stat -c %i "$cache") == "$inode" ]] || fail "the next memcached has another file"
until_true lines "generation == proved and died == 0 and pid == $mc" || fail "the next memcached is not proved" "$work/lines.log" "$work/reddnd.log"
has_not 2 key5 || fail "the next memcached has the keys of the one before"
"$here/ask.py" set "$mc_port" || fail "no keys"
has 2 key5 || fail "the next memcached is not served" "$work/items.log"
! grep -q 'region cache cannot be served' "$work/reddnd.log" || fail "sessions would have ended" "$work/reddnd.log"
ok "the next memcached is served from the same file, in the same sessions"

# the daemon sees neither that it ends nor that the next one takes the file
daemon=$(program_of "$reddnd")
stop_program "$daemon"
kill_memcached
: >"$SLOW_START"
launch_memcached "$port_of_region" -m 8 -o hashpower=12
until_true test -e "$SLOW_START.held" || fail "memcached does not start" "$work/memcached.log"
kill -CONT "$daemon"
until_true lines "generation == proved and died > 0" || fail "a death that nobody saw is not published" "$work/lines.log"
has 2 key5 || fail "items are not served while the next memcached starts" "$work/items.log"
shows metrics '^reddnd_memcached_up{region="cache"} 0$' || fail "metric" "$work/ctl.out"
rm "$SLOW_START.held"
memcached_listens
until_true lines "generation == proved and died == 0 and pid == $mc" || fail "the next memcached is not proved" "$work/lines.log" "$work/reddnd.log"
also_preloaded=
ok "a death is seen also if the next memcached has the file already"

# The daemon sees at once that its connection ends, unless it gets no processor meanwhile: then it is tried again. While
# memcached is away, its looks by the clock would find few of the ends.
ends()
{
	grep -c 'region cache: memcached has ended' "$work/reddnd.log"
}
most_are_seen()
{
	local before i

	before=$(ends)
	for ((i = 0; i < 8; i++)); do
		kill_memcached
		start_memcached "$port_of_region" -m 8 -o hashpower=12
		until_true lines "generation == proved and died == 0 and pid == $mc" || fail "the next memcached is not proved" "$work/lines.log" "$work/reddnd.log"
	done
	[[ $(($(ends) - before)) -gt 5 ]]
}
for ((try = 1; try <= 5; try++)); do
	! most_are_seen || break
done
[[ $try -le 5 ]] || fail "the ends of memcached are not seen" "$work/reddnd.log"
ok "the daemon sees a memcached that is back in a moment"

# one with another file
kill_memcached
start "$port_of_region" 9
"$here/ask.py" set "$mc_port" || fail "no keys"
# until then the items of the file before are served
until_true grep -q 'memcached has made another file in its place' "$work/reddnd.log" || fail "nothing in the log" "$work/reddnd.log"
until_true has 2 key5 || fail "another file in its place is not served" "$work/items.log" "$work/reddnd.log"
until_true states serving serving bad || fail "stale_max, and it is back" "$work/ctl.out"
ok "another file in its place"

# one without the library has its port
kill_memcached
until_true lines "died > 0" || fail "the end of memcached is not published" "$work/lines.log"
library='' start_memcached "$port_of_region" -m 8
until_true states bad bad bad || fail "items of a memcached are served, and another one has its address" "$work/ctl.out"
reported regions "d[0]['why'].endswith('another one, which does not run with this file, answers at 127.0.0.1:$port_of_region')" || fail "no reason" "$work/ctl.out"
ok "another memcached at its address"
stop_reddnd
done_testing
