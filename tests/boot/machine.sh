# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# machine.sh - a small Debian in a directory, and running it (systemd-nspawn). Sourced by bash scripts with "set -euo pipefail"; needs
# root. In the end of the script no process, mount or file is left. It sets $work, a directory for files of the script.

suite=${REDDN_SUITE:-bookworm}
mirror=${REDDN_MIRROR:-http://deb.debian.org/debian}

work=
making=
machine=
group=

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

alive()
{
	kill -0 "$machine" 2>/dev/null
}

# All processes of the machine die with its init, and then systemd-nspawn ends. Its init does not die with it.
end_machine()
{
	local init i

	for init in $(pgrep -P "$machine"); do
		kill -KILL "$init" 2>/dev/null || true
	done
	for ((i = 0; i < 50; i++)); do
		alive || break
		sleep 0.1
	done
	kill -KILL "$machine" 2>/dev/null || true
	wait "$machine" 2>/dev/null || true
}

# shellcheck disable=SC2317 # called by the trap
cleanup()
{
	local rc=$?

	[[ -z $making ]] || kill "$making" 2>/dev/null || true
	[[ -z $machine ]] || ! alive || end_machine
	[[ -z $group ]] || drop_cgroup "$group"
	[[ -z $work ]] || rm -rf --one-file-system "$work"
	exit "$rc"
}
trap cleanup EXIT
trap 'exit 143' TERM INT HUP

[[ $(id -u) -eq 0 ]] || die "running a machine needs root"
work=$(mktemp -d)

# make_base CACHE: makes a Debian with its init and nothing else from the mirror, once, below the directory CACHE: $base. It gets this name
# when it is complete.
make_base()
{
	local cache=$1 log=$work/debootstrap.log new lock

	mkdir -p "$cache"
	base=$cache/$suite
	new=$base.new
	# another script may be making it
	exec {lock}>"$base.lock"
	flock "$lock"
	if [[ ! -d $base ]]; then
		rm -rf --one-file-system "$new"
		# in the background, so that a signal to this script ends it and its children at once
		timeout -k 5 1200 debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus "$suite" "$new" "$mirror" >"$log" 2>&1 </dev/null &
		making=$!
		if ! wait "$making"; then
			tail -n 15 "$log" >&2
			rm -rf --one-file-system "$new"
			die "debootstrap cannot make a Debian $suite, see above; REDDN_MIRROR names another mirror"
		fi
		making=
		rm -rf "$new/var/cache/apt/archives" "$new/usr/share/doc"
		mv "$new" "$base"
	fi
	exec {lock}>&-
}

# make_base_with CACHE NAME PACKAGE...: the same, with these packages besides, for the one script that uses this NAME: $base
make_base_with()
{
	local made
	made=$1/$suite-$2-$(sha256sum <<<"${*:3}" | cut -c 1-12)

	make_base "$1"
	if [[ ! -d $made ]]; then
		rm -rf --one-file-system "$1/$suite-$2"-*
		cp -a --reflink=auto "$base" "$made.new"
		# debhelper-compat and dh-sequence-* are names that packages provide; apt chooses
		run_online "$made.new" 1800 "apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install ${*:3}" \
			>"$work/apt.log" || die "a Debian $suite with these packages cannot be made: ${*:3}: $(tail -n 15 "$work/apt.log")"
		rm -rf "$made.new/var/lib/apt/lists" "$made.new/usr/share/doc"
		mv "$made.new" "$made"
	fi
	base=$made
}

# apt_as_here ROOT: apt reaches the mirror as it does here. Downloads are kept in $archives, beside those that apt of this machine has kept;
# apt locks it, so each script has its own. After make_base.
apt_as_here()
{
	printf 'deb %s %s main\n' "$mirror" "$suite" >"$1/etc/apt/sources.list"
	apt-config dump | grep -E '^Acquire::(https?|Retries|Check-Valid-Until|Check-Date|ForceIPv[46]|Languages)\b' >"$1/etc/apt/apt.conf.d/90host" || true
	archives=${base%/*}/archives-${0##*/}
	mkdir -p "$archives/partial" "$1/var/cache/apt/archives"
	cp -ln /var/cache/apt/archives/*.deb "$archives/" 2>/dev/null || true
}

# run_online ROOT LIMIT COMMAND: runs a command for bash in ROOT, with the network of this machine, as run_machine does. After make_base.
run_online()
{
	apt_as_here "$1"
	mkdir -p "$1/root/boot"
	run_machine "$1" "$2" --as-pid2 --suppress-sync=yes --resolv-conf=copy-host --bind="$archives:/var/cache/apt/archives" \
		bash -c "{ $3; } >/root/boot/log 2>&1"
}

# cgroups: prints those that this process is in, where systemd keeps its services: a directory each
cgroups()
{
	local hierarchy path

	while IFS=: read -r _ hierarchy path; do
		case $hierarchy in
		name=systemd) awk -v p="${path%/}" '$3 == "cgroup" && $4 ~ /(^|,)name=systemd(,|$)/ { print $2 p; exit }' /proc/mounts ;;
		'') awk -v p="${path%/}" '$3 == "cgroup2" { print $2 p; exit }' /proc/mounts ;;
		esac
	done </proc/self/cgroup
}

# in_cgroup NAME COMMAND...: becomes a command in cgroups of its own. Machines that are in one have the cgroups of their services in
# common, and the systemd of each finds processes there that it cannot see.
in_cgroup()
{
	local name=$1 of
	shift

	for of in $(cgroups); do
		if ! mkdir -p "$of/$name" || ! echo "$BASHPID" >"$of/$name/cgroup.procs"; then
			printf 'the machine has no cgroup of its own in %s\n' "$of" >&2
		fi
	done
	exec "$@"
}

# drop_cgroup NAME: of a command that has ended
drop_cgroup()
{
	local of

	for of in $(cgroups); do
		find "$of/$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
}

# run_machine ROOT LIMIT OPTIONS...: runs the machine in ROOT for at most LIMIT seconds, with these options of systemd-nspawn, then
# prints ROOT/root/boot/log, which a machine writes that is alive. Returns its exit status.
run_machine()
{
	local root=$1 limit=$2 i rc=0
	shift 2

	# The systemd of Debian 13 is for version 2 of cgroups
	[[ $suite == bookworm ]] || export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
	group=reddnd-${0##*/}-$$
	in_cgroup "$group" systemd-nspawn --quiet --directory="$root" --machine="$group" --register=no --keep-unit --settings=no \
		--link-journal=no --timezone=off --console=pipe "$@" >"$work/console" 2>&1 </dev/null &
	machine=$!
	for ((i = 0; i < limit * 5; i++)); do
		alive || break
		sleep 0.2
	done
	! alive || {
		tail -n 30 "$work/console"
		cat "$root/root/boot/log" 2>/dev/null || true
		die "the machine still runs after $limit seconds"
	}
	wait "$machine" || rc=$?
	machine=
	drop_cgroup "$group"
	group=
	[[ -e $root/root/boot/log ]] || {
		tail -n 30 "$work/console"
		die "the machine did not boot (systemd-nspawn: exit status $rc)"
	}
	cat "$root/root/boot/log"
	return "$rc"
}
