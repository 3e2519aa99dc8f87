#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Where files of regions may lie. A table may lie on a disk, and the daemon opens it for reading; a region that the NIC changes has to
# lie in memory, and the daemon reports one that does not. With a kernel before 6.2 a table is served through a writable mapping.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
: "${REDDNCTL:?}" "${REDDN:?}" "${OLD_KERNEL_LIB:?}"

case $(stat -f -c %T "$here") in
tmpfs | ramfs | hugetlbfs)
	echo "the tree lies in memory: there is no disk to test with"
	exit 77
	;;
esac
disk=$(mktemp -d -p "${MESON_BUILD_ROOT:-$PWD}")
trap 'end_processes; rm -rf "$disk"; finish' EXIT

regions() # EXPRESSION of the list d
{
	timeout "$limit" "$REDDNCTL" --socket "$work/control" --json regions >"$work/regions" 2>&1
	python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$work/regions" "$1"
}

serves()
{
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" "$1" alice || fail "$1 is not served" "$work/get.log" "$work/reddnd.log"
	[[ $(<"$work/get.log") == wonder ]] || fail "$1: a wrong answer" "$work/get.log"
}

for dir in "$disk" "$memory"; do
	make_table "$dir/table" --capacity 100 --heap 64K <<<$'alice\twonder'
done
head -c 4096 /dev/zero | tee "$disk/words" >"$memory/words"
settings="control = \"$work/control\";
regions = ( { name = \"table\"; kind = \"table\"; path = \"$disk/table\"; },
  { name = \"words\"; kind = \"raw\"; path = \"$disk/words\"; writable = true; },
  { name = \"memory\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; },
  { name = \"shm\"; kind = \"table\"; path = \"$memory/table\"; } );
offloads = ( { name = \"table\"; program = \"hash-get\"; region = \"table\"; },
  { name = \"shm\"; program = \"hash-get\"; region = \"shm\"; },
  { name = \"words\"; program = \"counter\"; region = \"words\"; },
  { name = \"memory\"; program = \"counter\"; region = \"memory\"; } );"
start_nic
start_reddnd "$settings"
serves table
serves shm
ok "a table on a disk is served"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" memory 0 1 || fail "a region in memory is not changed" "$work/call.log"
ok "a region in memory is changed"
regions '[r["state"] for r in d if r["region"] == "words"] == ["bad"]' || fail "a region on a disk is to be changed" "$work/regions"
regions '"a NIC can change files on tmpfs and hugetlbfs only" in [r["why"] for r in d if r["region"] == "words"][0]' ||
	fail "the reason is not in words" "$work/regions"
ok "a region on a disk is not changed, for a reason in words"
stop_reddnd

# A kernel before 6.2 pins through writable mappings only
configure_reddnd "$settings"
preloading "$OLD_KERNEL_LIB"
background reddnd.log "${preloading[@]}" "$REDDND" --config "$work/reddnd.conf"
reddnd=$child
server_ready "$reddnd" reddnd reddnd.log reddnd_listens
serves shm
serves table
ok "a kernel before 6.2 pins tables through mappings that can be written"
stop_reddnd
done_testing
