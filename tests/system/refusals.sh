#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Clients that are refused again and again: the first ones are listed, the rest is counted, for each address by itself; verdicts
# stay in the audit; questions about sessions, and about the size of
# slots, are answered at the same rate and are no refusals.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"

: "${REDDNCTL:?}" "${MISUSE:?}" "${REFUSED_CLIENTS:?}"

control=$work/control
ctl()
{
	timeout 20 "$REDDNCTL" --socket "$control" "$@" 2>"$work/ctl.err"
}

# audit EXPRESSION: of the events d
audit()
{
	ctl --json audit >"$work/audit" || fail "no audit" "$work/ctl.err"
	python3 -c 'import json, sys; d = [json.loads(l) for l in open(sys.argv[1])]; print(eval(sys.argv[2]))' "$work/audit" "$1"
}

# status MEMBER
status()
{
	ctl --json status | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

make_table "$work/table" --max-value 1000 </dev/null
make_table "$work/large" --max-value 100000 <<<$'alice\twonder'
nic_options=(--hosts "a,b,c")
start_nic
server_on=(--host a)
start_reddnd "control = \"$control\"; refusal_rate = 1; regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; },
  { name = \"l\"; kind = \"table\"; path = \"$work/large\"; } );
offloads = ( { name = \"plain\"; program = \"hash-get\"; region = \"t\"; }, { name = \"large\"; program = \"hash-get\"; region = \"l\"; } );"
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"

on_nic misuse.log --host b "$MISUSE" "$address" "$port" plain long-send || fail "long-send" "$work/misuse.log" "$work/reddnd.log"
incident="len([e for e in d if e['event'] == 'verdict' and e['verdict'] == 'request'])"
until_true test "$(audit "$incident")" == 1 || fail "no verdict" "$work/audit"

begin=$(date +%s)
on_nic refused.log --host b "$REFUSED_CLIENTS" "$address" "$port" 150 || fail "not refused" "$work/refused.log" "$work/reddnd.log"
[[ $(grep -c "^there is no offload nothing$" "$work/refused.log") -eq 150 ]] || fail "not all got the reason" "$work/refused.log"
ok "150 clients are refused, each with the reason"
took=$(($(date +%s) - begin + 1))
listed=$(audit "len([e for e in d if e['event'] == 'refused' and 'repeats' not in e])")
[[ $listed -ge 10 && $listed -le $((10 + took)) ]] || fail "$listed are listed in $took s" "$work/audit"
ok "$listed of them are listed"
[[ $(grep -c "refused: there is no offload" "$work/reddnd.log") -eq $listed ]] || fail "the log has others" "$work/reddnd.log"
[[ $(status refused) -eq 150 && $(status unlisted) -eq $((150 - listed)) ]] || fail "refused $(status refused), unlisted $(status unlisted)"
ok "all of them are counted"
[[ $(audit "$incident") -eq 1 ]] || fail "the verdict is gone" "$work/audit"

# another address is listed, whatever the first one does
on_nic other.log --host c "$REFUSED_CLIENTS" "$address" "$port" 3 || fail "not refused" "$work/other.log"
[[ $(audit "len([e for e in d if e['event'] == 'refused' and 'repeats' not in e])") -ge $((listed + 3)) ]] || fail "another address is not listed" "$work/audit"
ok "refusals of another address are listed"

# the number follows, once
all_reported()
{
	[[ $(audit "sum(e.get('repeats', 1) for e in d if e['event'] == 'refused')") -eq 153 ]]
}
until_true all_reported || fail "not all are reported: $(audit "[e.get('repeats', 1) for e in d if e['event'] == 'refused']")" "$work/reddnd.log"
grep -q "clients from 127\.[0-9.]* refused, [0-9]* more times; the last time: there is no offload nothing$" "$work/reddnd.log" ||
	fail "no words for the rest" "$work/reddnd.log"
ok "the rest is reported as one number"

on_nic why.log --host b "$REFUSED_CLIENTS" "$address" "$port" 60 why || fail "no answer" "$work/why.log" "$work/reddnd.log"
answered=$(grep -c "^nothing is known of a session" "$work/why.log")
refused=$(grep -c "^too many questions" "$work/why.log")
[[ $refused -gt 0 && $((answered + refused)) -eq 60 ]] || fail "$answered questions answered, $refused not" "$work/why.log"
ok "$answered of 60 questions are answered, the others refused"
[[ $(status refused) -eq 153 ]] || fail "a question counts as a refusal"

# a client that does not know how large slots must be asks for it
on_nic large.log --host c "$REDDN" get --timeout 100000 --port "$port" "$address" large alice || fail "no value" "$work/large.log" "$work/reddnd.log"
[[ $(<"$work/large.log") == wonder ]] || fail "not the value" "$work/large.log"
[[ $(status refused) -eq 153 && $(audit "len([e for e in d if e['event'] == 'refused' and 'slots' in json.dumps(e)])") -eq 0 ]] ||
	fail "the size of slots counts as a refusal" "$work/audit"
ok "a client that asks for the size of its slots is answered, and not counted as refused"

# one who gives other addresses is limited by his own, which answers go to
if able "forged addresses, which no GID of an InfiniBand port contradicts" port.link=Ethernet; then
	listed=$(audit "len([e for e in d if e['event'] == 'refused' and 'repeats' not in e])")
	begin=$(date +%s)
	for n in {5..12}; do
		on_nic forged.log --host a "$REFUSED_CLIENTS" "$address" "$port" 5 "127.1.0.$n" || fail "not refused" "$work/forged.log"
		grep -q "the address in the request is not the one" "$work/forged.log" || fail "a forged address" "$work/forged.log"
	done
	took=$(($(date +%s) - begin + 1))
	more=$(($(audit "len([e for e in d if e['event'] == 'refused' and 'repeats' not in e])") - listed))
	[[ $more -gt 0 && $more -le $((10 + took)) ]] || fail "$more of 40 forged requests are listed in $took s" "$work/audit"
	ok "$more of 40 requests with forged addresses are listed"
fi

stop_reddnd
done_testing
