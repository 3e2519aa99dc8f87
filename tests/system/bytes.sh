#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Limits in bytes of replies, in both modes. Lengths of replies come from memory, and whoever writes that may be wrong about them. The
# NIC sends no reply that is longer than the program allows.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
modes=(plain)
able "recycled offloads" "${recycling[@]}" && modes+=(lap)

: "${REDDNCTL:?set REDDNCTL to the path of the control tool}"
: "${LONG_REPLIES:?set LONG_REPLIES to the path of long-replies}"

needs checks.message_limit

too_long='step out failed: local length error'
able "the step that sends too much" "${named_steps[@]}" || too_long="($too_long|a queue failed|the device reports that queue pair)"

control=$work/control
ctl()
{
	timeout 20 "$REDDNCTL" --socket "$control" "$@" 2>"$work/ctl.err"
}

# Records: length be24, offset be40. The first has the longest reply that is allowed, the second a short one, the third one that is
# far too long
HONEST=0 SHORT=8 FALSE=16 LENGTH=512 FEW=8 MANY=100000
cat >"$work/blob.rdn" <<END
program blob
struct record { len : be24, at : be40 }
region index of record
region heap
arg at : offset(3) in index
read index @ at as record { len -> out.length, at -> out.addr }
out: write heap -> slot @ 64, 1 to $LENGTH
write_imm 1 as be64 -> slot @ 0
END
python3 -c '
import sys
lengths = [int(v) for v in sys.argv[3:]]
open(sys.argv[1], "wb").write(b"".join(n.to_bytes(3, "big") + bytes(5) for n in lengths).ljust(4096, b"\0"))
open(sys.argv[2], "wb").write(b"x" * 200000)' "$work/index" "$work/heap" $LENGTH $FEW $MANY

start_nic
start_reddnd "control = \"$control\"; regions = ( { name = \"index\"; kind = \"raw\"; path = \"$work/index\"; },
  { name = \"heap\"; kind = \"raw\"; path = \"$work/heap\"; } );
offloads = ( { name = \"plain\"; mode = \"unrolled\"; program = \"$work/blob.rdn\"; regions = { index = \"index\"; heap = \"heap\"; }; },
  { name = \"lap\"; program = \"$work/blob.rdn\"; regions = { index = \"index\"; heap = \"heap\"; }; mode = \"recycled\"; } );
tenants = ( { name = \"thin\"; bytes_rate = 1000; } );"
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"

ask() # OFFLOAD PLACE COUNT: sets $replies and $behind
{
	on_nic ask.log "$LONG_REPLIES" "$address" "$port" "$@" || fail "the client fails" "$work/ask.log" "$work/reddnd.log"
	read -r _ replies _ behind <"$work/ask.log"
}

pay() # a new limit: nobody has debts, and the bucket is full
{
	{ ctl limit thin --bytes 0 && ctl limit thin --bytes 1000; } >/dev/null || fail "no limit" "$work/ctl.err"
	sleep 1
}

# The bucket has one reply, of 576 bytes at most; a second may wait in a receive
for offload in "${modes[@]}"; do
	pay
	begin=$(now_ms)
	ask "$offload" $HONEST 12
	took=$(($(now_ms) - begin))
	most=$((2 * 576 + took))
	[[ $replies -ge 1 && $behind -eq 0 ]] || fail "$offload: $replies replies, $behind bytes behind the slots" "$work/reddnd.log"
	[[ $((replies * (LENGTH + 8))) -le $most ]] || fail "$offload: $replies replies in $took ms" "$work/reddnd.log"
	ok "$offload: $replies of the longest replies in $took ms, of at most $most bytes"

	# Short replies pay for what they have. If each paid for the longest, there would be 6 at most
	pay
	ask "$offload" $SHORT 40
	[[ $replies -eq 40 ]] || fail "$offload: $replies short replies" "$work/ask.log" "$work/reddnd.log"
	ok "$offload: 40 short replies within the rate"
done

for offload in "${modes[@]}"; do
	pay
	ask "$offload" $FALSE 100
	[[ $replies -eq 0 && $behind -eq 0 ]] || fail "$offload: $replies replies, $behind bytes" "$work/reddnd.log"
	until_true grep -qE "offload $offload: $too_long" "$work/reddnd.log" || fail "no verdict" "$work/reddnd.log"
	ok "$offload: a reply that is too long is not sent, and ends the session"
	ask "$offload" $SHORT 1
	[[ $replies -eq 1 ]] || fail "$offload: the tenant pays for a reply that was not sent" "$work/reddnd.log"
	ok "$offload: it costs nothing"
done

stop_reddnd
done_testing
