#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# On InfiniBand, where a client asks the connection manager for the attributes of its queue pair: the server refuses or accepts before
# the client has done what it does meanwhile. It gets the reason, or its value.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
export SOFTCX_DEVICE=infiniband
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${REDDN:?}" "${REDDN_TABLE:?}" "${SLOW_VERBS_LIB:?}"

"$REDDN_TABLE" create --quiet --capacity 10 --max-key 16 --max-value 100 "$work/table" >/dev/null || fail "no table"
printf 'alice\twonder\n' | "$REDDN_TABLE" load --quiet "$work/table" || fail "no data"
start_nic
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = ( { name = \"get\"; program = \"hash-get\"; region = \"t\"; } );"

slow=$work/slow
mkdir "$slow"
for call in address register close connect; do
	printf 'pass\n' >"$slow/$call"
done

# late OFFLOAD WORDS: a client that goes on after its request when the daemon has said these words
late()
{
	rm -f "$slow/sent" "$slow/sent.waits"
	# shellcheck disable=SC2016 # expanded by the inner shell
	background late.log env "SLOW_VERBS=$slow" SLOW_SENT=1 "LIB=$SLOW_VERBS_LIB" sh -c 'LD_PRELOAD="$LD_PRELOAD $LIB" exec "$@"' sh \
		"$REDDN" get --timeout 100000 --port "$port" "$address" "$1" alice
	until_true test -e "$slow/sent.waits" || fail "no request is sent" "$work/late.log"
	until_true grep -q "$2" "$work/reddnd.log" || fail "no answer: $2" "$work/reddnd.log"
	sleep 0.2 # for the message, which the client's connection manager gets
	printf 'pass\n' >"$slow/sent.new" && mv "$slow/sent.new" "$slow/sent"
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
