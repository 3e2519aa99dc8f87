#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon is killed at its n-th call on a device file, and its ledger is compared with what is in the device: at most
# one object is not in it, and at most one that is in it is gone.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${LEDGER_AUDIT:?set LEDGER_AUDIT to the path of the test program}"
# how many calls apart the daemon is killed; 1 is every call
step=${TEST_STEP:-37}

make_table "$work/table" <<<$'alice\twonder'

# The first daemon serves; what is started after it only looks at what it left
cat >"$work/life" <<END
#!/bin/bash
if [[ -e "$work/began" ]]; then
	trap '' TERM HUP
	exec "$LEDGER_AUDIT"
fi
: >"$work/began"
exec "$REDDND" --config "$work/reddnd.conf"
END
chmod +x "$work/life"

start_nic
configure_reddnd <<END
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = ( { name = "get"; program = "hash-get"; region = "t"; } );
END

run_daemon()
{
	until_true same_objects || fail "objects of an earlier daemon are left" "$work/run.log"
	rm -f "$work/began"
	start_supervised "$work/life"
}

audit() # WHAT: what the one after the daemon that died found
{
	expect_exit "$run" "$1" run.log
	line=$(grep -E '^(unrecorded|nothing)' "$work/run.log") || fail "$1: nobody looked" "$work/run.log"
	[[ $line == nothing* || $line =~ ^unrecorded\ [01]\ gone\ [01]\  ]] || fail "$1: $line" "$work/run.log"
}

# ---- a daemon that serves -----------------------------------------------------------------

run_daemon
server_ready "$run" reddnd run.log reddnd_listens
background client.log "$REDDN" bench -p "$port" -t 50000 -c 100000000 -k <(echo alice) "$address" get
client=$child
until_true grep -q 'client .*, offload get' "$work/run.log" || fail "the client is not served" "$work/client.log" "$work/run.log"
kill -9 "$(daemon)"
audit "killed while it serves"
[[ $line == "unrecorded 0 gone 0 live 1 building 0 ending 0" ]] || fail "killed while it serves: $line" "$work/run.log"
wait "$client"
ok "killed while it serves: $line"

# ---- at every call ------------------------------------------------------------------------

arm() # MOMENT N: the daemon dies at its n-th call from now on
{
	"$SOFTCX" fault add "$1" --program reddnd --at "$2" >"$work/fault.log" || fail "no fault" "$work/fault.log"
}

struck() # true if it has died; the fault is forgotten
{
	local n

	n=$("$SOFTCX" fault list --json | python3 -c 'import json, sys; print(sum(f["struck"] for f in json.load(sys.stdin)))')
	"$SOFTCX" fault clear >"$work/fault.log"
	((n))
}

up_or_gone()
{
	! alive "$run" || reddnd_listens
}

# While it tests the device it has objects that are in no ledger: they are nobody's
for n in 20 60 140; do
	arm kill-after "$n"
	run_daemon
	until_true up_or_gone || fail "start, call $n: the daemon hangs" "$work/run.log"
	struck || fail "the daemon starts with fewer than $n calls" "$work/run.log"
	expect_exit "$run" "start, call $n" run.log
	grep -qE '^(unrecorded [0-9]+ gone [01] live 0|nothing)' "$work/run.log" || fail "start, call $n" "$work/run.log"
done
ok "killed while it starts: the ledger is sound"

scenario() # clients come and go, one of them in vain; the configuration changes; the daemon ends
{
	on_nic get.log timeout 10 "$REDDN" get -p "$port" "$address" get alice
	sed -i 's/^tenants.*//; $a tenants = ( { name = "all"; networks = ( "0.0.0.0/0" ); } );' "$work/reddnd.conf"
	kill -HUP "$pid" 2>/dev/null
	on_nic get.log timeout 10 "$REDDN" get -p "$port" "$address" nothing alice
	on_nic get.log timeout 10 "$REDDN" get -p "$port" "$address" get alice bob
	kill "$pid" 2>/dev/null
	until_true gone || fail "the daemon does not end" "$work/run.log"
	sed -i '/^tenants/d' "$work/reddnd.conf"
}

gone()
{
	! alive "$run"
}

for moment in kill-before kill-after; do
	points=0
	for ((n = 1; ; n += step)); do
		run_daemon
		server_ready "$run" reddnd run.log reddnd_listens
		pid=$(daemon) || fail "there is no daemon" "$work/run.log"
		arm $moment "$n"
		scenario
		struck || break
		audit "$moment, call $n"
		points=$((points + 1))
	done
	[[ $points -gt 2 ]] || fail "$moment: the daemon makes fewer than $n calls" "$work/run.log"
	ok "$moment: the ledger is right at $points of the $n calls after the start"
done
expect_no_leak
done_testing
