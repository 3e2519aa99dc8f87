#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# reddnc: checks, explains, draws and dumps programs, and runs them once on a NIC.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
: "${REDDNC:?}"
programs=$(realpath "$here/../../conf/programs")

expect() # STATUS PATTERN CMD...: the exit status, and a line of what it prints
{
	local status=$1 pattern=$2
	shift 2
	"$@" >"$work/out" 2>&1
	local got=$?
	[[ $got -eq $status ]] || fail "exit status $got, not $status: $*" "$work/out"
	grep -qE -- "$pattern" "$work/out" || fail "no line like $pattern: $*" "$work/out"
	ok "$pattern"
}

expect 0 '^usage: reddnc' "$REDDNC" --help
expect 64 'did you mean "explain"' "$REDDNC" explan x
expect 64 '^usage: reddnc check FILE' "$REDDNC" check
expect 64 'option -p does not take "probes"' "$REDDNC" check -p probes "$programs/hash-get.rdn"
expect 66 'absent.rdn: No such file' "$REDDNC" check "$work/absent.rdn"
expect 64 'option -p: "probes" is "x"; it must be a number, as in 4 or 64K' "$REDDNC" check -p probes=x "$programs/hash-get.rdn"
cat >"$work/once.rdn" <<'END'
program once
arg x : be16
arg y : be16
if x == 1 {
  write x -> slot @ 8
}
if y == x {
  write y -> slot @ 16
}
write_imm x -> slot @ 0
END
expect 0 '^request: 4 bytes' "$REDDNC" explain "$work/once.rdn" # each argument once
cat >"$work/masked.rdn" <<'END'
program masked
region allowed, data
arg at : u8
var page : u8
var mask : u8
var place : u8
and at, 0xf0 -> page
read allowed @ page -> mask
and at, mask -> place
read data @ place as u8 -> got
write_imm got, at -> slot @ 0
END
expect 0 '^request: 1 bytes' "$REDDNC" explain "$work/masked.rdn" # nor is what it calculates with another one than what it looks up
head -c 100000 /dev/zero | tr '\0' '#' >"$work/large.rdn"
expect 1 'large.rdn: error: the file has more than 65536 bytes' "$REDDNC" check "$work/large.rdn"
printf 'program p\nwrite_imm 1 as be33 -> slot @ 0\n' >"$work/wrong.rdn"
expect 1 'wrong.rdn:2:[0-9]+: error: ' "$REDDNC" check "$work/wrong.rdn"
expect 1 'hash-get.rdn: hash_get, 6 copies' "$REDDNC" check "$work/wrong.rdn" "$programs/hash-get.rdn"
expect 1 'probes.*1 to 2' "$REDDNC" check -p probes=3 "$programs/hash-get.rdn"
expect 69 '^reddnc: .*(RDMA device|nowhere)' "$REDDNC" run --device nowhere "$programs/counter.rdn" 8 100
cp "$here/../../costs/cx6.conf" "$work/mine.conf"
expect 0 '^modelled on mine.conf' env -C "$work" "$REDDNC" explain --clock mine.conf "$programs/hash-get.rdn"
# The time of words of an application, by the model of a ConnectX-5
for program in compare-and-swap fetch-and-add; do
	"$REDDNC" explain --json --overlap --clock cx5 "$programs/$program.rdn" | python3 -c '
import json, sys
e = json.load(sys.stdin)
assert e["modelled_client_ns"] <= 3500, e["modelled_client_ns"]' || fail "$program is slower than it was"
done
ok "a word is swapped, or added to, in 3.5 us by the model of a ConnectX-5"
expect 66 '^reddnc: absent.conf: No such file' "$REDDNC" explain --clock absent.conf "$programs/hash-get.rdn"
expect 66 '/cx4.conf: No such file' "$REDDNC" explain --clock cx4 "$programs/hash-get.rdn"

# A program that calculates, on the other kind of device
printf 'program calc\nregion r\narg x : u64\nvar a : le64\nand x, r @ 8 as le64 -> a\nwrite_imm a -> slot @ 0\n' >"$work/calc.rdn"
expect 0 '^on a device that does not calculate on data in flight \(CALC\): [0-9]+ work requests: [0-9]+ copy, 1 atomic' "$REDDNC" explain "$work/calc.rdn"
expect 0 '^on a device that calculates on data in flight \(CALC\): [0-9]+ work requests: [0-9]+ copy, 0 atomic' "$REDDNC" explain -C "$work/calc.rdn"
expect 0 'CALC\): the CPU executes it; this takes masked atomics' "$REDDNC" explain -M "$work/calc.rdn"
expect 0 '"refusal": ?"this takes masked atomics' "$REDDNC" explain -jM "$work/calc.rdn"
expect 0 '^standard input: hash_get' "$REDDNC" check - <"$programs/hash-get.rdn"

for program in "$programs"/*.rdn; do
	"$REDDNC" check "$program" >"$work/out" 2>&1 || fail "$program" "$work/out"
	"$REDDNC" explain "$program" >"$work/out" 2>&1 || fail "$program is not explained" "$work/out"
	"$REDDNC" explain --json "$program" | python3 -c '
import json, sys
d = json.load(sys.stdin)
n = {}
for s in d["steps"]:
    n[s["class"]] = n.get(s["class"], 0) + 1
assert [n.get(c, 0) for c in ("copy", "atomic", "wait_enable")] == [d["copy"], d["atomic"], d["wait_enable"]], n
assert any(s["critical"] for s in d["steps"]) and d["modelled_ns"] > 0
assert sum(r["bytes"] for r in d["request"]) == d["request_bytes"]
assert all(s["why"] for s in d["steps"] if s["verb"] in ("wait", "send_en") and not s["label"])
' || fail "$program: the steps and the numbers disagree"
	"$REDDNC" draw "$program" -o "$work/picture.svg" || fail "$program is not drawn"
	python3 -c 'import sys, xml.etree.ElementTree as e
r = e.parse(sys.argv[1]).getroot()
assert len(r.findall("{http://www.w3.org/2000/svg}g")) > 2' "$work/picture.svg" || fail "$program: the picture is no SVG" "$work/picture.svg"
	"$REDDNC" dump "$program" | grep -q '^queue reply' || fail "$program is not dumped"
	if grep -q '^endless' "$program"; then
		"$REDDNC" dump "$program" | grep -A 1 '^loop: a ring of' | grep -q '^ *0  gate~' || fail "$program: its loop is not dumped"
		grep -q '>loop: .* wait and enable<' "$work/picture.svg" || fail "$program: its loop is not drawn"
	fi
	ok "$(basename "$program") is explained, drawn and dumped"
done

"$REDDNC" draw "$programs/hash-get.rdn" | diff - "$here/../../docs/hash-get.svg" ||
	fail "docs/hash-get.svg is not what \"reddnc draw conf/programs/hash-get.rdn\" draws"
ok "the README shows the picture of the program"
"$REDDNC" explain "$programs/hash-get.rdn" >"$work/out"
for line in '^hash_get: 12 work requests' 'because' '^ +[0-9]+ \| .*hit: write heap' '0\.\.5 +probe\[0\]\.fp, big-endian'; do
	grep -qE "$line" "$work/out" || fail "explain has no line like $line" "$work/out"
done
ok "explain prints the work requests of the hash get"

# two items with values of 256 bytes
"$REDDNC" explain --json -p n=2 -p most=336 "$programs/memcached-get.rdn" |
	python3 -c 'import json, sys; ns = json.load(sys.stdin)["modelled_ns"]; assert ns <= 6500, ns' || fail "memcached-get takes more than 6.5 us"
ok "memcached-get takes at most 6.5 us on the model"

start_nic
if ! able "programs on a device" has.devx; then
	rc=0
	on_nic run.log "$REDDNC" run -r "words=$work/none" "$programs/counter.rdn" 8 5 || rc=$?
	[[ $rc -eq 69 ]] || fail "exit status $rc without DEVX" "$work/run.log"
	grep -q 'mlx5_0 runs no chains: it takes no direct commands (DEVX); its firmware may need UCTX_EN=1' "$work/run.log" ||
		fail "the firmware option is not named" "$work/run.log"
	ok "a device without DEVX is refused, with the firmware option"
	done_testing
	exit
fi
make_table "$work/table" --max-value 1000 </dev/null
run() # ARGUMENTS...: reddnc run on the NIC, into run.log
{
	on_nic run.log "$REDDNC" run "$@"
}

# tickets end at number 4: 3, 4, then none
python3 -c 'import struct, sys; open(sys.argv[1], "wb").write(struct.pack("<512Q", 0, 3, *range(510)))' "$memory/words"
for ticket in 3 4 none none; do
	run -j -r "words=$memory/words" "$programs/counter.rdn" 8 5 || fail "counter" "$work/run.log"
	python3 -c '
import json, struct, sys
d = json.load(open(sys.argv[1]))
sold, number = struct.unpack("<B7xQ", bytes.fromhex(d["reply"]))
assert d["answered"] and (str(number) if sold else "none") == sys.argv[2], d' "$work/run.log" "$ticket" ||
		fail "the ticket was $ticket" "$work/run.log"
done
[[ $(od -An -tu8 -j8 -N8 "$memory/words" | tr -d ' ') -eq 5 ]] || fail "the counter is not 5"
ok "a counter with a limit, run four times"

# an answer by a SEND, of less than it may have, and beside what is written to the slot
cat >"$work/sends.rdn" <<'END'
program sends
region words
arg at : offset(2) in words
read words @ at as be24 -> w.local[1].length
write 5 as u8 -> slot
w: send 7 as be16, words, max 64
END
printf '\0\0\3' | cat - <(head -c 4093 /dev/zero) >"$memory/lengths"
run -r "words=$memory/lengths" "$work/sends.rdn" 0 || fail "a send" "$work/run.log"
grep -A1 '^reply' "$work/run.log" | grep -qx '    05' || fail "no reply slot" "$work/run.log"
grep -A1 '^sent' "$work/run.log" | grep -qx '    00 07 00 00 03' || fail "not what is sent" "$work/run.log"
run -j -r "words=$memory/lengths" "$work/sends.rdn" 8 || fail "a send of an empty value" "$work/run.log"
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["sent"] == "0007" and d["reply"] == "05", d' "$work/run.log" ||
	fail "not what is sent" "$work/run.log"
ok "an answer that is sent"
sed 's/offset(2)/offset(6)/' "$work/sends.rdn" >"$work/wide.rdn"
run -r "words=$memory/lengths" "$work/wide.rdn" 0 && fail "offsets that have no room in an address" "$work/run.log"
grep -q 'offsets into region "words" have 48 bits, more than its address allows' "$work/run.log" || fail "no message" "$work/run.log"
ok "offsets that have no room in an address"

# it finds out what the device does; what the device does not do cannot be asked for
wish() # WORDS OPTION...: it is refused with WORDS, or runs if they are empty
{
	local words=$1 rc=0
	shift

	run "$@" -r "words=$memory/words" "$programs/counter.rdn" 8 5 || rc=$?
	[[ $rc -eq $([[ -n $words ]] && echo 69 || echo 0) ]] || fail "$*: exit status $rc" "$work/run.log"
	grep -qE -- "$words" "$work/run.log" || fail "$*: no message" "$work/run.log"
	ok "$*: ${words:-runs}"
}
words=
[[ $(fact checks.index) == false ]] || words='mlx5_0 checks the indices of WQEs; leave out --direct$'
wish "$words" -D
words=
[[ $(fact checks.sync_fence) == true ]] || words='a SEND_EN of mlx5_0 does not heed its fence; leave out --fenced-enables$'
wish "$words" -F
words='' bytes=$(fact managed.fetch)
[[ $bytes -eq 64 ]] || words="mlx5_0 fetches $bytes bytes of a queue together; leave out --fetch-group\$"
wish "$words" -G 64
wish '' -G 512
wish '' -M
wish '' -C
if [[ $(fact has.masked_atomics) == false ]]; then
	run -r "array=$memory/words" "$programs/while-recycled.rdn" 0 8 && fail "a loop without a bound, without masked atomics" "$work/run.log"
	grep -q 'mlx5_0 cannot run it: the device has no masked fetch-and-add, without which there are no loops without a bound' "$work/run.log" ||
		fail "no message" "$work/run.log"
	ok "what the device lacks is named"
fi
run -r "words=$memory/words" "$programs/counter.rdn" 8 6 || fail "counter" "$work/run.log"
grep -qE '^ +was .* nop' "$work/run.log" || fail "no work request became a NOP" "$work/run.log"
ok "the result of each work request"
run -r "words=$memory/words" "$programs/counter.rdn" 8 && fail "an argument too few"
grep -q 'takes 2 arguments, not 1' "$work/run.log" || fail "no message" "$work/run.log"
run -r "words=$memory/words" "$programs/counter.rdn" 8 x && fail "x"
grep -q 'limit: "x" is not a number of at most 7 bytes' "$work/run.log" || fail "no message" "$work/run.log"
run "$programs/counter.rdn" 8 1 && fail "no region"
grep -q 'region "words" of the program is missing' "$work/run.log" || fail "no message" "$work/run.log"
run -r "words=$work/table" -r "x=$work/table" "$programs/counter.rdn" 8 1 && fail "a region too many"
grep -q 'the program has no region "x"' "$work/run.log" || fail "no message" "$work/run.log"
ok "missing arguments are named"
failed='step .* failed: '
able "the step that failed" "${named_steps[@]}" || failed='(step .* failed: |queue .* failed, and its completions do not show at which step)'
for region in buckets heap live; do regions+=(-r "$region=$work/table"); done
{ printf 'RDDNTBL1\1\0\0\0'; head -c 8180 /dev/zero; } >"$work/other"
run -p width=2 "${regions[@]/%table/other}" "$programs/hash-get.rdn" 1 0 2 16 && fail "what is no table is used"
grep -q 'it is not a reddnd table; reddn-table makes one' "$work/run.log" || fail "no message about the file" "$work/run.log"
ok "what is no table is refused"
run -j -p width=2 "${regions[@]}" "$programs/hash-get.rdn" 1 0 2 16 || fail "hash get" "$work/run.log"
ok "a get from a table, a miss"
run -p width=4 "${regions[@]}" "$programs/hash-get.rdn" 1 0xffffff00 2 16 && fail "a bucket outside the table" "$work/run.log"
grep -qE "$failed" "$work/run.log" || fail "no message" "$work/run.log"
ok "the NIC refuses a bucket outside of the table, and reddnc names the step"

# several queues: an answer that uses nothing of what they do, with a condition in the last one
cat >"$work/queues.rdn" <<'END'
program queues
queue a
queue b
region words writable
region more writable
arg at : offset(4) in more
arg k : u16
var w : be16
on a {
  cas words @ 0 as le64: 0 -> 1
}
on b {
  read more @ at -> w
  if w == k {
    add more @ 16 as le64 by 1
  }
}
write w -> slot @ 64
write_imm 7 as be32 -> slot @ 0
END
head -c 4096 /dev/zero | tee "$memory/first" >"$memory/second"
run -j -r "words=$memory/first" -r "more=$memory/second" "$work/queues.rdn" 0 0 || fail "several queues" "$work/run.log"
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["answered"], d' "$work/run.log" || fail "no answer" "$work/run.log"
[[ $(od -An -tu8 -N8 "$memory/first") -eq 1 && $(od -An -tu8 -j16 -N8 "$memory/second") -eq 1 ]] || fail "not all is done" "$work/run.log"
ok "an answer that uses nothing of what several queues do"
# the last queue fails: no answer, and the write to the slot is a NOP
run -r "words=$memory/first" -r "more=$memory/second" "$work/queues.rdn" 0xffffff00 0 && fail "a place beyond the region" "$work/run.log"
grep -qE "$failed" "$work/run.log" || fail "no message" "$work/run.log"
grep -E ' (write|write_imm) ' "$work/run.log" | grep -qv nop && fail "a write to the slot after a failure" "$work/run.log"
ok "no write to the slot after a failure in another queue"

done_testing
