#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon is killed while it has sessions of the CPU and of the NIC: those of the CPU end, and their clients learn why, those of
# the NIC go on, and the next daemon serves both kinds. What a CPU's session was charged with is refunded; limits and bans stay.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
: "${MISUSE:?set MISUSE to the path of the test client}"

"$REDDN_TABLE" create --quiet --capacity 100 --max-key 32 --max-value 100 "$work/table" || fail "no table"
printf 'alice\twonder\n' >"$work/data.tsv"
"$REDDN_TABLE" load --quiet "$work/table" "$work/data.tsv" || fail "no data"
cat >"$work/reddnd.conf" <<END
listen = "$address:$port";
control = "$control";
programs = "$programs";
arena = "16M";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = ( { name = "nic"; program = "hash-get"; region = "t"; },
  { name = "cpu"; program = "hash-get"; region = "t"; engine = "cpu"; },
  { name = "strict"; program = "hash-get"; region = "t"; engine = "cpu"; on_error = { request = "ban:600s"; }; } );
END

start_nic
serve_supervised
served() # OFFLOAD N COMMAND...: $child, when N sessions have been answered
{
	background "$1.log" "${@:3}"
	until_true reported clients "sum(s['offload'] == '$1' and s['requests'] > 0 for s in d) == $2" ||
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
	ctl --json clients && value "[s['rate'] for s in d if s['offload'] == 'nic']"
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

ctl limit everyone --rate 1000000 || fail "no limit of the tenant" "$work/ctl.err"
ctl --json clients
ctl limit "$(value "d[0]['session']")" --rate 3000 || fail "no limit of the session" "$work/ctl.err"
until_true limited || fail "the limits are not in force: $(limits)" "$work/run.log"
alone=$(charges)

# The second of these takes over what the first has taken over. Many requests are under way
for over in 1 2; do
	served cpu 2 "$REDDN" bench --port "$port" --timeout 100000 --depth 16 --clients 2 --seconds 3000 --verify --keys "$work/data.tsv" "$address" cpu
	charged "$alone" && fail "the sessions of the CPU are not charged"
	kill_under_cpu_client $over "$child" cpu.log
	goes_on
	until_true charged "$alone" || fail "charges are left, or lost: $(charges), not $alone" "$work/run.log"
	until_true limited || fail "the limits are forgotten: $(limits)" "$work/run.log"
	for offload in nic cpu; do
		[[ $(on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" $offload alice && cat "$work/get.log") == wonder ]] ||
			fail "a new client of $offload is not answered" "$work/get.log" "$work/run.log"
	done
	ok "daemon $((over + 1)): sessions of the NIC go on, those of the CPU have ended, and both kinds are served again; limits and charges are right"
done

on_nic misuse.log "$MISUSE" "$address" "$port" strict long-send || fail "long-send" "$work/misuse.log" "$work/run.log"
kill -9 "$(daemon)"
until_true taken_over 3 || fail "nobody takes over" "$work/run.log"
on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" cpu alice && fail "a ban is forgotten" "$work/run.log"
grep -q 'refused for [0-9]* s more' "$work/get.log" || fail "a banned client is refused without a reason" "$work/get.log" "$work/run.log"
goes_on
ok "a ban stays: $(tail -n 1 "$work/get.log")"
kill_hard "$nic_client"
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
