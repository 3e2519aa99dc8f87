#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Words that clients share: swaps are linearizable, a lock whose holders are killed and stopped loses nothing of what it protects, and
# sums are right, with clients of unrolled and recycled offloads on the same words; and the daemon is killed.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${SHARING:?set SHARING to the path of the test client}"
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

swaps=swaps,swaps.r adds=adds,adds.r
able "recycled offloads" "${recycling[@]}" || swaps=swaps adds=adds
serve()
{
	local program more=

	for program in swaps:compare-and-swap adds:fetch-and-add; do
		more+="${more:+,} { name = \"${program%:*}\"; program = \"${program#*:}\"; region = \"words\"; },
  { name = \"${program%:*}.r\"; program = \"${program#*:}\"; region = \"words\"; mode = \"recycled\"; }"
	done
	start_reddnd "regions = ( { name = \"words\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; } );
offloads = ( $more );"
}

share() # LOG [ASK DONE]: as on_nic and background take it
{
	mkdir -p "$work/$1"
	echo python3 "$here/words.py" "$SHARING" "$address" "$port" "$work/$1" "$memory/words" "$swaps" "$adds" "${@:2}"
}

truncate -s 4096 "$memory/words"
start_nic
serve
read -ra command < <(share shared)
timeout -k "$limit" "$background_limit" "${command[@]}" >"$work/shared.log" 2>&1 || fail "clients that share words" "$work/shared.log" "$work/reddnd.log"
cat "$work/shared.log"
ok "words that clients share"

rm "$memory/words"
stop_reddnd
truncate -s 4096 "$memory/words"
serve
read -ra command < <(share outage "$work/ask" "$work/done")
timeout -k "$limit" "$background_limit" "${command[@]}" >"$work/outage.log" 2>&1 &
clients=$!
pids+=("$clients")
until_true test -e "$work/ask" || fail "no clients" "$work/outage.log" "$work/reddnd.log"
kill_hard "$reddnd"
serve
touch "$work/done"
expect_exit "$clients" "clients that share words when the daemon is killed" outage.log
cat "$work/outage.log"
ok "the daemon is killed"
stop_reddnd
done_testing
