# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# slow.sh - sourced after lib.sh by tests in which calls of libibverbs and librdmacm wait, or fail (tests/system/slow-verbs.c). meson sets
# SLOW_VERBS_LIB to the library that does so.

: "${SLOW_VERBS_LIB:?}"
slow=$work/slow
mkdir "$slow"
# words before the command of a program whose calls these are; on the NIC, behind the options that choose its host
preloading "$SLOW_VERBS_LIB"
# shellcheck disable=SC2034 # used by tests
slowly=(env "SLOW_VERBS=$slow" "${preloading[@]}")

# call NAME pass|fail|wait: what calls of this kind do from now on
call()
{
	rm -f "$slow/$1" "$slow/$1.waits"
	[[ $2 == wait ]] || { printf '%s\n' "$2" >"$slow/$1.new" && mv "$slow/$1.new" "$slow/$1"; }
}

waits_for() # CALL LOG...
{
	until_true test -e "$slow/$1.waits" || fail "nobody waits for call \"$1\"" "${@:2}"
}
