# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# package.sh - packages of what is installed, as debhelper would make them: enough to install and to upgrade the daemon in the machine.
# Sourced by "boot".

# make_packages TREE FOLDER N: N versions of a package with the files of TREE: FOLDER/reddnd_VERSION.deb
make_packages()
{
	local tree=$1 folder=$2 n=$3 version

	mkdir "$tree/DEBIAN"
	(cd "$tree" && find etc -type f -printf '/%p\n') >"$tree/DEBIAN/conffiles"
	cat >"$tree/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
systemd-sysusers reddnd.conf
ldconfig
journalctl --update-catalog
if [ -d /run/systemd/system ]; then
	systemd-tmpfiles --create reddnd.conf
	systemctl daemon-reload
	# of an upgrade: dh_installsystemd --restart-after-upgrade
	[ -z "$2" ] || deb-systemd-invoke restart reddnd.service
fi
END
	chmod 755 "$tree/DEBIAN/postinst"
	for ((version = 1; version <= n; version++)); do
		cat >"$tree/DEBIAN/control" <<END
Package: reddnd
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the test of the machine that boots <root@localhost>
Description: lets the NIC answer requests by itself
END
		dpkg-deb --root-owner-group -Znone --build "$tree" "$folder/reddnd_$version.deb" >/dev/null
	done
}
