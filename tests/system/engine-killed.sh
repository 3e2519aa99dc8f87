#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon is killed while it has sessions of the CPU and of the NIC: those of the CPU end, and their clients learn why, those of
# the NIC go on, and the next daemon serves both kinds.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"

"$REDDN_TABLE" create --quiet --capacity 100 --max-key 32 --max-value 100 "$work/table" || fail "no table"
printf 'alice\twonder\n' | "$REDDN_TABLE" load --quiet "$work/table" || fail "no data"
cat >"$work/reddnd.conf" <<END
listen = "$address:$port";
programs = "$programs";
arena = "16M";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = ( { name = "nic"; program = "hash-get"; region = "t"; },
  { name = "cpu"; program = "hash-get"; region = "t"; engine = "cpu"; } );
END

start_nic
serve_supervised
ping() # OFFLOAD: $child
{
	background "$1.log" "$REDDN" ping --port "$port" --timeout 100000 --interval 20 --count 1000000 "$address" "$1"
	until_true grep -q '^reply' "$work/$1.log" || fail "the client of $1 is not served" "$work/$1.log" "$work/run.log"
}
ping nic
nic_client=$child

# The second of these takes over what the first has taken over
for over in 1 2; do
	ping cpu
	kill_under_cpu_client $over "$child" cpu.log
	replies=$(grep -c '^reply' "$work/nic.log")
	more()
	{
		[[ $(grep -c '^reply' "$work/nic.log") -gt $((replies + 2)) ]]
	}
	until_true more || fail "the session of the NIC does not go on" "$work/nic.log" "$work/run.log"
	for offload in nic cpu; do
		[[ $(on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" $offload alice && cat "$work/get.log") == wonder ]] ||
			fail "a new client of $offload is not answered" "$work/get.log" "$work/run.log"
	done
	alive "$nic_client" || fail "the client of the NIC has ended" "$work/nic.log" "$work/run.log"
	ok "daemon $((over + 1)): sessions of the NIC go on, that of the CPU has ended, and both kinds are served again"
done
kill_hard "$nic_client"
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
