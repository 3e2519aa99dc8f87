# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# clients.sh - sourced after supervised.sh by tests whose clients (store-client.c) put, delete and get the same keys of a store, and
# record that for history.py. $memory/users.store has room for $keys keys.
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}" "${STORE_CLIENT:?set STORE_CLIENT to the path of the test client}"
store=$memory/users.store
seed=${TEST_SEED:-1} operations=${TEST_OPERATIONS:-4000} keys=${TEST_KEYS:-400}
hot=4 most=$((operations * 50)) record=56 kind=48
n=0

make_store() # and a configuration, whose control socket is that of supervised.sh
{
	configure_reddnd <<-END
		control = "$work/control";
		regions = ( { name = "users"; kind = "store"; path = "$store"; } );
		offloads = ( { name = "users"; region = "users"; depth_max = 16; put_if = {}; } );
	END
	"$REDDN_TABLE" create --quiet --store --capacity "$keys" --heap $(((keys + keys / 8 + 6000) * 1024)) --max-key 32 --max-value 900 "$store" ||
		fail "no store"
}

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

stop_clients() # PID:N...
{
	local of

	for of; do
		# one that had much time between two daemons may have done all of its operations
		! find_child "${of%:*}" || kill "$program"
	done
	wait_clients "$@"
}

judge() # what all clients have seen, of whom the last one has looked at all keys
{
	start_client $((keys * 4))
	wait_clients "$client:$n"
	python3 "$(dirname "${BASH_SOURCE[0]}")/history.py" "$work"/history.* || fail "seed $seed: it was not linearizable" "$work/run.log"
}
