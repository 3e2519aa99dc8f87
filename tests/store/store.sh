#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Several clients put, delete and get the same keys of a store, also on the condition that a key has a version, or is absent. Some of them are killed, and so is the daemon, which the NIC does without for a while. What all of them have
# seen together was linearizable (history.py).
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/supervised.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs has.devx has.cross_channel
# shellcheck source=tests/store/clients.sh
. "$(dirname "${BASH_SOURCE[0]}")/clients.sh"

make_store
start_nic
serve_supervised
running=() files=()
for ((i = 0; i < 3; i++)); do
	start_client
	running+=("$client:$n") files+=("$file")
done
for ((i = 1; i <= 4; i++)); do
	start_client
	until_true has_begun "$file" $((operations / 4)) || fail "a client does not begin" "$work/client.$n" "$work/run.log"
	kill -KILL "$(program_of "$client")"
	wait "$client" 2>/dev/null
	((i % 2)) || {
		kill -KILL "$(daemon)"
		until_true taken_over $((i / 2)) || fail "nobody takes over" "$work/run.log"
	}
done
# and daemons at some of the calls by which they take over
over=2
for at in kill-before:60 kill-after:130 kill-before:200 kill-after:270; do
	"$SOFTCX" fault add "${at%:*}" --program reddnd --at "${at#*:}" >"$work/fault.log" || fail "no fault" "$work/fault.log"
	kill -KILL "$(daemon)"
	over=$((over + 1))
	until_true taken_over $over || fail "$at: nobody takes over" "$work/run.log"
	"$SOFTCX" fault clear >"$work/fault.log"
done
! able "puts by the NIC alone" "${recycling[@]}" managed.recv_fetch=16 ||
	for part in put put_if; do
		grep -q "offload users.$part, depth 8 goes on after" "$work/run.log" || fail "no session of users.$part goes on" "$work/run.log"
	done
for ((i = 0; i < 3; i++)); do
	until_true has_begun "${files[i]}" "$operations" || fail "a client does not go on" "$work/client.$((i + 1))" "$work/run.log"
done
stop_clients "${running[@]}"
judge
cat "$work"/client.*
ok "what $n clients have seen was linearizable, while clients and daemons were killed"
kill "$run"
wait "$run"
done_testing
