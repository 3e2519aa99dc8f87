#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The example of docs/examples/kvcache, with its configuration, serves prompts from four hosts. One of them is killed, and starts again, or
# loses its port for a while: its blocks are missing meanwhile. No block is wrong, and nothing that the application asks fails.
# shellcheck source=tests/lib/lib.sh
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/hosts.sh
. "$here/../lib/hosts.sh"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}" "${PYTHON:?}" "${PYTHONPATH:?}"
needs has.devx has.cross_channel
example=$(realpath "$here/../../docs/examples/kvcache")
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PYTHONPATH:$example
prompts=${TEST_PROMPTS:-60} block=${TEST_BLOCK:-65536} heap=${TEST_HEAP:-16M} seed=${TEST_SEED:-1}
declare -A at=([a]=127.1.0.1 [b]=127.2.0.1 [c]=127.3.0.1 [d]=127.4.0.1)

start() # HOST
{
	start_host "$1" "$(sed "s,/dev/shm/reddn/kv.store,$memory/$1.store," "$example/reddnd.conf")"
}

port() # up|down
{
	"$SOFTCX" fault add "port-$1" --device b/mlx5_0 >"$work/fault.log" 2>&1 || fail "no fault" "$work/fault.log"
}

reached() # N: so many prompts
{
	[[ $(grep -c '^prompts' "$work/client.log") -ge $(($1 / 20)) ]]
}

reports() # LINE N: it is there N times
{
	[[ $(grep -c -x "$1" "$work/client.log") -ge $2 ]]
}

nic_options+=(--hosts "client,a,b,c,d")
start_nic
for host in a b c d; do
	"$REDDN_TABLE" create --quiet --store --evict --capacity 1000 --heap "$heap" --max-key 32 --max-value "$block" "$memory/$host.store" || fail "no store"
	start "$host"
done
on_nic connector.log --host client "$PYTHON" "$here/connector.py" "${at[a]},${at[b]},${at[c]},${at[d]}" "$block" ||
	fail "the interface of LMCache" "$work/connector.log" "$work/a.log"
ok "the interface of LMCache"
background client.log --host client "$PYTHON" "$here/prompts.py" "${at[a]},${at[b]},${at[c]},${at[d]}" "$block" "$prompts" "$seed" "${TEST_TIMEOUT:-10}" "$work/stop"
client=$child
kills=0
until_true reached $((prompts / 3)) || fail "no prompts" "$work/client.log" "$work/a.log"
while ((!kills)) || ! reached "$prompts"; do
	kills=$((kills + 1))
	# another time its port goes down, and the client hears nothing
	if ((kills % 2)); then
		kill_host b
	else
		port down
	fi
	until_true reports "out ${at[b]}" "$kills" || fail "the loss goes unnoticed" "$work/client.log"
	n=$(grep -c '^again' "$work/client.log")
	until_true reports again $((n + 1)) || fail "blocks of the host are not missing" "$work/client.log"
	if ((kills % 2)); then
		start b
	else
		port up
	fi
	until_true reports "up ${at[b]}" $((kills + 1)) || fail "it is not used again" "$work/client.log" "$work/b.log"
done
ok "a host is lost among prompts, its blocks are computed again, and then it is used again, $kills times"
touch "$work/stop"
wait "$client" || fail "the application fails" "$work/client.log" "$work/a.log" "$work/b.log"
grep -q ', 0 wrong blocks' "$work/client.log" || fail "no result" "$work/client.log"
ok "$(tail -n 1 "$work/client.log")"
end_hosts
done_testing
