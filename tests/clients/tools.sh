#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# reddn-table and reddn as people use them: output, files and exit status.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
with_daemon=false
if able "reddn, which asks a daemon" has.devx; then
	with_daemon=true
	. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
fi

: "${REDDN:?set REDDN to the path of the client tool}"
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
table=$work/table

# expect WHAT STATUS WORDS CMD...: exit status, and words on standard output or error.
expect()
{
	local what=$1 status=$2 words=$3 rc=0
	shift 3

	"$@" >"$work/out" 2>&1 </dev/null || rc=$?
	[[ $rc -eq $status ]] || fail "$what: exit status $rc, not $status" "$work/out"
	grep -qF -e "$words" "$work/out" || fail "$what: \"$words\" is missing" "$work/out"
	ok "$what"
}

json() # EXPRESSION: true of the object o on standard input
{
	python3 -c "import json, sys; o = json.loads(sys.stdin.read()); sys.exit(not ($1))"
}

# ---- reddn-table

expect "help" 0 "usage: reddn-table" "$REDDN_TABLE" --help
expect "no command" 2 "usage: reddn-table" "$REDDN_TABLE"
expect "an unknown command" 2 'there is no command "lod"; did you mean "load"?' "$REDDN_TABLE" lod
expect "an unknown option" 2 "reddn-table dump: unrecognized option '--foo'" "$REDDN_TABLE" dump --foo "$table"
expect "no memcached" 2 "reddn: k: Connection refused: CONNECTION FAILURE,  host: 127.0.0.1:1" "$REDDN" mc get 127.0.0.1:1 k
! grep -qE '0x|->' "$work/out" || fail "what only a developer of libmemcached understands" "$work/out"
for option in capacity buckets heap max-key max-value seed; do
	expect "--$option 0, which the library takes for the default" 2 "\"0\" is no value for option -" "$REDDN_TABLE" create "--$option" 0 "$work/none"
done
expect "two ends of a run" 2 "either --count or --seconds ends a run" "$REDDN" bench -c 10 -s 1 -k "$work/users.tsv" 127.0.0.1 users
expect "an option of another command" 2 "dump takes no option -c" "$REDDN_TABLE" dump -c 1 "$table"
expect "no number" 2 '"1x" is no value for option -c' "$REDDN_TABLE" create -c 1x "$table"
expect "no size" 2 '"1GB" is no value for option -H, or out of range; write it as in 4096, 64K or 1GiB' "$REDDN_TABLE" create -H 1GB "$table"
expect "no power of two" 2 "power of two" "$REDDN_TABLE" create -b 1000 "$table"
expect "create" 0 "2048 buckets" "$REDDN_TABLE" create -b 2KiB -v 100 -k 50 "$table"
expect "it exists" 2 "table: exists already; --replace replaces a table" "$REDDN_TABLE" create "$table"
expect "create a store" 0 "a store: 3754 extents of 192 bytes" "$REDDN_TABLE" create --store -b 2KiB -v 100 -k 50 -H 700K "$work/store"
expect "create a store that evicts" 0 "a store: " "$REDDN_TABLE" create --store --evict "$work/cache"
expect "it evicts" 0 "it evicts" "$REDDN_TABLE" stat "$work/cache"
expect "a table that evicts" 2 "only stores evict" "$REDDN_TABLE" create --evict "$work/none"
expect "a store that grows" 2 "a store does not grow" "$REDDN_TABLE" create --store --grow "$work/none"
expect "stat of a store" 0 "15 bytes before each record, 0 buckets of keys without one" "$REDDN_TABLE" stat "$work/store"
"$REDDN_TABLE" stat --json "$work/store" | json 'o["store"] and o["header"] == 15 and o["idle"] == 0' || fail "stat --json of a store"
[[ $("$REDDN_TABLE" dump "$work/store"; echo $?) == 0 ]] || fail "dump of an empty store"
for verb in load repair grow; do
	expect "$verb of a store" 2 "store: it is a store, whose writer is reddnd" "$REDDN_TABLE" "$verb" "$work/store"
done
printf 'alice\tin wonderland\n' >"$work/users.tsv"
expect "no table to replace" 2 "users.tsv: exists, and is not replaced" "$REDDN_TABLE" create --replace "$work/users.tsv"
grep -q wonderland "$work/users.tsv" || fail "the file that is no table is gone"

{
	printf 'alpha\t1\nwith space\ttab \\t line \\n zero \\0 byte \\xfe end\n\nempty\t\nslash\\\\\\x09\tx\n'
	seq 500 | sed 's/.*/number &\tvalue &/'
} >"$work/good.tsv"
expect "load" 0 "504 records loaded" "$REDDN_TABLE" load "$table" "$work/good.tsv"
expect "a store from a table" 0 "2048 buckets" "$REDDN_TABLE" create --store --from "$table" "$work/filled"
cmp <("$REDDN_TABLE" dump "$table") <("$REDDN_TABLE" dump "$work/filled") || fail "the store has other records than the table"
expect "a heap that is too small for it" 2 "the heap has room for 340 of 504 entries" "$REDDN_TABLE" create --store --from "$table" -H 10K "$work/none"
expect "values that are too long for it" 2 "(up to 3)" "$REDDN_TABLE" create --store --from "$table" -v 3 "$work/none"
expect "a store from a store" 2 "it is a store, whose writer is reddnd" "$REDDN_TABLE" create --store --from "$work/filled" "$work/none"
expect "a table from a table" 2 "only stores" "$REDDN_TABLE" create --from "$table" "$work/none"
"$REDDN_TABLE" dump "$table" >"$work/dump.tsv" || fail "dump"
"$REDDN_TABLE" dump --json "$table" >"$work/dump.json" || fail "dump --json"
for copy in second third; do
	"$REDDN_TABLE" create -b 2K -v 100 -k 50 -q "$work/$copy" || fail "create -q"
done
"$REDDN_TABLE" load -q "$work/second" - <"$work/dump.tsv" || fail "what was dumped cannot be loaded"
"$REDDN_TABLE" load -jq "$work/third" "$work/dump.json" || fail "what was dumped as JSON cannot be loaded"
sort "$work/dump.tsv" >"$work/sorted"
for copy in second third; do
	"$REDDN_TABLE" dump "$work/$copy" | sort | cmp -s - "$work/sorted" || fail "the $copy table differs"
done
ok "dump and load again, as TSV and as JSON"
"$REDDN_TABLE" stat -j "$table" | json 'o["entries"] == 504 and o["buckets"] == 2048 and o["max_value"] == 100' ||
	fail "stat --json"
"$REDDN_TABLE" stat "$table" | grep -q "as of" && fail "stat of a table that follows nothing"
expect "stat" 0 "entries    504" "$REDDN_TABLE" stat "$table"

printf 'new\tone\nno tab here\nnever\tread\n' >"$work/bad.tsv"
expect "a wrong line" 2 "$work/bad.tsv:2: no value" "$REDDN_TABLE" load "$table" "$work/bad.tsv"
printf 'a\tb\nc\t\\q\n' >"$work/bad.tsv"
expect "a wrong escape" 2 "$work/bad.tsv:2: unknown escape" "$REDDN_TABLE" load "$table" "$work/bad.tsv"
printf '{"key": "a", "value": "b"}\n{"key": "a"\n' >"$work/bad.json"
expect "wrong JSON" 2 "$work/bad.json:2: " "$REDDN_TABLE" load -j "$table" "$work/bad.json"
printf 'long\t%0101d\n' 1 >"$work/bad.tsv"
expect "a file that cannot be read" 2 "reddn-table: $work: Is a directory" "$REDDN_TABLE" load "$table" "$work"
expect "a value too long" 2 "value of 101 bytes (up to 100)" "$REDDN_TABLE" load "$table" "$work/bad.tsv"
expect "the good lines before are there" 0 "entries    506" "$REDDN_TABLE" stat "$table"
seq 2000 | sed 's/.*/filler &\tx/' >"$work/much.tsv"
expect "more than it holds" 2 "the table is full" "$REDDN_TABLE" load "$work/third" "$work/much.tsv"
"$REDDN_TABLE" dump "$work/third" | grep -vc '^filler' | grep -qx 504 || fail "a full table lost entries"
ok "a full table lost nothing"

"$REDDN_TABLE" stat "$work/"$'\e[31mred' >"$work/escape" 2>&1
grep -qF '/?[31mred: No such file' "$work/escape" || fail "an error with control characters" "$work/escape"
ok "errors have no control characters"

"$REDDN_TABLE" dump "$work/third" | sort >"$work/full"
expect "a table too small for its entries" 2 "third: the larger table has no room for all entries" "$REDDN_TABLE" grow -H 4K "$work/third"
expect "grow" 0 " entries, from 2048 buckets and a heap of " "$REDDN_TABLE" grow "$work/third"
"$REDDN_TABLE" dump "$work/third" | sort | cmp -s - "$work/full" || fail "the larger table differs"
"$REDDN_TABLE" grow -j -b 8K -H 8M "$work/third" | json 'o["buckets"] == 8192 and o["heap_size"] > 8 << 20 and o["entries"] > 700' ||
	fail "grow --json"
expect "what was too much fits" 0 "2000 records loaded" "$REDDN_TABLE" load "$work/third" "$work/much.tsv"
"$REDDN_TABLE" create -q -b 4 -H 4K -v 100 -k 50 --grow "$work/small" || fail "create --grow"
expect "a table that grows by itself" 0 "2000 records loaded" "$REDDN_TABLE" load "$work/small" "$work/much.tsv"
"$REDDN_TABLE" stat -j "$work/small" | json 'o["grow"] is True and o["entries"] == 2000' || fail "stat of a table that grows"
"$REDDN_TABLE" create -q -b 4 -H 4K -v 100 -k 50 --grow "$work/confined" || fail "create --grow"
(ulimit -f 64 && expect "one that cannot grow" 2 " bytes of heap used; $work/confined: cannot allocate " \
	"$REDDN_TABLE" load "$work/confined" "$work/much.tsv") || exit
compgen -G "$work/*.new" >/dev/null && fail "files of growths are left"
ok "no file of a growth is left"

mkfifo "$work/pipe"
"$REDDN_TABLE" load "$table" "$work/pipe" >"$work/load.log" 2>&1 &
loader=$!
pids+=("$loader")
exec 9>"$work/pipe"
printf 'piped\tx\n%s' 'half a li' >&9
locked() # by the load. A second one that asks for the lock might get it first
{
	grep -q ":$(stat -c %i "$table") " /proc/locks
}
until_true locked || fail "the load does not begin" "$work/load.log"
expect "two writers at a time" 2 "another process has the table open for writing" "$REDDN_TABLE" load "$table" /dev/null
expect "growth of what another writes" 2 "table: another process has the table open for writing" "$REDDN_TABLE" grow "$table"
expect "repair of what another writes" 2 "table: another process has the table open for writing" "$REDDN_TABLE" repair "$table"
kill "$loader"
exec 9>&-
wait "$loader" && fail "a load that was stopped succeeded"
"$REDDN_TABLE" dump "$table" | grep -q '^half' && fail "half a line was loaded"
expect "a stopped load leaves a good table" 0 "0 records loaded" "$REDDN_TABLE" load "$table" /dev/null
head -c 8192 /dev/urandom >"$work/noise"
expect "not a table" 2 "wrong magic" "$REDDN_TABLE" stat "$work/noise"
head -c 10000 "$work/second" >"$work/cut"
expect "a table cut short" 2 "truncated" "$REDDN_TABLE" dump "$work/cut"

# What a writer leaves that dies in a move: the entry in both buckets, the number of moves odd.
cp "$work/second" "$work/killed"
expect "nothing to repair" 0 "killed: nothing to repair" "$REDDN_TABLE" repair "$work/killed"
python3 - "$work/killed" <<'END' || fail "no half move"
import struct, sys
with open(sys.argv[1], "r+b") as f:
    t = bytearray(f.read())
    buckets, off = struct.unpack_from("<24x2Q", t)
    for b in range(buckets):
        mark, = struct.unpack_from("<Q", t, off + 16 * b + 8)
        fp = mark & (1 << 48) - 1
        mix = (fp * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 20
        to = (b ^ (mix if mix & buckets - 1 else mix | 1)) & buckets - 1
        if mark and not t[off + 16 * to + 14]:
            t[off + 16 * to:off + 16 * to + 16] = t[off + 16 * b:off + 16 * b + 16]
            struct.pack_into("<Q", t, 128, struct.unpack_from("<Q", t, 128)[0] + 1)
            struct.pack_into("<2Q", t, 192, b, to)
            f.seek(0)
            f.write(t)
            break
END
expect "a move that did not end" 0 "one unfinished" "$REDDN_TABLE" stat "$work/killed"
expect "repair" 0 "killed: repaired: 1 unfinished move ended, 0 incomplete entries removed" "$REDDN_TABLE" repair "$work/killed"
"$REDDN_TABLE" dump "$work/killed" | sort | cmp -s - "$work/sorted" || fail "the repaired table differs"
"$REDDN_TABLE" stat "$work/killed" | grep -q unfinished && fail "the repaired table has an unfinished move"
"$REDDN_TABLE" repair --json "$work/killed" | json 'o == {"moves": 0, "entries": 0, "replacements": 0}' || fail "repair --json"
ok "what was repaired is whole"

# ---- reddn

start_nic
$with_daemon || {
	done_testing
	exit
}
start_reddnd "regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/second\"; } );
offloads = ( { name = \"users\"; program = \"hash-get\"; region = \"t\"; depth_max = 32; } );"

asks() # WHAT STATUS WORDS ARGUMENTS...
{
	local what=$1 status=$2 words=$3 sub=$4
	shift 4

	expect "$what" "$status" "$words" timeout -k "$limit" "$limit" "$SOFTCX" run "$REDDN" "$sub" -t 100000 -p "$port" "$@"
}

asks "get" 0 "value 77" get "$address" users "number 77"
asks "several keys, one absent" 1 "nobody: not found" get "$address" users alpha nobody "number 5"
grep -qx 'value 5' "$work/out" || fail "the key after the absent one was not asked for" "$work/out"
asks "an empty key" 2 "key 2 is empty" get "$address" users alpha ''
asks "a key behind --" 1 "reddn: -k: not found" get "$address" users -- -k
! grep -q 'reddn: --' "$work/out" || fail "-- is asked for" "$work/out"
asks "a link-local address without an interface" 2 "a link-local address needs an interface" get fe80::1 users alpha
printf 'alpha\r\n' >"$work/windows.keys"
asks "keys of another system's text file" 2 "windows.keys:1: the line ends with a carriage return" bench -k "$work/windows.keys" -c 1 "$address" users
printf 'alpha\n\tx\n' >"$work/empty.keys"
asks "an empty key in a file" 2 "empty.keys:2: the key is empty" bench -k "$work/empty.keys" -c 1 "$address" users
asks "get with escapes" 0 'tab \t line \n zero \0 byte ' get -e "$address" users "with space"
asks "get as JSON" 0 '{"key": "empty", "value": ""}' get -j "$address" users empty
asks "ping" 0 "reply 2 in" ping -c 2 -i 1 "$address" users
asks "ping as JSON" 0 '"shape": "table"' ping -j -c 1 "$address" users
asks "an offload that is not there" 2 "refused by the server" ping "$address" nothing
asks "more depth than is granted" 2 "refused by the server" bench -d 33 -T "$work/second" -c 1 "$address" users
asks "bench without keys" 2 "either --table or --keys" bench "$address" users
for from in "-T $work/second" "-k $work/dump.tsv"; do
	# shellcheck disable=SC2086 # an option and its argument
	asks "bench with ${from%% *}" 0 '"wrong": 0' bench -j -V $from -c 2000 -a 30 -n 3 -d 8 "$address" users
	json 'o["gets"] == 2000 and o["hits"] + o["misses"] == 2000 and o["misses"] > 400 and o["unanswered"] == 0' <"$work/out" ||
		fail "bench ${from%% *}: the numbers" "$work/out"
done
sed 's/value 9$/value 8/' "$work/dump.tsv" >"$work/wrong.tsv"
asks "bench detects wrong answers" 1 "another value, for key number 9" bench -V -k "$work/wrong.tsv" -c 5000 "$address" users

stop_reddnd
done_testing
