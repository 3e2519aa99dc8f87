# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# builder.sh - makes the Debian packages for $suite: on this machine if it has that, else in a Debian of the suite with all that the build
# needs, which is made once. Sourced by "packages" behind machine.sh; after make_base.

# build_packages TREE DIR [OPTIONS OF make]
build_packages()
{
	local tree=$1 dir=$2 root=$work/builder-root base=$base depends
	shift 2

	if grep -qx "VERSION_CODENAME=$suite" /etc/os-release; then
		"$here/make" "$@" "$tree" "$dir"
		return
	fi
	depends=$(sed -n '/^Build-Depends:/,/^$/p' "$tree/debian/control" | sed '1d; s/^ *//; s/[ (,:].*//' | tr '\n' ' ')
	# shellcheck disable=SC2086 # one word each
	make_base_with "$cache" builder build-essential ccache debhelper dh-python $depends
	mkdir -p "$cache/ccache-$suite"
	cp -a --reflink=auto "$base" "$root"
	mkdir -p "$root/root/tree" "$dir"
	tar -C "$tree" --exclude=./build* --exclude=./.git -c . | tar -x --no-same-owner -C "$root/root/tree"
	run_machine "$root" 3000 --as-pid2 --suppress-sync=yes --private-network --bind="$cache/ccache-$suite:/ccache" --bind="$(realpath "$dir"):/made" \
		--setenv=CCACHE_DIR=/ccache --setenv=PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin --setenv="REDDN_JOBS=${REDDN_JOBS-}" \
		bash -c '/root/tree/tests/packages/make "$@" /root/tree /made >/root/boot/log 2>&1' make "$@" || die "the packages cannot be made for $suite"
	rm -rf --one-file-system "$root"
}
