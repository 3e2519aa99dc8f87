#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A client cannot tell engines apart but by time: the same clients ask an offload that the NIC executes, and one that the CPU
# executes, and everything that they print is the same, errors and reasons included.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
needs "${recycling[@]}" "${named_steps[@]}"

: "${REDDN:?}" "${MISUSE:?}"

seq 60 | awk '{ s = ""; for (i = 0; i < $1 * 4; i++) s = s "v"; print "key " $1 "\t" $1 s }' >"$work/data.tsv"
make_table "$work/table" --max-value 300 <"$work/data.tsv"
for engine in nic cpu; do
	head -c 4096 /dev/zero >"$memory/words.$engine" # counters change
done

offloads() # ENGINE
{
	cat <<-END
		{ name = "get.$1"; program = "hash-get"; region = "t"; engine = "$1"; mode = "unrolled"; depth_max = 32; },
		{ name = "mget.$1"; program = "hash-mget"; region = "t"; engine = "$1"; },
		{ name = "many.$1"; program = "hash-mget"; region = "t"; engine = "$1"; mode = "recycled"; params = { keys = 16; }; },
		{ name = "both.$1"; program = "hash-get-parallel"; region = "t"; engine = "$1"; mode = "recycled"; },
		{ name = "sold.$1"; program = "counter"; region = "$1"; engine = "$1"; },
		{ name = "loop.$1"; program = "while-recycled"; region = "a"; engine = "$1"; loop_budget = 5000; },
	END
}

head -c 4096 /dev/zero >"$work/array"
start_nic
start_reddnd "control = \"$control\"; refusal_rate = 1000;
regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; }, { name = \"a\"; kind = \"raw\"; path = \"$work/array\"; },
  { name = \"nic\"; kind = \"raw\"; path = \"$memory/words.nic\"; writable = true; }, { name = \"cpu\"; kind = \"raw\"; path = \"$memory/words.cpu\"; writable = true; } );
offloads = ( $(offloads nic) $(offloads cpu | sed '$ s/,$//') );"

# What differs from run to run: numbers of sessions, ports and times. The vendor's part of a syndrome is the device's
plain()
{
	sed -E -e 's/\.(nic|cpu)\b/.X/g; s/session [0-9]+/session N/g; s/port [0-9]+/port N/g; s/0x[0-9a-f]{6,}/ADDRESS/; s/(taken more than|within|after) [0-9]+ /\1 N /g' \
		-e 's/[0-9.]+ (us|ms|s)\b/T/g; s#[0-9,]+/s#R/s#; s/\((0|0x[0-9a-f]+)\)/(V)/; s/, (0|0x[0-9a-f]+)\)/, V)/'
}

asks() # ENGINE WORDS COMMAND...: adds what a client prints, and its exit status, to the transcript of the engine
{
	local rc=0

	on_nic asked.log "${@:3}" || rc=$?
	{
		printf '$ %s\n' "$2" | plain
		plain <"$work/asked.log"
		printf 'status %d\n' $rc
	} >>"$work/transcript.$1"
}

reddn() # ENGINE VERB ARGUMENTS...
{
	asks "$1" "reddn ${*:2}" "$REDDN" "$2" --port "$port" --timeout 60000 "${@:3}"
}

# What "reddn ping" prints, but for replies: how many it gets, and their time in us or ms, differs
answers() # FILE
{
	grep -v '^reply ' "$1" | plain
}

kicked() # ENGINE
{
	background pinged.log "$REDDN" ping --port "$port" --timeout 100000 --count 100000 --interval 1000 "$address" "get.$1"
	until_true reported sessions "len(d) == 1 and d[0]['requests'] > 0" || fail "no client" "$work/pinged.log" "$work/reddnd.log"
	ctl kick "$(value 'd[0]["session"]')" || fail "no kick" "$work/ctl.err"
	wait "$child"
	{
		printf '$ kicked: %d\n' $?
		answers "$work/pinged.log"
	} >>"$work/transcript.$1"
}

nobody()
{
	reported sessions 'len(d) == 0'
}

scenario() # ENGINE
{
	local case

	reddn "$1" get "$address" "get.$1" 'key 1' 'key 60' absent 'key 30'
	reddn "$1" get "$address" "get.$1" 'a key that is longer than any of the table'
	reddn "$1" get "$address" "mget.$1" 'key 1' 'key 2' absent 'key 3' 'key 4' 'key 5' none
	reddn "$1" get "$address" "many.$1" 'key 1' absent 'key '{20..50} none
	reddn "$1" get "$address" "both.$1" 'key 7' absent
	reddn "$1" call "$address" "sold.$1" at=8 limit=2
	reddn "$1" call "$address" "sold.$1" at=8 limit=2
	reddn "$1" call "$address" "sold.$1" at=8 limit=2
	reddn "$1" call "$address" "sold.$1" at=4096 limit=2 # beyond the region
	reddn "$1" call "$address" "sold.$1" at=4 limit=2    # no place of a word
	reddn "$1" call "$address" "loop.$1" x=0 from=16
	reddn "$1" call "$address" "loop.$1" x=5 from=16 # is nowhere
	reddn "$1" call --raw "$address" "sold.$1" at=16 limit=2
	reddn "$1" call "$address" "sold.$1" 1 2 3
	reddn "$1" call "$address" "sold.$1" at=many
	reddn "$1" call "$address" "get.$1" 1
	reddn "$1" call "$address" "mget.$1" {1..16} # fingerprints and offsets of four keys
	reddn "$1" call "$address" "mget.$1" {1..4}
	reddn "$1" get "$address" "sold.$1" 'key 1'
	reddn "$1" bench --depth 64 --count 10 --keys "$work/data.tsv" "$address" "get.$1"
	reddn "$1" bench --depth 12 --count 10 --keys "$work/data.tsv" "$address" "both.$1"
	reddn "$1" bench --depth 32 --count 2000 --absent 20 --verify --seed 3 --keys "$work/data.tsv" "$address" "get.$1"
	for case in refusals why wrong-rkey short-send long-send outside-window no-receives flood leave-in-flight; do
		asks "$1" "misuse $case" "$MISUSE" "$address" "$port" "get.$1" "$case"
	done
	until_true nobody || fail "clients are left" "$work/ctl.out" "$work/reddnd.log"
	kicked "$1"
	until_true nobody || fail "clients are left" "$work/ctl.out" "$work/reddnd.log"
}

scenario nic
scenario cpu
cmp -s "$memory/words.nic" "$memory/words.cpu" || fail "the counters differ" "$work/transcript.nic" "$work/transcript.cpu"
diff --text "$work/transcript.nic" "$work/transcript.cpu" >"$work/differences" ||
	fail "a client can tell engines apart (< NIC, > CPU)" "$work/differences" "$work/reddnd.log"
ok "$(grep -ac '^\$' "$work/transcript.cpu") clients print the same, $(wc -l <"$work/transcript.cpu") lines"

# The end of the daemon
for engine in nic cpu; do
	background "end.$engine" "$REDDN" ping --port "$port" --timeout 100000 --count 100000 --interval 1000 "$address" "get.$engine"
	declare "end_$engine=$child"
done
becomes sessions "clients of both engines" "len(d) == 2 and all(c['requests'] > 0 for c in d)"
stop_reddnd
for engine in nic cpu; do
	of=end_$engine
	wait "${!of}"
	printf 'status %d\n' $? >>"$work/end.$engine"
	answers "$work/end.$engine" >"$work/ended.$engine"
done
diff "$work/ended.nic" "$work/ended.cpu" >"$work/differences" || fail "the end differs (< NIC, > CPU)" "$work/differences"
ok "and so they do at the end of the daemon: $(tail -n 2 "$work/ended.cpu" | tr '\n' ' ')"
done_testing
