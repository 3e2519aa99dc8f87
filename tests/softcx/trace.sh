#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Reports of the softcx tool: the trace of known programs, every object, and the objects that a program left behind.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
with_daemon=false
if able "chains of the daemon" has.devx; then
	with_daemon=true
	. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
fi

: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
: "${LEAKY:?set LEAKY to the path of the program that leaks}"

tracing()
{
	"$SOFTCX" status --json | python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin)["tracing"])'
}

not_tracing()
{
	! tracing
}

trace() # NAME OPTIONS...: starts one, alone, into $work/NAME
{
	local name=$1
	shift

	until_true not_tracing || fail "tracing goes on without a reader"

	"$SOFTCX" trace "$@" >"$work/$name" 2>"$work/$name.err" &
	tracer=$!
	pids+=("$tracer")
	until_true tracing || fail "no trace" "$work/$name.err"
}

counted() # NAME OPTIONS...: one that ends by itself, with --count, while something else goes on
{
	until_true not_tracing || fail "tracing goes on without a reader"
	timeout "$limit" "$SOFTCX" trace "${@:2}" >"$work/$1" 2>"$work/$1.err" || fail "trace ${*:2} ends with $?" "$work/$1.err"
}

end_trace() # NAME
{
	kill -INT "$tracer"
	wait "$tracer" || fail "softcx trace ends with $?" "$work/$1.err"
	[[ ! -s $work/$1.err ]] || fail "softcx trace complains" "$work/$1.err"
}

records() # NAME EXPRESSION: true of the list r of records of a JSON trace
{
	python3 -c '
import json, sys
r = [json.loads(line) for line in open(sys.argv[1])]
sys.exit(not eval(sys.argv[2]))' "$work/$1" "$2" || fail "$1: not so: $2" "$work/$1"
}

# ---- the trace of a program whose WQEs are known

start_nic
trace write.json --json
free_port
tcp=$port
tcp_pair ib_write_lat "$tcp" "ib_write_lat -F -n 50 -s 2048 -p $tcp" "ib_write_lat -F -n 50 -s 2048 -p $tcp $address"
end_trace write.json
records write.json 'len(r) == 100 and all(x["name"] == "WRITE" and x["length"] == 2048 and x["outcome"] == "done" for x in r)'
records write.json 'len({x["qpn"] for x in r}) == 2 and len({x["pid"] for x in r}) == 2'
records write.json 'all([x["index"] for x in r if x["qpn"] == q] == list(range(50)) for q in {x["qpn"] for x in r})'
ok "every WRITE of ib_write_lat, each queue's in its order"

# ---- for Wireshark

# A row for each packet: destination port, operation of the BTH, whether the whole of it is there.
packets() # FILE
{
	python3 -c '
import struct, sys
data, at = open(sys.argv[1], "rb").read(), 0
while at < len(data):
    kind, length = struct.unpack_from("=II", data, at)
    assert length % 4 == 0 and struct.unpack_from("=I", data, at + length - 4)[0] == length
    if kind == 6:
        have, full = struct.unpack_from("=II", data, at + 20)
        frame = data[at + 28 : at + 28 + have]
        print(struct.unpack_from(">H", frame, 36)[0], frame[42], have == full)
    at += length' "$1"
}

for_wireshark()
{
	trace out --pcapng "$work/trace.pcapng"
	free_port
	tcp=$port
	tcp_pair ib_atomic_lat "$tcp" "ib_atomic_lat -F -n 5 -p $tcp" "ib_atomic_lat -F -n 5 -p $tcp $address"
	free_port
	tcp=$port
	tcp_pair ib_write_bw "$tcp" "ib_write_bw -F -n 6 -p $tcp" "ib_write_bw -F -n 6 -p $tcp $address"
	end_trace out
	packets "$work/trace.pcapng" | sort | uniq -c >"$work/packets"
	diff "$work/packets" - <<'END' || fail "the packets (<) are not the expected ones (>)" "$work/packets"
      6 4791 10 False
      5 4791 20 True
END
	ok "the packets of a trace"

	trace out --show all --pcapng "$work/events.pcapng"
	free_port
	tcp=$port
	tcp_pair ib_send_lat "$tcp" "ib_send_lat -F -n 5 -p $tcp" "ib_send_lat -F -n 5 -p $tcp $address"
	end_trace out
	[[ $(grep -ac 'MESSAGE=.* RECV \[[0-9]*\] takes ' "$work/events.pcapng") -eq 10 ]] || fail "the RECVs are not in the file"
	grep -aqE 'MESSAGE=.* CQ [0-9]+ CQE [0-9]+ of QP .*: SEND received' "$work/events.pcapng" || fail "the CQEs are not in the file"
	[[ $(packets "$work/events.pcapng" | wc -l) -eq 10 ]] || fail "the packets among the events"
	ok "packets, RECVs and CQEs for Wireshark"
}
! able "packets for Wireshark, those of RoCE, and of atomics" port.link=Ethernet has.host_atomics || for_wireshark

# ---- a reader that does not read

trace slow.json --json
kill -STOP "$tracer"
free_port
tcp=$port
tcp_pair ib_write_bw "$tcp" "ib_write_bw -F -n 60000 -s 2 -p $tcp" "ib_write_bw -F -n 60000 -s 2 -p $tcp $address"
kill -CONT "$tracer"
kill -INT "$tracer"
wait "$tracer" || fail "softcx trace ends with $?" "$work/slow.json.err"
grep -q 'records are missing' "$work/slow.json.err" || fail "it does not say that records are missing" "$work/slow.json.err"
records slow.json 'sum(x.get("lost", 1) for x in r) == 60000 and any("lost" in x for x in r)'
ok "a stopped reader does not hold the NIC up, and hears what it missed"
until_true not_tracing || fail "tracing goes on without a reader"

# ---- what programs leave behind

leaves() # STATUS WORDS ARGUMENT: the leak check of LEAKY
{
	local rc=0

	timeout -k "$limit" "$limit" "$SOFTCX" run --leak-check "$LEAKY" "$3" >"$work/leaky.log" 2>&1 || rc=$?
	[[ $rc -eq $1 ]] || fail "leak check of $3: exit status $rc, not $1" "$work/leaky.log"
	if [[ -n $2 ]]; then
		grep -qE "$2" "$work/leaky.log" || fail "leak check of $3 does not say $2" "$work/leaky.log"
	elif [[ -s $work/leaky.log ]]; then
		fail "leak check of $3 reports something" "$work/leaky.log"
	fi
	ok "leak check: $3"
}

leaves 0 '' clean
leaves 3 '^uverbs0  process [0-9]+ leaky$' verbs
grep -qE '^  pd  ' "$work/leaky.log" || fail "the PD is not reported" "$work/leaky.log"
grep -qE '^  mr  .*, length 4096, access local read\+local write$' "$work/leaky.log" || fail "the MR is not reported" "$work/leaky.log"
! grep -qE '^  (uar|async)' "$work/leaky.log" || fail "the report has what the library keeps" "$work/leaky.log"
leaves 3 '^  cm id +handle [0-9]+, state listening, source 127.0.0.1:' cm
leaves 9 '^  pd  ' fail
leaves 3 '^  pd  ' child
timeout -k "$limit" "$limit" "$SOFTCX" run --leak-check sh -c "$LEAKY clean; kill -KILL \$\$" >"$work/leaky.log" 2>&1
[[ $? -eq 137 ]] || fail "the signal that ended the command is not reported" "$work/leaky.log"
cm_pair "rping under the leak check" "rping -s -a $address -C 3" "$SOFTCX run --leak-check rping -c -a $address -C 3"
ok "rping leaves nothing behind"

# ---- the chain of a get, an answer by the NIC alone

$with_daemon || {
	done_testing
	exit
}

"$REDDN_TABLE" create -q -b 64 "$work/table" || fail "create"
printf 'colour\tblue\n' | "$REDDN_TABLE" load -q "$work/table" - || fail "load"
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = ( { name = \"things\"; program = \"hash-get\"; region = \"t\"; } );"
server_pid=$(program_of "$reddnd") || exit
get()
{
	on_nic get.log "$REDDN" get --timeout 100000 -p "$port" "$address" things colour || fail "get" "$work/get.log"
	grep -qx blue "$work/get.log" || fail "another value" "$work/get.log"
}

# Every member of an object is there for the asking.
"$SOFTCX" status --json | python3 -c '
import json, sys
files = [f for f in json.load(sys.stdin)["open_files"] if f["pid"] == int(sys.argv[1])]
objects = [o for f in files for o in f["objects"]]
kinds = {o["kind"] for o in objects}
assert {"pd", "mr", "umem", "uar", "devx cq", "devx qp", "cm id"} <= kinds, kinds
assert [o["source"] for o in objects if o["kind"] == "cm id" and o["state"] == "listening"] == [sys.argv[2]], objects
qp = [o for o in objects if o["kind"] == "devx qp"][0]
assert qp["state"] == "RTS" and qp["type"] == "RC" and qp["sq_done"] == qp["sq_enabled"], qp
print(qp["qpn"])' "$server_pid" "$address:$port" >"$work/qpn" || fail "status --json does not show the objects of the server"
qpn=$(<"$work/qpn")
"$SOFTCX" status --objects >"$work/objects" || fail "status --objects"
grep -qE "^uverbs0  process $server_pid reddnd$" "$work/objects" || fail "the server's file is not shown" "$work/objects"
grep -qE "^  devx qp +handle [0-9]+, qpn $qpn, type RC, state RTS" "$work/objects" || fail "its QP is not shown" "$work/objects"
grep -qE '^  mr +handle [0-9]+, key 0x[0-9a-f]+, pdn [0-9]+, address 0x.*, access local read\+remote read$' "$work/objects" ||
	fail "its MRs are not shown" "$work/objects"
ok "the objects of the server"

trace get.txt
get
end_trace get.txt
while read -r words; do
	grep -qE "$words" "$work/get.txt" || fail "a chain in words: there is no $words" "$work/get.txt"
done <<'END'
^[0-9:]{8}\.[0-9]{9} mlx5_0 QP 0x[0-9a-f]{6} \[0\] WAIT for CQ [0-9]+ to reach 0 -> done, no CQE$
READ [0-9]+ bytes from 0x[0-9a-f]+ rkey 0x[0-9a-f]+ to 0x[0-9a-f]+ lkey 0x[0-9a-f]+
CAS 8 bytes at 0x.* rkey 0x.*: compare 0x.* swap 0x.*, old value to 0x.* lkey 0x.*fence
SEND_EN QP 0x[0-9a-f]{6} up to [0-9]+ -> done
END
ok "the chain of a get in words"

trace get.json --json --pid "$server_pid"
get
end_trace get.json
records get.json 'r and {x["pid"] for x in r} == {'"$server_pid"'}'
# the answer is the first WRITE_IMM: what its queue was enabled by, and what that enable waited for, came before
cat >"$work/chain.py" <<'END'
import json, sys
r = [json.loads(line) for line in open(sys.argv[1])]
end = [i for i, x in enumerate(r) if x["name"] == "WRITE_IMM"][0]
reply, before = r[end], r[:end]
assert before[-1]["qpn"] == reply["qpn"], "the data is written by the queue of the reply"
data = [x for x in before if x["qpn"] == reply["qpn"] and x["name"] == "WRITE"]
assert data[0]["rkey"] == reply["rkey"] and data[0]["length"] > 4, "the value goes where the reply goes"
enables = [i for i, x in enumerate(before) if x["name"] == "SEND_EN" and x.get("target_qpn") == reply["qpn"]]
last = before[enables[-1]]
assert last["until"] > reply["index"], "enabled by the chain"
code = [x for x in before[:enables[-1]] if x["qpn"] == last["qpn"]]
names = [x["name"] for x in code]
assert names[:2] == ["WAIT", "SEND_EN"] and code[1]["target_qpn"] == last["qpn"], "the request starts the code"
for first, then in ("READ", "CAS"), ("CAS", "READ"):
    assert first in names and then in names[names.index(first):], (first, then, names)
assert names[-1] == "WAIT" or "fence" in last.get("fence", ""), "the reply waits for the lookup"
assert [x["index"] for x in code] == sorted(x["index"] for x in code), "in order"
END
python3 "$work/chain.py" "$work/get.json" || fail "the chain of a get" "$work/get.json"
ok "the chain of a get: its WQEs and their order"

story() # of a get
{
	trace all.json --json --show all --pid "$server_pid"
	get
	end_trace all.json
	cat >"$work/all.py" <<'END'
import json, sys
r = [json.loads(line) for line in open(sys.argv[1])]
assert {x["kind"] for x in r} == {"wqe", "recv", "cqe", "wait"}, "every kind"
takes = [i for i, x in enumerate(r) if x["kind"] == "recv"][0]
request = r[takes]
assert request["length"] == sum(x["length"] for x in request["local"]) > 0, "the request goes where its RECV points"
cqe = [x for x in r[takes:] if x["kind"] == "cqe" and x["cqn"] == request["cqn"]][0]
assert cqe["qpn"] == request["qpn"] and cqe["length"] == request["length"] and cqe["name"].endswith("received"), cqe
gone = [i for i, x in enumerate(r) if x["kind"] == "wait" and x["state"] == "released" and x["cqn"] == cqe["cqn"]][0]
assert r[gone]["until"] == cqe["number"], "the chain waits for the request"
done = [x for x in r[gone:] if x["kind"] == "wqe" and x["qpn"] == r[gone]["qpn"]][0]
assert done["name"] == "WAIT" and done["index"] == r[gone]["index"], done
END
	python3 "$work/all.py" "$work/all.json" || fail "the story of a get" "$work/all.json"
	ok "the story of a get: RECV, CQE, WAIT"
}
# or the trace is full of what is flushed when the client leaves
! able "the story of a get" managed.flush=enabled || story

# A client that stays, so that a queue of its chain does: one that waits, found by what it does
background ping.log "$REDDN" ping --timeout 100000 -p "$port" -i 20 -c 100000 "$address" things
ping=$child
counted found.json --json --show wait --pid "$server_pid" --count 4
qpn=$(python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["qpn"])' "$work/found.json") ||
	fail "no WAIT is traced" "$work/found.json"
counted wait.txt --show wait --qp "$qpn" --count 6
[[ $(grep -cE " QP 0x$(printf %06x "$qpn") \[[0-9]+\] WAIT for CQ [0-9]+ to reach [0-9]+: (blocked|released)$" "$work/wait.txt") -eq 6 ]] ||
	fail "trace --show wait prints something else" "$work/wait.txt"
"$SOFTCX" trace --show wqe,cqes >"$work/show.txt" 2>&1
[[ $? -eq 125 ]] || fail "--show takes anything" "$work/show.txt"
ok "WAITs of one queue"

"$SOFTCX" status --json | python3 -c '
import json, sys
files = [f for f in json.load(sys.stdin)["open_files"] if f["pid"] == int(sys.argv[1])]
qps = [o for f in files for o in f["objects"] if o["kind"] == "devx qp" and o["state"] == "RTS"]
own = {o["qpn"] for o in qps}
client = [o["asks_ack_every"] for o in qps if o["dest_qpn"] not in own]
assert client == [256], qps' "$server_pid" || fail "the queue to the client does not ask for an acknowledgement with every 256th packet"
ok "acknowledgements of the client are asked for as often as Linux does"

counted one.txt --qp "$qpn" --count 1
[[ $(wc -l <"$work/one.txt") -eq 1 ]] || fail "trace --count 1 prints more or less than that" "$work/one.txt"
grep -q " QP 0x$(printf %06x "$qpn") " "$work/one.txt" || fail "trace --qp $qpn prints another" "$work/one.txt"
ok "one WQE of one queue"
kill "$ping"
wait "$ping"
stop_reddnd
done_testing
