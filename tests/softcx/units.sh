#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# --pu: a daemon and its clients on devices that different threads execute; the ends of a client, of the daemon and of the NIC.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"

: "${REDDN:?set REDDN to the path of the client tool}"

# ---- the option ---------------------------------------------------------------------------

refused() # WORDS VERB OPTIONS
{
	local rc=0

	timeout "$limit" "$SOFTCX" "${@:2}" >"$work/refused" 2>&1 </dev/null || rc=$?
	[[ $rc -eq 2 || $rc -eq 125 ]] || fail "${*:2}: exit status $rc" "$work/refused"
	grep -qF -- "$1" "$work/refused" || fail "no word of: $1" "$work/refused"
	ok "$1"
}
refused '--pu 2: one thread executes a device, and the NIC has 1; --hosts and --devices make more' nic --pu 2
refused '--pu 3: one thread executes a device, and the NIC has 2' run --pu 3 --devices 2 true
refused '--pu 2 with --clock: a modelled clock decides which queue is next, of all devices' nic --pu 2 --devices 2 --clock cx5
refused '--pu 0: not from 1 to 16' nic --pu 0

# ---- traffic ------------------------------------------------------------------------------

nic_options+=(--hosts "a,b" --pu 2)
client_on=(--host a)
server_on=(--host b)
address=127.1.0.1
start_nic
threads=$(find "/proc/$nic/task" -mindepth 1 -maxdepth 1 | wc -l)
[[ $threads -eq 3 ]] || fail "the NIC has $threads threads, not one for commands and two for queues"
refused "another --pu already runs" run --pu 1 true
ok "a thread for each device"

many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
offloads='{ name = "armed"; mode = "unrolled"; program = "hash-get"; region = "t"; }'
names=(armed)
if able "recycled offloads" "${recycling[@]}"; then
	offloads+=', { name = "kept"; program = "hash-get"; region = "t"; mode = "recycled"; }'
	names+=(kept)
fi
configuration="regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } ); offloads = ( $offloads );"

# In the background; sets $child
gets() # LOG OFFLOAD COUNT MILLISECONDS: of a request, until it counts as lost
{
	background "$1" "${client_on[@]}" "$REDDN" bench --timeout "$4" --verify --keys "$work/data.tsv" --count "$3" --depth 8 \
		--port "$port" "$address" "$2"
}

all_answered() # WHEN
{
	local name

	for name in "${names[@]}"; do
		gets "$name.log" "$name" 3000 100000
		expect_exit "$child" "$1: gets of $name" "$name.log"
	done
	ok "$1: gets are right"
}

start_reddnd "$configuration"
idle_objects all_answered "first"
all_answered "two units"
expect_work a/mlx5_0 b/mlx5_0

# ---- ends ---------------------------------------------------------------------------------

wqes() # prints those of all devices
{
	"$SOFTCX" status --json | awk -F '[ ":,]+' '$2 == "wqes" { n += $3 } END { print n }'
}

# Gets without end, in the middle of which something is killed. Sets $child.
endless() # OFFLOAD
{
	local before

	before=$(wqes)
	gets endless.log "$1" 1000000000 20000
	grown()
	{
		[[ $(wqes) -gt $((before + 5000)) ]]
	}
	until_true grown || fail "no gets are under way" "$work/endless.log"
}

as_idle()
{
	[[ $(objects) == "$idle" ]]
}

for name in "${names[@]}"; do
	endless "$name"
	kill_hard "$child"
	until_true as_idle || fail "objects of a client that was killed are left" "$work/reddnd.log"
	all_answered "a client of $name was killed"
done

endless "${names[0]}"
kill_hard "$reddnd"
rc=0
wait "$child" || rc=$?
[[ $rc -ne 0 && $rc -lt 124 ]] || fail "a client whose daemon was killed: exit status $rc" "$work/endless.log"
expect_no_leak
start_reddnd "$configuration"
all_answered "another daemon"

endless "${names[0]}"
kill -KILL "$nic"
{ wait "$nic"; } 2>/dev/null
rc=0
wait "$child" || rc=$?
[[ $rc -ne 0 && $rc -lt 124 ]] || fail "a client whose NIC was killed: exit status $rc" "$work/endless.log"
ok "a client whose NIC is killed ends: $(tail -n 1 "$work/endless.log")"
# it may have ended, as its only device is lost
kill "$reddnd" 2>/dev/null
rc=0
wait "$reddnd" || rc=$?
[[ $rc -lt 124 ]] || fail "the daemon whose NIC was killed: exit status $rc" "$work/reddnd.log"
ok "the daemon whose NIC was killed ends"

start_nic
start_reddnd "$configuration"
all_answered "another NIC"
stop_reddnd
done_testing
