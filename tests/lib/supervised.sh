# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# supervised.sh - sourced after lib.sh by tests whose daemon runs below reddnd-run: $run is the process of background() that runs it,
# and $work/run.log its output.

daemon() # prints its process id; waits until there is one, because the one before may just have died
{
	local above

	above=$(program_of "$run")
	until_true pgrep -P "$above"
	pgrep -P "$above"
}

taken_over() # N: so many daemons have gone on with what was left
{
	[[ $(grep -c 'of the daemon before this one go on' "$work/run.log") -ge $1 ]]
}
