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

# freeze INIT: by version 2 of cgroups where there is one, in the cgroups that they are in: systemd notices if a process leaves that of
# its service. Else into a cgroup of their own, $ice.
freeze()
{
	local p c

	unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	if [[ -n $unified ]]; then
		# a process may have ended meanwhile
		mapfile -t cgroups < <(for p in $(frozen_ones "$1"); do sed -n 's/^0:://p' "/proc/$p/cgroup" 2>/dev/null; done | sort -u)
		for c in "${cgroups[@]}"; do
			echo 1 >"$unified$c/cgroup.freeze"
			until grep -q '^frozen 1' "$unified$c/cgroup.events"; do sleep 0.1; done
		done
		return
	fi
	ice=/sys/fs/cgroup/freezer/reddnd-$$
	mkdir "$ice"
	for p in $(frozen_ones "$1"); do
		printf '%s\n' "$p" >"$ice/cgroup.procs" 2>/dev/null || true
	done
	echo FROZEN >"$ice/freezer.state"
	until grep -q FROZEN "$ice/freezer.state"; do sleep 0.1; done
}

thaw()
{
	local p c

	for c in "${cgroups[@]}"; do
		echo 0 >"$unified$c/cgroup.freeze"
	done
	cgroups=()
	[[ -n $ice ]] || return 0
	echo THAWED >"$ice/freezer.state"
	while read -r p; do
		printf '%s\n' "$p" >/sys/fs/cgroup/freezer/cgroup.procs || true
	done < <(cat "$ice/cgroup.procs")
	rmdir "$ice"
	ice=
}
ice=
unified=   # where cgroups of version 2 are; "": there are none
cgroups=() # that are frozen

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
