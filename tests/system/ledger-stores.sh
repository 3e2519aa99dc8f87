#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon is killed at its n-th store into the ledger: while clients come and go and the configuration is read again, and while it
# takes over. A recycled session goes on, who was being admitted is served or refused with a reason, and afterwards the NIC and the arena
# have what the ledger names and nothing else.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ledger-stores.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
# how many stores apart the daemon is killed; 1 is every one. Those of taking over are fewer.
step=${TEST_STEP:-307}

printf 'alice\twonder\n' >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
configure_reddnd <<END
control = "$work/control";
arena = "16M";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "kept"; program = "hash-get"; region = "t"; mode = "recycled"; },
  { name = "armed"; program = "hash-get"; region = "t"; mode = "unrolled"; } );
END

died()
{
	(($(od -An -t u8 -N 8 "$work/stores") == 0))
}

struck() # true if it has died, or dies before it has nothing to do; none dies any more
{
	until_true died_or_rests || fail "the daemon is not as it was" "$work/run.log" "$work/others" "$work/excess"
	died || ! arm before 0
}

excess() # what there is and the ledger does not name, of all programs
{
	local arena

	arena=$(asked status 'd["arena_used"]') || return
	"$SOFTCX" status --json >"$work/status.json"
	"${BASH_SOURCE[0]%/*}/ledger-read.py" "$(daemon)" count "$work/status.json" "$arena" 2>"$work/count.err"
}

# The daemon has the one client, and what its ledger names
as_it_was()
{
	excess >"$work/excess"
	cmp -s "$work/excess" "$work/others" && [[ $(asked sessions 'len(d)') == 1 ]]
}

died_or_rests()
{
	died || as_it_was
}

client() # OFFLOAD WHAT: it is answered, or learns that the daemon died meanwhile
{
	local rc=0

	on_nic get.log timeout 100 "$REDDN" get -p "$port" -t 50000 "$address" "$1" alice || rc=$?
	[[ $rc -eq 0 && $(cat "$work/get.log") == wonder ]] && return
	grep -q 'the server was restarted' "$work/get.log" ||
		fail "$2: the client is neither answered nor refused with a reason: status $rc" "$work/get.log" "$work/run.log"
	refused=$((refused + 1))
}

start_nic
serve_until_stores
background steady.log "$REDDN" ping --port "$port" --timeout 100000 --interval 20 --count 1000000000 "$address" kept
steady=$child
until_true grep -q 'client .*, offload kept' "$work/run.log" || fail "the client is not served" "$work/steady.log" "$work/run.log"

overs=0
refused=0
take_over() # WHAT: one more daemon has taken over, and has what the second one had
{
	overs=$((overs + 1))
	until_true taken_over $overs || fail "$1: nobody takes over" "$work/run.log"
	until_true as_it_was || fail "$1: there are objects or bytes that are not in the ledger" "$work/run.log" "$work/others" "$work/excess"
	alive "$steady" || fail "$1: the client that was served is not" "$work/steady.log" "$work/run.log"
}

kill -9 "$(daemon)"
overs=1
until_true taken_over 1 || fail "nobody takes over" "$work/run.log"
until_true asked status 'd["arena_used"]' || fail "it does not answer" "$work/ctl.err" "$work/run.log"
excess >"$work/others"
grep -qx 'bytes 0' "$work/others" || fail "the arena has not what the ledger names" "$work/others" "$work/count.err"

over_step=$((step / 6 + 1))
for when in before after; do
	swept "stores-taking-over-$when" || continue
	points=0
	for ((n = 1 + part * over_step; ; n += parts * over_step)); do
		arm $when "$n"
		kill -9 "$(daemon)"
		take_over "$when store $n of taking over"
		struck || break
		points=$((points + 1))
	done
	[[ $points -gt 1 ]] || fail "taking over has fewer than $n stores" "$work/run.log"
	ok "$when: killed at $points of $n stores of taking over"
done

for when in before after; do
	swept "stores-serving-$when" || continue
	points=0
	for ((n = 2 + part * step; ; n += parts * step)); do
		arm $when "$n"
		client kept "$when store $n of serving"
		"$REDDNCTL" --socket "$work/control" reload >"$work/ctl.log" 2>&1
		client armed "$when store $n of serving"
		struck || break
		take_over "$when store $n of serving"
		points=$((points + 1))
	done
	[[ $points -gt 1 ]] || fail "serving has fewer than $n stores" "$work/run.log"
	ok "$when: killed at $points of $n stores while clients come and go"
done
ok "$refused clients were refused with the reason"

kill "$run"
expect_exit "$run" reddnd-run run.log
wait "$steady"
done_testing
