#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Tables that are replaced while clients use them, in all modes of all programs of tables: each gets the new value after the daemon
# has reloaded, and one that does not connect again the reason.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
# shellcheck source=tests/lib/table.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
needs "${recycling[@]}"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${REDDN:?}"
export PYTHONDONTWRITEBYTECODE=1
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
table=$work/table

make_table "$table" <<<$'alice\tfirst\nbob\tfirst'
start_nic
names=() offloads=
for program in hash-get hash-get-parallel hash-mget; do
	for how in 'mode = "unrolled"' 'mode = "recycled"' 'engine = "cpu"'; do
		names+=("$program.${#names[@]}")
		offloads+="${offloads:+, }{ name = \"${names[-1]}\"; program = \"$program\"; region = \"t\"; $how; }"
	done
done
# Nobody waits so long
start_reddnd "control = \"$control\"; connect_timeout = \"1000s\"; refusal_rate = 1000; regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; } ); offloads = ( $offloads );"
CONTROL=$control on_nic client.log "$PYTHON" "$here/replaced.py" "$table" "$address:$port" "${names[@]}" ||
	fail "sessions of a table that was replaced" "$work/client.log" "$work/reddnd.log"
while read -r line; do
	ok "$line"
done <"$work/client.log"

# A tool that is at work ends, with the reason
background bench.log "$REDDN" bench --port "$port" --timeout 100000 --count 1000000000 --keys <(printf 'alice\tfourth\n') "$address" "${names[0]}"
bench=$child
until_true reported sessions 'any(c["requests"] > 10 for c in d)' || fail "no client" "$work/ctl.out" "$work/bench.log"
make_table "$table" --replace <<<$'alice\tfifth'
wait "$bench"
[[ $? -eq 2 ]] || fail "the bench goes on" "$work/bench.log"
grep -q "another table has replaced the one of this session" "$work/bench.log" || fail "no reason" "$work/bench.log"
ctl reload || fail "reload" "$work/ctl.err"
on_nic get.log "$REDDN" get --port "$port" --timeout 100000 "$address" "${names[0]}" alice || fail "no value" "$work/get.log"
[[ $(<"$work/get.log") == fifth ]] || fail "no new value" "$work/get.log"
ok "reddn bench ends with the reason"

stop_reddnd
done_testing
