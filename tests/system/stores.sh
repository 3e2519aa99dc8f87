#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Stores: clients put, delete and get while nothing happens, the configuration is read again, and daemons are killed. Each client knows
# what its keys must have; afterwards each extent is free or that of an entry. Then a store that is full, one whose sessions find no
# extents, the second device of a daemon, and a file that is cut off and overwritten.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs has.cross_channel

: "${PUTS:?set PUTS to the path of the test client}" "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
operations=${TEST_OPERATIONS:-1000}
nic_options+=(--hosts "a:1,b:2")
first=127.1.0.1 second=127.1.0.2
data=$memory/data
mkdir "$data"

make_store() # NAME [OPTION...]
{
	"$REDDN_TABLE" create --quiet --store --max-key 32 --max-value 320 "${@:2}" "$data/$1" || fail "no store"
}

free_port
metrics=$port port=7471
cat >"$work/reddnd.conf" <<END
listen = [ "$first:$port", "$second:$port" ];
device = [ "mlx5_0", "mlx5_1" ];
control = "$work/control";
metrics = "127.0.0.1:$metrics";
programs = "$programs";
regions = ( { name = "users"; kind = "store"; path = "$data/users"; }, { name = "small"; kind = "store"; path = "$data/small"; } );
offloads = (
  { name = "users"; region = "users"; },
  { name = "recycled"; program = "hash-get"; region = "users"; mode = "recycled"; },
  { name = "small"; region = "small"; } );
END

puts() # LOG SEED [more]: until end_puts
{
	background "$1" --host a "$PUTS" "$first" "$port" "${@:2}"
}

end_puts() # PID...
{
	local pid

	for pid; do
		kill "$(program_of "$pid")"
	done
}

wait_puts() # WHEN PID LOG
{
	local rc=0

	wait "$2" || rc=$?
	[[ $rc -eq 0 ]] || fail "$1: a client ends with status $rc" "$work/$3" "$work/run.log"
	tail -n 1 "$work/$3"
}

# Every extent that is not free, and will not be after the next grace, is that of an entry with a record or a deleted one; and no outcome
# was wrong
accounted()
{
	[[ $(asked regions 'all(r["state"] == "serving" and sum(e["held"] for e in r["extents"]) == 0 and
		sum(e["used"] for e in r["extents"]) == r["entries"] + r["deleted"] and r["contradictions"] == 0 for r in d)') == True ]]
}

expect_accounted() # WHEN
{
	until_true has_clients 0 || fail "$1: clients stay"
	until_true accounted || {
		asked regions d >"$work/regions"
		fail "$1: extents are not accounted for" "$work/regions" "$work/run.log"
	}
	ok "$1: each extent is free or that of an entry"
}

counted() # METRIC PATTERN: a line of the metrics has both
{
	python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$metrics/metrics" |
		grep -E "^$1" | grep -qE -- "$2"
}

start_nic
make_store users --buckets 256
make_store small --buckets 64 --heap 256K
background run.log --host b "$REDDND_RUN" "$REDDND" --config "$work/reddnd.conf"
run=$child
server_ready "$run" reddnd run.log reddnd_listens

# ---- several clients, beside a reload -----------------------------------------------------

puts a.log 1
a=$child
puts b.log 2
b=$child
puts c.log 3 more
third=$child
until_true more_requests users.put "$operations" || fail "the clients get no answers" "$work/a.log" "$work/run.log"
"$REDDNCTL" --socket "$work/control" reload >"$work/reload" 2>&1 || fail "no reload" "$work/reload" "$work/run.log"
until_true more_requests users.put $((2 * operations)) || fail "the clients do not go on" "$work/a.log" "$work/run.log"
end_puts "$a" "$b" "$third"
wait_puts "several clients" "$a" a.log
wait_puts "several clients" "$b" b.log
wait_puts "several clients" "$third" c.log
ok "several clients get what was put, and a reload disturbs nobody"
expect_accounted "several clients"
[[ $(asked offloads '[o["hits"] > 0 and o["misses"] > 0 and o["bytes_in"] > o["requests"] * o["request_bytes"] and o["conflicts"] >= 0
	for o in d if o["offload"] == "users.put"]') == '[True]' ]] || fail "what was put is not counted"
ok "puts are counted"

# ---- daemons that die under puts ----------------------------------------------------------

puts d.log 4
d=$child
puts e.log 5 more
e=$child
on_second() # NUMBER OF A DAEMON
{
	until_true more_requests users.put $((100 * $1)) || fail "the clients get no answers" "$work/d.log" "$work/e.log" "$work/run.log"
}
for n in 1 2 3; do
	on_second "$n"
	kill -9 "$(daemon)"
	until_true taken_over $((2 * n)) || fail "nobody takes over" "$work/run.log"
done
on_second 1
end_puts "$d" "$e"
wait_puts "killed daemons" "$d" d.log
wait_puts "killed daemons" "$e" e.log
ok "no put that was answered is lost when daemons are killed"
expect_accounted "killed daemons"

# ---- no daemon, but chains that may publish -----------------------------------------------

put() # KEY [ADDRESS]
{
	on_nic put.log --host a "$REDDN" put --port "$port" "${2:-$first}" small "$1" "value of $1"
}

replace_store() # NAME
{
	"$REDDN_TABLE" create --quiet --replace --store --max-key 32 --max-value 320 --buckets 64 --heap 256K "$data/$1" 2>"$work/replace.log"
}

above=$(program_of "$run")
dead=$(daemon)
kill -STOP "$above"
kill -9 "$dead"
replace_store small && fail "a store is replaced while its chains may publish"
grep -q 'reddnd serves it and is its writer' "$work/replace.log" || fail "no reason" "$work/replace.log"
kill -CONT "$above"
until_true taken_over 8 || fail "nobody takes over" "$work/run.log"
until_true put "key 0" || fail "the store does not go on" "$work/put.log" "$work/run.log"
ok "nobody else writes a store between a daemon that was killed and the next one"

# ---- no room ------------------------------------------------------------------------------

filled=0
while put "key $filled"; do
	((++filled))
	((filled < 64)) || fail "a store of 64 buckets has room for $filled keys"
done
grep -q 'the store is full' "$work/put.log" || fail "it is not full" "$work/put.log" "$work/run.log"
is_full() # True|False
{
	[[ $(asked regions '[r["full"] for r in d if r["region"] == "small"]') == "[$1]" ]]
}
is_full True || fail "a region does not show that it is full"
counted reddnd_store_full 'small.* 1$' || fail "a metric does not show that a store is full"
grep -q 'region small: the store is full' "$work/run.log" || fail "the log does not" "$work/run.log"
put "key 1" || fail "a key that is there cannot be put" "$work/put.log"
ok "a full store takes no new key, after $filled of them, and goes on with those that are there"
for ((i = 0; i < filled; i += 2)); do
	on_nic put.log --host a "$REDDN" delete --port "$port" "$first" small "key $i" || fail "no delete" "$work/put.log"
done
until_true put "key new" || fail "there is no room for a new key" "$work/put.log" "$work/run.log"
until_true is_full False || fail "it is still full"
ok "and takes others when some were deleted"
expect_accounted "full"

# ---- the second device --------------------------------------------------------------------

put "key 1" "$second" && fail "the second device serves puts"
grep -q "offload small.put is served on device mlx5_0 alone" "$work/put.log" || fail "no reason" "$work/put.log"
on_nic get.log --host a "$REDDN" get --port "$port" "$second" small "key 1" || fail "the second device serves no gets" "$work/get.log"
grep -q 'value of key 1' "$work/get.log" || fail "the second device has another value" "$work/get.log"
[[ $(asked status 'd["disabled"]') == 0 ]] || fail "an offload counts as disabled"
ok "the second device serves gets, and refuses puts with the reason"

# ---- the file is cut off ------------------------------------------------------------------

truncate -s 4096 "$data/small"
put "key 1" && fail "a put into a file that is cut off succeeds"
until_true asked regions '[r["state"] for r in d] == ["serving", "bad"] or 1 / 0' || fail "no region is bad" "$work/run.log"
puts a.log 6
a=$child
until_true more_requests users.put 20 || fail "a store beside it does not serve" "$work/a.log" "$work/run.log"
end_puts "$a"
wait_puts "beside a file that is cut off" "$a" a.log
ok "a store that is cut off is bad, and others go on"

# ---- and another store is in it -----------------------------------------------------------

overwrite() # SEED: as cp(1)
{
	"$REDDN_TABLE" create --quiet --store --max-key 32 --max-value 320 --buckets 128 --seed "$1" "$memory/other.$1" || fail "no store"
	cat "$memory/other.$1" >"$data/small"
}

# In the file, as its header has it
is_put() # KEY
{
	put "$1" && "$REDDN_TABLE" dump "$data/small" 2>"$work/dump.err" | grep -q "value of $1"
}
overwrite 1
until_true is_put "key 1" || fail "a store whose file is whole again is not served" "$work/put.log" "$work/run.log"
expect_accounted "whole again"
overwrite 2
until_true is_put "key 2" || fail "a store that was overwritten with another one is not served" "$work/put.log" "$work/run.log"
expect_accounted "overwritten"
kill "$run"
wait "$run"
done_testing
