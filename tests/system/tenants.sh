#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Tenants: a client belongs to one by address and token; offloads it may use; quotas, charged and refunded; protection domains.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
lap=lap
able "a client of a recycled offload" "${recycling[@]}" || lap=one
: "${REDDN:?}" "${MISUSE:?}" "${REFUSED_CLIENTS:?}"

# tenant NAME MEMBER: prints a member of "reddnctl tenants"
tenant()
{
	ctl --json tenants || fail "no tenants" "$work/ctl.err" "$work/reddnd.log"
	value "[t for t in d if t['tenant'] == '$1'][0].get('$2')"
}

is() # NAME MEMBER VALUE
{
	[[ $(tenant "$1" "$2") == "$3" ]]
}

expect() # NAME MEMBER VALUE
{
	until_true is "$1" "$2" "$3" || fail "tenant $1: $2 is $(tenant "$1" "$2"), not $3" "$work/reddnd.log"
}

get() # HOST OFFLOAD [OPTIONS...]: returns the exit status of the client, whose output is in get.log
{
	on_nic get.log --host "$1" "$REDDN" get --timeout 100000 "${@:3}" --port "$port" "$address" "$2" alice
}

served() # WORDS HOST OFFLOAD [OPTIONS...]
{
	get "${@:2}" || fail "$1" "$work/get.log" "$work/reddnd.log"
	grep -qx wonder "$work/get.log" || fail "$1: a wrong answer" "$work/get.log"
	ok "$1"
}

refused() # REASON HOST OFFLOAD [OPTIONS...]
{
	get "${@:2}" && fail "served, not refused: $1"
	grep -qE "refused by the server: $1" "$work/get.log" || fail "no reason \"$1\"" "$work/get.log"
	ok "refused: $1"
}

# stay LOG HOST OFFLOAD DEPTH: starts a client that stays; sets $child
stay()
{
	background "$1" --host "$2" "$REDDN" bench --timeout 100000 --keys "$work/keys" --rate 100 --seconds 800 --depth "$4" --port "$port" "$address" "$3"
}

leave() # PID...
{
	kill "$@" 2>/dev/null
	wait "$@" 2>/dev/null
}

printf 'alice\twonder\n' >"$work/keys"
make_table "$work/table" --max-value 1000 <"$work/keys"
printf 'a key that nobody guesses\n' >"$work/key"
printf 'another key, just as long\n' >"$work/wrong-key"
chmod 600 "$work/key" "$work/wrong-key"

settings() # TENANTS
{
	printf 'control = "%s"; regions = ( { name = "t"; kind = "table"; path = "%s"; } );
offloads = ( { name = "one"; mode = "unrolled"; program = "hash-get"; region = "t"; }, { name = "two"; mode = "unrolled"; program = "hash-get"; region = "t"; },
  { name = "lap"; program = "hash-get"; region = "t"; mode = "recycled"; } );\n%s' "$control" "$work/table" "$1"
}

# c's network has a longer prefix in "narrow" than in "wide"; b is in "wide" and, with a token, in "secret". On InfiniBand an address
# means nothing: there c has a token for "narrow"
by_address=true
networks() # ADDRESS...
{
	! $by_address || printf 'networks = [ %s ];' "$(printf '"%s", ' "$@" | sed 's/, $//')"
}
narrow="networks = [ \"127.2.0.1\" ];"
of_c=()
if ! able "tenants by address" port.link=Ethernet; then
	by_address=false
	printf 'the key of tenant narrow\n' >"$work/narrow-key"
	chmod 600 "$work/narrow-key"
	narrow="key = \"$work/narrow-key\";"
	of_c=(--token-file "$work/narrow-key")
fi
nic_options=(--hosts "a,b,c")
start_nic
server_on=(--host a)
start_reddnd "$(settings "tenants = (
  { name = \"wide\"; $(networks 127.1.0.0/16 127.2.0.0/15) offloads = [ \"one\", \"lap\" ]; sessions = 2; depth = 40; },
  { name = \"narrow\"; $narrow queue_bytes = \"160K\"; },
  { name = \"secret\"; $(networks 127.1.0.0/16) key = \"$work/key\"; slot_bytes = \"64K\"; } );")"
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"

served "a client of tenant wide" b one
expect wide requests 1
refused 'tenant wide may not use offload two' b two
! $by_address || refused 'clients from 127\.0\.0\.1 are not served' a one
served "tenant narrow has the longer prefix, and all offloads" c two "${of_c[@]}"
expect narrow accepted 1

# an address of tenant wide, in the request of a client whose packets have another
if $by_address; then
	on_nic forged.log --host a "$REFUSED_CLIENTS" "$address" "$port" 1 127.1.0.5 || fail "a forged address is not refused" "$work/forged.log"
	grep -q 'the address in the request is not the one that the client' "$work/forged.log" || fail "a forged address" "$work/forged.log"
	ok "an address that is not the client's is refused"
fi

served "a token leads into tenant secret" b two --token-file "$work/key"
expect secret accepted 1
refused 'the token is invalid' b two --token-file "$work/wrong-key"
! $by_address || refused 'clients from 127\.2\.0\.1 must not have a token' c one --token-file "$work/key"
expect wide refused 1
expect secret refused 0

# quotas: refusals name the quota with its numbers; the end of a session, for any reason, refunds them
stay 1.log b one 32
first=$child
expect wide depth 32
refused 'depth is 16; tenant wide has 8 left of its quota "depth" of 40' b one
stay 2.log b "$lap" 8
second=$child
expect wide sessions 2
refused 'tenant wide has used up its quota "sessions" of 2' b one
served "another tenant has quotas of its own" c one "${of_c[@]}"
ctl tenants || fail "no tenants"
grep -qE '^wide +2 +2 +40 +40 ' "$work/ctl.out" || fail "reddnctl tenants" "$work/ctl.out"
[[ $(tenant wide queue_bytes) -gt 0 ]] || fail "queues are free of charge"
[[ $(tenant wide slot_bytes) -eq $((40 * 4096)) ]] || fail "40 slots of 4096 bytes are charged as $(tenant wide slot_bytes)"
leave "$first"
expect wide sessions 1
kill_hard "$second"
for member in sessions depth queue_bytes slot_bytes; do
	expect wide "$member" 0
done
ok "all quotas are refunded"
on_nic bench.log --host c "$REDDN" bench --timeout 100000 --keys "$work/keys" --count 10 --depth 64 "${of_c[@]}" --port "$port" "$address" one &&
	fail "queues beyond the quota"
grep -qE 'queues of [0-9]+ bytes; tenant narrow has 163840 left of its quota "queue_bytes" of 163840' "$work/bench.log" ||
	fail "queue_bytes" "$work/bench.log"
expect narrow queue_bytes 0
ok 'quota "queue_bytes"'
on_nic bench.log --host b "$REDDN" bench --keys "$work/keys" --count 10 --depth 32 --token-file "$work/key" --port "$port" "$address" one &&
	fail "slots beyond the quota"
grep -qE 'reply slots of 131072 bytes; tenant secret has 65536 left of its quota "slot_bytes" of 65536' "$work/bench.log" ||
	fail "slot_bytes" "$work/bench.log"
expect secret slot_bytes 0
ok 'quota "slot_bytes"'

# each tenant has a PD, made when first needed: the NIC refuses the keys of one tenant on the queues of another
[[ $(object pds) -ge 4 ]] || fail "no PD for each tenant" <(objects)
ok "a PD for each tenant"

# a reload: new key and new quotas, with the current use
stay 3.log b one 16
third=$child
expect wide sessions 1
configure_reddnd "$(settings "tenants = (
  { name = \"wide\"; $(networks 127.0.0.0/8) sessions = 1; } );")"
ctl reload || fail "no reload" "$work/ctl.err"
refused 'tenant wide has used up its quota "sessions" of 1' c two
leave "$third"
expect wide sessions 0
served "and when it has left there is room" c two
until_true reported tenants '[t["tenant"] for t in d] == ["wide"]' || fail "removed tenants stay" "$work/ctl.out"
ok "a removed tenant goes with its last session"

# a client that does not complete its connection is charged until the timeout
printf 'connect_timeout = "1s";\n' >>"$work/reddnd.conf"
ctl reload || fail "no reload" "$work/ctl.err"
background half.log --host c "$MISUSE" "$address" "$port" two half-open
half=$child
until_true grep -q 'ends after 0 requests: the client did not complete the connection within 1000 ms' "$work/reddnd.log" ||
	fail "a half-open session stays" "$work/half.log" "$work/reddnd.log"
expect wide sessions 0
alive "$half" || fail "the client has ended by itself" "$work/half.log"
leave "$half"
ok "a half-open session ends"

# the same for a client that sends nothing, for instance because its host lost power. A reload can set the timeout
stay 4.log b one 16
idle=$child
# only then it has completed its connection
until_true reported sessions "any(c['requests'] > 0 for c in d)" || fail "the client is not served" "$work/4.log" "$work/reddnd.log"
stop_program "$(program_of "$idle")"
sed -i 's/sessions = 1;/sessions = 1; idle_timeout = "1s";/' "$work/reddnd.conf"
ctl reload || fail "no reload" "$work/ctl.err"
until_true grep -qE 'ends after [0-9]+ requests: the client has asked for nothing for [0-9]+ ms' "$work/reddnd.log" ||
	fail "an idle session stays" "$work/4.log" "$work/reddnd.log"
expect wide sessions 0
leave "$idle"
ok "an idle session ends"

# the rate of connects is limited: a client above it is refused, and served later
accepted=$(tenant wide accepted)
sed -i 's/idle_timeout = "1s";/connect_rate = 1; connect_burst = 2;/' "$work/reddnd.conf"
begin=$SECONDS
ctl reload || fail "no reload" "$work/ctl.err"
is wide connect_rate 1 || fail "connect_rate is $(tenant wide connect_rate)"
rush() # clients at once, of whom some are refused
{
	local clients=() i

	for i in 1 2 3 4 5 6 7 8; do
		background "rush$i.log" --host b "$REDDN" get --timeout 100000 --port "$port" "$address" one alice
		clients+=("$child")
	done
	wait "${clients[@]}"
	grep -qE 'refused by the server: tenant wide has used up its quota "connect_rate" of 1 per second; there is room again in [0-9]+ ms' "$work"/rush?.log
}
until_true rush || fail "no client is refused" "$work"/rush?.log "$work/reddnd.log"
[[ $(($(tenant wide accepted) - accepted)) -le $((2 + SECONDS + 1 - begin)) ]] ||
	fail "$(tenant wide accepted) accepted in $((SECONDS - begin)) s, $accepted before" "$work/reddnd.log"
until_true get b one || fail "clients are not served later" "$work/get.log" "$work/reddnd.log"
ok "quota \"connect_rate\""

stop_reddnd

# a token is for the address that the client connects to, whatever the daemon listens on. 127.0.0.5 leads to the host of 127.0.0.1
own=$address
address=0.0.0.0
start_reddnd "$(settings "tenants = ( { name = \"secret\"; key = \"$work/key\"; } );")"
address=$own
served "a token, where the daemon listens on any address" b one --token-file "$work/key"
if $by_address; then
	address=127.0.0.5
	refused "the server's address in the request is not the one that the client's packets go to" b one --token-file "$work/key"
	address=$own
fi

stop_reddnd
done_testing
