#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The examples of reddn-programs(7) are programs that the compiler accepts, and its numbers are those of the compiler.
set -euo pipefail

: "${COMPILE:?the program that compiles, set by meson}"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
page=docs/man/reddn-programs.7
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0 bad=0

# what stands between .Bd and .Ed and begins with a comment that is a file's name
awk -v dir="$dir" '
	/^\.Ed/ { file = "" }
	file != "" { print > file }
	/^\.Bd -literal/ { getline; if ($0 ~ /^# .*\.rdn$/) { file = dir "/" $2; print > file } }
' "$page"
for program in "$dir"/*.rdn; do
	"$COMPILE" "$program" || bad=1
	n=$((n + 1))
done
[[ $n -ge 3 ]] || {
	echo "$page: $n examples, it should have three"
	bad=1
}

# limit NAME WORDS: the number behind PROGRAM_MAX_<NAME> stands in the line of the page that begins with WORDS
limit()
{
	local number

	number=$(sed -nE "s/^\tPROGRAM_MAX_$1 = ([0-9]+).*/\1/p" reddnd/program/front/limits.h)
	grep -qE "^\.It $2.* Ta $number( |$)" "$page" || {
		echo "$page: \"$2\" should say $number, as limits.h does"
		bad=1
	}
}
limit NAME 'a name'
limit NEST 'blocks or parentheses'
limit LIST 'items'
limit TERMS 'terms'
limit PARAMS params
limit ARGS arguments
limit VARS variables
limit REPLIES 'fields of the reply'
limit ITERATIONS iterations
limit STATEMENTS statements
limit SEGMENTS 'data segments'
exit "$bad"
