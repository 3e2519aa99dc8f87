#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Which keys exist, and what they have, by one handle whose offload has parts for requests of several keys, while a writer inserts,
# deletes and moves keys and replaces the table, or clients put and delete in a store: a key that is there is never missing, and one
# that is not exists only by the chance of two bytes, or not at all where the server compares, but for one that was deleted from a store,
# and is never got. By the NIC, unrolled and recycled, and by the CPU.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
needs "${recycling[@]}" has.devx has.cross_channel
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}" "${EXISTS:?set EXISTS to the path of the test client}"
seed=${TEST_SEED:-1} requests=${TEST_REQUESTS:-250}

"$REDDN_TABLE" create --quiet --buckets 512 --heap 128K --max-key 32 --max-value 64 "$memory/table" || fail "no table"
"$REDDN_TABLE" create --quiet --store --capacity 400 --heap 1M --max-key 32 --max-value 64 "$memory/store" || fail "no store"
declare -A how=([unrolled]='mode = "unrolled"' [recycled]='mode = "recycled"' [cpu]='engine = "cpu"')
# of all sizes in all: the daemon makes them again for each table that replaces another
declare -A parts=([table]='mget = { keys = [16]; }; exists = { keys = [16, 64]; };' [store]='mget = { keys = [4]; }; exists = { keys = [4, 64]; };')
offloads=''
for kind in table store; do
	for way in "${!how[@]}"; do
		offloads+="{ name = \"$kind.$way\"; region = \"$kind\"; ${how[$way]}; ${parts[$kind]} }, "$'\n'
	done
done
offloads+="{ name = \"table.exact\"; region = \"table\"; ${how[recycled]}; exists_exact = { keys = [4, 16]; }; },
	{ name = \"store.exact\"; region = \"store\"; ${how[unrolled]}; exists_exact = { keys = [4, 16]; }; },"

# Its second key has the arguments in another order
mkdir "$work/programs"
cp "$programs"/*.rdn "$work/programs"
programs=$work/programs
cat >"$work/programs/unlike.rdn" <<'END'
program unlike
shape   table
param width  = 4 from 1 to 7
param record = 64K from 64 to 4M
const tag    = 0xa5 << 48
region buckets, heap, live
struct bucket { len : be24, off : be40, mark : le56, _ : u8 }
arg    a[2] { fp : u48, at : offset(width) in buckets }
arg    b[2] { at : offset(width) in buckets, fp : u48 }
for p in 0..2 {
  one: read buckets @ a[p].at as bucket { len -> hit.length, off -> hit.addr, mark -> seen }
  if seen == a[p].fp + tag {
    hit: write heap -> slot @ 64, 1 to record
  }
}
for p in 0..2 {
  two: read buckets @ b[p].at as bucket { len -> more.length, off -> more.addr, mark -> seen }
  if seen == b[p].fp + tag {
    more: write heap -> slot @ 64 + record, 1 to record
  }
}
write_imm live -> slot @ 0, 64 bytes
END

nic_options=(--seed "$seed")
start_nic
start_reddnd "control = \"$control\"; connect_timeout = \"1000s\"; refusal_rate = 1000;
regions = ( { name = \"table\"; kind = \"table\"; path = \"$memory/table\"; }, { name = \"store\"; kind = \"store\"; path = \"$memory/store\"; } );
offloads = ( $offloads  { name = \"unlike\"; program = \"unlike\"; region = \"table\"; },
  { name = \"short\"; program = \"hash-exists\"; region = \"store\"; params = { part = 2; }; } );"
becomes offloads "the parts of a store have its lengths" \
	'[(o["state"], "see its param \"part\"" in o["why"]) for o in d if o["offload"] == "short"] == [("disabled", True)]'
becomes offloads "a client asks for each key in the same form" \
	'[(o["state"], "each of its 2 keys in the same form" in o["why"]) for o in d if o["offload"] == "unlike"] == [("disabled", True)]'

# Ends a session that does not put, each $TEST_KICKS seconds until it is killed: an answer is as right from the next session
kick()
{
	while sleep "$TEST_KICKS"; do
		ctl --json sessions
		ctl kick "$(value 'max(([s["requests"], s["session"]] for s in d if not s["offload"].endswith(".put")), default=[0, 0])[1]')" || true
	done
}

asked=0
ask() # KIND OFFLOAD OF
{
	local kicker=

	asked=$((asked + 1))
	if [[ ${TEST_KICKS:-} ]]; then
		kick 2>/dev/null &
		kicker=$!
	fi
	on_nic ask.log "$EXISTS" "$1" "$address" "$port" "$2" "$3" "$requests" $((seed + asked)) ||
		fail "$2, seed $((seed + asked)): exit status $?" "$work/ask.log" "$work/reddnd.log"
	if [[ $kicker ]]; then
		kill "$kicker"
		wait "$kicker" || true
	fi
	ok "$(tail -n 1 "$work/ask.log")"
}
for way in unrolled recycled cpu; do
	ask table "table.$way" "$memory/table"
	ask store "store.$way" "store.$way"
done
ask table table.exact "$memory/table"
ask store store.exact store.exact
becomes offloads "each part had its requests" '[o["offload"] for o in d if "." in o["offload"] and not o["requests"]] == []'
requests=$((requests / 5))
ask table table.unrolled.exists16 "$memory/table"
ask store store.recycled.exists64 store.recycled
becomes offloads "hits and misses mean the same in each mode: whether a get found a key" \
	'all(o["hits"] + o["misses"] == (0 if ".exists" in o["offload"] else o["requests"] - o["unseen"]) for o in d if ".put" not in o["offload"])'
stop_reddnd
done_testing
