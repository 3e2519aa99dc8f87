# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# evaluate.sh - sourced after lib.sh: expressions of Python, of what programs print in JSON. One process evaluates them all: to start
# Python each time took up to a third of the time of tests that poll.
# shellcheck disable=SC2154 # of lib.sh
declare -F evaluate >/dev/null && return

mkfifo "$work/questions" "$work/answers"
python3 -IS "${BASH_SOURCE[0]%/*}/evaluate.py" "$work/questions" "$work/answers" </dev/null &
pids+=($!)
disown # nobody waits for it

# evaluate FILE EXPRESSION: prints an expression, whose d is the JSON in FILE, or the list of events of an audit. Not from two processes
# at once.
evaluate()
{
	local answer

	printf '%s\0%s' "$1" "$2" >"$work/questions"
	answer=$(<"$work/answers")
	[[ $answer == 0* ]] || {
		printf '%s: %s\n' "$2" "${answer:1}" >&2
		return 1
	}
	printf '%s\n' "${answer:1}"
}
