#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Clients leave in the middle of their requests: what their queues still do reaches no session that comes after them, though queues of
# that get the same numbers and memory. All of its answers are right.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"

many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
configure_reddnd <<END
control = "$work/control";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "unrolled"; mode = "unrolled"; program = "hash-get-parallel"; region = "t"; },
  { name = "recycled"; program = "hash-get-parallel"; region = "t"; mode = "recycled"; } );
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
done
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
