#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# softcx fuzz: finds the seed that breaks a wrong program and explains it, and finds none for the corrected program.
# And the NIC that softcx run starts ends when it should.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

: "${UNFENCED:?set UNFENCED to the path of the program without a fence}"
# of a hundred runs
limit=${TEST_LIMIT:-240}
export TMPDIR=$memory # where the NICs of the runs are

fuzz() # STATUS OPTIONS... -- CMD: runs it with its output in $work/out; its exit status has to be STATUS
{
	local rc=0 expect=$1
	shift

	timeout -k "$limit" "$limit" "$SOFTCX" fuzz "$@" >"$work/out" 2>"$work/err" || rc=$?
	[[ $rc -eq $expect ]] || fail "softcx fuzz $*: exit status $rc, not $expect" "$work/out" "$work/err"
	compgen -G "$memory/softcx-fuzz-*" >/dev/null && fail "softcx fuzz $*: leaves its directory behind"
	return 0
}

expect_line() # PATTERN
{
	grep -qE -- "$1" "$work/out" || fail "it does not say: $1" "$work/out" "$work/err"
}

fuzz 0 --seeds 30 --jobs 2 -- "$UNFENCED" --fence
expect_line '^30 seeds passed, 0 failed'
ok "a program that waits for its data passes under every seed"

fuzz 1 --seeds 100 -- "$UNFENCED"
expect_line '^seed [0-9]+ fails: exit status 1$'
expect_line '^what arrived is not what was read$'
expect_line ' READ 64 bytes .* done'
expect_line ' WRITE 64 bytes .* done'
expect_line '^once more: exit status 1'
expect_line '^with --lenient: passed: only strictness breaks it$'
seed=$(sed -n 's/^seed \([0-9]*\) fails.*/\1/p' "$work/out")
repeat=$(sed -n 's/^to repeat it: softcx //p' "$work/out")
ok "one that does not fails under a seed, and only for strictness"

# of several at once, the first is that with the lowest seed
fuzz 1 --seeds 100 --jobs 3 -- "$UNFENCED"
expect_line "^seed $seed fails"
ok "several runs at once find the same seed"

rc=0
eval "timeout $limit \"\$SOFTCX\" $repeat" >"$work/again" 2>&1 || rc=$?
[[ $rc -eq 1 ]] || fail "the command line that it prints does not repeat the failure: $rc" "$work/again"
ok "the printed command line repeats it"

fuzz 1 --seeds 1-30 --keep-going --json -- "$UNFENCED"
python3 - "$work/out" "$seed" <<'END' || fail "the JSON is not as it should be" "$work/out"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["passed"] + len(r["failed"]) == 30 and r["failed"][0]["seed"] == int(sys.argv[2]) == r["first"]["seed"]
first = r["first"]
assert first["failed_again"] == 1 and first["exit_status"] == 1 and first["lenient"]["passed"]
assert [t["name"] for t in first["trace"]] == ["READ", "WRITE"] and first["wqes"] == 2
END
ok "all of it as JSON, every seed tried"

# a process that the command leaves behind ends as well
fuzz 1 --seeds 5-5 --timeout 5 -- bash -c "echo \$\$ >$work/pid; setsid sleep 1000 & echo \$! >>$work/pid; sleep 1000"
expect_line '^seed 5 fails: did not end within 5 s$'
while read -r pid; do
	until_true eval "! kill -0 $pid" || fail "process $pid is still there"
done <"$work/pid"
ok "a run that hangs ends, with all it started"

# shellcheck disable=SC2016 # for the other shell
fuzz 1 --seeds 2 --keep-going -- bash -c 'kill -SEGV $$'
expect_line '^seed 2 fails: signal 11'
fuzz 1 --seeds 1 -- bash -c 'echo "x.c:1:2: runtime error: shift exponent 40 is too large"'
expect_line "^seed 1 fails: a sanitizer's report$"
fuzz 1 --seeds 1 -- bash -c "pkill -KILL -f -- \"\$SOFTCX_DIR \""
expect_line '^seed 1 fails: the NIC itself ended with signal 9'
ok "signals, reports of sanitizers and a NIC that dies are failures"

fuzz 127 --seeds 3 -- no-such-command
fuzz 125 --seeds 9-3 -- true
fuzz 125 --seed 3 -- true
fuzz 125
ok "what cannot be tried is refused"
gone()
{
	! "$SOFTCX" status --dir "$work/own"
}

mkdir "$work/own"
"$SOFTCX" run --dir "$work/own" true || fail "softcx run does not start a NIC"
gone 2>/dev/null && fail "it ends with its first user"
until_true gone || fail "a NIC that softcx run started does not end after its last user"
ok "a NIC that softcx run started ends some seconds after its last user"
printf '%d checks\n' "$checks"
