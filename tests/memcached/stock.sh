# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# stock.sh - sourced after lib.sh by tests with the distribution's memcached. meson sets LIBREDDN_MEMCACHED and REDDN_MEMCACHED to the
# paths of the library and of the tool. MEMCACHED, if it is set, is another memcached.

: "${REDDN_MEMCACHED:?}" "${LIBREDDN_MEMCACHED:?}"
memcached=${MEMCACHED:-$(PATH=$PATH:/usr/bin command -v memcached)}
[[ -n $memcached ]] || {
	echo "there is no memcached"
	exit 77
}
cache=$memory/cache

also_preloaded=
library=$(plain_name "$LIBREDDN_MEMCACHED")
mc_address=127.0.0.1

# launch_memcached PORT OPTIONS...: at $mc_address, with its items in $cache; port -1 is any. Sets $mc to the process id.
# With an empty $library it is one without the library.
launch_memcached()
{
	local root=()

	[[ $EUID -ne 0 ]] || root=(-u root)
	rm -f "$work/port"
	LD_PRELOAD=$library${also_preloaded:+:$also_preloaded} REDDN_CACHE_FILE=$cache MEMCACHED_PORT_FILENAME=$work/port \
		"$memcached" "${root[@]}" -p "$1" -l "$mc_address" -t 2 "${@:2}" >"$work/memcached.log" 2>&1 </dev/null &
	mc=$!
	pids+=("$mc")
}

# memcached_listens: waits for that. Sets $mc_port to its port.
memcached_listens()
{
	until_true test -s "$work/port" || fail "memcached does not listen" "$work/memcached.log"
	mc_port=$(sed -n 's/^TCP INET: //p' "$work/port")
}

start_memcached() # PORT OPTIONS...
{
	launch_memcached "$@"
	memcached_listens
}

kill_memcached()
{
	kill -KILL "$mc"
	{ wait "$mc"; } 2>/dev/null
}

# memcached_answers COMMAND EXPRESSION: the first line of the answer matches
memcached_answers()
{
	local line talk

	exec {talk}<>"/dev/tcp/$mc_address/$mc_port"
	printf '%s\r\n' "$1" >&"$talk"
	read -r -t "$limit" line <&"$talk"
	exec {talk}>&-
	[[ $line =~ $2 ]]
}

# memcached_answers_line COMMAND EXPRESSION: a line of an answer that ends with END matches
memcached_answers_line()
{
	local line talk found=1

	exec {talk}<>"/dev/tcp/$mc_address/$mc_port"
	printf '%s\r\n' "$1" >&"$talk"
	while read -r -t "$limit" line <&"$talk" && [[ $line != END* ]]; do
		[[ ! $line =~ $2 ]] || found=0
	done
	exec {talk}>&-
	return "$found"
}
