#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A million gets while a writer inserts, replaces, moves and deletes at full speed: no value is wrong or torn, and no key that
# stays in the table is missed.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"

: "${WRITER_STRESS:?set WRITER_STRESS to the path of the test program}"
gets=${TEST_GETS:-1000000}
# shellcheck disable=SC2034 # used by lib.sh
limit=${TEST_LIMIT:-240}
seed=${TEST_SEED:-1}

"$WRITER_STRESS" make "$work/table" || fail "no table"
nic_options=(--seed "$seed")
start_nic
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = (
  { name = \"sequential\"; program = \"hash-get\"; region = \"t\"; },
  { name = \"parallel\"; program = \"hash-get-parallel\"; region = \"t\"; } );"

nice "$WRITER_STRESS" write "$work/table" "$work/state" >"$work/writer.log" 2>&1 </dev/null &
writer=$!
pids+=("$writer")
until_true grep -q ready "$work/writer.log" || fail "the writer does not write" "$work/writer.log"

# Two clients at a time.
for mode in sequential parallel; do
	clients=()
	for depth in 8 64; do
		background "$mode-$depth.log" "$WRITER_STRESS" ask "$address" "$port" "$mode" "$work/state" "$depth" \
			$((gets / 4)) "$depth"
		clients+=("$child" "$mode-$depth.log")
	done
	for ((i = 0; i < ${#clients[@]}; i += 2)); do
		expect_exit "${clients[i]}" "client $mode" "${clients[i + 1]}"
		ok "$(tail -n 1 "$work/${clients[i + 1]}")"
	done
done

alive "$writer" || fail "the writer has failed" "$work/writer.log"
ok "$("$WRITER_STRESS" stop "$work/state")"
wait "$writer" || fail "the writer has failed" "$work/writer.log"
stop_reddnd
done_testing
