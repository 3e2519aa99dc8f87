# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# tables.sh - sourced after reddnd.sh by tests with several tables, each served by an offload of its own: both have one name, which
# is also the value of "alice". meson sets REDDN and REDDN_TABLE to the paths of the tools.

: "${REDDN:?}" "${REDDN_TABLE:?}"

data=$work/data
mkdir "$data"

make_table() # NAME
{
	rm -rf "${data:?}/$1"
	"$REDDN_TABLE" create --quiet --capacity 100 --max-key 16 --max-value 100 --heap 64K "$data/$1" >/dev/null || fail "no table"
	printf 'alice\t%s\n' "$1" | "$REDDN_TABLE" load --quiet "$data/$1" || fail "no data"
}

get() # OFFLOAD: into $work/get.log
{
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" "$1" alice
}

gets() # OFFLOAD: its own value
{
	get "$1" && [[ $(<"$work/get.log") == "$1" ]]
}
