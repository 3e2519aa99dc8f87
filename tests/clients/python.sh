#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Python package against a daemon: tables, gets, calls and asyncio.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${SOFTCX:?}"
export PYTHONDONTWRITEBYTECODE=1
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

"$PYTHON" "$here/python-table.py" "$work" >"$work/table.log" 2>&1 || fail "tables" "$work/table.log"
ok "tables"
start_nic
head -c 64 /dev/zero >"$memory/words"
seq 0 63 | awk '{ printf "%c", $1 + 32 }' >"$work/keys"
start_reddnd "control = \"$work/control\";
regions = (
  { name = \"users\"; kind = \"table\"; path = \"$work/users.table\"; },
  { name = \"words\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; },
  { name = \"keys\"; kind = \"raw\"; path = \"$work/keys\"; } );
offloads = (
  { name = \"users\"; program = \"hash-get\"; region = \"users\"; },
  { name = \"several\"; program = \"hash-mget\"; region = \"users\"; },
  { name = \"ticket\"; program = \"counter\"; region = \"words\"; },
  { name = \"same\"; program = \"wide-compare\"; region = \"keys\"; } );"
failed='remote access error'
able "the step that reads outside" "${named_steps[@]}" || failed="($failed|a queue failed)"
on_nic client.log env "FAILED=$failed" "$PYTHON" "$here/python-client.py" "$address:$port" || fail "a client" "$work/client.log" "$work/reddnd.log"
grep -qx 'OK' "$work/client.log" || fail "not all ran" "$work/client.log"
ok "gets, calls and asyncio"
stop_reddnd
done_testing
