#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon is killed at its n-th call of taking over, or at its n-th store into the ledger from then on, while clients put, delete and
# get, and the NIC arms their chains again. No session ends, and what the clients have seen is linearizable: so no put is lost that was
# answered.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/supervised.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
# shellcheck source=tests/lib/ledger-stores.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ledger-stores.sh"
needs "${recycling[@]}" managed.recv_fetch=16
# shellcheck source=tests/store/clients.sh
. "$(dirname "${BASH_SOURCE[0]}")/clients.sh"
# how many points apart the daemon is killed; 1 is every one
step=${TEST_STEP:-1}
# of the stores, to which puts that go on always add some; and points at which the same clients are there
stores_most=300 together=10
most=4000000

begin_clients() # of a new store and a new daemon
{
	make_store
	serve_until_stores
	running=()
	for ((i = 0; i < 2; i++)); do
		start_client
		running+=("$client:$n")
		until_true has_begun "$file" 100 || fail "a client does not begin" "$work/client.$n" "$work/run.log"
	done
}

end_clients()
{
	local of

	stop_clients "${running[@]}"
	for of in "${running[@]}"; do
		grep -q ' 0 reconnects' "$work/client.${of#*:}" || fail "a session has ended" "$work/client.${of#*:}" "$work/run.log"
	done
	judge
	kill "$run"
	wait "$run"
	rm "$store" "$work"/history.*
}

kill_at() # calls|stores before|after N: it dies there
{
	case $1 in
	calls) "$SOFTCX" fault add "kill-$2" --program reddnd --at "$3" >"$work/fault.log" || fail "no fault" "$work/fault.log" ;;
	stores) arm "$2" "$3" ;;
	esac
}

struck() # calls|stores: true if it has died; none dies any more
{
	local n

	if [[ $1 == stores ]]; then
		n=$(($(od -An -t u8 -N 8 "$work/stores") == 0))
		arm before 0
	else
		n=$("$SOFTCX" fault list --json | python3 -c 'import json, sys; print(sum(f["struck"] for f in json.load(sys.stdin)))')
		"$SOFTCX" fault clear >"$work/fault.log"
	fi
	((n))
}

start_nic
for sweep in {calls,stores}-{before,after}; do
	swept "puts-$sweep" || continue
	what=${sweep%-*} when=${sweep#*-} points=0 limit=$stores_most
	[[ $what == stores ]] || limit=100000
	begin_clients
	for ((at = 1 + part * step; at <= limit; at += parts * step)); do
		puts=$(requests users.put)
		overs=$(takeovers)
		old=$(daemon)
		# what it does from here on does not count
		kill -STOP "$old"
		kill_at "$what" "$when" "$at"
		kill -9 "$old"
		until_true taken_over $((overs + 1)) || fail "$sweep $at: nobody takes over" "$work/run.log"
		until_true more_requests users.put "$puts" || fail "$sweep $at: puts do not go on" "$work/run.log"
		struck "$what" || break
		points=$((points + 1))
		((points % together)) || {
			end_clients
			begin_clients
		}
	done
	end_clients
	[[ $points -gt 1 ]] || fail "taking over has fewer than $at $what" "$work/run.log"
	ok "killed $when $points $what: no session has ended, and no put is lost"
done
done_testing
