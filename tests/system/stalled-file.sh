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
  { name = \"other\"; kind = \"table\"; path = \"$data/other\"; } );
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
stalls
stop_reddnd
done_testing
