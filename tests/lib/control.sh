# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# control.sh - sourced after lib.sh by tests that ask a daemon with control = "$control" through reddnctl.
# meson sets REDDNCTL to its path.

# shellcheck disable=SC2154 # of lib.sh
: "${REDDNCTL:?set REDDNCTL to the path of reddnctl}"
# shellcheck source=tests/lib/evaluate.sh
. "${BASH_SOURCE[0]%/*}/evaluate.sh"

control=$work/control

# ctl ARGUMENTS...: into $work/ctl.out and .err; the exit status is its own.
ctl()
{
	timeout "$limit" "$REDDNCTL" --socket "$control" "$@" >"$work/ctl.out" 2>"$work/ctl.err"
}

# value EXPRESSION: prints a Python expression. d is the JSON in ctl.out; for the audit, a list of events.
value()
{
	evaluate "$work/ctl.out" "$1"
}

# reported COMMAND EXPRESSION: a Python expression is true for what "reddnctl --json COMMAND" prints.
reported()
{
	ctl --json "$1" && [[ $(value "$2") == True ]]
}

# becomes COMMAND WORDS EXPRESSION: EXPRESSION becomes true for COMMAND. A client may know it before the daemon.
becomes()
{
	until_true reported "$1" "$3" || fail "$2" "$work/ctl.out" "$work/ctl.err" "$work/reddnd.log"
	ok "$2"
}
