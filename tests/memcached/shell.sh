# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# shell.sh - sourced after lib.sh by tests of libreddn-mc: talks to an mc-shell, a client that stays.

: "${MC_SHELL:?}"

# start_shell OPTIONS OF mc-shell...: the one before ends
start_shell()
{
	stop_shell
	coproc shell { "$SOFTCX" run "${client_on[@]}" "$MC_SHELL" "$@" 2>"$work/shell.err"; }
	pids+=("$shell_PID")
	shell_runs=$shell_PID
	exec {to_shell}>&"${shell[1]}" {from_shell}<&"${shell[0]}"
}

shell_runs=
stop_shell()
{
	[[ -n $shell_runs ]] || return
	# bash keeps descriptors of its own of a coprocess
	exec {to_shell}>&- {from_shell}<&-
	eval "exec ${shell[1]}>&-"
	wait "$shell_runs" || fail "mc-shell: exit status $?" "$work/shell.err"
	shell_runs=
}

# ask COMMAND: sets $answer
ask()
{
	printf '%s\n' "$1" >&"$to_shell"
	read -r -t "$limit" answer <&"$from_shell" || fail "mc-shell does not answer to \"$1\"" "$work/shell.err"
}

# answers COMMAND EXPRESSION: the answer matches
answers()
{
	ask "$1"
	[[ $answer =~ ^$2$ ]]
}

expect() # COMMAND EXPRESSION
{
	answers "$@" && return
	printf '%s\n' "$answer" >"$work/answer"
	for what in servers stats; do
		ask "$what"
		printf '%s\n' "$answer" >>"$work/answer"
	done
	fail "$1: not \"$2\"" "$work/answer" "$work/shell.err" "$work/reddnd.log"
}
