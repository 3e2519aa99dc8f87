#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Python package against a daemon: tables, gets, calls and asyncio.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${PYTHON:?}" "${PYTHONPATH:?}" "${SOFTCX:?}"
export PYTHONDONTWRITEBYTECODE=1
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

server=$address:$port
[[ $address != *:* ]] || server="[$address]:$port"
"$PYTHON" "$here/python-table.py" "$work" >"$work/table.log" 2>&1 || fail "tables" "$work/table.log"
"$PYTHON" -c 'import sys, reddn
assert "asyncio" not in sys.modules and reddn.aio.connect and "asyncio" in sys.modules' || fail "asyncio is imported for all"
ok "tables"
start_nic
head -c 64 /dev/zero >"$memory/words"
truncate -s 16777280 "$memory/log"
head -c 4096 /dev/zero | tee "$memory/limits" >"$memory/shared"
sed -n '/^# limited.rdn$/,/^\.Ed$/{/^\.Ed$/!p}' "$here/../../docs/man/reddn-programs.7" >"$work/limited.rdn"
seq 0 63 | awk '{ printf "%c", $1 + 32 }' >"$work/keys"
start_reddnd "control = \"$work/control\";
regions = (
  { name = \"users\"; kind = \"table\"; path = \"$work/users.table\"; },
  { name = \"words\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; },
  { name = \"limits\"; kind = \"raw\"; path = \"$memory/limits\"; writable = true; },
  { name = \"shared\"; kind = \"raw\"; path = \"$memory/shared\"; writable = true; },
  { name = \"log\"; kind = \"raw\"; path = \"$memory/log\"; writable = true; },
  { name = \"keys\"; kind = \"raw\"; path = \"$work/keys\"; } );
offloads = (
  { name = \"users\"; program = \"hash-get\"; region = \"users\"; },
  { name = \"parts\"; region = \"users\"; mget = { keys = [4]; }; exists = { keys = [8]; }; },
  { name = \"into\"; program = \"hash-into\"; region = \"users\"; },
  { name = \"ticket\"; program = \"counter\"; region = \"words\"; },
  { name = \"swaps\"; program = \"compare-and-swap\"; region = \"shared\"; },
  { name = \"adds\"; program = \"fetch-and-add\"; region = \"shared\"; },
  { name = \"events\"; program = \"log-append\"; region = \"log\"; },
  { name = \"entries\"; program = \"log-read\"; region = \"log\"; },
  { name = \"limited\"; program = \"$work/limited.rdn\"; region = \"limits\"; },
  { name = \"same\"; program = \"wide-compare\"; region = \"keys\"; depth_max = 8; } );"
failed='remote access error'
able "the step that reads outside" "${named_steps[@]}" || failed="($failed|a queue failed)"
on_nic client.log env "FAILED=$failed" "$PYTHON" "$here/python-client.py" "$server" || fail "a client" "$work/client.log" "$work/reddnd.log"
grep -qx 'OK' "$work/client.log" || fail "not all ran" "$work/client.log"
ok "gets, calls and asyncio"

# The counter of reddn-programs(7) counts to its limit, whatever the others do between its statements
cat >"$work/count.py" <<'END'
import sys, reddn
with reddn.connect(sys.argv[1], "limited", timeout=100) as c:
    won, now = 0, 0
    while now < 100:
        reply = c.call(at=8, limit=100)
        won, now = won + reply["counted"], reply["now"]
print(won)
END
for i in {1..6}; do
	"$SOFTCX" run "$PYTHON" "$work/count.py" "$server" >"$work/won.$i" 2>&1 &
	sessions[i]=$!
done
for i in {1..6}; do
	wait "${sessions[i]}" || fail "session $i" "$work/won.$i" "$work/reddnd.log"
done
[[ $(od -An -tu8 -j8 -N8 "$memory/limits" | tr -d ' ') -eq 100 ]] || fail "the word is not the limit"
[[ $(awk '{ n += $1 } END { print n }' "$work"/won.?) -eq 100 ]] || fail "they counted something else" "$work"/won.?
ok "six sessions count to a limit"
stop_reddnd

# Another program under the same name takes the arguments in another order: no call of the one before is executed by it
program_of_pair() # NAME ARG ARG
{
	printf 'program %s\narg %s : u64\narg %s : u64\n' "$@"
	printf 'var was : le64\nvar now : le64\nreply was @ 0 : le64\nreply now @ 8 : le64\n'
	printf 'mov old -> was\nmov new -> now\nwrite was -> slot @ 0\nwrite_imm now -> slot @ 8\n'
}
program_of_pair one old new >"$work/one.rdn"
program_of_pair one new old >"$work/two.rdn"
cat >"$work/pair.py" <<'END'
import errno, sys, time, reddn
last = None
with reddn.connect(sys.argv[1], "pair", timeout=100) as c:
    while True:
        try:
            got = str(c.call(old=1, new=2))
        except OSError as e:
            got = errno.errorcode[e.errno]
        if got != last:
            print(got, flush=True)
        last = got
        time.sleep(0.05)
END
serve_pair()
{
	start_reddnd "offloads = ( { name = \"pair\"; program = \"$work/$1.rdn\"; } );"
}
kill_reddnd()
{
	kill -KILL "$(program_of "$reddnd")"
	wait "$reddnd" 2>/dev/null
}
printed() # LINES
{
	[[ $(<"$work/pair.log") == "$1" ]]
}
serve_pair one
background pair.log "$PYTHON" "$work/pair.py" "$server"
pair=$child
got="{'was': 1, 'now': 2}"
until_true printed "$got" || fail "no reply" "$work/pair.log" "$work/reddnd.log"
kill_reddnd
serve_pair two
got+=$'\n'ESTALE
until_true printed "$got" || fail "a call of another program" "$work/pair.log" "$work/reddnd.log"
kill_reddnd
serve_pair one
got+=$'\n'"{'was': 1, 'now': 2}"
until_true printed "$got" || fail "the program is back, and no reply" "$work/pair.log" "$work/reddnd.log"
ok "a program with other names is another one"
kill "$pair"
wait "$pair" 2>/dev/null
stop_reddnd
done_testing
