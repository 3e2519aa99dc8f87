#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# probe.sh DEVICE: reddn-probe finds what the device does otherwise than a ConnectX-5, and nothing else.
export SOFTCX_DEVICE=$1
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
: "${REDDN_PROBE:?set REDDN_PROBE to the path of the probe}" "${SLOW_VERBS_LIB:?set SLOW_VERBS_LIB to the path of the library}"

# the model, the checks that do not hold, and those that cannot be tried then; files depend on the machine of the test
model=ConnectX-5 not=() untried=() status=0
case $1 in
cx5) ;;
big-endian-atomics) not=(atomics) ;;
bluefield3) not=(doorbell calc) ;;
calc-8-bytes) ;;
cx6dx-rtc) not=(timestamps calc) ;;
flush-to-doorbell) not=(flush) ;;
ignores-index) not=(wqe-checks) ;;
infiniband) not=(forced-loopback) untried=(accepted) ;;
no-loopback) not=(forced-loopback) ;;
no-calc) not=(calc) ;;
no-devx) not=(device) ;;
no-masked-atomics) not=(masked-atomics) ;;
no-message-limit) not=(message-limit) ;;
prefetch-256) not=(fetch) ;;
prefetch-recvs) not=(recv-fetch) ;;
recv-en-broken) not=(recv-enable) untried=(smaller-recv-enable recv-fetch) ;;
*) fail "usage: probe.sh DEVICE" ;;
esac
case $1 in
cx6dx-rtc) model="ConnectX-6 Dx" ;;
bluefield3) model=BlueField-3 ;;
esac

refused() # STATUS ARGUMENTS
{
	local rc=0

	on_nic refused.log "$REDDN_PROBE" "${@:2}" || rc=$?
	[[ $rc -eq $1 ]] || fail "${*:2}: exit status $rc" "$work/refused.log"
}

start_nic
"$SOFTCX" run "$REDDN_PROBE" --json >"$work/probe.json" 2>"$work/probe.err" || status=$?
# Prints a line for each check with another verdict than expected
python3 - "$work/probe.json" "$1" "$model" "${not[*]}" "${untried[*]}" "$status" >"$work/differences" <<'END' || fail "reddn-probe finds something else" "$work/differences" "$work/probe.err" "$work/probe.json"
import json, re, sys
path, name, model, fails, untried, status = sys.argv[1:]
found = json.load(open(path))
machine = {"huge-file", "disk-file"}
wrong = []
dead = name == "no-devx"
verdicts = {c["name"]: c["verdict"] for c in found["checks"]}
for check in found["checks"]:
    n, verdict = check["name"], check["verdict"]
    if n in fails.split():
        good = verdict == "does not" and check["words"]
    elif n in machine:
        good = verdict != "does not"
    elif n in untried.split() or dead:
        good = verdict == "not tried" and check["words"]
    else:
        good = verdict == "holds" and (check["telling"] > 0)
    if not good:
        wrong.append(f"{n}: {verdict}: {check['words']} ({check['telling']} of {check['tried']})")
expected = 1 if fails else 2 if "not tried" in verdicts.values() else 0
sent = {"cx5": "16 bytes are sent, 8 of them without meaning; .* M/s in one queue", "calc-8-bytes": "8 bytes are sent; .* M/s in one queue",
        "prefetch-256": ".* M/s in one queue"}
for check in found["checks"]:
    if check["name"] == "calc" and not re.match(sent.get(name, ""), check["measured"]):
        wrong.append(f"calc: {check['measured']}")
if int(status) != expected:
    wrong.append(f"exit status {status}, not {expected}")
if not dead and found["device"]["model"] != model:
    wrong.append(f"model {found['device']['model']}, not {model}")
for key in ("firmware", "board_id", "caps"):
    if not dead and not found["device"][key]:
        wrong.append(f"no {key}")
print(*wrong, sep="\n")
sys.exit(bool(wrong))
END
ok "$1: ${not[*]:-nothing} does not hold"

if [[ $1 == cx5 ]]; then
	on_nic table.log "$REDDN_PROBE" --check 20,chain || fail "two checks" "$work/table.log"
	grep -q '^ *20  *fetch  *holds ' "$work/table.log" || fail "the table lacks a row" "$work/table.log"
	grep -q '^2 hold, 0 do not, 0 could not be tried$' "$work/table.log" || fail "the table lacks its sums" "$work/table.log"
	ok "a table of two checks"
	"$REDDN_PROBE" --list >"$work/list.log" || fail "--list" "$work/list.log"
	grep -q '^ 18  cqe-wrap' "$work/list.log" || fail "a check that takes long is not listed" "$work/list.log"
	[[ $(grep -c 'assumed:' "$work/list.log") -eq $(grep -c 'source:' "$work/list.log") ]] || fail "a check has no source" "$work/list.log"
	ok "a list without a device"
	sed -n '/^ *1  device/,/source:/p' "$work/list.log" | tr -s ' \n' ' ' | grep -q 'else: the NIC runs no chains: the CPU executes all offloads' ||
		fail "not what the daemon does on such a device (no-devx.sh)" "$work/list.log"
	ok "what follows from a device that runs no chains"
	refused 64 --check fetsh
	grep -q 'there is no check "fetsh"; did you mean "fetch"?' "$work/refused.log" || fail "a wrong name" "$work/refused.log"
	refused 69 --device mlx5_7
	ok "wrong arguments"

	# longer than the check has patience with it
	. "${BASH_SOURCE[0]%/*}/../lib/slow.sh"
	call register pass
	call close pass
	background late.log "${slowly[@]}" "$REDDN_PROBE" --check accepted
	late=$child
	waits_for connect "$work/late.log"
	sleep 8
	call connect pass
	expect_exit "$late" "a probe whose client is late" late.log
	grep -q ' accepted  *holds ' "$work/late.log" || fail "a client that is late is taken for a device that loses it" "$work/late.log"
	ok "a client that is late is waited for"
fi
done_testing
