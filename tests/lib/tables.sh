# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# tables.sh - sourced after reddnd.sh by tests with several tables, each served by an offload of its own: both have one name, which
# is also the value of "alice". meson sets REDDN to the path of the client tool.

# shellcheck source=tests/lib/table.sh
. "${BASH_SOURCE[0]%/*}/table.sh"
: "${REDDN:?}"

data=$work/data
mkdir "$data"

named_table() # NAME
{
	rm -rf "${data:?}/$1"
	make_table "$data/$1" --capacity 100 --heap 64K <<<$'alice\t'"$1"
}

get() # OFFLOAD: into $work/get.log
{
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" "$1" alice
}

gets() # OFFLOAD: its own value
{
	get "$1" && [[ $(<"$work/get.log") == "$1" ]]
}
