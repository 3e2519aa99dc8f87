#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Clients of a cluster's keys on three hosts, of which one has a replica, while slots move, a master fails over, hosts are killed, and tables
# get other slots: each answer is one that the cluster had. shards.py asks for what is to happen to a host by a file.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/hosts.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/hosts.sh"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN_TABLE:?}" "${REDDN:?}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
declare -A at=([a]=127.1.0.1 [b]=127.2.0.1 [c]=127.3.0.1 [d]=127.4.0.1)

# Unrolled: without its daemon the NIC does not go on.
start()
{
	start_host "$1" "regions = ( { name = \"t\"; kind = \"table\"; path = \"$memory/$1.table\"; } );
offloads = ( { name = \"t\"; region = \"t\"; mode = \"unrolled\"; mget = { keys = [4]; }; exists = { keys = [8]; }; } );"
}

nic_options+=(--hosts "client,a,b,c,d")
start_nic
for host in a b c d; do
	"$REDDN_TABLE" create --quiet --grow --buckets 256 --heap 64K --max-key 32 --max-value 64 "$memory/$host.table" || fail "no table"
	start "$host"
done
background client.log --host client "$PYTHON" "$here/shards.py" "$memory" "$work/wanted" \
	"${at[a]}:$port;${at[b]}:$port,${at[d]}:$port;${at[c]}:$port" "$REDDN"
client=$child
while alive "$client"; do
	if [[ -e $work/wanted ]]; then
		read -r what host <"$work/wanted"
		case $what in
		kill) kill_host "$host" ;;
		start) start "$host" ;;
		esac
		rm "$work/wanted"
	fi
	sleep 0.1
done
wait "$client" || fail "the shards" "$work/client.log" "$work/a.log" "$work/b.log" "$work/c.log" "$work/d.log"
while read -r line; do
	ok "${line#ok }"
done < <(grep '^ok' "$work/client.log")
end_hosts
done_testing
