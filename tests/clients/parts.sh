#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Parts of an offload, when the handle has a session with another table, or another host, than they have.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
: "${PARTS:?set PARTS to the path of the test client}"
: "${REDDNCTL:?set REDDNCTL to the path of reddnctl}"
declare -A at=([a]=127.1.0.1 [b]=127.2.0.1) parts=([a]='mget = { keys = [4]; }; exists = { keys = [8]; };' [b]='')

nic_options+=(--hosts "client,a,b")
start_nic
make_entries()
{
	printf 'k%s\tvalue\n' 1 2
	[[ $# -eq 0 ]] || printf '%s\tvalue\n' "$1"
}
for host in a b; do
	"$REDDN_TABLE" create --quiet --capacity 100 --max-key 16 --max-value 100 "$work/$host.table"
	make_entries | load_table "$work/$host.table"
	printf 'listen = "%s:%s"; control = "%s"; programs = "%s"; regions = ( { name = "t"; kind = "table"; path = "%s"; } ); offloads = ( { name = "t"; region = "t"; %s } );\n' \
		"${at[$host]}" "$port" "$work/$host.control" "$programs" "$work/$host.table" "${parts[$host]}" >"$work/$host.conf"
	background "$host.log" --host "$host" "$REDDND" --config "$work/$host.conf"
	server_ready "$child" reddnd "$host.log" unix_listens "$work/$host.control"
done
both_listen()
{
	[[ $(object listeners) -ge 2 ]]
}
until_true both_listen || fail "the daemons do not listen" "$work/a.log" "$work/b.log"

background moved.log --host client "$PARTS" moved "${at[a]},${at[b]}" "$port"
client=$child
until_true grep -q ready "$work/moved.log" || fail "no client" "$work/moved.log" "$work/a.log"
session()
{
	"$REDDNCTL" --socket "$work/a.control" --json sessions |
		python3 -c "import json, sys; print(next(s['session'] for s in json.load(sys.stdin) if s['offload'] == '$1'))" 2>/dev/null
}
until_true session t.exists8 || fail "no session with the part" "$work/moved.log" "$work/a.log"
"$REDDNCTL" --socket "$work/a.control" kick "$(session t)" || fail "kick" "$work/a.log"
wait "$client" || fail "absent keys" "$work/moved.log" "$work/a.log" "$work/b.log"
ok "a host that cannot tell which keys exist: $(tail -1 "$work/moved.log")"

mkfifo "$work/go"
"$SOFTCX" run --host client "$PARTS" replaced "${at[a]}" "$port" <"$work/go" >"$work/replaced.log" 2>&1 &
client=$!
exec {go}>"$work/go"
until_true grep -q ready "$work/replaced.log" || fail "no client" "$work/replaced.log" "$work/a.log"
"$REDDN_TABLE" create --replace --quiet --capacity 100 --max-key 64 --max-value 100 "$work/a.table" || fail "no replacement"
make_entries 'a key that is longer than the table before takes' | load_table "$work/a.table"
echo >&"$go"
wait "$client" || fail "long keys" "$work/replaced.log" "$work/a.log"
ok "keys that are longer than those of the table before"
