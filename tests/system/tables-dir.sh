#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What applications may do with each other's files in /dev/shm/reddn, as sysusers.d and tmpfiles.d make it: nothing, and the daemon may
# read and write them.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
units=$here/../../units
if [[ $UID -ne 0 ]] || ! unshare --mount true 2>/dev/null; then
	echo "only root can make users and directories of its own"
	exit 77
fi
if [[ -z ${inside-} ]]; then
	inside=1 exec unshare --mount "$0"
fi

root=$(mktemp -d -p /dev/shm) # no folder of the build, which may have no ACLs
trap 'rm -rf "$root"' EXIT
chmod 711 "$root"
mkdir "$root/etc"
systemd-sysusers --root="$root" "$units/reddnd.sysusers" 2>"$root/log" || fail "users" "$root/log"
for file in passwd group; do
	mount --bind "$root/etc/$file" "/etc/$file" || fail "no $file of its own" # names in ACLs are those of the machine
done
systemd-tmpfiles --create --root="$root" "$units/reddnd.tmpfiles" 2>"$root/log" || fail "directories" "$root/log"
group=$(getent group reddn | cut -d : -f 3)
table=$root/dev/shm/reddn/table

as() # USER COMMAND...
{
	setpriv --reuid "$1" --regid "$1" --groups "$group" "${@:2}" >/dev/null 2>&1
}

for umask in 022 077; do
	as 50001 sh -c "umask $umask; echo mine >$table" || fail "an application cannot make a table"
	as 50002 cat "$table" && fail "another application reads it"
	as 50002 truncate -s 10 "$table" && fail "another application writes it"
	as 50002 rm -f "$table" && fail "another application removes it"
	as "$(id -u reddnd)" cat "$table" || fail "the daemon cannot read it"
	as "$(id -u reddnd)" truncate -s 10 "$table" || fail "the daemon cannot open it for writing"
	rm "$table"
	ok "with umask $umask"
done
