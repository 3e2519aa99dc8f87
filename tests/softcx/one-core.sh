#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# On a core that it shares with its program, the NIC lets the program run as soon as nothing is left to execute: the program
# cannot ring before. It takes a few passes over its queues for each request; some more if there are many queues, any of which
# may have rung unseen.
. "$(dirname "$0")/../lib/lib.sh"
: "${ONE_BY_ONE:?set ONE_BY_ONE to the path of the program that writes}"
requests=20000
# One executes the WRITE, one finds nothing; sometimes it looks longer, for rings from other cores
most=(6 40)
idle=(0 500)

total() # KEY: of all devices, since the NIC was started
{
	"$SOFTCX" status --json | awk -F '[ ":,]+' -v key="$1" '$2 == key { n += $3 } END { print n + 0 }'
}

core=$(taskset --cpu-list --pid $$ | sed 's/.*: *\([0-9]*\).*/\1/')
taskset --cpu-list --pid "$core" $$ >"$work/taskset" || fail "taskset" "$work/taskset"
start_nic
for i in 0 1; do
	others=${idle[i]}
	passes=$(total passes)
	wqes=$(total wqes)
	on_nic writes.log "$ONE_BY_ONE" "$requests" "$others" || fail "the WRITEs" "$work/writes.log"
	passes=$((($(total passes) - passes) / requests))
	wqes=$(($(total wqes) - wqes))
	[[ $wqes -eq $requests ]] || fail "$wqes WQEs, not $requests"
	[[ $passes -le ${most[i]} ]] || fail "$passes passes for each WRITE beside $others idle queue pairs, more than ${most[i]}"
	ok "$passes passes for each WRITE beside $others idle queue pairs"
done
done_testing
