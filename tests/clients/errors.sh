#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# libreddn against servers that refuse, break the protocol, stop answering or die: every request gets a result, and every failure
# a reason in words.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

: "${FAKE_SERVER:?set FAKE_SERVER to the path of the test server}"
: "${ADDRESSES:?set ADDRESSES to the path of the test client}"
: "${NO_QUEUE_PAIR:?set NO_QUEUE_PAIR to the path of the test client}"
: "${NO_SEND_OPS_LIB:?set NO_SEND_OPS_LIB to the path of the library of the test}"
: "${GET_PROPERTY:?set GET_PROPERTY to the path of the test program}"
: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
port=7471

"$GET_PROPERTY" make small 1 "$work/table" >/dev/null || fail "no table"
"$REDDN_TABLE" dump "$work/table" >"$work/table.tsv" || fail "no dump"
start_nic

serve() # SETTING...
{
	background server.log "$FAKE_SERVER" "$port" "$work/table" "$@"
	server=$child
	server_ready "$server" "fake-server $*" server.log grep -q ready "$work/server.log"
}

unserve()
{
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
}

# expect WHAT STATUS WORDS CMD...: exit status, and words of the output.
expect()
{
	local what=$1 status=$2 words=$3 rc=0
	shift 3

	on_nic client.log "$@" || rc=$?
	[[ $rc -eq $status ]] || fail "$what: exit status $rc, not $status" "$work/client.log" "$work/server.log"
	grep -q -e "$words" "$work/client.log" || fail "$what: \"$words\" is missing" "$work/client.log"
	ok "$what: $(grep -m 1 -e "$words" "$work/client.log")"
}

ping=("$REDDN" ping -p "$port" -t 50000 -c 2 -i 1 "$address" x)
bench=("$REDDN" bench -p "$port" -t 50000 -V -a 20 -k "$work/table.tsv")

expect "nobody listens" 2 "connection refused" "${ping[@]}"
expect "a list with a gap" 2 'host "a,,b": "" is no host, nor HOST:PORT' "$REDDN" ping a,,b x
expect "no such host" 2 "reddn: 256.1.1.1: " "$REDDN" ping 256.1.1.1 x
expect "a device that is full" 2 "no queue pair for a depth of 16: Cannot allocate memory" "$NO_QUEUE_PAIR" "$address" "$port"

# ::1 and 127.0.0.1 are the device; a server of IPv4 does not listen on the former
addresses=("$ADDRESSES" "$port")
expect "nobody listens on two addresses" 2 "^-111: several port 7471: connection refused (at ::1, one of 2 addresses)$" "${addresses[@]}" 127.0.0.1 ::1
expect "a refusal reveals more than no device" 2 "^-111: .* (at 127.0.0.1, one of 2 addresses)$" "${addresses[@]}" 127.0.0.1 nodevice:::1
serve
expect "nobody listens on the first address" 0 "^0: connected" "${addresses[@]}" ::1 127.0.0.1
expect "no device leads to the first address" 0 "^0: connected" "${addresses[@]}" nodevice:::1 127.0.0.1
expect "the first address does not answer" 0 "^0: connected" "${addresses[@]}" silent:::1 127.0.0.1
expect "one of four addresses" 0 "^0: connected" "${addresses[@]}" nodevice:::1 silent:127.0.0.2 ::1 127.0.0.1
expect "the time is over when the address is resolved" 2 "^-110: several port 7471: no answer in time$" "${addresses[@]}" late:127.0.0.1
unserve
serve reject=3 text="no offload of that name"
expect "the first address is that of a server that refuses" 2 "^-2: refused by the server: no offload of that name$" "${addresses[@]}" 127.0.0.1 ::1
unserve

serve
expect "a good server" 0 "wrong  *0$" "${bench[@]}" -c 3000 "$address" x
LD_PRELOAD=$(plain_name "$NO_SEND_OPS_LIB") expect "a provider without ibv_qp_ex and ibv_cq_ex" 0 "wrong  *0$" "${bench[@]}" -c 3000 "$address" x
expect "one key" 1 "not found" "$REDDN" get --timeout 100000 -p "$port" "$address" x 'a key that is longer than any'
for depth in 1 3 64; do
	expect "depth $depth" 0 " hits" "$GET_PROPERTY" ask "$address" "$port" x "$work/table" "$depth" 500 1
done
unserve

# where a device has no immediates
serve sends=1
expect "replies that end with a SEND" 0 "wrong  *0$" "${bench[@]}" -c 3000 "$address" x
for depth in 1 3 64; do
	expect "depth $depth" 0 " hits" "$GET_PROPERTY" ask "$address" "$port" x "$work/table" "$depth" 500 1
done
unserve
serve sends=1 after=1 do=wrong-imm
expect "a SEND with another number" 2 "protocol violated: reply 2 when 1 was due" "${ping[@]}"
unserve

# reason, text of the tool
serve reject=3 text="no offload of that name"
expect "refused" 2 "refused by the server: no offload of that name" "${ping[@]}"
unserve
serve reject=1 detail=1 version=1 text="the client speaks version 2 of the protocol, the server version 1"
expect "an older server" 2 "it speaks version 1 of the protocol, this library 2: the server must be updated" "${ping[@]}"
unserve
serve reject=1 detail=9 version=9 text="the client speaks version 2 of the protocol, the server version 9"
expect "a newer server" 2 "the client speaks version 2 of the protocol, the server version 9" "${ping[@]}"
unserve
serve reject=5 detail=64 text="slots of 64 bytes"
expect "a smaller slot than was offered" 2 "slots of 64 bytes" "${ping[@]}"
unserve
serve leave=1
expect "a server that ends the connection before the client is connected" 2 "^-104: several port 7471: the server ended the connection" "${addresses[@]}" "ended:$address"
unserve
serve reject=5 detail=8256 text="slots of 8256 bytes"
expect "never content" 2 "slots of 8256 bytes" "${ping[@]}"
unserve
serve slot=0x10000080
expect "more memory than any table needs" 2 "refused by the server: slots too small" "${ping[@]}"
unserve
serve slot=65536
expect "a refusal of slots that were too small is no failure" 0 "^0: connected" "${addresses[@]}" ::1 127.0.0.1
expect "a larger slot is learned" 0 "slots of 64.0 KiB" "${ping[@]}"
unserve
serve reject=3 text="no such offload"
pair=$address:7471,$address:7472
hosts=("$REDDN" ping -t 50000 -c 2 -i 1 "$pair" x)
expect "a refusal of one host, silence of the other" 2 "refused by the server: no such offload ($address, one of 2 hosts)" "${hosts[@]}"
refusing=$server port=7472
serve
expect "the second host accepts" 0 "session 1, connected" "${hosts[@]}"
accepting=$server
server=$refusing port=7471
unserve
serve slot=65536 answers=1
expect "the first host refuses slots that are too small, and no more comes of it" 0 "session 1, connected" "$REDDN" ping -t 10000 -c 2 -i 1 "$pair" x
unserve
server=$accepting
unserve
serve
expect "nobody listens at the first host" 0 "session 1, connected" "$REDDN" ping -t 50000 -c 2 -i 1 "$address:7472,$address:7471" x
expect "a name that nobody knows is one of two" 0 "session 1, connected" "$REDDN" ping -t 50000 -c 2 -i 1 "256.1.1.1,$address" x
unserve
serve reject=77
expect "an unknown reason, text without end" 2 "refused by the server: xxx" "${ping[@]}"
unserve
serve reject=3 magic=7
expect "a refusal by something else" 2 "connection refused" "${ping[@]}"
unserve
serve reject=3 reject-len=10
expect "a short refusal" 2 "no reason given" "${ping[@]}"
unserve

while read -r setting words; do
	serve "$setting"
	expect "reply with $setting" 2 "$words" "${ping[@]}"
	unserve
done <<'END'
magic=1 no reddnd
version=9 version 9 of the protocol, this library 2: libreddn must be updated
version=1 version 1 of the protocol, this library 2: the server must be updated
depth=17 depth 17
request_len=0 length of requests
request_len=3000 requests of 3000 bytes
request_len=20 length of requests
reply_max=1000000 replies of 1000000 bytes
shape=99 kind 99
buckets=5 power of two
buckets=0x100000 too short
offset_len=0 1 to 8
probes=3 one of two
max_key=0 out of range
accept-len=20 power of two
accept-len=0 no reddnd
END

# Which the library notices first, the end of the connection or of its requests, is chance. 100 requests reuse each slot.
while read -r what words; do
	serve after=100 do="$what"
	expect "in the middle: $what" 2 "$words" "${bench[@]}" -c 300 "$address" x
	grep -q '^unanswered' "$work/client.log" && fail "$what: requests got no result" "$work/client.log"
	unserve
done <<'END'
disconnect closed the connection\|the NIC reports
exit ^reddn: \(the connection was lost\|the server closed\|the NIC reports\)
wrong-imm protocol violated: reply 101 when 100
twice protocol violated: reply 100 when 101
END

serve after=0 do=silence
expect "silence" 2 "no reply in 5000 ms" "$REDDN" ping -p "$port" -t 5000 -c 2 -i 1 "$address" x
unserve

done_testing
