# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# supervised.sh - sourced after reddnd.sh by tests whose daemon runs below reddnd-run: $run is the process of background() that runs
# it, and $work/run.log its output.
# shellcheck disable=SC2154 # of lib.sh and reddnd.sh
: "${REDDND_RUN:?set REDDND_RUN to the path of reddnd-run}" "${REDDNCTL:?set REDDNCTL to the path of reddnctl}"
. "${BASH_SOURCE[0]%/*}/evaluate.sh"

start_supervised() # [PROGRAM...]: instead of the daemon with $work/reddnd.conf
{
	(($#)) || set -- "$REDDND" --config "$work/reddnd.conf"
	background run.log "$REDDND_RUN" "$@"
	run=$child
}

serve_supervised()
{
	start_supervised
	server_ready "$run" reddnd run.log reddnd_listens
}

daemon() # prints its process id; waits until there is one, because the one before may just have died
{
	program_of "$(program_of "$run")"
}

takeovers() # prints how many daemons have gone on with what was left
{
	grep -c 'of the daemon before this one go on' "$work/run.log"
}

taken_over() # N: so many daemons have
{
	[[ $(takeovers) -ge $1 ]]
}

# The control socket of the daemon is $work/control.
asked() # COMMAND EXPRESSION: prints one of python, of what "reddnctl COMMAND" answers, d
{
	"$REDDNCTL" --socket "$work/control" --json "$1" >"$work/asked" 2>"$work/ctl.err" && evaluate "$work/asked" "$2" 2>/dev/null
}

clients() # EXPRESSION: of the list d of clients
{
	asked sessions "$1"
}

requests() # OFFLOAD: of its client, as the daemon has counted them
{
	clients "max(o['requests'] for o in d if o['offload'] == '$1')" || echo 0
}

more_requests() # OFFLOAD N
{
	[[ $(requests "$1") -gt $2 ]]
}

has_clients() # N
{
	[[ $(clients 'len(d)') -eq $1 ]]
}

# shellcheck disable=SC2034 # used by tests
# Sweeps go through every step-th point; where several run beside each other, this one takes its part of them
part=${TEST_PART:-0} parts=${TEST_PARTS:-1}

swept() # SWEEP: true unless $TEST_SWEEPS has only others
{
	[[ -z ${TEST_SWEEPS-} || " $TEST_SWEEPS " == *" $1 "* ]]
}
