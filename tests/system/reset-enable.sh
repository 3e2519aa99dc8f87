#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# reset-enable.sh DEVICE: clients leave in the middle of their requests, so that code of theirs may enable a queue that is in RESET.
# Their queues serve the next ones, but not on a device on which such a SEND_EN is an error, or runs the queue later. All answers of
# the next ones are right.
export SOFTCX_DEVICE=$1 ENGINE=nic
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"

: "${REDDN:?set REDDN to the path of the client tool}"

case $1 in
cx5) kept=1 ;;
reset-enable-fails | reset-enable-stays) kept=0 ;;
*) fail "usage: reset-enable.sh DEVICE" ;;
esac

many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
configure_reddnd <<END
control = "$work/control";
spare_time = "1000s";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "unrolled"; program = "hash-get-parallel"; region = "t"; },
  { name = "recycled"; program = "hash-get-parallel"; region = "t"; mode = "recycled"; } );
tenants = ( { name = "open"; } );
END
start_nic
serve_supervised

sessions() # NUMBER: there are as many
{
	[[ $(asked status 'd["sessions"]') == "$1" ]]
}

asks() # there is a client, with answers
{
	[[ $(clients 'any(c["requests"] for c in d)') == True ]]
}

leave_in_the_middle() # OFFLOAD
{
	background left.log "$REDDN" bench --timeout 100000 --depth 16 --seconds 800 --keys "$work/data.tsv" "$address" "$1"
	until_true asks || fail "$1: no client that asks" "$work/left.log" "$work/run.log"
	kill -9 "$(program_of "$child")"
	wait "$child"
	until_true sessions 0 || fail "$1: the session does not end" "$work/run.log"
}

for offload in unrolled recycled; do
	for ((i = 1; i <= 5; i++)); do
		leave_in_the_middle $offload
		on_nic bench.log "$REDDN" bench --timeout 100000 --depth 16 --count $((i * 77)) --verify --keys "$work/data.tsv" "$address" $offload ||
			fail "$offload: wrong or missing answers" "$work/bench.log" "$work/run.log"
		until_true sessions 0 || fail "$offload: the session does not end" "$work/run.log"
	done
	ok "$offload: clients that follow one that left in the middle have the right answers"
	[[ $(spares | wc -l) -eq $kept ]] || fail "$offload: not $kept sets of queues are kept" <(spares) "$work/run.log"
	ok "$offload: $kept sets of queues are kept"
	"$REDDNCTL" --socket "$work/control" reload >"$work/ctl.log" 2>&1 || fail "no reload" "$work/ctl.log"
done
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
