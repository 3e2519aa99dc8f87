# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# builder.sh - makes the Debian packages for $suite: on this machine if it has that, else in a Debian of the suite with all that the build
# needs, which is made once. Sourced by "packages" behind machine.sh and make_base.

# make_builder CACHE TREE: $builder, which is not a copy; like the base it gets its name when it is complete
make_builder()
{
	local cache=$1 tree=$2 name depends

	depends=$(sed -n '/^Build-Depends:/,/^$/p' "$tree/debian/control" | sed '1d; s/^ *//; s/[ (,:].*//' | tr '\n' ' ')
	name=$suite-builder-$(sha256sum <<<"$depends" | cut -c 1-12)
	builder=$cache/$name
	[[ ! -d $builder ]] || return 0
	rm -rf --one-file-system "$cache/$suite"-builder-*
	cp -a --reflink=auto "$base" "$cache/$name.new"
	mkdir "$cache/$name.new/root/boot"
	apt_as_here "$cache/$name.new"
	# debhelper-compat and dh-sequence-* are names that packages provide; apt chooses
	run_machine "$cache/$name.new" 1800 --as-pid2 --suppress-sync=yes --resolv-conf=copy-host --bind="$archives:/var/cache/apt/archives" \
		bash -c "{ apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install \
			build-essential ccache debhelper dh-python $depends; } >/root/boot/log 2>&1" >"$work/builder" ||
		die "a Debian $suite with what the build needs cannot be made: $(tail -n 15 "$work/builder")"
	mv "$cache/$name.new" "$builder"
}

# build_packages TREE DIR [OPTIONS OF make]
build_packages()
{
	local tree=$1 dir=$2 root=$work/builder-root
	shift 2

	if grep -qx "VERSION_CODENAME=$suite" /etc/os-release; then
		"$here/make" "$@" "$tree" "$dir"
		return
	fi
	make_builder "$cache" "$tree"
	mkdir -p "$cache/ccache-$suite"
	cp -a --reflink=auto "$builder" "$root"
	mkdir -p "$root/root/tree" "$dir"
	tar -C "$tree" --exclude=./build* --exclude=./.git -c . | tar -x --no-same-owner -C "$root/root/tree"
	run_machine "$root" 3000 --as-pid2 --suppress-sync=yes --private-network --bind="$cache/ccache-$suite:/ccache" --bind="$(realpath "$dir"):/made" \
		--setenv=CCACHE_DIR=/ccache --setenv=PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin --setenv="REDDN_JOBS=${REDDN_JOBS-}" \
		bash -c '/root/tree/tests/packages/make "$@" /root/tree /made >/root/boot/log 2>&1' make "$@" || die "the packages cannot be made for $suite"
	rm -rf --one-file-system "$root"
}
