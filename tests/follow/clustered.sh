#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Applications of a cluster whose reads NICs answer: out of one table of all slots on host a, and out of tables of a third each on a, b and c.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/hosts.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/hosts.sh"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN_TABLE:?}" "${COMMANDS:?set COMMANDS to the path of the test client}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
declare -A at=([a]=127.1.0.1 [b]=127.2.0.1 [c]=127.3.0.1) also=([a]=whole)

table() # NAME
{
	"$REDDN_TABLE" create --quiet --grow --max-key 32 --max-value 64 "$memory/$1.table" || fail "no table"
}

nic_options+=(--hosts "client,a,b,c")
start_nic
for host in a b c; do
	regions='' offloads=''
	for name in "$host" ${also[$host]-}; do
		table "$name"
		regions+="${regions:+, }{ name = \"$name\"; kind = \"table\"; path = \"$memory/$name.table\"; }"
		offload=third
		[[ $name == "$host" ]] || offload=$name
		offloads+="${offloads:+, }{ name = \"$offload\"; program = \"hash-get\"; region = \"$name\"; }"
	done
	start_host "$host" "regions = ( $regions ); offloads = ( $offloads );"
done
background client.log --host client "$PYTHON" "$here/clustered.py" "$memory" "${at[a]}:$port" "${at[a]}:$port;${at[b]}:$port;${at[c]}:$port" "$COMMANDS"
wait "$child" || fail "an application of a cluster" "$work/client.log" "$work/a.log" "$work/b.log" "$work/c.log"
while read -r line; do
	ok "${line#ok }"
done < <(grep '^ok' "$work/client.log")
end_hosts
done_testing
