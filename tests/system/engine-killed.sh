#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon is killed while it has sessions of the CPU and of the NIC: both go on, every request is answered and counted once, and the
# next daemon serves both kinds. Charges, limits and bans stay.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${MISUSE:?set MISUSE to the path of the test client}"

printf 'alice\twonder\n' >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
configure_reddnd <<END
control = "$control";
arena = "16M";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = ( { name = "nic"; program = "hash-get"; region = "t"; },
  { name = "cpu"; program = "hash-get"; region = "t"; engine = "cpu"; },
  { name = "timed"; program = "hash-get"; region = "t"; engine = "cpu"; time_budget = "1s"; },
  { name = "strict"; program = "hash-get"; region = "t"; engine = "cpu"; on_error = { request = "ban:600s"; }; } );
END

start_nic
serve_supervised
served() # OFFLOAD N COMMAND...: $child, when N sessions have been answered
{
	background "$1.log" "${@:3}"
	until_true reported sessions "sum(s['offload'] == '$1' and s['requests'] > 0 for s in d) == $2" ||
		fail "the client of $1 is not served" "$work/$1.log" "$work/run.log"
}

charges() # prints what is charged to the tenant
{
	ctl --json tenants && value "[d[0][m] for m in ('sessions', 'depth', 'queue_bytes', 'slot_bytes')]"
}

charged() # CHARGES
{
	[[ $(charges) == "$1" ]]
}

limits() # prints those of the tenant and of the client of the NIC
{
	ctl --json tenants && value "d[0]['rate']"
	ctl --json sessions && value "[s['rate'] for s in d if s['offload'] == 'nic']"
}

limited()
{
	[[ $(limits) == $'1000000\n[3000]' ]]
}

served nic 1 "$REDDN" ping --port "$port" --timeout 100000 --interval 20 --count 1000000 "$address" nic
nic_client=$child
goes_on() # the client of the NIC is answered
{
	local replies

	replies=$(grep -c '^reply' "$work/nic.log")
	more()
	{
		[[ $(grep -c '^reply' "$work/nic.log") -gt $((replies + 2)) ]]
	}
	until_true more || fail "the session of the NIC does not go on" "$work/nic.log" "$work/run.log"
	alive "$nic_client" || fail "the client of the NIC has ended" "$work/nic.log" "$work/run.log"
}

# the daemon has nothing to wait for from a session that is idle
served timed 1 "$REDDN" ping --port "$port" --timeout 100000 --interval 86400000 --count 2 "$address" timed
timed_client=$child
ctl limit everyone --rate 1000000 || fail "no limit of the tenant" "$work/ctl.err"
ctl --json sessions
ctl limit "$(value "d[0]['session']")" --rate 3000 || fail "no limit of the session" "$work/ctl.err"
until_true limited || fail "the limits are not in force: $(limits)" "$work/run.log"
alone=$(charges)

over=0
kills() # the clients of the CPU, whose process is $cpu_clients, go on as well
{
	over=$((over + 1))
	kill -9 "$(daemon)"
	until_true taken_over $over || fail "nobody takes over" "$work/run.log"
	until_true charged "$with_both" || fail "charges are left, or lost: $(charges), not $with_both" "$work/run.log"
	alive "$cpu_clients" || fail "the clients of the CPU have ended" "$work/cpu.log" "$work/run.log"
	reported sessions "any(s['offload'] == 'timed' for s in d)" || fail "a session with a budget has ended" "$work/run.log"
	goes_on
	until_true limited || fail "the limits are forgotten: $(limits)" "$work/run.log"
}

begins() # OPTIONS: two clients of the CPU, with many requests under way
{
	served cpu 2 "$REDDN" bench --port "$port" --timeout 100000 --depth 16 --clients 2 "$@" --verify --keys "$work/data.tsv" "$address" cpu
	cpu_clients=$child
	with_both=$(charges)
	[[ $with_both != "$alone" ]] || fail "the sessions of the CPU are not charged"
}

no_errors()
{
	grep -qE '^errors +0$' "$work/cpu.log" && grep -qE '^wrong +0$' "$work/cpu.log"
}

counted() # prints how many requests the first two sessions of the CPU have had
{
	echo $(($(grep -oP '^session [34]: ends after \K[0-9]+' "$work/run.log" | paste -sd+)))
}

all_counted()
{
	[[ $(counted) == "$gets" ]]
}

gets=2000000
begins --count $gets
kills
expect_exit "$cpu_clients" "the clients of the CPU" cpu.log
no_errors || fail "errors" "$work/cpu.log" "$work/run.log"
until_true all_counted || fail "$gets requests were answered, and $(counted) are counted" "$work/run.log"
until_true charged "$alone" || fail "charges are left, or lost: $(charges), not $alone" "$work/run.log"
ok "$gets requests were answered by two daemons, each once, and counted; limits and charges are right"

# The second of these takes over what the first has taken over
begins --seconds 3000
for _ in 1 2; do
	kills
	for offload in nic cpu; do
		[[ $(on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" $offload alice && cat "$work/get.log") == wonder ]] ||
			fail "a new client of $offload is not answered" "$work/get.log" "$work/run.log"
	done
	ok "daemon $((over + 1)): sessions of the NIC and of the CPU go on, and both kinds are served"
done
kill -INT "$cpu_clients"
wait "$cpu_clients"
no_errors || fail "errors" "$work/cpu.log" "$work/run.log"

on_nic misuse.log "$MISUSE" "$address" "$port" strict long-send || fail "long-send" "$work/misuse.log" "$work/run.log"
kill -9 "$(daemon)"
until_true taken_over 4 || fail "nobody takes over" "$work/run.log"
on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" cpu alice && fail "a ban is forgotten" "$work/run.log"
grep -q 'refused for [0-9]* s more' "$work/get.log" || fail "a banned client is refused without a reason" "$work/get.log" "$work/run.log"
goes_on
ok "a ban stays: $(tail -n 1 "$work/get.log")"
kill_hard "$nic_client"
kill_hard "$timed_client"
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
