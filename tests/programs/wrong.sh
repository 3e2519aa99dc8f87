#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Each wrong/NAME.rdn is refused with exactly the text of wrong/NAME.txt. A line "# set PARAM=VALUE" in a program is what a
# catalog would say, "# set -M" a device without masked atomics. With UPDATE=1 the texts are written anew, for a look at the
# difference.
set -euo pipefail

: "${COMPILE:?the program that compiles, set by meson}"
cd "$(dirname "${BASH_SOURCE[0]}")/wrong"
got=$(mktemp)
trap 'rm -f "$got"' EXIT
n=0 bad=0

for program in *.rdn; do
	expected=${program%.rdn}.txt
	settings=$(sed -n 's/^# set //p' "$program" | tr -d '\0')
	rc=0
	# shellcheck disable=SC2086 # several words
	"$COMPILE" $settings "$program" >"$got" || rc=$?
	n=$((n + 1))
	if [[ $rc -ne 1 ]]; then
		echo "$program: exit status $rc; a wrong program is refused with 1"
		bad=1
	elif [[ -n ${UPDATE-} ]]; then
		cp "$got" "$expected"
	elif ! diff -u --label "$expected" --label "output of the compiler" "$expected" "$got"; then
		bad=1
	fi
done
for expected in *.txt; do
	[[ -e ${expected%.txt}.rdn ]] || {
		echo "$expected has no program"
		bad=1
	}
done
[[ $n -ge 80 ]] || {
	echo "only $n wrong programs"
	bad=1
}
exit "$bad"
