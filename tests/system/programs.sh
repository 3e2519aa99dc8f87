#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs in a running daemon: a file and a reload add an offload; clients call every offload.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
: "${REDDN:?}"

shopt -s extglob
free_port
mkdir "$work/programs"

engine="${ENGINE:+engine = \"$ENGINE\";}"
configure() # OFFLOADS
{
	cat >"$work/reddnd.conf" <<END
listen = "$address:$port";
control = "$work/control";
programs = [ "$work/programs", "$programs" ];
$engine
regions = (
  { name = "pairs"; kind = "raw"; path = "$work/pairs"; },
  { name = "words"; kind = "raw"; path = "$memory/words"; writable = true; },
  { name = "again"; kind = "raw"; path = "$memory/again"; writable = true; } );
offloads = (
$1 );
END
}

call() # ARGUMENTS...: the reply in hexadecimal
{
	on_nic call.log "$REDDN" call --timeout 100000 --json --port "$port" "$address" "$@" &&
		python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["reply"])' "$work/call.log"
}

# Two records of 32 bytes (version, value) in each pair
python3 -c '
import struct, sys
pair = lambda *copies: b"".join(struct.pack("<Q24s", v, t) for v, t in copies)
open(sys.argv[1], "wb").write((pair((7, b"old"), (9, b"new")) + pair((3 << 40, b"newer"), (3 << 32, b"older"))).ljust(4096, b"\0"))
open(sys.argv[2], "wb").write(bytes(4096))' "$work/pairs" "$memory/words"

ln "$memory/words" "$memory/again"
forever=(for-ever) counts=(count count.r count)
able "recycled offloads" "${recycling[@]}" || forever=() counts=(count count)
start_nic
ticket='  { name = "ticket"; program = "counter"; region = "words"; }'
configure "$ticket"
background reddnd.log "$REDDND" --config "$work/reddnd.conf"
reddnd=$child
server_ready "$reddnd" reddnd reddnd.log reddnd_listens

# Deployed with one file and a reload. The order of two variables takes masked atomics; for these records a number does
newer="a < b" version="version -> b, "
able "comparing two variables by their order" has.masked_atomics || newer="a == 7" version=
cat >"$work/programs/newest.rdn" <<END
# newest.rdn - of two copies of a record, returns the one with the higher version
program newest

struct copy { version : le56, _ : u8, value : bytes 24 }
region pairs of copy
arg at : offset(3) in pairs

read pairs @ at      as copy { version -> a, value -> one }
read pairs @ at + 32 as copy { ${version}value -> two }
if $newer {
  write two -> slot @ 8
} else {
  write one -> slot @ 8
}
write_imm 1 as be64 -> slot @ 0
END
printf '%s\n' "program wide" "arg a[21] : be16" "write_imm$(printf ' a[%d],' {0..19}) a[20] -> slot" >"$work/programs/wide.rdn"
configure "$ticket, { name = \"wide\"; program = \"wide\"; }, { name = \"newest\"; mode = \"unrolled\"; program = \"newest\"; region = \"pairs\"; },
  { name = \"for-ever\"; program = \"newest\"; region = \"pairs\"; mode = \"recycled\"; }"
ctl reload || fail "no reload" "$work/ctl.err" "$work/reddnd.log"
for offload in newest "${forever[@]}"; do
	[[ $(call "$offload" 0) == 00000000000000016e6577*(0) ]] || fail "$offload: not the newer copy" "$work/call.log" "$work/reddnd.log"
	[[ $(call "$offload" 64) == 00000000000000016e65776572*(0) ]] || fail "$offload: not the newer copy of the second pair" "$work/call.log"
	ok "$offload: a file and a reload add an offload"
done

# A program with an error is refused
sed -i 's/-> a,/-> hit.rkey,/' "$work/programs/newest.rdn"
ctl reload && fail "a wrong program was accepted"
grep -q 'newest.rdn:8:[0-9]*: error: ' "$work/ctl.err" || fail "no message with the line of the error" "$work/ctl.err"
[[ $(call newest 0) == 00000000000000016e6577*(0) ]] || fail "the offload is gone" "$work/call.log"
ok "a wrong program is refused with its line, and the old one stays"

# Wrong calls
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" newest && fail "an argument too few"
grep -q 'newest takes 1 arguments, not 0' "$work/call.log" || fail "no message" "$work/call.log"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" newest 0x1000000 && fail "an argument too large"
grep -q 'is no number of at most 3 bytes' "$work/call.log" || fail "no message" "$work/call.log"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" wide 1 && fail "more arguments than a server describes"
grep -q 'wide takes a request of 42 bytes with more arguments, or longer ones, than a server describes' "$work/call.log" ||
	fail "no message" "$work/call.log"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" newest 4090 && fail "beyond the region"
failed='step .* failed: remote access error'
[[ ${ENGINE-} == cpu ]] || able "the step that reads outside" "${named_steps[@]}" || failed="($failed|a queue failed)"
until_true grep -qE "session [0-9]+: ends after 0 requests: $failed" "$work/reddnd.log" ||
	fail "beyond the region: no message" "$work/call.log" "$work/reddnd.log"
on_nic call.log "$REDDN" get --timeout 100000 --port "$port" "$address" newest key && fail "a get on an offload without a table"
ok "wrong calls are refused"

# By name, in any order, and fields of the reply
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" ticket limit=7 at=8 ||
	fail "arguments by name" "$work/call.log" "$work/reddnd.log"
[[ $(tr -s ' ' <"$work/call.log") == $'sold 1\nnext 0' ]] || fail "fields of the reply" "$work/call.log"
on_nic call.log "$REDDN" call --timeout 100000 --json --port "$port" "$address" ticket at=8 limit=1 || fail "a second call" "$work/call.log"
python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["fields"] == {"sold": 0, "next": 1}' "$work/call.log" || fail "fields as JSON" "$work/call.log"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" newest at=0 || fail "one argument by name" "$work/call.log"
[[ $(tr -s ' ' <"$work/call.log") == $'at0 1\nat8 new' ]] || fail "fields without a declaration" "$work/call.log"
wrong() # WORDS ARGUMENTS...
{
	local words=$1
	shift
	on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" ticket "$@" && fail "wrong arguments: $*"
	grep -qF "$words" "$work/call.log" || fail "no message for $*" "$work/call.log"
}
wrong 'ticket has no argument "limt"; did you mean "limit"?' at=8 limt=5
wrong 'argument "limit" is missing; it takes 2: at (offset, 1 bytes), limit (number, 7 bytes)' at=8
wrong 'argument 1, at is given twice' at=8 at=8
wrong 'by name or by place, not both' at=8 5
wrong 'argument 1, at: "256" is no number of at most 1 bytes' at=256 limit=5
python3 -c '
import sys
with open(sys.argv[1], "r+b") as f:
    f.write(bytes(24))' "$memory/words"
ok "arguments and fields have names"

# Tickets: four clients get each number once, up to the limit
sell() # NUMBER
{
	local i

	for ((i = 0; i < 8; i++)); do
		"$SOFTCX" run "$REDDN" call --timeout 100000 --json --port "$port" "$address" ticket 16 20
	done >"$work/sold.$1" 2>&1
}
for i in 1 2 3 4; do
	sell "$i" &
	sellers[i]=$!
done
for i in 1 2 3 4; do
	wait "${sellers[i]}" || fail "seller $i" "$work/sold.$i" "$work/reddnd.log"
done
python3 -c '
import json, struct, sys
replies = [struct.unpack("<B7xQ", bytes.fromhex(json.loads(l)["reply"])[:16]) for f in sys.argv[1:] for l in open(f)]
sold = sorted(n for good, n in replies if good)
assert len(replies) == 32 and sold == list(range(20)), (len(replies), sold)' "$work"/sold.? || fail "tickets" "$work"/sold.?
[[ $(od -An -tu8 -j16 -N8 "$memory/words" | tr -d ' ') -eq 20 ]] || fail "the counter is wrong"
ok "20 tickets to four clients, each number once"

# Bits of a word and tokens of a bucket: four clients get each once, by programs that calculate
if able "programs that calculate" has.masked_atomics; then
	configure '{ name = "bitmap"; program = "bitmap-allocate"; region = "words"; }, { name = "bucket"; program = "token-bucket"; region = "words"; }'
	ctl reload || fail "no reload" "$work/ctl.err" "$work/reddnd.log"
	python3 -c '
import struct, sys
with open(sys.argv[1], "r+b") as f:
    f.seek(32)
    f.write(struct.pack("<Q8xQQ", 5, 0, 20))' "$memory/words"
	take() # NUMBER
	{
		local i

		for ((i = 0; i < 6; i++)); do
			"$SOFTCX" run "$REDDN" call --timeout 100000 --json --port "$port" "$address" bitmap 32 >>"$work/bits.$1" 2>&1
			"$SOFTCX" run "$REDDN" call --timeout 100000 --json --port "$port" "$address" bucket 48 3 >>"$work/tokens.$1" 2>&1
		done
	}
	for i in 1 2 3 4; do
		take "$i" &
		takers[i]=$!
	done
	for i in 1 2 3 4; do
		wait "${takers[i]}" || fail "taker $i" "$work/bits.$i" "$work/tokens.$i" "$work/reddnd.log"
	done
	python3 -c '
import json, struct, sys
def replies(name):
    all = [struct.unpack("<QQQ", bytes.fromhex(json.loads(l)["reply"])[:24]) for i in "1234" for l in open(f"{sys.argv[1]}/{name}.{i}")]
    assert len(all) == 24, all
    return all
with open(sys.argv[2], "r+b") as f:
    word, taken = struct.unpack("<32xQ8xQ", f.read(56))
    f.seek(32)
    f.write(bytes(32))
bits = [bit for bit, now, found in replies("bits") if now == found]
assert len(set(bits)) == len(bits) and sum(bits) == word - 5 and word & word + 1 == 0, (bits, word)
tokens = [token for now, found, next in replies("tokens") if now == found for token in range(now, next)]
assert sorted(tokens) == list(range(taken)) and taken <= 20, (tokens, taken)' "$work" "$memory/words" || fail "bits and tokens" "$work"/bits.? "$work"/tokens.?
	ok "bits of a word and tokens of a bucket to four clients, each once"
fi

# Unused RECVs are flushed at the end of a client and do not count as requests
cat >"$work/programs/count.rdn" <<'END'
program count
region words writable steered
arg at : offset(1) in words
add words @ at as le64 by 1
write_imm 1 as u8 -> slot @ 0
END
configure '{ name = "count"; mode = "unrolled"; program = "count"; region = "words"; }, { name = "count.r"; program = "count"; region = "words"; mode = "recycled"; }'
ctl reload || fail "no reload" "$work/ctl.err" "$work/reddnd.log"
for offload in "${counts[@]}"; do
	[[ $(call "$offload" 8) == 01*(0) ]] || fail "$offload: no answer" "$work/call.log" "$work/reddnd.log"
done

# A program whose two regions are one file cannot be used
cat >"$work/programs/both.rdn" <<'END'
program both
region one
region two writable steered
arg at : offset(1) in two
var v : le64
mov one @ 0 as le64 -> v
add two @ at as le64 by 1
write_imm v -> slot @ 0
END
configure "$ticket, { name = \"both\"; program = \"both\"; regions = { one = \"words\"; two = \"again\"; }; }"
ctl reload || fail "files of regions do not make a reload fail" "$work/ctl.err"
grep -q '^both .* disabled ' "$work/ctl.out" || fail "one file was accepted as two regions of a program" "$work/ctl.out"
until_true grep -q 'offload both: regions "one" and "two" of the program are one file' "$work/reddnd.log" ||
	fail "no message about the file" "$work/ctl.err" "$work/reddnd.log"
ok "a program whose regions are one file is disabled"

kill "$reddnd"
expect_exit "$reddnd" reddnd reddnd.log
python3 -c '
import struct, sys
words = struct.unpack("<512Q", open(sys.argv[1], "rb").read())
assert words == (0, int(sys.argv[2]), 20) + (0,) * 509, words' "$memory/words" "${#counts[@]}" || fail "requests without a client were executed"
ok "only requests are counted"
done_testing
