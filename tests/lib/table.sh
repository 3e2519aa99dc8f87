# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# table.sh - sourced after lib.sh by tests that make tables. meson sets REDDN_TABLE to the path of the tool.

: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"

# load_table FILE: adds the records of stdin, a line each: the key, a tab, the value.
load_table()
{
	"$REDDN_TABLE" load --quiet "$1" || fail "no data"
}

# make_table FILE [OPTION...]: a table with the records of stdin. Without options of "reddn-table create" it has room for 1000, with
# keys of up to 32 bytes and values of up to 100.
make_table()
{
	"$REDDN_TABLE" create --quiet --capacity 1000 --max-key 32 --max-value 100 "${@:2}" "$1" >/dev/null || fail "no table"
	load_table "$1"
}

# many_records N: prints records "key 1" to "key N", whose values are "value 1 of many" and so on.
many_records()
{
	seq "$1" | sed 's/.*/key &\tvalue & of many/'
}
