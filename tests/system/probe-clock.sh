#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# reddn-probe --clock on a NIC with the modelled clock of a ConnectX-5: the file that it writes has the figures of that clock, within
# 2 %, and softcx and reddnc read it.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
: "${REDDN_PROBE:?}" "${REDDNC:?}"
unset SOFTCX_DEVICE

nic_options=(--clock cx5 --devices 2)
start_nic
on_nic clock.log "$REDDN_PROBE" --device mlx5_0 --to mlx5_1 --clock "$work/own.conf" || fail "no clock file" "$work/clock.log"
python3 - "$here/../../costs/cx5.conf" "$work/own.conf" >"$work/far" <<'END' || fail "the figures are others" "$work/far" "$work/own.conf"
import re, sys
def figures(path):
    found, group = {}, ""
    for line in open(path):
        line = line.split("#")[0].strip()
        if m := re.match(r"(\w+) = \{$", line):
            group = m[1] + "."
        elif line == "};":
            group = ""
        elif m := re.match(r"(\w+) = ([0-9.]+);", line):
            found[group + m[1]] = float(m[2])
    return found
is_, should = figures(sys.argv[2]), figures(sys.argv[1])
assert is_.keys() == should.keys(), (is_.keys(), should.keys())
far = [f"{k}: {is_[k]}, not {should[k]}" for k in should if abs(is_[k] / should[k] - 1) > 0.02]
print(*far, sep="\n")
sys.exit(bool(far))
END
ok "the figures are those of the clock, within 2 %"
on_nic one.log "$REDDN_PROBE" --device mlx5_0 --clock "$work/loopback.conf" || fail "no clock file in loopback" "$work/one.log"
grep -q '^  network = 0.0000;' "$work/loopback.conf" || fail "the network takes time without a second port" "$work/loopback.conf"
ok "a clock file of one port"
done_testing
for file in own loopback; do
	"$SOFTCX" run --dir "$work/$file.nic" --clock "$work/$file.conf" ibv_devinfo >"$work/read.log" 2>&1 || fail "softcx does not read $file.conf" "$work/read.log"
	"$SOFTCX" stop --dir "$work/$file.nic" >/dev/null
	ok "softcx reads $file.conf"
	"$REDDNC" explain --clock "$work/$file.conf" "$here/../../conf/programs/hash-get.rdn" >"$work/explained" 2>&1 ||
		fail "reddnc does not read $file.conf" "$work/explained"
	grep -q "^modelled on $work/$file.conf, for a short reply: " "$work/explained" || fail "reddnc does not name it" "$work/explained"
	ok "reddnc reads $file.conf"
done
