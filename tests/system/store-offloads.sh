#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Offloads of a store: their params come from it, what a put publishes is what gets of the catalog are proved for, and a program that
# relies on less is refused, as is one that changes a store by anything but a publish.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDNCTL:?set REDDNCTL to the path of reddnctl}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of reddn-table}"

needs has.masked_atomics

store() # NAME LONGEST-VALUE HEAP
{
	"$REDDN_TABLE" create --quiet --store --capacity 200 --heap "$3" --max-key 100 --max-value "$2" "$memory/$1" || fail "no store $1"
}

reddn() # LOG VERB OFFLOAD ARGUMENT...
{
	local log=$1 verb=$2
	shift 2
	on_nic "$log" "$REDDN" "$verb" --port "$port" "$address" "$@"
}

# Records are larger than the default of "most", and than that of "record"
store large 100000 64M
store small 500 4M
cat >"$work/short.rdn" <<'END'
program short
region buckets, heap
read buckets @ 0 as be24 -> hit.length
hit: write heap -> slot @ 64, 1 to 300
write_imm 0 as u8 -> slot
END
cat >"$work/counts.rdn" <<'END'
program counts
region words writable
add words @ 8 as le64 by 1
write_imm 0 as u8 -> slot
END
regions="regions = ( { name = \"large\"; kind = \"store\"; path = \"$memory/large\"; }, { name = \"small\"; kind = \"store\"; path = \"$memory/small\"; } );"

for tenant in readers sparing; do
	(umask 077 && head -c 32 /dev/urandom >"$work/$tenant.key")
done

start_nic
start_reddnd "control = \"$work/control\"; $regions offloads = ( { name = \"large\"; region = \"large\"; mget = { keys = [2, 4]; }; exists = { keys = [2, 8]; cpu_above = 2; }; }, { name = \"small\"; region = \"small\"; mode = \"recycled\"; put = { depth_max = 4; }; }, { name = \"short\"; program = \"$work/short.rdn\"; region = \"large\"; },
  { name = \"again\"; program = \"hash-get\"; region = \"large\"; mode = \"recycled\"; } );
tenants = ( { name = \"writers\"; }, { name = \"readers\"; key = \"$work/readers.key\"; offloads = [ \"large\", \"large.mget2\" ]; sessions = 1; },
  { name = \"sparing\"; key = \"$work/sparing.key\"; extent_bytes = \"64K\"; } );"

head -c 90000 /dev/zero | tr '\0' v >"$work/value"
reddn put.log put large key "$(cat "$work/value")" || fail "no put of 90000 bytes" "$work/put.log" "$work/reddnd.log"
for offload in large again; do
	reddn get.log get "$offload" key || fail "no get" "$work/get.log" "$work/reddnd.log"
	[[ $(cat "$work/get.log") = "$(cat "$work/value")" ]] || fail "$offload: another value" "$work/get.log"
done
ok "with the params of the store 90000 bytes are put, and read unrolled and recycled"

{ reddn put.log put small key "$(head -c 400 "$work/value")" && reddn get.log get small key; } ||
	fail "no put, or no get" "$work/put.log" "$work/get.log" "$work/reddnd.log"
[[ $(wc -c <"$work/get.log") -eq 401 ]] || fail "another value of the small store" "$work/get.log"
! reddn put.log put small key "$(head -c 600 "$work/value")" || fail "600 bytes are put into a store of 500" "$work/put.log"
ok "another store has its own"

reader=(--port "$port" --token-file "$work/readers.key" "$address" large key)
on_nic get.log "$REDDN" get "${reader[@]}" || fail "no get of a reader" "$work/get.log" "$work/reddnd.log"
! on_nic put.log "$REDDN" put "${reader[@]}" value || fail "a reader puts"
grep -q 'tenant readers may not use offload large.put' "$work/put.log" || fail "no reason" "$work/put.log"
ok "a tenant that is not allowed the puts gets"
on_nic ping.log "$REDDN" ping --json --count 1 "${reader[@]::5}" large || fail "no ping" "$work/ping.log"
grep -q '"keys": 2, "exists_keys": 0' "$work/ping.log" || fail "a reader has other parts" "$work/ping.log"
! on_nic exists.log "$REDDN" exists "${reader[@]}" || fail "a reader knows what exists"
grep -q 'no part for questions which keys exist, or this client may not use one' "$work/exists.log" || fail "no reason" "$work/exists.log"
! on_nic exists.log "$REDDN" exists "${reader[@]::5}" large.exists8 key || fail "a reader knows it from the part"
grep -q 'tenant readers may not use offload large.exists8' "$work/exists.log" || fail "no reason" "$work/exists.log"
on_nic ping.log "$REDDN" ping --json --count 1 --port "$port" "$address" large || fail "no ping" "$work/ping.log"
grep -q '"keys": 4, "exists_keys": 8' "$work/ping.log" || fail "a writer has other parts" "$work/ping.log"
reddn exists.log exists large a b key || [[ $(<"$work/exists.log") = *$'\n'key* ]] || fail "a writer does not know it" "$work/exists.log"
ok "parts for several keys are allowed one by one"
on_nic get.log "$REDDN" get "${reader[@]}" key key key || fail "no gets without a part" "$work/get.log" "$work/reddnd.log"
[[ $(wc -c <"$work/get.log") -eq $((4 * 90001)) ]] || fail "other values" "$work/get.log"
ok "gets do without a part that has no room"
"$REDDNCTL" --socket "$work/control" --json offloads >"$work/offloads"
python3 - "$work/offloads" <<'END' || fail "another engine, or no reason" "$work/offloads"
import json, sys
engines = {o["offload"]: (o["engine"], o["why"]) for o in json.load(open(sys.argv[1]))}
assert engines["large.exists8"] == ("cpu", "its requests have 8 keys, and the configuration asks for it above 2"), engines
assert engines["large.exists2"][0] == engines["large"][0], engines
modes = {o["offload"]: o["mode"] for o in json.load(open(sys.argv[1]))}
assert modes["large.mget2"] == modes["large.exists2"] == modes["large"], modes
puts = {o: (modes[o], engines[o][1]) for o in modes if o.endswith(".put")}
assert puts["small.put"] == (modes["again"], engines["again"][1]) or "fetches RECVs" in puts["small.put"][1], puts
assert puts["large.put"][0] == "unrolled" and puts["large.put"][1], puts
END
grep -q 'offload large.exists8: the CPU executes it: its requests have 8 keys' "$work/reddnd.log" || fail "no reason in the log" "$work/reddnd.log"
ok "above a number of keys the CPU answers, puts of large records are unrolled, and it is reported why"

sparing=(--port "$port" --token-file "$work/sparing.key" "$address")
! on_nic put.log "$REDDN" put "${sparing[@]}" large key value || fail "extents beyond the quota"
grep -qE 'extents of [0-9]{7} bytes; tenant sparing has 65536 left of its quota "extent_bytes" of 65536' "$work/put.log" ||
	fail "no reason" "$work/put.log"
on_nic put.log "$REDDN" put "${sparing[@]}" small key value || fail "no put below the quota" "$work/put.log" "$work/reddnd.log"
refunded()
{
	"$REDDNCTL" --socket "$work/control" --json tenants >"$work/tenants" &&
		python3 -c 'import json, sys; t = json.load(open(sys.argv[1]))[2]; sys.exit(t["extent_bytes"] != 0 or t["extent_bytes_max"] != 65536)' "$work/tenants"
}
until_true refunded || fail "extents stay charged" "$work/tenants"
ok "a tenant holds no more extents than its quota"

{ grep -q 'offload short: .*with regions into which programs store' "$work/reddnd.log" &&
	grep -q 'short.rdn:4:1: error: .* replaces a length by that of what a program publishes there, 1 to [0-9]* bytes, .* declared are 1 to 300' \
		"$work/reddnd.log"; } || fail "a program that takes shorter lengths for granted is served" "$work/reddnd.log"
! reddn get.log call short || fail "it answers" "$work/get.log"
ok "a get that relies on shorter records is refused"
stop_reddnd
start_reddnd "$regions offloads = ( { name = \"again\"; program = \"hash-get\"; region = \"large\"; }, { name = \"short\"; program = \"$work/short.rdn\"; region = \"large\"; } );"
grep -q 'short.rdn:4:1: error: .* replaces a length by that of what a program publishes there, 1 to [0-9]* bytes, .* declared are 1 to 300' \
	"$work/reddnd.log" || fail "a program that takes shorter lengths for granted is served" "$work/reddnd.log"
{ reddn get.log get again key && [[ $(cat "$work/get.log") = "$(cat "$work/value")" ]]; } || fail "no get" "$work/get.log" "$work/reddnd.log"
ok "also by a daemon that has no puts of the store, and knows nothing of an earlier one"
stop_reddnd

# The smallest records and the largest ones that reddn-table makes a store for
"$REDDN_TABLE" create --quiet --store --buckets 16 --max-key 1 --max-value 1 "$memory/least" || fail "no store of the smallest records"
"$REDDN_TABLE" create --quiet --store --buckets 16 --max-key 16 --max-value 1048520 --heap 128M "$memory/most" ||
	fail "no store of the largest records"
! "$REDDN_TABLE" create --quiet --store --max-key 16 --max-value 1M "$memory/more" 2>"$work/create.log" || fail "a store of larger ones"
grep -q 'a record of a store has up to 1048576 bytes' "$work/create.log" || fail "no reason" "$work/create.log"
start_reddnd "regions = ( { name = \"least\"; kind = \"store\"; path = \"$memory/least\"; }, { name = \"most\"; kind = \"store\"; path = \"$memory/most\"; } );
offloads = ( { name = \"least\"; region = \"least\"; }, { name = \"most\"; region = \"most\"; depth_max = 4; put = { depth_max = 4; }; } );"
for offload in least most; do
	{ reddn put.log put "$offload" k v && reddn get.log get "$offload" k && [[ $(cat "$work/get.log") = v ]]; } ||
		fail "no put, or no get" "$work/put.log" "$work/get.log" "$work/reddnd.log"
done
grep -q 'offload most.put: it is unrolled: the extents of 64 instances take [0-9]* bytes, more than one part in 32 of the heap' "$work/reddnd.log" ||
	fail "it is recycled, or no reason" "$work/reddnd.log"
ok "the smallest and the largest records are put"
stop_reddnd

refused() # OFFLOAD WORDS
{
	configure_reddnd "$regions offloads = ( $1 );"
	! on_nic check.log "$REDDND" --config "$work/reddnd.conf" || fail "it starts" "$work/check.log"
	grep -q "$2" "$work/check.log" || fail "no reason: $2" "$work/check.log"
}
refused "{ name = \"o\"; program = \"$work/counts.rdn\"; regions = { words = \"small.buckets\"; }; }" 'only a publish changes something'
refused '{ name = "o"; program = "store-put"; region = "small"; engine = "cpu"; }' 'only a NIC can'
ok "a store is changed by a publish alone, by a NIC"
