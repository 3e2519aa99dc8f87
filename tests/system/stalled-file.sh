#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The file system of a region does not answer: the daemon does, looks at the files of the other regions, and looks at that one again
# when it can.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/lib/tables.sh
. "$here/../lib/tables.sh"

: "${STALLED_FILE_LIB:?set STALLED_FILE_LIB to the path of the library that stalls}"
named_table slow
named_table other
settings="control = \"$control\"; regions = ( { name = \"slow\"; kind = \"table\"; path = \"$data/slow\"; },
  { name = \"other\"; kind = \"table\"; path = \"$data/other\"; },
  { name = \"words\"; kind = \"raw\"; handover = true; owner = $UID; } );
offloads = ( { name = \"slow\"; program = \"hash-get\"; region = \"slow\"; }, { name = \"other\"; program = \"hash-get\"; region = \"other\"; } );"
start_nic
export STALL=$work/stall
preloading "$STALLED_FILE_LIB"
server_on+=("${preloading[@]}")
start_reddnd "$settings"
gets slow || fail "not served" "$work/get.log" "$work/reddnd.log"

stalls()
{
	rm -f "$STALL.waits"
	printf '%s' "$data/slow" >"$STALL.new"
	mv "$STALL.new" "$STALL"
	until_true test -e "$STALL.waits" || fail "nobody looks at the file" "$work/reddnd.log"
}
late()
{
	[[ $(grep -c "region slow: the file system of $data/slow does not answer" "$work/reddnd.log") -eq $1 ]]
}
stalls
timeout 60 "$REDDNCTL" --socket "$control" status >"$work/ctl.out" 2>"$work/ctl.err" || fail "the daemon waits for the file system" "$work/ctl.err"
gets other || fail "a client waits for the file system" "$work/get.log"
gets slow || fail "the region is not served" "$work/get.log"
ok "the daemon does not wait for the file system of a region"

rm "$data/other"
becomes regions "the files of other regions are looked at" 'd[1]["moved"] and not d[0]["moved"]'
until_true late 1 || fail "it is not reported" "$work/reddnd.log"
ok "a file system that does not answer is reported"

ctl reload || fail "reload" "$work/ctl.err"
timeout 60 "$REDDNCTL" --socket "$control" status >"$work/ctl.out" 2>"$work/ctl.err" || fail "the daemon waits after a reload" "$work/ctl.err"
rm "$data/slow" "$STALL"
becomes regions "when it answers again, files are looked at" 'd[0]["moved"]'

# What mv(1) puts in the place of a table is marked nowhere: its sessions end by the reload, which waits for all files to be looked at.
# An owner who hands a file over meanwhile is answered, and not the one who reloads.
rm "$STALL.waits"
named_table slow
named_table other
ctl reload || fail "reload" "$work/ctl.err"
background ping.log "$REDDN" ping --port "$port" --timeout 100000 --count 1000000 --interval 10 "$address" other
ping=$child
becomes sessions "a session with a table" '[s["offload"] for s in d] == ["other"]'
stalls
in_force() # N
{
	[[ $(grep -c "the configuration is in force" "$work/reddnd.log") -eq $1 ]]
}
in_force 2 || fail "not two reloads" "$work/reddnd.log"
head -c 4096 /dev/zero >"$work/words"
named_table next
mv "$data/next" "$data/other"
background reload.log timeout 60 "$REDDNCTL" --socket "$control" reload
reload=$child
until_true in_force 3 || fail "no reload" "$work/reddnd.log"
background owner.log python3 "$here/owner.py" "$control" words make "$work/words"
owner=$child
wait "$reload" || fail "reload" "$work/reload.log"
reported sessions 'd == []' || fail "the reload is over, and a session has the table that it replaced" "$work/ctl.out" "$work/reddnd.log"
kill "$owner"
wait "$ping" "$owner"
ok "a reload is over when the sessions with what it replaced are, whatever owners do meanwhile"
stalls
stop_reddnd
done_testing
