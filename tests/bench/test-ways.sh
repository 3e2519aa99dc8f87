#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The baselines of gets and puts by the NIC: each way gets the right value of each key, reports absent keys, and sets and deletes values.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
: "${BASELINE_SERVER:?}" "${BASELINE_CLIENT:?}" "${SOCKETS_SERVER:?}"

seq 2000 | awk '{ printf "key-%d\tvalue %d of %d\n", $1, $1 * 7919, 2000 }' >"$work/data.tsv"
seq 2000 | awk '{ printf "key-%d\tanother %d\n", $1, $1 }' >"$work/other.tsv"
make_table "$work/table" --capacity 2000 <"$work/data.tsv"

# ask WAY PORT OPTION...: runs a benchmark that must succeed; its output is in ask.log
ask()
{
	local way=$1 port=$2
	shift 2

	on_nic ask.log "$BASELINE_CLIENT" "$@" "$way" "$address" "$port" || fail "$way" "$work/ask.log" "$work/server.log"
}

start_nic
background server.log "$BASELINE_SERVER" "$work/table" "$address" 7472
server_ready "$child" "the server" server.log grep -q listening "$work/server.log"
polling=$child
background events.log "$BASELINE_SERVER" --events --write "$work/table" "$address" 7473
server_ready "$child" "the server with events" events.log grep -q listening "$work/events.log"
events=$child
ways=(onesided hopscotch)
# requests and values inline, in a queue pair of verbs
able "requests to a server" 'limits.send_wqe>=512' && ways+=(requests)
for way in "${ways[@]}"; do
	ask "$way" 7472 --keys "$work/data.tsv" --in-order --verify --count 2000 --depth 7
	ask "$way" 7472 --table "$work/table" --verify --count 500 --absent 50 --depth 1
	ok "$way: every key, and absent ones"
done
of_lists()
{
	local way ways=(list)

	# nodes of 19 bytes: next, key (little-endian), length and offset of the value
	python3 - "$work" <<'PY'
import sys
values = [b"value of %d" % n for n in range(8)]
nodes, text, off = b"", "", 0
for n, value in enumerate(values):
    nodes += ((n + 1) % 8 * 19).to_bytes(5, "big") + (1000 + n).to_bytes(6, "little") + len(value).to_bytes(3, "big") + off.to_bytes(5, "big")
    text += "0,%d\t%s\n" % (1000 + n, value.decode())
    off += len(value)
for name, data in ("nodes", nodes), ("values", b"".join(values)), ("list.tsv", text.encode()):
    open(sys.argv[1] + "/" + name, "wb").write(data)
PY
	background list.log "$BASELINE_SERVER" --list "$work/nodes" "$work/values" "$address" 7474
	server_ready "$child" "the server of a list" list.log grep -q listening "$work/list.log"
	able "requests to a server" 'limits.send_wqe>=512' && ways+=(list-requests)
	for way in "${ways[@]}"; do
		ask "$way" 7474 --keys "$work/list.tsv" --in-order --verify --count 80 --depth 3
		ask "$way" 7474 --keys "$work/list.tsv" --verify --absent 50 --count 80 --depth 1
		ok "$way: every node, and keys that no node has"
	done
	on_nic ask.log "$BASELINE_CLIENT" --keys "$work/list.tsv" --count 1 onesided "$address" 7474 &&
		fail "READs of a table find a list" "$work/ask.log"
	kill "$child"
	expect_exit "$child" "the server of a list" list.log
}
of_lists

wqes()
{
	"$SOFTCX" status | sed -n 's/.*since start \([0-9]*\) WQEs.*/\1/p'
}

# over_sockets NAME PORT [LIBRARY]: gets by the protocol of memcached from a server of sockets, both with LIBRARY preloaded
over_sockets()
{
	# shellcheck disable=SC2016 # softcx sets LD_PRELOAD
	local before with=(sh -c 'LD_PRELOAD=$1:$LD_PRELOAD; shift; exec "$@"' sh "${3-}")

	before=$(wqes)
	background "$1.log" "${with[@]}" "$SOCKETS_SERVER" "$work/table" "$address" "$2"
	server_ready "$child" "the server over $1" "$1.log" grep -q listening "$work/$1.log"
	on_nic ask.log "${with[@]}" "$BASELINE_CLIENT" --keys "$work/data.tsv" --verify --absent 50 --count 2000 --depth 9 memcached "$address" "$2" ||
		fail "gets over $1" "$work/ask.log" "$work/$1.log"
	[[ -n ${3-} ]] || [[ $(wqes) -eq $before ]] || fail "the NIC works for TCP"
	[[ -z ${3-} ]] || [[ $(wqes) -gt $before ]] || fail "the NIC does nothing for rsockets"
	kill "$child"
	expect_exit "$child" "the server over $1" "$1.log"
	ok "gets over $1"
}
free_port
over_sockets TCP "$port"
rsockets=$(ls /usr/lib/*/rsocket/librspreload.so 2>/dev/null) || fail "there is no librspreload.so of librdmacm"
# rsocket.c asks for 64 bytes inline
if able "sockets over RDMA" 'limits.send_wqe>=512'; then
	over_sockets rsockets 7475 "$rsockets"
fi
of_many()
{
	# 2000 keys are no multiple of 7
	ask onesided 7472 --keys "$work/data.tsv" --many 7 --verify --in-order --count 2000 --depth 3
	on_nic ask.log "$BASELINE_CLIENT" --json --keys "$work/data.tsv" --exists --count 500 --absent 50 onesided "$address" 7472
	half_exist "READs of buckets"
	able "requests to a server" 'limits.send_wqe>=512' || return
	ask requests 7472 --keys "$work/data.tsv" --many 7 --verify --in-order --count 2000 --depth 3 --clients 2
	ask requests 7472 --keys "$work/data.tsv" --many 16 --verify --absent 50 --count 2000
	on_nic ask.log "$BASELINE_CLIENT" --json --keys "$work/data.tsv" --exists --many 64 --count 500 --absent 50 requests "$address" 7472
	half_exist "requests of several keys"
}

half_exist() # WHAT: of the JSON in ask.log
{
	python3 -c 'import json, sys; r = json.load(sys.stdin); sys.exit(not 150 < r["hits"] < 350 or r["hits"] + r["misses"] != 500)' <"$work/ask.log" ||
		fail "$1" "$work/ask.log"
	ok "$1 tell which keys exist"
}
of_many

# from_store NAME PORT PROGRAM...: gets of several keys, and whether they exist
from_store()
{
	local -a with=("$BASELINE_CLIENT" --keys "$work/data.tsv" --in-order --count 2000 --depth 3)

	background "$1.log" "${@:3}"
	server_ready "$child" "$1" "$1.log" "${with[@]}" --set "$1" "$address" "$2"
	"${with[@]}" --many 7 --verify "$1" "$address" "$2" >"$work/ask.log" || fail "gets of $1" "$work/ask.log"
	"${with[@]}" --many 7 --exists "$1" "$address" "$2" >"$work/ask.log" || fail "$1: what exists" "$work/ask.log"
	if [[ $1 == redis ]]; then
		"${with[@]}" --many 7 --exists --absent 50 "$1" "$address" "$2" >"$work/ask.log" 2>&1 && fail "absent keys of $1" "$work/ask.log"
	fi
	[[ $1 != memcached ]] || of_changes "$1" "$2" 2000
	kill "$child"
	wait "$child"
	ok "several keys of $1"
}

# of_changes WAY PORT KEYS: puts of the keys, on a condition as well, some by several connections; new keys are read when they are there; all are deleted
of_changes()
{
	local many=(--keys "$work/other.tsv" --clients 4 --depth 3)

	changes "$1" "$2" "${many[@]}" --write put --writes 50 --zipf 0.99 --count 2000
	changes "$1" "$2" "${many[@]}" --write put --in-order --count "$3"
	changes "$1" "$2" "${many[@]}" --write put_if --in-order --verify --count "$3"
	changes "$1" "$2" "${many[@]}" --verify --in-order --count "$3"
	changes "$1" "$2" --keys "$work/other.tsv" --write delete --in-order --count "$3"
	reports "$1" "$2" "{\"misses\": $3}" --keys "$work/other.tsv" --in-order --count "$3"
	reports "$1" "$2" "{\"misses\": $3}" --keys "$work/other.tsv" --write delete --in-order --count "$3"
	changes "$1" "$2" --keys "$work/other.tsv" --write put --in-order --count 20
	reports "$1" "$2" "{\"misses\": 0, \"wrong\": 0, \"present\": $3}" "${many[@]}" --write put --writes 50 --latest 20 --zipf 0.99 --verify --count 10000
	changes "$1" "$2" "${many[@]}" --verify --in-order --count "$3"
	ok "$1: puts, puts on a condition, deletes"
}

changes() # WAY PORT OPTION...: that must succeed
{
	on_nic ask.log "$BASELINE_CLIENT" "${@:3}" "$1" "$address" "$2" || fail "$*" "$work/ask.log"
}

reports() # WAY PORT JSON OPTION...: whose result has these members
{
	on_nic ask.log "$BASELINE_CLIENT" --json "${@:4}" "$1" "$address" "$2"
	python3 -c 'import json, sys; want, r = json.loads(sys.argv[1]), json.load(sys.stdin); sys.exit(any(r[key] != want[key] for key in want))' "$3" \
		<"$work/ask.log" || fail "$*: not $3" "$work/ask.log"
}
free_port
from_store memcached "$port" memcached -U 0 -l "$address" -p "$port" -u "$(id -un)"
free_port
from_store redis "$port" redis-server --bind "$address" --port "$port" --save "" --appendonly no

ask ideal 7472 --keys "$work/data.tsv" --count 500 --value-size 64
ok "READs of anything"
of_requests()
{
	ask requests 7473 --keys "$work/data.tsv" --verify --count 600 --absent 50 --clients 3 --depth 5
	ok "requests to a server that sleeps"
	ask requests 7473 --keys "$work/other.tsv" --set --in-order --count 2000
	for way in "requests 7473" "onesided 7472"; do
		# shellcheck disable=SC2086 # two words
		ask $way --keys "$work/other.tsv" --verify --in-order --count 2000
	done
	ok "sets are seen by requests and by READs"
	on_nic ask.log "$BASELINE_CLIENT" --keys "$work/data.tsv" --verify --count 100 requests "$address" 7472 &&
		fail "old values count as new ones" "$work/ask.log"
	on_nic ask.log "$BASELINE_CLIENT" --keys "$work/data.tsv" --set --count 10 requests "$address" 7472 &&
		fail "a second writer writes to the table" "$work/ask.log"
	ok "wrong answers and refused sets give an exit status of failure"
	of_changes requests 7473 2000
}
[[ ${ways[-1]} != requests ]] || of_requests
make_table "$memory/shared" --capacity 2000 --max-key 32 --max-value 64 --heap 4M <"$work/data.tsv"
background shared.log "$BASELINE_SERVER" --shared "$memory/shared" "$address" 7476
server_ready "$child" "the shared server" shared.log grep -q listening "$work/shared.log"
of_changes onesided 7476 2000
changes swap 7476 --keys "$work/data.tsv" --count 100
on_nic ask.log "$BASELINE_CLIENT" --keys "$work/data.tsv" --write put --count 1 onesided "$address" 7472 &&
	fail "a client writes to a table that is not shared" "$work/ask.log"
ok "one-sided changes of a shared table alone"
kill "$child"
expect_exit "$child" "the shared server" shared.log
kill "$polling" "$events"
expect_exit "$polling" "the server" server.log
expect_exit "$events" "the server with events" events.log
done_testing
