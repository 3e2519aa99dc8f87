#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The load of ./dev bench idle-waits: its queues stop at a WAIT, another one works beside them, and nothing is left.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
: "${IDLE_WAITS_LOAD:?set IDLE_WAITS_LOAD to the path of the program}"

needs has.devx
start_nic
on_nic out "$IDLE_WAITS_LOAD" "" 50 0 3 70 || fail "the program ends with $?" "$work/out"
python3 - "$work/out" <<'END' || fail "the results" "$work/out"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
assert [r["idle"] for r in rows] == [0, 3, 70], rows
assert all(r["steps"] == 50 and 0 < r["median_us"] <= r["p99_us"] <= r["max_us"] for r in rows), rows
END
ok "steps beside 0, 3 and 70 queues that wait"
on_nic out "$IDLE_WAITS_LOAD" nowhere 50 1 && fail "a device that is not there"
grep -q nowhere "$work/out" || fail "the device is not named" "$work/out"
ok "a device that is not there is named"
done_testing
