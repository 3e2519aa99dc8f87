#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# On a core that it shares with its program, the NIC lets the program run as soon as nothing is left to execute: the program
# cannot ring before. It takes a few passes over its queues for each request.
. "$(dirname "$0")/../lib/lib.sh"
: "${ONE_BY_ONE:?set ONE_BY_ONE to the path of the program that writes}"
requests=20000
# One executes the WRITE, one finds nothing; sometimes it looks longer, for rings from other cores
most=6

total() # KEY: of all devices, since the NIC was started
{
	"$SOFTCX" status --json | awk -F '[ ":,]+' -v key="$1" '$2 == key { n += $3 } END { print n + 0 }'
}

core=$(taskset --cpu-list --pid $$ | sed 's/.*: *\([0-9]*\).*/\1/')
taskset --cpu-list --pid "$core" $$ >"$work/taskset" || fail "taskset" "$work/taskset"
start_nic
before=$(total passes)
on_nic writes.log "$ONE_BY_ONE" "$requests" || fail "the WRITEs" "$work/writes.log"
[[ $(total wqes) -eq $requests ]] || fail "$(total wqes) WQEs, not $requests"
took=$((($(total passes) - before) / requests))
[[ $took -le $most ]] || fail "$took passes for each WRITE, more than $most"
ok "$took passes for each WRITE on a shared core"
done_testing
