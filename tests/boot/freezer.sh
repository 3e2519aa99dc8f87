# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# freezer.sh - freezes what runs in the machine, all but its NIC and the test with its clients, which stand for the rest of the
# network. Sourced by "boot". The test inside asks by a file: freezer_serves ROOT.

# frozen_ones INIT: the processes of the machine that are frozen, its own init included
frozen_ones()
{
	local p

	for p in $(pgrep --ns "$1" --nslist pid ''); do
		grep -qE '/(softcx|boot)\.service$' "/proc/$p/cgroup" 2>/dev/null || printf '%s\n' "$p"
	done
}

# freeze INIT: into a cgroup of its own, $ice
freeze()
{
	local p

	if [[ -d /sys/fs/cgroup/freezer ]]; then
		ice=/sys/fs/cgroup/freezer/reddnd-$$
	else
		ice=/sys/fs/cgroup/reddnd-$$
	fi
	mkdir "$ice"
	for p in $(frozen_ones "$1"); do
		# it may have ended meanwhile
		sed -n 's/^0:://p' "/proc/$p/cgroup" >"$work/cgroup-of.$p" 2>/dev/null || continue
		printf '%s\n' "$p" >"$ice/cgroup.procs" 2>/dev/null || true
	done
	if [[ -e $ice/freezer.state ]]; then
		echo FROZEN >"$ice/freezer.state"
		until grep -q FROZEN "$ice/freezer.state"; do sleep 0.1; done
	else
		echo 1 >"$ice/cgroup.freeze"
		until grep -q '^frozen 1' "$ice/cgroup.events"; do sleep 0.1; done
	fi
}

thaw()
{
	local p

	[[ -n $ice ]] || return 0
	if [[ -e $ice/freezer.state ]]; then
		echo THAWED >"$ice/freezer.state"
	else
		echo 0 >"$ice/cgroup.freeze"
	fi
	while read -r p; do
		if [[ -e $ice/freezer.state ]]; then
			printf '%s\n' "$p" >/sys/fs/cgroup/freezer/cgroup.procs
		else
			printf '%s\n' "$p" >"/sys/fs/cgroup$(<"$work/cgroup-of.$p")/cgroup.procs"
		fi || true
	done < <(cat "$ice/cgroup.procs")
	rmdir "$ice"
	ice=
}
ice=

# freezer_serves ROOT: while ROOT/root/boot/freeze exists the machine is frozen; then ROOT/root/boot/frozen does, too. Once.
freezer_serves()
{
	local here=$1/root/boot init

	until [[ -e $here/freeze ]]; do sleep 0.2; done
	trap thaw EXIT
	init=$(pgrep -P "$(pgrep -P $$ systemd-nspawn)")
	freeze "$init"
	frozen_ones "$init" | wc -l >"$here/frozen"
	while [[ -e $here/freeze ]]; do sleep 0.2; done
	thaw
	rm -f "$here/frozen"
}
