#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Devices: softcx devices lists them, --device and $SOFTCX_DEVICE choose one, programs see it, and a mistake in a file is reported.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

unset SOFTCX_DEVICE
own=$work/own.conf
cat >"$own" <<'END'
base = "cx5";
title = "a test's own";
identity = {
  part = (4123, "assumed");
  firmware = ("20.1.2", "assumed");
};
limits = { send_wqe = (256, "assumed"); };
has = { scheduling = (false, "assumed"); };
END

"$SOFTCX" devices >"$work/devices" || fail "softcx devices" "$work/devices"
grep -q '^cx5  *ConnectX-5' "$work/devices" || fail "cx5 is not listed" "$work/devices"
"$SOFTCX" devices --json | python3 -c '
import json, sys
devices = json.load(sys.stdin)
names = sorted(d["name"] for d in devices)
assert names == sorted(line.split()[0] for line in open(sys.argv[1])), names
for d in devices:
    assert d["title"] and d["facts"]
    for name, fact in d["facts"].items():
        assert fact["source"], (d["name"], name)
cx5 = next(d["facts"] for d in devices if d["name"] == "cx5")
assert cx5["identity.part"]["value"] == 4119 and cx5["has.masked_atomics"]["value"] is True and cx5["port.speed"]["value"] == "EDR"
' "$work/devices" || fail "softcx devices --json differs"
ok "softcx devices lists them, with sources"
for verb in status devices trace stop; do
	"$SOFTCX" "$verb" more >"$work/more" 2>&1 && fail "softcx $verb takes an argument"
	grep -qx "softcx: \"more\" is too much; softcx $verb --help shows what it takes" "$work/more" || fail "softcx $verb more" "$work/more"
done
ok "an argument too many is an error"

expect_part() # WHAT PART FIRMWARE LOG
{
	grep -qE "vendor_part_id:[[:space:]]*$2\$" "$work/$4" || fail "$1: not part $2" "$work/$4"
	grep -qE "fw_ver:[[:space:]]*$3\$" "$work/$4" || fail "$1: not firmware $3" "$work/$4"
	ok "$1"
}

start_nic
on_nic info ibv_devinfo || fail ibv_devinfo "$work/info"
expect_part "the default is a ConnectX-5" 4119 16.35.4030 info
for right in cx5 "$own"; do
	rc=0
	on_nic refused --device "$right" true || rc=$?
	[[ $right == cx5 && $rc -eq 0 || $right != cx5 && $rc -eq 125 ]] || fail "--device $right beside a cx5: exit status $rc" "$work/refused"
done
grep -q 'another --device already runs' "$work/refused" || fail "a NIC of another device is used" "$work/refused"
ok "a NIC of another device is not used"
expect_no_leak

# each on a NIC of its own, which the tool starts
fresh() # LOG OPTIONS OF softcx run...
{
	local dir

	dir=$(mktemp -d -p "$memory")
	SOFTCX_DIR=$dir on_nic "$@"
	local rc=$?
	SOFTCX_DIR=$dir "$SOFTCX" stop >/dev/null 2>&1
	return $rc
}
fresh info --device "$own" ibv_devinfo -v || fail "--device FILE" "$work/info"
expect_part "--device FILE" 4123 20.1.0002 info
grep -qE 'max_sge:[[:space:]]*14$' "$work/info" || fail "send WQEs of 256 bytes have another number of segments" "$work/info"
SOFTCX_DEVICE=$own fresh info ibv_devinfo || fail "SOFTCX_DEVICE" "$work/info"
expect_part "SOFTCX_DEVICE" 4123 20.1.0002 info
SOFTCX_DEVICE=$own fresh info --device cx5 ibv_devinfo || fail "--device" "$work/info"
expect_part "the option comes before the variable" 4119 16.35.4030 info

# LINE|WORDS|TEXT: softcx and the NIC process refuse the file with these words, and the first has exit status 125
while IFS='|' read -r line words text; do
	printf '%b' "$text" >"$work/wrong.conf"
	rc=0
	fresh refused --device "$work/wrong.conf" true || rc=$?
	[[ $rc -eq 125 ]] || fail "$text: exit status $rc" "$work/refused"
	grep -qF -- "$work/wrong.conf:$line $words" "$work/refused" || fail "$text: not \"$line $words\"" "$work/refused"
	rc=0
	"$SOFTCX" nic --dir "$work" --device "$work/wrong.conf" >"$work/refused" 2>&1 || rc=$?
	[[ $rc -eq 2 ]] || fail "$text: exit status of the NIC $rc" "$work/refused"
	grep -qF -- "$work/wrong.conf:$line $words" "$work/refused" || fail "$text: the NIC: not \"$line $words\"" "$work/refused"
	ok "$words"
done <<'END'
1:|syntax error|title = ;
|a profile needs a title|base = "cx5";\n
2:|has.masked_atomics must be true or false|base = "cx5"; title = "x";\nhas = { masked_atomics = (7, "assumed"); };
2:|there is no fact has.mask|base = "cx5"; title = "x";\nhas = { mask = (true, "assumed"); };
1:|base "cx99": there is no such profile|base = "cx99"; title = "x";
END
rc=0
fresh refused --device no-such true || rc=$?
[[ $rc -eq 125 ]] || fail "--device no-such: exit status $rc" "$work/refused"
grep -q 'no-such.conf: No such file' "$work/refused" || fail "--device no-such: other words" "$work/refused"
ok "a name that does not exist"

# ld.so separates the names in LD_PRELOAD by spaces and colons
apart="$work/a b:c"
mkdir -p "$apart"
cp -r "${SOFTCX%/*}"/{softcx,nic,driver,devices} "$apart"
SOFTCX=$apart/softcx fresh spaced ibv_devices || fail "from a folder with a space and a colon" "$work/spaced"
grep -q mlx5_0 "$work/spaced" || fail "no device from a folder with a space and a colon" "$work/spaced"
ok "from a folder with a space and a colon"
mkdir "$work/c d"
SOFTCX=$apart/softcx SOFTCX_DIR="$work/c d" on_nic spaced ibv_devices && fail "the directory has a space too" "$work/spaced"
grep -q 'choose another directory with --dir' "$work/spaced" || fail "the directory has a space too" "$work/spaced"
SOFTCX_DIR="$work/c d" "$apart/softcx" stop
ok "where no name is without a space: a message"

done_testing
