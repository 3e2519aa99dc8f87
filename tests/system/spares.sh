#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Queues of sessions that ended serve others: those of the same tenant and offload, from where their CQs are, and not for long. Those of
# a session that was cut off serve nobody, and none outlives the daemon.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}" "${named_steps[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
: "${REDDNCTL:?set REDDNCTL to the path of the control tool}"
: "${MISUSE:?set MISUSE to the path of the test program}"

"$REDDN_TABLE" create --quiet --capacity 1000 --max-key 32 --max-value 100 "$work/table" || fail "no table"
seq 1000 | sed 's/.*/key &\tvalue & of many/' >"$work/data.tsv"
"$REDDN_TABLE" load --quiet "$work/table" "$work/data.tsv" || fail "no data"
configure() # SPARE_TIME
{
	cat >"$work/reddnd.conf" <<END
listen = "$address:$port";
control = "$work/control";
spare_time = "$1";
programs = "$programs";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "armed"; program = "hash-get"; region = "t"; },
  { name = "both"; program = "hash-get-parallel"; region = "t"; },
  { name = "kept"; program = "hash-get"; region = "t"; mode = "recycled"; } );
END
}
configure 1000s

start_nic
serve_supervised

ctl() # COMMAND EXPRESSION: of python, of its answer d
{
	"$REDDNCTL" --socket "$work/control" --json "$1" | python3 -c "import json, sys; d = json.load(sys.stdin); print($2)"
}

nobody()
{
	[[ $(ctl status 'd["sessions"]') == 0 ]]
}

# what slots of sessions that ended have: "qps cqs mkeys", one a line
spares()
{
	"${BASH_SOURCE[0]%/*}/ledger-read.py" "$(daemon)" spares
}

nothing_kept()
{
	[[ -z $(spares) ]]
}

load() # OFFLOAD REQUESTS: verified answers
{
	on_nic bench.log "$REDDN" bench --timeout 100000 --depth 16 --count "$2" --verify --keys "$work/data.tsv" "$address" "$1" ||
		fail "$1: wrong or missing answers" "$work/bench.log" "$work/run.log"
	until_true nobody || fail "the session does not end" "$work/run.log"
}

# numbers of requests that leave CQs in the middle of a lap, and more than one lap of the rings
for offload in armed both kept; do
	load $offload 1
	spares >"$work/first"
	[[ $(wc -l <"$work/first") -eq 1 ]] || fail "$offload: the queues of the first session are not kept" "$work/first" "$work/run.log"
	for requests in 333 1 7; do
		load $offload $requests
		spares >"$work/now"
		[[ $offload == kept ]] || cmp -s "$work/first" "$work/now" ||
			fail "$offload: the next session has other queues" "$work/first" "$work/now"
		[[ $(awk '{print $NF}' "$work/first") == $(awk '{print $NF}' "$work/now") ]] ||
			fail "$offload: the next session has other memory" "$work/first" "$work/now"
	done
	ok "$offload: four sessions, one after the other, have the same memory, and the right answers"
	# the time of each begins when it is kept
	configure 20ms
	"$REDDNCTL" --socket "$work/control" reload >"$work/ctl.log" 2>&1 || fail "no reload" "$work/ctl.log"
	load $offload 3
	until_true nothing_kept || fail "$offload: the queues are kept for ever" "$work/run.log"
	configure 1000s
	"$REDDNCTL" --socket "$work/control" reload >"$work/ctl.log" 2>&1 || fail "no reload" "$work/ctl.log"
done
ok "after their time nothing is left of them"

on_nic misuse.log "$MISUSE" "$address" "$port" armed long-send || fail "long-send" "$work/misuse.log" "$work/run.log"
until_true nobody || fail "the session of a client that broke a rule does not end" "$work/misuse.log" "$work/run.log"
[[ -z $(spares) ]] || fail "the queues of a session that broke are kept" "$work/misuse.log" "$work/run.log"
ok "a session that broke leaves nothing"

# A spare when the daemon dies: the next one destroys it
load armed 5
[[ -n $(spares) ]] || fail "there is no spare" "$work/run.log"
kill -9 "$(daemon)"
until_true taken_over 1 || fail "nobody takes over" "$work/run.log"
[[ -z $(spares) ]] || fail "the next daemon has the spare" "$work/run.log"
load armed 5
ok "the next daemon destroys spares"

kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
