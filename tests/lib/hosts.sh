# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# hosts.sh - daemons on several hosts of one NIC. Include it after reddnd.sh; the address of each host is in the array `at`. The daemons
# are in the array `daemon`, their control sockets $work/HOST.control, their logs HOST.log.

declare -A daemon=()

listens() # HOST
{
	unix_listens "$work/$1.control" && [[ $(object listeners) -ge ${#daemon[@]} ]]
}

# start_host HOST SETTINGS: the daemon has these regions and offloads.
start_host()
{
	printf 'listen = "%s:%s"; control = "%s"; programs = "%s";\n%s\n' "${at[$1]}" "$port" "$work/$1.control" "$programs" "$2" >"$work/$1.conf"
	rm -f "$work/$1.control"
	background "$1.log" --host "$1" "$REDDND" --config "$work/$1.conf"
	daemon[$1]=$child
	server_ready "$child" reddnd "$1.log" listens "$1"
}

kill_host() # HOST
{
	kill -KILL "$(program_of "${daemon[$1]}")"
	wait "${daemon[$1]}" 2>/dev/null
	unset "daemon[$1]"
}

end_hosts() # all that there are
{
	local host

	for host in "${!daemon[@]}"; do
		kill "${daemon[$host]}"
		expect_exit "${daemon[$host]}" "reddnd of $host" "$host.log"
	done
}
