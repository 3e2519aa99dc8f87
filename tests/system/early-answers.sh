#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# On InfiniBand, where a client asks the connection manager for the attributes of its queue pair: the server refuses or accepts before
# the client has done what it does meanwhile. It gets the reason, or its value.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
export SOFTCX_DEVICE=infiniband
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/slow.sh"
: "${REDDN:?}"

make_table "$work/table" <<<$'alice\twonder'
start_nic
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = ( { name = \"get\"; program = \"hash-get\"; region = \"t\"; } );"

for name in address register close connect; do
	call "$name" pass
done

# late OFFLOAD WORDS: a client that goes on after its request when the daemon has said these words
late()
{
	call sent wait
	background late.log env SLOW_SENT=1 "${slowly[@]}" "$REDDN" get --timeout 100000 --port "$port" "$address" "$1" alice
	waits_for sent "$work/late.log"
	until_true grep -q "$2" "$work/reddnd.log" || fail "no answer: $2" "$work/reddnd.log"
	sleep 0.2 # for the message, which the client's connection manager gets
	call sent pass
}

late nothing 'no offload nothing'
rc=0
wait "$child" || rc=$?
[[ $rc -eq 2 ]] || fail "status $rc" "$work/late.log"
grep -q 'refused by the server: .*nothing' "$work/late.log" || fail "not the reason" "$work/late.log"
ok "a client that is refused at once gets the reason"

late get 'offload get, depth'
expect_exit "$child" "a client that is accepted at once" late.log
grep -q wonder "$work/late.log" || fail "no value" "$work/late.log"
ok "a client that is accepted at once gets its value"
stop_reddnd
done_testing
