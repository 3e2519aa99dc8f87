#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A device whose firmware takes no commands from programs: the daemon ends, and names the firmware option; programs on verbs work.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
: "${REDDND:?}"

export SOFTCX_DEVICE=no-devx
start_nic
on_nic devinfo.log ibv_devinfo || fail "ibv_devinfo" "$work/devinfo.log"
ok "verbs work"
printf 'listen = "%s:7471"; offloads = ();\n' "$address" >"$work/reddnd.conf"
on_nic reddnd.log "$REDDND" --config "$work/reddnd.conf" && fail "the daemon runs without DEVX" "$work/reddnd.log"
grep -q 'cannot open mlx5_0 for direct commands (DEVX); its firmware may need UCTX_EN=1' "$work/reddnd.log" ||
	fail "the firmware option is not named" "$work/reddnd.log"
ok "the daemon names the firmware option"
done_testing
