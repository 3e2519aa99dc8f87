#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# reddnctl and the control socket of a running daemon: answers, actions, refusals, and reload.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
: "${REDDN:?}"

free_port
http=$port
free_port
holds() # WORDS EXPRESSION: of the JSON in ctl.out
{
	[[ $(value "$2") == True ]] || fail "$1" "$work/ctl.out" "$work/ctl.err" "$work/reddnd.log"
	ok "$1"
}

complains() # PATTERN: the last ctl failed, with these words
{
	grep -qE "$1" "$work/ctl.err" || fail "no message \"$1\"" "$work/ctl.err" "$work/ctl.out"
	ok "$1"
}

# raw TEXT: sends TEXT as a line and prints the answer
raw()
{
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode("utf-8", "surrogateescape") + b"\n")
print(s.makefile().readline(), end="")' "$control" "$1"
}

refused() # TEXT PATTERN
{
	raw "$1" | grep -qE "\"ok\": ?false.*$2" || fail "accepted: $1" "$work/reddnd.log"
	ok "refused: ${1:0:60}"
}

table() # NAME VALUE
{
	make_table "$work/$1" --max-key 64 --max-value 1000 <<<$'alice\t'"$2"
}

# settings PATH [NAME...]: writes a configuration that offers one table under each name
settings()
{
	printf 'control = "%s"; metrics = "127.0.0.1:%s"; regions = ( { name = "t"; kind = "table"; path = "%s"; } ); offloads = (' "$control" "$http" "$1"
	for name in "${@:2}"; do
		printf '%s{ name = "%s"; program = "hash-get"; region = "t"; }' "$comma" "$name"
		comma=,
	done
	printf ');'
	comma=
}
comma=
turns=()

get() # OFFLOAD: the value of alice
{
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" "$1" alice
	cat "$work/get.log"
}

ctl status && fail "an answer without a daemon"
complains 'No such file.*is reddnd running'

table first wonder
table second land
start_nic
start_reddnd "$(settings "$work/first" one)"
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"
daemon_pid=$(program_of "$reddnd") || exit

# a byte now and then does not keep a place: this peer is looked at in the end
python3 -c '
import itertools, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
try:
    for _ in itertools.count():
        s.send(b" "); time.sleep(0.3)
except ConnectionError:
    print("disconnected")' "$control" >"$work/slow.log" 2>&1 &
pids+=($!)

ctl --json status || fail "no status" "$work/ctl.err"
holds "status counts nothing yet" 'd["sessions"] == 0 and d["requests"] == 0 and d["device"] == "mlx5_0" and d["arena_size"] > 0'
ctl status || fail "no status"
grep -qE '^device +mlx5_0$' "$work/ctl.out" || fail "status has no text form" "$work/ctl.out"
ok "status as text"
ctl --json || fail "no answer without a command" "$work/ctl.err"
holds "without a command reddnctl shows the status" 'd["device"] == "mlx5_0"'
on_nic get.log "$REDDN" get "$address:$port" one nobody
grep -q "nobody: not found" "$work/get.log" || fail "HOST:PORT" "$work/get.log"
on_nic get.log "$REDDN" get "$address:" one nobody && fail "a host without its port"
grep -q 'is no host, nor HOST:PORT' "$work/get.log" || fail "no words" "$work/get.log"
ok "reddn takes an address with its port"
ctl --json offloads || fail "no offloads"
mode=unrolled
[[ ${ENGINE-} == cpu ]] || ! able "an offload that is recycled by default" "${recycling[@]}" || mode=recycled
holds "offloads" 'd == [dict(d[0], offload="one", program="hash_get", mode="'"$mode"'", copies=6, atomics=2, waits_enables='"$([[ ${ENGINE-} == cpu ]] && echo 3 || echo 4)"')]'
ctl --json regions || fail "no regions"
holds "regions" 'len(d) == 1 and d[0]["max_key"] == 64 and d[0]["path"].endswith("/first")'

background ping.log "$REDDN" ping --timeout 100000 --port "$port" --count 100000 --interval 20 "$address" one
ping=$child
until_true sh -c "'$REDDNCTL' --socket '$control' sessions | grep -q ' one '" || fail "no client" "$work/ping.log"
top_sees()
{
	ctl --json --interval 1 --count 2 top || return
	tail -n 1 "$work/ctl.out" >"$work/last" && mv "$work/last" "$work/ctl.out"
	[[ $(value 'len(d) == 1 and d[0]["per_second"] > 0 and d[0]["requests"] > 0') == True ]]
}
until_true top_sees || fail "top does not see the client work" "$work/ctl.out" "$work/ctl.err"
holds "top has the times of the last round" '0 < d[0]["p50_ns"] <= d[0]["p99_ns"] < 60e9 and len(d[0]["service"]) > 0'
ok "top sees the client work"
ctl --by offloads --sort offload --count 1 top || fail "top of offloads" "$work/ctl.err"
[[ $(awk 'NR == 2 { print $1, $2 }' "$work/ctl.out") == 'one hash_get' ]] || fail "top of offloads" "$work/ctl.out"
ctl --by tables --count 1 top && fail "top of what there is not"
grep -q 'sessions, offloads or tenants' "$work/ctl.err" || fail "no words" "$work/ctl.err"
ctl --sort COLOUR --count 1 top && fail "a column that there is not"
python3 - "$REDDNCTL" "$control" <<'END' || fail "the keys of top"
# on a terminal: views, columns, and the end; what is shown after a key, without the escapes
import os, pty, re, select, sys, termios, time
child, fd = pty.fork()
if child == 0:
    os.environ["LC_ALL"] = "C.UTF-8"
    os.execv(sys.argv[1], [sys.argv[1], "--socket", sys.argv[2], "--interval", "1", "top"])
seen = ""
def shows(words):
    global seen
    until = time.time() + 60
    while words not in seen:
        if time.time() > until or not select.select([fd], [], [], 60)[0]:
            sys.exit(f"not shown: {words}: {seen[-2000:]}")
        seen += re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", os.read(fd, 65536).decode(errors="replace"))
def press(key, words):
    global seen
    seen = ""
    os.write(fd, key)
    shows(words)
shows("by REQUESTS/S ")
shows("█")
if not re.search(r"p99 +[0-9.]+ [num]?s +\S*█", seen):
    sys.exit(f"no latency: {seen[-2000:]}")
shows("q quit") # in 80 columns
shows(" P99")
if not re.search(r"SESSION .*  (REQUESTS/S|P50|P99|REQUESTS|HITS|MISSES|REPLIED|WQES|AGE|LAST|LAST P99) *[\r\n]", seen):
    sys.exit(f"a column is cut: {seen[-2000:]}")
press(b">", "by P50 ")
press(b"r", "by P50, reversed")
press(b"o", "PROGRAM")
press(b"t", "REFUSED")
press(b"p", "paused")
press(b"s", "SESSION ")
os.write(fd, b"q")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
END
ok "top has keys"
ctl metrics || fail "no metrics"
for line in '^reddnd_sessions\{offload="one"\} 1$' '^reddnd_requests_total\{offload="one"\} [1-9]' '^# EOF$'; do
	grep -qE "$line" "$work/ctl.out" || fail "metrics have no line $line" "$work/ctl.out"
done
[[ $(awk '/^reddnd_service_seconds_count/ { n = $2 } /^reddnd_requests_total/ { r = $2 } END { print (n > 0 && n == r) }' "$work/ctl.out") == 1 ]] ||
	fail "the times of other requests" "$work/ctl.out"
grep -qE '^reddnd_service_seconds_bucket\{offload="one",le="1.073741824"\} [1-9]' "$work/ctl.out" || fail "metrics have no times" "$work/ctl.out"
ok "metrics by offload"

# reload: the old session continues, new clients get the new catalog
configure_reddnd "$(settings "$work/second" one two)"
ctl --json reload || fail "no reload" "$work/ctl.err" "$work/reddnd.log"
holds "reload reports the offloads in force" '[o["offload"] for o in d] == ["one", "two"]'
[[ $(get two) == land && $(get one) == land ]] || fail "the new catalog is not served" "$work/get.log" "$work/reddnd.log"
ok "new clients get the new catalog"
alone()
{
	ctl --json sessions && [[ $(value 'len(d) == 1 and d[0]["current"] == False and d[0]["requests"] > 0') == True ]]
}
until_true alone || fail "the old session lost its catalog" "$work/ctl.out" "$work/reddnd.log"
ok "the old session keeps its catalog"
before=$(value 'd[0]["requests"]')
served_since()
{
	ctl --json sessions && [[ $(value "d[0]['requests'] > $before") == True ]]
}
until_true served_since || fail "the old session is not served" "$work/ctl.out" "$work/ctl.err"
ok "and is served"

# a wrong catalog has no effect
configure_reddnd "$(settings "$work/first" one two one)"
ctl reload && fail "a wrong catalog was accepted" "$work/ctl.out"
complains 'reddnd.conf:2: .*"?one"?'
configure_reddnd "arena = \"8M\"; $(settings "$work/first" one)"
ctl reload && fail "another arena was accepted" "$work/ctl.out"
complains '"arena" cannot change while the daemon runs'
configure_reddnd "fenced_enables = true; $(settings "$work/first" one)"
ctl reload && fail "fences were accepted without a test of them" "$work/ctl.out"
complains '"fenced_enables" cannot change while the daemon runs'
configure_reddnd '@include ""'
ctl reload && fail "a catalog that includes a directory was accepted" "$work/ctl.out"
complains '@include "" is no file but a directory'
configure_reddnd ''
ctl reload && fail "a configuration that has lost its offloads was accepted" "$work/ctl.out"
complains 'the configuration has no "offloads", and 2 are in force; .* write "offloads = \(\);"'
[[ $(get two) == land ]] || fail "the catalog was lost" "$work/get.log" "$work/reddnd.log"
ok "the current catalog stays"
configure_reddnd "$(settings "$work/first" one)"
kill -HUP "$daemon_pid"
until_true grep -q '1 regions, 1 offloads; sessions go on' "$work/reddnd.log" || fail "SIGHUP" "$work/reddnd.log"
[[ $(get one) == wonder ]] || fail "SIGHUP does not reload" "$work/get.log" "$work/reddnd.log"
ok "SIGHUP reloads as well"

ctl --json sessions || fail "no clients"
session=$(value 'd[0]["session"]')
ctl kick "$session" || fail "no kick" "$work/ctl.err"
wait "$ping" && fail "the client was not disconnected" "$work/ping.log"
grep -q "the server ended session $session: the administrator ended it" "$work/ping.log" || fail "a kicked client gets no reason" "$work/ping.log"
ok "a kicked client is disconnected and gets the reason"
ctl kick "$session" && fail "kicked twice"
complains "there is no session $session"
ctl kick x && fail "kicked x"
complains '"x" is no session'
ctl audit --rate 5 && fail "a rate of events"
complains 'audit takes no option --rate; reddnctl audit --help'
ctl --follow && fail "a status that goes on"
complains 'status takes no option --follow'
ctl stats && fail "stats"
complains 'did you mean "status"'

refused '' 'a request is a line'
refused '[1]' 'a request is a line'
refused '{"command": 7}' 'a request is a line'
refused '{"command": "status"} x' 'a request is a line'
refused '{"command": "statu"}' 'did you mean'
refused '{"command": "status", "x": 1}' 'takes no member'
refused '{"command": "kick"}' 'is missing or no number'
refused '{"command": "kick", "session": -1}' 'no session'
refused '{"command": "kick", "session": "1"}' 'no number'
refused '{"a":{"b":{"c":{"d":{"e":{}}}}}}' 'a request is a line'
refused $'\xff\xfe' 'a request is a line'
refused $'{"command": "\xff"}' 'a request is a line'
raw "$(head -c 70000 /dev/zero | tr '\0' x)" 2>/dev/null | grep -q . && fail "an endless line was answered"
ok "an endless line is not answered"
if [[ $(id -u) -eq 0 ]]; then
	chmod 711 "$work"
	chmod 777 "$control"
	runuser -u nobody -- "$REDDNCTL" --socket "$control" status >"$work/ctl.out" 2>"$work/ctl.err" || fail "user nobody cannot read the status" "$work/ctl.err"
	runuser -u nobody -- "$REDDNCTL" --socket "$control" reload >"$work/ctl.out" 2>"$work/ctl.err" && fail "user nobody can reload"
	complains 'is for root and the user of the daemon'

	# a user takes every seat that there is for one user, and another one the rest of those for users; root and others find one nevertheless
	seats() # USER: takes as many as there are
	{
		background "seats$1.log" python3 -c '
import os, socket, sys, time
os.setgroups([]); os.setuid(int(sys.argv[2]))
served = []
for _ in range(100):
    s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1])
    try:
        s.sendall(b"{\"command\":\"status\"}\n")
        if s.recv(1):
            served.append(s)
    except (BrokenPipeError, ConnectionResetError):
        pass
print("served", len(served), flush=True)
time.sleep(3600)' "$control" "$1"
		seated+=("$child")
		until_true grep -q served "$work/seats$1.log" || fail "nobody takes seats" "$work/seats$1.log"
		grep -qx 'served 12' "$work/seats$1.log" || fail "not 12 of 100 peers of a user are served" "$work/seats$1.log"
		runuser -u nobody -- "$REDDNCTL" --socket "$control" status >"$work/ctl.out" 2>"$work/ctl.err"
	}
	seated=()
	seats 60001 || fail "a user takes the seats of others" "$work/ctl.err"
	seats 60002 || fail "two users take the seats of others" "$work/ctl.err"
	for _ in {1..20}; do
		ctl status || fail "root finds no seat" "$work/ctl.err"
	done
	kill "${seated[@]}"
	wait "${seated[@]}"
	until_true runuser -u nobody -- "$REDDNCTL" --socket "$control" status || fail "no seat becomes free"
	ok "seats for root and for users who have none"

	# a user of many numbers follows the audit with each of them
	background followers.log python3 -c '
import os, socket, sys, time
os.setgroups([])
peers = []
for uid in range(60000, 60030):
    os.seteuid(uid)
    s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1]); peers.append(s)
    s.sendall(b"{\"command\":\"audit\",\"follow\":true}\n")
    assert s.recv(1)
    os.seteuid(0)
print("follow", flush=True)
time.sleep(3600)' "$control"
	until_true grep -q follow "$work/followers.log" || fail "not all follow" "$work/followers.log"
	for _ in {1..5}; do
		runuser -u nobody -- "$REDDNCTL" --socket "$control" status >"$work/ctl.out" 2>"$work/ctl.err" || fail "followers keep a user out" "$work/ctl.err"
	done
	kill "$child"
	wait "$child"
	ok "seats beside followers"

	# what close(2) would wait for, from a user who may only read, keeps out nobody. The daemon gets it when it has the last descriptors
	PYTHONPATH=$here background linger.log python3 -c '
import os, signal, sys
from lingering import connect, send
os.kill(int(sys.argv[2]), signal.SIGSTOP)
os.seteuid(60001)
user = connect(sys.argv[1])
for _ in range(70):
    send(user, b"x", 1)
others = [connect(sys.argv[1]) for _ in range(20)]
for other in others:
    send(other, b"x", 2)
os.seteuid(0)
os.kill(int(sys.argv[2]), signal.SIGCONT)
user.settimeout(60)
try:
    user.recv(1)
except ConnectionResetError:
    pass
print("disconnected", flush=True)
signal.pause()' "$control" "$daemon_pid"
	until_true grep -q disconnected "$work/linger.log" || fail "nothing that lingers was sent" "$work/linger.log" "$work/reddnd.log"
	ctl status || fail "root is not accepted while sockets linger" "$work/ctl.err" "$work/reddnd.log"
	runuser -u nobody -- "$REDDNCTL" --socket "$control" status >"$work/ctl.out" 2>"$work/ctl.err" ||
		fail "a user is not accepted while sockets of another one linger" "$work/ctl.err"
	kill "$child"
	wait "$child"
	ok "sockets that linger keep nobody out"

	# users who ask without a pause take turns, each gets all answers, and root does not wait for its own
	for i in 1 2 3; do
		background "turns$i.log" python3 -c '
import json, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b"{\"command\":\"status\"}\n" * 300)
print("asked", flush=True)
lines = s.makefile()
for n in range(300):
    assert json.loads(lines.readline())["ok"]
print("answered", n + 1, flush=True)' "$control"
		turns[i]=$child
	done
	for i in 1 2 3; do
		until_true grep -q asked "$work/turns$i.log" || fail "nobody asks" "$work/turns$i.log"
		ctl status || fail "root waits" "$work/ctl.err"
		wait "${turns[i]}" || fail "not all answers" "$work/turns$i.log" "$work/reddnd.log"
		grep -qx 'answered 300' "$work/turns$i.log" || fail "not all answers" "$work/turns$i.log"
	done
	ok "users take turns"
fi

# without descriptors the daemon sleeps, and tries again
shortage='no peer can be accepted on .*: Too many open files'
asleep() # all threads, ten times in a row
{
	for _ in {1..10}; do
		! sed 's/.*) //' "/proc/$daemon_pid/task/"*/stat | grep -qv ^S || return
	done
}
before=$(prlimit --pid "$daemon_pid" --nofile --output SOFT --noheadings)
# the number below which three are free
number=0
for ((unused = 0; unused < 3; number++)); do
	[[ -e /proc/$daemon_pid/fd/$number ]] || unused=$((unused + 1))
done
prlimit --pid "$daemon_pid" --nofile="$number:"
background many.log python3 -c '
import socket, sys, time
peers = []
for _ in range(30):
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); peers.append(s)
    s.sendall(b"{\"command\":\"audit\",\"follow\":true}\n")
time.sleep(3600)' "$control"
many=$child
until_true grep -q "$shortage" "$work/reddnd.log" || fail "nothing of it in the log" "$work/reddnd.log"
exec {scrape}<>"/dev/tcp/127.0.0.1/$http"
printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$scrape"
until_true asleep || fail "the daemon does not rest"
[[ $(grep -c "$shortage" "$work/reddnd.log") -eq 1 ]] || fail "more than one line" "$work/reddnd.log"
kill "$many"
prlimit --pid "$daemon_pid" --nofile="$((before)):"
until_true ctl status || fail "the daemon accepts nobody any more" "$work/ctl.err" "$work/reddnd.log"
timeout "$limit" grep -qx '# EOF' <&"$scrape" || fail "no metrics for who waited" "$work/reddnd.log"
exec {scrape}>&-
ok "a daemon without descriptors rests, and accepts peers when it has some"

# a path may have any bytes, JSON is UTF-8
ln "$work/first" "$work/x"$'\xff' || fail "no file"
configure_reddnd "$(settings "$work/x\\xff" two)"
ctl --json reload || fail "no reload" "$work/ctl.err"
ctl --json regions || fail "no regions" "$work/ctl.err"
holds "a path that is not UTF-8" 'd[0]["path"].endswith("/x\ufffd")'

# more silent peers than the daemon has room for keep others out only until they time out
python3 -c '
import socket, sys, time
peers = []
for _ in range(40):
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); peers.append(s)
time.sleep(1)' "$control"
until_true ctl status || fail "the daemon does not answer" "$work/ctl.err"
ok "silent peers do not keep others out"
until_true grep -q disconnected "$work/slow.log" || fail "a peer that never ends its request stays" "$work/slow.log"
ok "a slow request does not keep a place"

stop_reddnd
[[ ! -e $control ]] || fail "the daemon leaves its socket"
done_testing
