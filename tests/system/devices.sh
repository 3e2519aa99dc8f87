#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# devices.sh DEVICE: the daemon on a device that lacks something, or does something else than others. It serves every offload that
# can run there, reports in words which cannot and why, and logs what it does differently.
export SOFTCX_DEVICE=$1 ENGINE=nic
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDNCTL:?set REDDNCTL to the path of the control tool}"

# what the log has, and OFFLOAD|WORDS of each offload that is disabled
logged=() disabled=()
case $1 in
big-endian-atomics)
	logged=('mlx5_0: each old value that a program uses takes a copy more: old values arrive big-endian$'
		'offload counter: counter, 8 copies, ')
	;;
no-loopback) logged=('mlx5_0: its queues reach each other by GID [0-9]+, as it has no forced loopback$') ;;
no-masked-atomics)
	disabled=("recycled|the device has no masked fetch-and-add, without which no chain can be recycled"
		"masked|its program needs masked atomics, which the device has not"
		"loop|the device has no masked fetch-and-add, without which there are no loops without a bound")
	;;
recv-en-broken)
	logged=('RECV_EN does not work: a RECV_EN enabled nothing$')
	disabled=("recycled|RECV_EN does not work on the device, without which no chain can be recycled")
	;;
prefetch-256)
	logged=('it fetches WQEs before they are enabled, in groups of 256 bytes'
		'offload unrolled: and [0-9]+ NOPs per request, which fill groups of 256 bytes that the device fetches together$')
	;;
prefetch-recvs) logged=('mlx5_0: no chain that publishes is recycled: it fetches RECVs before they are enabled, in groups of 256 bytes$') ;;
flush-to-doorbell) logged=('a queue that fails gives more completions than it had work: each session gets a completion queue of its own: ') ;;
ignores-index) logged=('it checks index and QPN of a WQE: no: operands may stand there$') ;;
infiniband) logged=('mlx5_0: InfiniBand, ' 'mlx5_0: its queues reach each other by LID [0-9]+$') ;;
calc-8-bytes | cx6dx-rtc | no-calc) ;;
*) fail "usage: devices.sh DEVICE" ;;
esac

printf 'alice\twonder\n' >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<512Q", 258, *[0] * 511))' >"$memory/words"

mkdir "$work/programs"
cp "$programs"/*.rdn "$work/programs"
programs=$work/programs
# the order of two variables takes CALC or masked atomics
cat >"$programs/order.rdn" <<'END'
program order
region words
var a : le64
var b : le64
read words -> a
read words @ 8 -> b
if a < b {
  write 1 as u8 -> slot @ 0
}
write_imm 1 as u8 -> slot @ 1
END

cat >"$programs/masked.rdn" <<'END'
program masked
region words
var a : le64
read words -> a
add a by 1, fields 0xff
write_imm 1 as u8 -> slot @ 1
END

# the fourth word, which stays 0, and an argument
cat >"$programs/highest.rdn" <<'END'
program highest
region words
arg x : u32
var high : be64
max words @ 24 as le64, x -> high
write_imm high -> slot @ 0
END

# goes round until the third word, which stays 0, is x
cat >"$programs/spin.rdn" <<'END'
program spin
endless
struct word { value : le48, _ : bytes 2 }
region words of word
arg x : u48
var want : le48
mov x -> want
loop {
  read words @ 16 as word { value -> a }
  if a == want {
    break
  }
}
write_imm 1 as u8 -> slot @ 0
END

"$REDDN_TABLE" create --quiet --store --capacity 100 --heap 1M --max-key 32 --max-value 320 "$memory/store" || fail "no store"
start_nic
start_reddnd "control = \"$work/control\";
regions = ( { name = \"table\"; kind = \"table\"; path = \"$work/table\"; },
  { name = \"words\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; },
  { name = \"store\"; kind = \"store\"; path = \"$memory/store\"; } );
offloads = ( { name = \"unrolled\"; program = \"hash-get\"; region = \"table\"; mode = \"unrolled\"; },
  { name = \"recycled\"; program = \"hash-get\"; region = \"table\"; mode = \"recycled\"; },
  { name = \"unrolled-break\"; program = \"while-break\"; region = \"words\"; mode = \"unrolled\"; },
  { name = \"recycled-break\"; program = \"while-break\"; region = \"words\"; mode = \"recycled\"; },
  { name = \"parallel\"; program = \"hash-get-parallel\"; region = \"table\"; },
  { name = \"counter\"; program = \"counter\"; region = \"words\"; },
  { name = \"order\"; program = \"order\"; region = \"words\"; },
  { name = \"masked\"; program = \"masked\"; region = \"words\"; },
  { name = \"highest\"; program = \"highest\"; region = \"words\"; },
  { name = \"loop\"; program = \"spin\"; region = \"words\"; loop_budget = 100; },
  { name = \"store\"; region = \"store\"; depth_max = 8; } );"

for line in "${logged[@]}"; do
	grep -qE -- "$line" "$work/reddnd.log" || fail "the log has no \"$line\"" "$work/reddnd.log"
	ok "$line"
done

why() # OFFLOAD: the reason for which it is disabled, or nothing
{
	timeout "$limit" "$REDDNCTL" --socket "$work/control" --json offloads |
		python3 -c 'import json, sys; print(*(d.get("why", "") for d in json.load(sys.stdin) if d["offload"] == sys.argv[1] and d["state"] == "disabled"))' "$1"
}

sells() # NUMBER: the ticket is sold, and has that number
{
	on_nic ask.log "$REDDN" call --timeout 100000 --json "$address" counter 0 260 &&
		python3 -c 'import json, struct, sys
reply = bytes.fromhex(json.load(open(sys.argv[1]))["reply"])
sys.exit(struct.unpack_from("<B7xQ", reply) != (1, int(sys.argv[2])))' "$work/ask.log" "$1"
}

ask() # OFFLOAD
{
	case $1 in
	counter) sells 258 && sells 259 && ! sells 260 ;;
	order | masked) on_nic ask.log "$REDDN" call --timeout 100000 "$address" "$1" ;;
	highest) on_nic ask.log "$REDDN" call --timeout 100000 "$address" highest 258 && grep -q 258 "$work/ask.log" ;;
	loop | *-break) on_nic ask.log "$REDDN" call --timeout 100000 "$address" "$1" 0 ;;
	*) on_nic ask.log "$REDDN" get --timeout 100000 "$address" "$1" alice && [[ $(<"$work/ask.log") == wonder ]] ;;
	esac
}

for offload in unrolled recycled unrolled-break recycled-break parallel counter order masked highest loop; do
	words=
	for line in "${disabled[@]}"; do
		[[ $line == "${offload%-break}|"* ]] && words=${line#*|}
	done
	reason=$(why "$offload")
	if [[ -n $words ]]; then
		[[ $reason == *"$words"* ]] || fail "$offload is disabled because \"$reason\", not \"$words\"" "$work/reddnd.log"
		grep -qF -- "offload $offload: $reason" "$work/reddnd.log" || fail "$offload: the reason is not logged" "$work/reddnd.log"
		! ask "$offload" || fail "$offload is disabled, and serves"
		grep -qF -- "offload $offload cannot run on the server's NIC" "$work/ask.log" ||
			fail "$offload: the client does not learn why" "$work/ask.log"
		ok "$offload is disabled: $reason"
	else
		[[ -z $reason ]] || fail "$offload is disabled: $reason" "$work/reddnd.log"
		ask "$offload" || fail "$offload does not answer" "$work/ask.log" "$work/reddnd.log"
		ok "$offload answers"
	fi
done
# a loop that is ended has no answer, whatever the device makes of the WQEs of its queues
if [[ -z $(why loop) ]]; then
	! on_nic ask.log "$REDDN" call --timeout 100000 "$address" loop 1 || fail "a loop without an end has an answer" "$work/ask.log"
	grep -q 'the loop budget is 100 iterations' "$work/ask.log" || fail "the client does not learn why its loop was ended" "$work/ask.log"
	ok "a loop that is ended has no answer"
fi

# a device that fetches RECVs ahead does not see their extents if the NIC arms puts again: the daemon does then
if [[ -z $(why recycled) ]]; then
	"$REDDNCTL" --socket "$work/control" --json offloads >"$work/offloads"
	python3 - "$work/offloads" "$(fact managed.recv_fetch)" <<'END' || fail "puts are not armed again as they should be" "$work/offloads" "$work/reddnd.log"
import json, sys
put = next(o for o in json.load(open(sys.argv[1])) if o["offload"] == "store.put")
ahead = int(sys.argv[2]) > 16
assert put["mode"] == ("unrolled" if ahead else "recycled") and ("fetches RECVs before they are enabled" in put["why"]) == ahead, put
END
	for value in one two; do
		{ on_nic ask.log "$REDDN" put --timeout 100000 "$address" store key $value && on_nic ask.log "$REDDN" get --timeout 100000 "$address" store key && [[ $(<"$work/ask.log") == "$value" ]]; } ||
			fail "a put is not found" "$work/ask.log" "$work/reddnd.log"
	done
	ok "puts are answered"
fi

# a session that is killed, with its queues flushed, does nothing to another one
asks() # NAME COUNT: a client that asks so often
{
	background "$1.log" "$REDDN" bench --timeout 100000 --depth 16 --count "$2" --verify --keys "$work/data.tsv" "$address" unrolled
}
sessions()
{
	grep -c '^session [0-9]*: client .*, offload unrolled,' "$work/reddnd.log"
}
if [[ -z $(why unrolled) ]]; then
	before=$(sessions)
	asks other 1000000
	other=$child
	asks first 20000
	first=$child
	both()
	{
		[[ $(sessions) -ge $((before + 2)) ]]
	}
	until_true both || fail "two clients do not connect" "$work/first.log" "$work/other.log" "$work/reddnd.log"
	kill_hard "$other"
	expect_exit "$first" "a client beside one that is killed" first.log
	grep -q 20000 "$work/first.log" || fail "not all requests were answered" "$work/first.log"
	ok "a session beside one that is killed goes on"
fi
stop_reddnd
done_testing
