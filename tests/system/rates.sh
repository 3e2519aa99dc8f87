#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Rates: a client above its rate is slowed and not disconnected, in both modes; other clients do not notice; clients that ask for
# nothing do not keep the credits of their tenant; the limits of a live session can change.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
modes=(plain)
able "recycled offloads" "${recycling[@]}" && modes+=(lap)
: "${REDDN:?}" "${IDLE_CLIENTS:?}"

# Tenants are known by their keys: an address means nothing on InfiniBand.
bench() # LOG HOST OFFLOAD COUNT: in the background; sets $child
{
	local token=()

	[[ ! -f $work/key.$2 ]] || token=(--token-file "$work/key.$2")
	background "$1" --host "$2" "$REDDN" bench --timeout 100000 --verify --keys "$work/keys" --count "$4" --depth 8 "${token[@]}" \
		--port "$port" "$address" "$3"
}

# within COUNT RATE ALLOWANCE BEGIN: COUNT requests took at least the time that RATE requires
within()
{
	local took=$(($(now_ms) - $4)) least=$((($1 - $3) * 1000 / $2))

	[[ $took -ge $least ]] || fail "$1 requests in $took ms; at $2 per second they take $least at least" "$work/reddnd.log"
	ok "$1 requests at $2 per second: $took ms, $least at least"
}

requests() # TENANT
{
	ctl --json tenants || fail "no tenants" "$work/ctl.err"
	value "[t['requests'] for t in d if t['tenant'] == '$1'][0]"
}

counted() # TENANT NUMBER
{
	[[ $(requests "$1") -eq $2 ]]
}

goes_on() # NUMBER: of requests of those without limit
{
	[[ $(requests free) -ge $1 ]]
}

rests() # TENANT: for a while it is asked for nothing, or gets nothing
{
	local had
	had=$(requests "$1")
	sleep 1
	[[ $(requests "$1") -eq $had ]]
}

session_of() # OFFLOAD: the number of a session
{
	ctl --json sessions || fail "no clients" "$work/ctl.err"
	value "[c['session'] for c in d if c['offload'] == '$1'][0]"
}

has_session() # OFFLOAD
{
	session_of "$1" | grep -q '^[1-9]'
}

printf 'alice\twonder\n' >"$work/keys"
make_table "$work/table" --max-value 1000 <"$work/keys"
for host in b c d; do
	printf 'the key of host %s\n' "$host" >"$work/key.$host"
	chmod 600 "$work/key.$host"
done
nic_options=(--hosts "a,b,c,d")
start_nic
server_on=(--host a)
start_reddnd "control = \"$control\"; regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );
offloads = ( { name = \"plain\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; },
  { name = \"lap\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; } );
tenants = ( { name = \"slow\"; key = \"$work/key.b\"; rate = 400; burst = 20; },
  { name = \"each\"; key = \"$work/key.c\"; session_rate = 300; session_burst = 10; },
  { name = \"thin\"; key = \"$work/key.d\"; bytes_rate = 24000; session_bytes_rate = 20000; },
  { name = \"free\"; } );"
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"

# slowed in both modes; every request gets its right answer
total=0
for offload in "${modes[@]}"; do
	begin=$(now_ms)
	bench slow.log b "$offload" 500
	expect_exit "$child" "a client over its rate" slow.log
	total=$((total + 500))
	within 500 400 40 "$begin"
	until_true counted slow "$total" || fail "$(requests slow) requests, not $total" "$work/reddnd.log"

	begin=$(now_ms)
	bench each.log c "$offload" 300
	expect_exit "$child" "a client over the rate of a session" each.log
	within 300 300 20 "$begin"
done

# offload OFFLOAD MEMBER: prints a member of "reddnctl offloads"
offload()
{
	ctl --json offloads || fail "no offloads" "$work/ctl.err"
	value "[o['$2'] for o in d if o['offload'] == '$1'][0]"
}

# bytes: written to reply slots. What plain counts is as much for lap
for name in "${modes[@]}"; do
	wrote=$(offload plain bytes_out)
	begin=$(now_ms)
	bench thin.log d "$name" 400
	expect_exit "$child" "$name: a client over its bytes" thin.log
	most=$(offload "$name" reply_bytes)
	[[ $name == lap ]] || bytes=$(($(offload plain bytes_out) - wrote))
	took=$(($(now_ms) - begin))
	# the bucket of a session holds 2000 bytes or the longest reply, and can be used twice
	bucket=$((most > 2000 ? most : 2000))
	least=$(((bytes - 2 * bucket) * 1000 / 20000))
	[[ $took -ge $least ]] || fail "$name: $bytes bytes in $took ms; at 20000 per second they take $least at least" "$work/reddnd.log"
	ok "$name: $bytes bytes at 20000 per second: $took ms, $least at least"
done

# two sessions share the credits of their tenant
begin=$(now_ms)
bench 1.log b plain 200
first=$child
bench 2.log b "${modes[-1]}" 200
second=$child
expect_exit "$first" "one of two" 1.log
expect_exit "$second" "the other" 2.log
within 400 400 60 "$begin"

# A client that leaves without a request gives back its credits. The bucket of bytes has those of one reply, and no more accrue.
no_session() # OFFLOAD
{
	! has_session "$1" 2>/dev/null
}

for offload in "${modes[@]}"; do
	ctl limit thin --bytes 24000 || fail "no limit" "$work/ctl.err"
	sleep 1
	ctl limit thin --bytes 1 || fail "no limit" "$work/ctl.err"
	for _ in 1 2 3; do
		on_nic idle.log --host d "$IDLE_CLIENTS" "$address" "$port" "$offload" "$work/key.d" 1 || fail "no idle client" "$work/idle.log" "$work/reddnd.log"
	done
	on_nic get.log --host d "$REDDN" get --timeout 20000 --token-file "$work/key.d" --port "$port" "$address" "$offload" alice ||
		fail "$offload: clients that left keep the credits" "$work/get.log" "$work/reddnd.log"
	ok "$offload: clients that leave without a request give back their credits"
done
ctl limit thin --bytes 0 || fail "no limit" "$work/ctl.err"

# However long clients rest, together they have at most the receives of one burst, or one each.
burst=20
clients=12
for offload in "${modes[@]}"; do
	ctl limit slow --rate 400 --burst "$burst" || fail "no limit" "$work/ctl.err"
	rm -f "$work/go"
	background idle.log --host b "$IDLE_CLIENTS" "$address" "$port" "$offload" "$work/key.b" "$clients" 8 "$work/go"
	until_true grep -q connected "$work/idle.log" || fail "no idle clients" "$work/idle.log" "$work/reddnd.log"
	sleep 1
	before=$(requests slow)
	begin=$(now_ms)
	ctl limit slow --rate 1 || fail "no limit" "$work/ctl.err"
	touch "$work/go"
	sleep 2
	asked=$(($(requests slow) - before))
	most=$((burst + clients + 3 + ($(now_ms) - begin) / 1000))
	[[ $asked -ge $clients && $asked -le $most ]] ||
		fail "$offload: $asked requests of clients that rested, not $clients to $most" "$work/idle.log" "$work/reddnd.log"
	ok "$offload: $asked requests of $clients clients that rested, $most at most"
	kill "$child"
	wait "$child" 2>/dev/null
	until_true no_session "$offload" || fail "the sessions stay" "$work/reddnd.log"
done

# live: requests that would take an hour finish at once when the limit is lifted, and the reverse
for offload in "${modes[@]}"; do
	ctl limit slow --rate 1 || fail "no limit" "$work/ctl.err" "$work/free.log" "$work/reddnd.log"
	grep -qx 'tenant slow: 1 requests per second' "$work/ctl.out" || fail "wrong output of limit" "$work/ctl.out"
	bench slow.log b "$offload" 4000
	slow=$child
	until_true has_session "$offload" || fail "no session"
	bench free.log a "$offload" 5000
	expect_exit "$child" "a neighbour without limit" free.log
	alive "$slow" || fail "4000 requests at one per second are done" "$work/slow.log"
	ok "$offload: a neighbour without limit is not slowed"
	ctl limit slow --rate 0 || fail "no limit" "$work/ctl.err" "$work/free.log" "$work/reddnd.log"
	expect_exit "$slow" "$offload, when the limit of its tenant is lifted" slow.log
	ok "$offload: the limit of a tenant is lifted"

	bench free.log a "$offload" 1000000000
	until_true has_session "$offload" || fail "no session"
	session=$(session_of "$offload")
	ctl limit "$session" --rate 50 --burst 5 || fail "no limit" "$work/ctl.err" "$work/free.log" "$work/reddnd.log"
	begin=$(now_ms)
	before=$(requests free)
	until_true goes_on $((before + 100)) || fail "$offload: no requests at 50 per second" "$work/reddnd.log"
	after=$(requests free)
	took=$(($(now_ms) - begin))
	# requests posted before run at full speed, and earlier ones may be counted late
	[[ $((after - before)) -le $((took * 50 / 1000 + 200)) ]] ||
		fail "$offload: $((after - before)) requests in $took ms at 50 per second" "$work/reddnd.log"
	ok "$offload: $((after - before)) requests in $took ms of a session that was limited to 50 per second while it ran"

	# the same in bytes, first of the session, then of its tenant
	for whose in "$session" free; do
		ctl limit "$session" --rate 0 --bytes 0 || fail "no limit" "$work/ctl.err" "$work/free.log" "$work/reddnd.log"
		before=$(requests free)
		until_true goes_on $((before + 1000)) || fail "$offload: no requests without a limit" "$work/reddnd.log"
		# a reply costs more than the credits of a minute
		ctl limit "$whose" --bytes 1 || fail "no limit" "$work/ctl.err" "$work/free.log" "$work/reddnd.log"
		grep -q ": 1 bytes per second$" "$work/ctl.out" || fail "wrong output of limit" "$work/ctl.out"
		until_true rests free || fail "$offload: the bytes of $whose are not limited" "$work/reddnd.log"
		alive "$child" || fail "$offload: the client has ended" "$work/free.log" "$work/reddnd.log"
		ok "$offload: the bytes of $([[ $whose == free ]] && echo a tenant || echo a session) are limited while it runs"
		ctl limit "$whose" --bytes 0 || fail "no limit" "$work/ctl.err" "$work/free.log" "$work/reddnd.log"
		before=$(requests free)
		until_true goes_on $((before + 1000)) || fail "$offload: the limit is not lifted" "$work/reddnd.log"
	done
	ok "$offload: the limits are lifted"
	kill "$child"
	wait "$child" 2>/dev/null
	until_true sh -c "! '$REDDNCTL' --socket '$control' sessions | grep -q ' $offload '" || fail "the session stays"
done

# wrong arguments
ctl limit nobody --rate 5 && fail "a limit for nobody"
grep -q 'there is no such tenant; "tenants" lists them' "$work/ctl.err" || fail "limit" "$work/ctl.err"
ctl limit slow --rate 5000 --burst 4 && fail "a burst that is too small"
grep -q '"burst" is 4; for that rate it must be at least 5' "$work/ctl.err" || fail "burst" "$work/ctl.err"
for words in "" "--burst 5" "--bytes 5 --burst 5"; do
	# shellcheck disable=SC2086 # words
	ctl limit slow $words && fail "a limit without a rate"
	grep -q -- '--rate is missing' "$work/ctl.err" || fail "rate" "$work/ctl.err"
done
ctl limit slow --bytes much && fail "a size that is none"
grep -q -- '--bytes "much" is no size' "$work/ctl.err" || fail "bytes" "$work/ctl.err"
ok "wrong limits are refused"

stop_reddnd
done_testing
