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
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}" "${STORE_CLIENT:?set STORE_CLIENT to the path of the test client}"
store=$memory/users.store
seed=${TEST_SEED:-1} operations=${TEST_OPERATIONS:-4000} keys=${TEST_KEYS:-400}
hot=4 most=$((operations * 50)) record=56 kind=48
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
n=0

# start_client [OPERATIONS]: sets $client to its process, and $file to what it records. Without a number it goes on until it is stopped.
start_client()
{
	n=$((n + 1))
	file=$work/history.$n
	background "client.$n" "$STORE_CLIENT" "$address" "$port" users "$file" "$n" "$seed" "$keys" "$hot" "${1:-$most}"
	client=$child
}

# has_begun FILE N: so many operations
has_begun()
{
	[[ $(od -An -tu1 -j $((($2 - 1) * record + kind)) -N 1 "$1") -ne 0 ]]
}

wait_clients() # PID:N...
{
	local of rc

	for of; do
		rc=0
		wait "${of%:*}" || rc=$?
		[[ $rc -eq 0 ]] || fail "client ${of#*:} ends with status $rc" "$work/client.${of#*:}" "$work/run.log"
	done
}

configure_reddnd <<END
control = "$work/control";
regions = ( { name = "users"; kind = "store"; path = "$store"; } );
offloads = ( { name = "users"; region = "users"; depth_max = 16; put_if = {}; } );
END
start_nic
"$REDDN_TABLE" create --quiet --store --capacity "$keys" --heap $(((keys + keys / 8 + 6000) * 1024)) --max-key 32 --max-value 900 "$store" || fail "no store"
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
	# one that had much time between two daemons may have done all of its operations
	! find_child "${running[i]%:*}" || kill "$program"
done
wait_clients "${running[@]}"
start_client $((keys * 4))
wait_clients "$client:$n"
cat "$work"/client.*
python3 "$here/history.py" "$work"/history.* || fail "seed $seed: it was not linearizable" "$work/run.log"
ok "what $n clients have seen was linearizable, while clients and daemons were killed"
kill "$run"
wait "$run"
done_testing
