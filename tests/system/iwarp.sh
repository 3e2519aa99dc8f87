#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A device whose connection manager gives neither paths nor GIDs, as that of iWARP: the daemon starts, and refuses clients in words,
# as it cannot verify who they are.
export SOFTCX_DEVICE=iwarp ENGINE=auto
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"

: "${REDDN:?set REDDN to the path of the client tool}"

make_table "$work/table" </dev/null
start_nic
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = ( { name = \"get\"; program = \"hash-get\"; region = \"t\"; } );"
ok "the daemon starts"
why='the server cannot verify the address of the client'
for try in 1 2; do
	on_nic get.log "$REDDN" get --port "$port" "$address" get alice && fail "a client is served" "$work/get.log" "$work/reddnd.log"
	grep -qF "$why" "$work/get.log" || fail "try $try: the client gets no reason" "$work/get.log" "$work/reddnd.log"
done
grep -qF "$why" "$work/reddnd.log" || fail "the log has no reason" "$work/reddnd.log"
ok "clients are refused: $(tail -n 1 "$work/get.log")"
stop_reddnd
done_testing
