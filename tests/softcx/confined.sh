#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# softcx-confined.sh - programs and their NIC where less is allowed than on a developer's machine: without the system calls
# that containers forbid, as an ordinary user, in a user namespace. A way that this machine does not offer is skipped, which is
# said. Results are the same everywhere.
#
# SOFTCX, CONFINED, LIFE, DEVICE_TEST, MEMORY_TEST, DEVX_TEST: paths of what is built.

: "${CONFINED:?}" "${LIFE:?}" "${DEVICE_TEST:?}" "${MEMORY_TEST:?}" "${DEVX_TEST:?}"

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --)

# Run again for each way, all of it confined: lib.sh, the NIC, programs.
if [[ -z ${WAY-} ]]; then
	failed=0
	try() # WAY COMMAND...: COMMAND runs its arguments in that way
	{
		local way=$1
		shift

		if ! "$@" "$CONFINED" true 2>/dev/null; then
			printf 'skipped: %s is not to be had here\n' "$way"
			return
		fi
		printf -- '-- %s\n' "$way"
		WAY=$way "$@" "$0" || failed=1
	}
	try "system calls refused" "$CONFINED"
	try "system calls deadly" "$CONFINED" --kill
	try "user namespace" unshare --user --map-root-user
	if [[ $(id -u) -eq 0 ]]; then
		try "ordinary user" "${nobody[@]}"
		try "NIC of another user" env
	fi
	exit $failed
fi

# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

if [[ $WAY == "NIC of another user" ]]; then
	chown -R 65534:65534 "$work" "$memory"
	tool=$SOFTCX
	printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${nobody[*]}" "$tool" >"$work/softcx"
	chmod 755 "$work" "$memory" "$work/softcx"
	SOFTCX=$work/softcx
	"$SOFTCX" --help >/dev/null 2>&1 || {
		printf 'skipped: the other user cannot reach the build\n'
		exit 0
	}
	start_nic
	SOFTCX=$tool
else
	start_nic
fi

on_nic log "$DEVICE_TEST" || fail "device files" "$work/log"
ok "device files"
on_nic log "$MEMORY_TEST" || fail "all kinds of memory" "$work/log"
ok "memory of every kind, stacks included"
if able "queues made by DEVX" has.devx; then
	on_nic log "$DEVX_TEST" || fail "queues made by DEVX" "$work/log"
	ok "queues made by DEVX, in shared anonymous memory"
fi
on_nic log "$LIFE" || fail "what outlives a process" "$work/log"
ok "what outlives a process"
free_port
# by LID on an InfiniBand port
gid=
able "an address of RoCE" port.link=Ethernet && gid="-g 1"
tcp_pair "ibv_rc_pingpong" "$port" "ibv_rc_pingpong $gid -p $port -e -c" "ibv_rc_pingpong $gid -p $port -e -c $address"
ok "ibv_rc_pingpong with events and checking"
cm_pair "rping" "rping -s -a $address -C 20 -V" "rping -c -a $address -C 20 -V"
ok "rping with checking"
done_testing
