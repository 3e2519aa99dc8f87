#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the daemon records about its clients: counters, each kind of verdict and its consequence, a runaway program, bans, and
# the audit, which a slow reader follows.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/memcached/stock.sh
. "$here/../memcached/stock.sh"
mode=recycled
able "recycled offloads" "${recycling[@]}" || mode=unrolled
# What the CPU executes, no fault of the NIC slows, and of the NIC only messages to the client can fail
! by_cpu || mode=unrolled
failing() # sets $at, the work request that fails, $failed, how that is reported, and $step
{
	at='read' failed='step look\[.\] failed: local protection error' step='look['
	! by_cpu || { at='write-imm' failed='step hit\[.\] failed: local protection error' step='hit['; }
	able "the step that a verdict names" "${named_steps[@]}" || failed="($failed|a queue failed|the device reports that queue pair)"
}
: "${REDDN:?}" "${MISUSE:?}" "${REFUSED_CLIENTS:?}"

free_port
fault() # WORD...
{
	"$SOFTCX" fault "$@" >"$work/fault.log" 2>&1 || fail "softcx fault $*" "$work/fault.log"
}

make_table "$work/table" --max-value 1000 <<<$'alice\twonder'
# It follows a source, and has all of its keys: the members of that are there, too
python3 - "$work/table" <<'END'
import struct, sys, time
with open(sys.argv[1], "r+b") as f:
    f.seek(128 + 24)
    f.write(struct.pack("<4Q", 1 | 2 | 5 << 32, 0, time.time_ns() // 1000, time.time_ns()))
END
head -c 4096 /dev/zero >"$work/array"
"$REDDN_TABLE" create --quiet --store --buckets 64 "$memory/store" || fail "no store"
printf 'alice\n' >"$work/keys"
start_nic
start_memcached -1 -m 8 -o hashpower=12
listen=$port
free_port
http=$port
port=$listen
settings="control = \"$control\"; metrics = \"127.0.0.1:$http\";
regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; }, { name = \"a\"; kind = \"raw\"; path = \"$work/array\"; },
  { name = \"mc\"; kind = \"memcached\"; path = \"$cache\"; server = \"127.0.0.1:$mc_port\"; },
  { name = \"s\"; kind = \"store\"; path = \"$memory/store\"; }, { name = \"handed\"; kind = \"raw\"; handover = true; owner = $UID; } );
offloads = (
  { name = \"get\"; program = \"hash-get\"; region = \"t\"; mode = \"unrolled\"; },
  { name = \"recycled\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; },
  { name = \"patient\"; program = \"hash-get\"; region = \"t\"; time_budget = \"100ms\"; on_error = \"log\"; },
  { name = \"strict\"; program = \"hash-get\"; region = \"t\"; time_budget = \"100ms\"; },
  { name = \"slowed\"; program = \"hash-get\"; region = \"t\"; mode = \"unrolled\"; time_budget = \"1s\"; on_error = { time = \"throttle:1:2s\"; }; },
  { name = \"slow\"; program = \"hash-get\"; region = \"t\"; time_budget = \"1s\"; on_error = { time = \"throttle:20:1h\"; }; },
  { name = \"put\"; program = \"store-put\"; region = \"s\"; engine = \"nic\"; },
  { name = \"loop\"; program = \"while-break\"; params = { n = 16; }; region = \"a\"; mode = \"$mode\"; depth_max = 16; time_budget = \"2s\"; },
  { name = \"guarded\"; program = \"hash-get\"; region = \"t\"; mode = \"unrolled\"; on_error = { step = \"ban:10s\"; queue = \"ban:10s\"; time = \"log\"; }; } );
tenants = ( { name = \"all\"; }, { name = \"limited\"; networks = [ \"192.0.2.0/24\" ]; offloads = [ \"get\" ]; sessions = 9; depth = 99;
  queue_bytes = \"9M\"; slot_bytes = \"9M\"; rate = 9; burst = 9; session_rate = 9; session_burst = 9; } );"
start_reddnd "$settings"
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"

get() # OFFLOAD KEY
{
	on_nic get.log "$REDDN" get --port "$port" --timeout 50000 "$address" "$1" "$2"
}

why() # WORDS LOG: the client got the reason for the end of its session
{
	grep -qE "the server ended session [0-9]+: $1" "$work/$2" || fail "the client got no message: $1" "$work/$2" "$work/reddnd.log"
	ok "its client got: $(tail -n 1 "$work/$2")"
}

bench() # OFFLOAD: is to fail
{
	on_nic client.log "$REDDN" bench --port "$port" --timeout 50000 --count 2000 --keys "$work/keys" "$address" "$1" &&
		fail "$1: the client succeeds" "$work/client.log" "$work/reddnd.log"
	[[ $? -ne 124 ]] || fail "$1: the client hangs" "$work/client.log" "$work/reddnd.log"
}

# ---- counters -----------------------------------------------------------------------------

on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" get alice || fail "no alice" "$work/get.log"
on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" get bob carol && fail "bob" "$work/get.log"
# the first absent key is asked for twice
becomes offloads "hits, misses, WQEs and bytes are counted" 'all(o["hits"] == 1 and 2 <= o["misses"] == o["requests"] - 1 and o["wqes"] == o["requests"] * o["wqes_per_request"] and o["bytes_in"] == o["requests"] * o["request_bytes"] and 0 < o["bytes_out"] - o["requests"] * 64 < 200 for o in d if o["offload"] == "get")'
if [[ $mode == recycled ]]; then
	background ping.log "$REDDN" ping --timeout 100000 --port "$port" --count 100000 --interval 20 "$address" recycled
	ping=$child
	until_true sh -c "'$REDDNCTL' --socket '$control' --json sessions | grep -q '\"requests\": *[1-9]'" || fail "no client" "$work/ping.log"
	all='o["hits"] + o["misses"] + o["unseen"] == o["requests"] and o["hits"] + o["misses"] and o["bytes_out"]'
	becomes sessions "of a recycled session the last requests are seen" "len(d) == 1 and d[0]['wqes'] > 0 and d[0]['verdicts'] == 0 and all($all for o in d)"
	becomes offloads "and of a recycled offload" "all($all for o in d if o['offload'] == 'recycled')"
	kill "$ping"
	wait "$ping"
	ctl offloads || fail "no offloads"
	grep -qE '^recycled .* recycled ' "$work/ctl.out" || fail "reddnctl offloads" "$work/ctl.out"
fi
ctl metrics || fail "no metrics"
for line in '^reddnd_hits_total\{offload="get"\} 1$' '^reddnd_misses_total\{offload="get"\} [23]$' \
	'^reddnd_verdicts_total\{offload="get",verdict="rnr"\} 0$' '^reddnd_tenant_requests_total\{tenant="all"\} [1-9][0-9]*$' \
	'^reddnd_tenant_quota_slot_bytes\{tenant="limited"\} 9437184$' '^reddnd_tenant_sessions\{tenant="limited"\} 0$'; do
	grep -qE "$line" "$work/ctl.out" || fail "metrics have no line $line" "$work/ctl.out"
done
ok "the metrics have the same counts"
"${BASH_SOURCE[0]%/*}/../check/monitoring" "$work/ctl.out" || fail "the alert rules or the dashboard use other metrics"
ok "the daemon exports what the alert rules and the dashboard use"
python3 - "$http" >"$work/http.log" 2>&1 <<'END' || fail "metrics by HTTP" "$work/http.log" "$work/reddnd.log"
import http.client, sys
def ask(method, path, **headers):
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
    c.request(method, path, b"x" * 9 if method == "POST" else None, headers)
    r = c.getresponse()
    answers = ["GET", "HEAD", "OPTIONS"] if r.status == 405 or method == "OPTIONS" else []
    assert [x for x in r.getheader("Allow", "").split(", ") if x] == answers, (method, path, r.getheader("Allow"))
    return r.status, r.getheader("Content-Type"), r.read().decode()
status, kind, text = ask("GET", "/metrics")
assert status == 200 and kind.startswith("application/openmetrics-text"), (status, kind)
assert '\nreddnd_hits_total{offload="get"} 1\n' in text and text.endswith("# EOF\n"), text
assert ask("GET", "/")[0] == 404
assert ask("HEAD", "/metrics") == (200, kind, "")
assert ask("OPTIONS", "/metrics")[0] == 200
assert ask("POST", "/metrics")[0] == 405
status, kind, text = ask("GET", "/metrics", Accept="text/plain")
assert status == 200 and kind.startswith("text/plain; version=0.0.4"), (status, kind)
assert '\n# TYPE reddnd_hits_total counter\n' in text and "# EOF" not in text and "# UNIT" not in text, text
# as Prometheus asks
both = "text/plain;version=0.0.4;q=0.3,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2"
assert ask("GET", "/metrics", Accept=both)[1].startswith("application/openmetrics-text")
END
ok "metrics by HTTP, and nothing else"
# readers that flood cost the event loop a text now and then: the CPU time of the daemon in a text shows which ones are the same
python3 - "$http" >"$work/http.log" 2>&1 <<'END' || fail "a flood of readers" "$work/http.log" "$work/reddnd.log"
import re, socket, sys, time
question = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
def answer(f):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += f.readline()
    return f.read(int(re.search(rb"(?i)content-length: (\d+)", head).group(1)))
begin, texts, n = time.monotonic(), set(), 0
readers = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) for _ in range(10)]
files = [r.makefile("rb") for r in readers]
for _ in range(100):
    for r in readers:
        r.sendall(question)
    for f in files:
        text = answer(f)
        assert text.endswith(b"# EOF\n"), text
        texts.add(re.search(rb"reddnd_uptime_seconds (\S+)", text).group(1))
        n += 1
most = (time.monotonic() - begin) / 0.2 + 2
assert len(texts) <= most, "%d texts for %d questions, expected at most %d" % (len(texts), n, most)
# more than it has room for, all in the middle of a request
slow = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) for _ in range(150)]
for s in slow:
    try:
        s.sendall(b"GET /metrics HTTP/1.1\r\n")
    except ConnectionError:
        pass
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5) as r:
    r.sendall(question)
    assert answer(r.makefile("rb")).endswith(b"# EOF\n")
# who asks and goes away while it waits does not stay
for _ in range(40):
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20).sendall(question)
for r in readers:
    r.close()
time.sleep(0.5)
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as r:
    r.sendall(question)
    assert answer(r.makefile("rb")).endswith(b"# EOF\n")
END
ok "a flood of readers"

# ---- verdicts -----------------------------------------------------------------------------

verdict() # KIND WORDS EXPRESSION: of the last event of that kind, named e
{
	becomes audit "$2" "[$3 for e in [e for e in d if e['event'] == 'verdict' and e['verdict'] == '$1'][-1:]] == [True]"
}

failing
fault add error local-protection --opcode "$at" --at 100
bench get
if able "the step that a verdict names" "${named_steps[@]}"; then
	verdict step "a step that fails: program, line, step, syndrome, client" \
		'e["step"].startswith("'"$step"'") and e["program"].endswith("/hash-get.rdn") and e["line"] > 14 and e["syndrome"] == "local protection error" and e["peer"].startswith("'"$address"' port ") and e["offload"] == "get" and e["session"] > 0 and e["action"] == "terminate"'
	until_true grep -qE "$failed \(.*\), hash-get.rdn:1[57]" "$work/reddnd.log" || fail "no line in the log" "$work/reddnd.log"
fi
why "$failed" client.log
fault add error rnr-retry-exceeded --opcode write-imm --at 100
bench get
verdict rnr "a client without receives" 'e["step"] == "done" and "no receive posted" in e["text"]'
why 'step done failed: .*no receive posted' client.log
fault add error retry-exceeded --opcode write-imm --at 100
bench get
verdict unreachable "a client that does not answer" 'e["step"][:3] in ("hit", "don") and "does not answer" in e["text"]'
fault add qp-error --opcode "$at" --at 100
bench get
verdict queue "a queue that the NIC ends" '"step" not in e'
why '(a queue failed|the device reports that queue pair)' client.log
fault clear
on_nic misuse.log "$MISUSE" "$address" "$port" get long-send || fail "long-send" "$work/misuse.log"
verdict request "a request that is too long" '"was longer than" in e["text"]'
on_nic misuse.log "$MISUSE" "$address" "$port" get short-send || fail "short-send" "$work/misuse.log"
verdict request "a request that is too short" '" bytes, not " in e["text"]'

# ---- time ---------------------------------------------------------------------------------

# late US [N]: the next READ, or the Nth, takes so long. Where instances overlap, the NIC still begins some when a client has left, and
# one of those must not be the one
late()
{
	until_true reported sessions 'd == []' || fail "clients stay" "$work/ctl.out" "$work/reddnd.log"
	fault add delay "$1" --opcode read --at "${2-1}"
}

if ! by_cpu; then
	# much longer than a daemon on a busy machine takes to notice
	late 3000000
	get patient alice || fail "no slow answer" "$work/get.log" "$work/reddnd.log"
	[[ $(cat "$work/get.log") == wonder ]] || fail "the slow answer is wrong" "$work/get.log"
	verdict time "a request that takes too long is logged, once, and answered" 'e["offload"] == "patient" and e["action"] == "log" and "the time budget is 100 ms" in e["text"] and len([x for x in d if x.get("verdict") == "time"]) == 1'
	fault clear
	late 3000000
	background ping.log "$REDDN" ping --timeout 100000 --port "$port" --count 100000 --interval 20 "$address" patient
	ping=$child
	becomes sessions "and counted by kind of its session, which goes on" '[o["verdicts"] for o in d if o["verdicts_by_kind"]["time"] == o["verdicts"] == sum(o["verdicts_by_kind"].values()) and o["requests"] > 1] > [0]'
	kill "$ping"
	wait "$ping"
	fault clear
fi
if ! by_cpu; then
	late 30000000
	get strict alice && fail "a chain runs longer than its time budget" "$work/get.log" "$work/reddnd.log"
	verdict time "or ends the session" 'e["offload"] == "strict" and [x["text"] for x in d if x["event"] == "ends" and x["session"] == e["session"]] == ["ends after 0 requests: " + e["text"].split(": ", 1)[1]]'
	grep -q 'wonder' "$work/get.log" && fail "the chain is answered in spite of its verdict" "$work/get.log"
	why 'request 0 was taken more than [0-9]+ ms ago and is not answered; the time budget is 100 ms' get.log
	fault clear
fi
if ! by_cpu; then
	# 16 iterations of a second each, on the NIC alone
	fault add delay 1000000 --opcode read --probability 1
	on_nic call.log "$REDDN" call --port "$port" --timeout 50000 "$address" loop 7 && fail "a runaway program answers" "$work/call.log"
	[[ $? -ne 124 ]] || fail "the client of a runaway program hangs" "$work/call.log"
	fault clear
	verdict time "a runaway program is stopped, in mode $mode" 'e["offload"] == "loop" and e["requests"] == 0'
	why 'request 0 was taken more than [0-9]+ ms ago and is not answered; the time budget is 2000 ms' call.log
	on_nic call.log "$REDDN" call --port "$port" --timeout 50000 "$address" loop 0 || fail "the next one is not served" "$work/call.log" "$work/reddnd.log"
	ok "the next one is served"
fi

# ---- throttles ----------------------------------------------------------------------------

if ! by_cpu; then
	# 1 request per second for 2 seconds, then as fast as before: 300 requests at that rate would take five minutes
	late 6000000 100
	on_nic client.log "$REDDN" bench --port "$port" --timeout 50000 --count 300 --keys "$work/keys" "$address" slowed ||
		fail "a throttled session does not finish" "$work/client.log" "$work/reddnd.log"
	fault clear
	verdict time "a session that takes too long is slowed" 'e["offload"] == "slowed" and e["action"] == "throttle"'
	for words in 'throttled to 1 requests per second for [0-9]+ ms' 'no longer throttled'; do
		until_true grep -qE "session [0-9]+: $words" "$work/reddnd.log" || fail "the log has no line: $words" "$work/reddnd.log"
	done
	ok "and no longer than configured"
fi
if ! by_cpu; then
	# a client that connects again is throttled too, for every offload
	late 3000000
	get slow alice || fail "no slow answer" "$work/get.log" "$work/reddnd.log"
	fault clear
	begin=$(date +%s%N)
	on_nic client.log "$REDDN" bench --port "$port" --timeout 50000 --count 60 --keys "$work/keys" "$address" get ||
		fail "a throttled client is not served" "$work/client.log" "$work/reddnd.log"
	took=$((($(date +%s%N) - begin) / 1000000))
	# two bursts of a tenth of a second
	[[ $took -ge $(((60 - 4) * 1000 / 20)) ]] || fail "60 requests in $took ms at 20 per second" "$work/client.log" "$work/reddnd.log"
	ok "new sessions of its client are throttled too: 60 requests in $took ms"
fi

# ---- bans ---------------------------------------------------------------------------------

failing
fault add error local-protection --opcode "$at" --at 100
bench guarded
fault clear
get get alice && fail "a banned client is served" "$work/get.log"
grep -qE "refused for [0-9]+ s more: $failed" "$work/get.log" || fail "a banned client gets no reason" "$work/get.log"
ok "banned: $(tail -n 1 "$work/get.log")"
becomes audit "a refusal is an event" 'any(e["event"] == "refused" and "s more" in e["text"] and e["peer"] for e in d)'
becomes audit "and so is every beginning and end" 'len([e for e in d if e["event"] == "begins"]) == len([e for e in d if e["event"] == "ends"]) > 8'
ctl audit || fail "no audit as text"
grep -qE "^2[0-9]{3}-[0-9-]{5} [0-9:.]{15} verdict +session [0-9]+: client .* $failed" "$work/ctl.out" || fail "the audit as text" "$work/ctl.out"
ok "the audit as text"

# ---- settings -----------------------------------------------------------------------------

wrong() # SETTING WORDS
{
	printf 'listen = "%s:%s";\nmetrics = "127.0.0.1:%s";\nprograms = "%s";\nregions = ( { name = "t"; kind = "table"; path = "%s"; } );
offloads = ( { name = "get"; program = "hash-get"; region = "t"; %s } );\n' \
		"$address" "$port" "$http" "$programs" "$work/table" "$1" >"$work/reddnd.conf"
	ctl reload && fail "accepted: $1"
	grep -q -e "$2" "$work/ctl.err" || fail "$1: no message \"$2\"" "$work/ctl.err"
	ok "refused: $1"
}
wrong 'wqe_budget = 5;' 'a request takes [0-9]* WQEs, "wqe_budget" is 5'
wrong 'time_budget = "5ms";' 'a time of at least 10 ms'
wrong 'time_budget = 5;' 'time_budget'
wrong 'on_error = "kill";' 'must be "log", "throttle:RATE:TIME", "terminate" or "ban:TIME"'
wrong 'on_error = "ban:10ms";' 'must be "log", "throttle:RATE:TIME"'
wrong 'on_error = "throttle:0:5s";' 'must be "log", "throttle:RATE:TIME"'
wrong 'on_error = "throttle:5s";' 'must be "log", "throttle:RATE:TIME"'
wrong 'on_error = { silence = "log"; };' 'there is no verdict "silence"; there are step, queue'
becomes audit "a reload that failed is an event" 'd[-1]["event"] == "reload-failed" and "stays as it was: " in d[-1]["text"] and "there is no verdict" in d[-1]["text"]'

# ---- the end of the ban -------------------------------------------------------------------

served()
{
	get get alice
}
until_true served || fail "a ban does not end" "$work/get.log"
ok "the ban ends"

# ---- refusals that are counted ------------------------------------------------------------

on_nic refused.log "$REFUSED_CLIENTS" "$address" "$port" 30 || fail "not refused" "$work/refused.log"
becomes audit "refusals that come too often are counted" '[e["peer"] for e in d if e.get("repeats", 0) > 1] == ["127.0.0.1"]'

# ---- the documented members ----------------------------------------------------------------

# a store has extents of a size when one was needed
on_nic put.log "$REDDN" put --port "$port" "$address" put alice here || fail "no put" "$work/put.log" "$work/reddnd.log"

background ping.log "$REDDN" ping --timeout 100000 --port "$port" --count 100000 --interval 20 "$address" get
ping=$child
until_true sh -c "'$REDDNCTL' --socket '$control' --json sessions | grep -q to_ns" || fail "no client" "$work/ping.log"
configure_reddnd "$settings"
python3 - "$control" "$here/../../docs/man/reddnctl.8" "$REDDNCTL" >"$work/schema.log" 2>&1 <<'END' || fail "members differ from reddnctl(8)" "$work/schema.log"
import json, os, re, socket, subprocess, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1]); lines = s.makefile()
bad = 0
def wrong(*words):
    global bad
    bad = 1
    print(*words)
def ask(command, **members):
    s.sendall(json.dumps({"command": command, **members}).encode() + b"\n")
    return answer_of(command, members)
def answer_of(*request):
    answer = json.loads(lines.readline())
    assert answer["ok"], (request, answer)
    return answer["result"]
def client():
    return ask("sessions")[0]["session"]
def hand_over():
    socket.send_fds(s, [b'{"command": "hand_over", "region": "handed"}\n'], [memory])
    return answer_of("hand_over")
def give_back():
    s.sendall(b'{"command": "give_back", "region": "handed"}\n')
    line, fds, _, _ = socket.recv_fds(s, 65536, 4)
    assert len(fds) == 1 and os.fstat(fds[0]).st_ino == os.fstat(memory).st_ino
    return json.loads(line)["result"]
memory = os.memfd_create("handed")
os.write(memory, bytes(4096))
results = {
    "hand_over": hand_over,
    "give_back": lambda: [hand_over(), give_back()][1],
    "top": lambda: json.loads(subprocess.check_output([sys.argv[3], "--socket", sys.argv[1], "--json", "--count", "1", "top"])),
    "kick": lambda: ask("kick", session=client()),
    "limit": lambda: [ask("limit", session=client(), rate=5000, burst=500), ask("limit", tenant="limited", bytes_rate=8000000)],
}

# A documented member has a type; an object, or the elements of a list, have members
def type_of(words):
    m = re.match("(?:an? )?(text|boolean|list|object)", words, re.IGNORECASE)
    return m[1] if m else "integer"
def read_entry(lines):
    entry = (type_of(lines[0]), {})
    last = None
    while lines and not lines[0].startswith(".Pc"):
        line = lines.pop(0)
        if m := re.match(r"\.Ql (\w+)", line):
            last = m[1]
            entry[1][last] = ("integer", {})
        elif line == ".Po":
            entry[1][last] = read_entry(lines)
        elif line.startswith(".Pq "):
            entry[1][last] = (type_of(line[4:]), {})
    del lines[:1]
    return entry
page = open(sys.argv[2]).read().split(".Sh PROTOCOL")[1].split(".El\n.Sh EXIT STATUS")[0]
entries = {}
for part in page.split("\n.It Cm ")[1:]:
    names, *rest = part.splitlines()
    for command in names.split(" , "):
        entries[command] = read_entry(list(rest))
entries["top"] = ("list", entries["sessions"][1] | entries["top"][1])
entries["limit"] = ("list", entries["limit"][1])
assert set(entries) >= {"status", "reload", "metrics"} | set(results), list(entries)

names = {bool: "boolean", int: "integer", str: "text", list: "list", dict: "object"}
def compare(where, documented, v, have):
    kind, members = documented
    have.add(where)
    if names.get(type(v)) != kind:
        wrong(f"{where}: {v!r} is no {kind}")
        return
    for o in v if kind == "list" else [v] if kind == "object" else []:
        for k in o:
            if k in members:
                compare(f"{where}.{k}", members[k], o[k], have)
            else:
                wrong(f"{where}: member {k} is not documented")
def all_of(where, documented):
    return {where}.union(*(all_of(f"{where}.{k}", d) for k, d in documented[1].items()))
for command in sorted(entries, key=lambda name: name == "kick"): # the others need the session
    documented, have = entries[command], set()
    compare(command, documented, results.get(command, lambda: ask(command))(), have)
    for k in sorted(all_of(command, documented) - have):
        wrong(f"{k} is documented, but not there")
sys.exit(bad)
END
ok "reddnctl(8) lists exactly the members and their types"
kill "$ping" 2>/dev/null
wait "$ping"

# ---- followers ----------------------------------------------------------------------------

timeout "$limit" "$REDDNCTL" --socket "$control" --json audit --follow >"$work/follow.out" 2>&1 &
follower=$!
pids+=("$follower")
until_true grep -q reload-failed "$work/follow.out" || fail "the follower gets no event" "$work/follow.out"
served || fail "no get" "$work/get.log"
until_true sh -c "tail -n 1 '$work/follow.out' | grep -q '\"event\": *\"ends\"'" || fail "the follower does not get the event" "$work/follow.out"
kill "$follower"
wait "$follower" 2>/dev/null
ok "a follower gets events as they happen"

# refused quickly
echo '*' >"$work/reddnd.conf"
# A follower that does not read: its socket fills up. It gets the first events, loses some, and gets the number of lost ones.
python3 - "$control" >"$work/slow.log" 2>&1 <<'END' || fail "a slow follower" "$work/slow.log" "$work/reddnd.log"
import json, socket, sys
def peer():
    s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1]); return s, s.makefile()
slow, lines = peer()
events = 2000 + slow.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 100
slow.sendall(b'{"command": "audit", "follow": true}\n')
kept = json.loads(lines.readline())["result"]
last = kept[-1]["number"]
busy, answers = peer()
for _ in range(events):
    busy.sendall(b'{"command": "reload"}\n')
    assert json.loads(answers.readline())["ok"] is False
end = last + events
lost = 0
while last < end:
    e = json.loads(lines.readline())
    if "lost" in e:
        lost += e["lost"]
        last += e["lost"]
    else:
        assert e["number"] == last + 1, (e, last)
        last = e["number"]
assert 0 < lost < events, lost
print(lost, "of", events, "lost")
END
ok "a slow follower delays nobody, and gets the number of lost events: $(tail -n 1 "$work/slow.log")"

stop_reddnd
done_testing
