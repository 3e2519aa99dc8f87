#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A device whose firmware takes no commands from programs: the daemon names the firmware option, and the CPU executes the offloads.
# Those that only the NIC may execute are disabled. When the daemon is killed, clients learn that, and the next one serves them.
export SOFTCX_DEVICE=no-devx ENGINE=auto
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"

: "${REDDN:?set REDDN to the path of the client tool}"

make_table "$work/table" <<<$'alice\twonder'
configure_reddnd <<END
control = "$control";
arena = "16M";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = ( { name = "default"; program = "hash-get"; region = "t"; },
  { name = "kept"; program = "hash-get"; region = "t"; mode = "recycled"; },
  { name = "cpu"; program = "hash-get"; region = "t"; engine = "cpu"; },
  { name = "nic"; program = "hash-get"; region = "t"; engine = "nic"; } );
END

start_nic
serve_supervised
grep -q 'mlx5_0 runs no chains: it takes no direct commands (DEVX); its firmware may need UCTX_EN=1 (mlxconfig)' "$work/run.log" ||
	fail "the firmware option is not named" "$work/run.log"
ok "the daemon names the firmware option"

serves() # OFFLOAD...
{
	for offload; do
		on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" "$offload" alice || fail "$offload does not answer" "$work/get.log" "$work/run.log"
		[[ $(<"$work/get.log") == wonder ]] || fail "$offload: a wrong answer" "$work/get.log"
		on_nic miss.log "$REDDN" get -p "$port" -t 50000 "$address" "$offload" bob && fail "$offload: bob is there" "$work/miss.log"
	done
	ok "the CPU executes $*"
}
serves default kept cpu
ctl --json offloads
[[ $(value "[(o['offload'], o['engine']) for o in d if 'runs no chains: it takes no direct commands' in o['why']]") == \
	"[('default', 'cpu'), ('kept', 'cpu'), ('nic', 'nic')]" ]] || fail "reddnctl reports something else" "$work/ctl.out"
on_nic get.log "$REDDN" get -p "$port" "$address" nic alice && fail "an offload for the NIC answers" "$work/get.log"
grep -q "offload nic cannot run on the server's NIC" "$work/get.log" || fail "the client does not learn why" "$work/get.log"
ok "an offload that only the NIC may execute is disabled"

for over in 1 2; do
	background ping.log "$REDDN" ping -p "$port" -t 100000 --interval 20 --count 1000000 "$address" default
	client=$child
	until_true grep -q '^reply' "$work/ping.log" || fail "the client is not served" "$work/ping.log" "$work/run.log"
	kill -9 "$(daemon)"
	until_true taken_over $over || fail "nobody takes over" "$work/run.log"
	rc=0
	wait "$client" || rc=$?
	[[ $rc -eq 2 ]] || fail "the client ends with status $rc" "$work/ping.log" "$work/run.log"
	grep -q 'the server was restarted, which ends sessions that are not recycled' "$work/ping.log" || fail "the client gets no reason" "$work/ping.log" "$work/run.log"
	serves default cpu
	ok "daemon $((over + 1)) serves on, and the clients of the one before learn why they were cut off"
done
kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
