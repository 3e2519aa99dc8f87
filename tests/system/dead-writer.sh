#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Tables whose writer died in the middle of a move: the daemon reports them, once each, until they are repaired; it does not
# report writers that are at work. And tables and stores whose file is removed or replaced.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/lib/tables.sh
. "$here/../lib/tables.sh"

# shows COMMAND LINE: the answer of reddnctl has that
shows()
{
	ctl "$1" && grep -q "$2" "$work/ctl.out"
}

settings="control = \"$control\"; regions = ( { name = \"table\"; kind = \"table\"; path = \"$data/table\"; },
  { name = \"other\"; kind = \"table\"; path = \"$data/other\"; } );
offloads = ( { name = \"table\"; program = \"hash-get\"; region = \"table\"; }, { name = \"other\"; program = \"hash-get\"; region = \"other\"; } );"

# A writer in the middle of a move: the number of moves is odd, and it has the lock
half_move='import fcntl, os, struct, sys, time
f = open(sys.argv[1], "r+b", buffering=0)
fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
f.seek(128)
moves, = struct.unpack("<Q", f.read(8))
f.seek(128)
f.write(struct.pack("<Q", moves + 1))
print("writer", os.getpid(), flush=True)
time.sleep(3600 if len(sys.argv) > 2 else 0)'
reports() # NAME: how many times that table was reported
{
	grep -c "region $1: the writer of the table died in the middle of a move.*reddn-table repair $data/$1\$" "$work/reddnd.log"
}
miss() # OFFLOAD
{
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" "$1" nobody
	[[ $? -eq 1 ]]
}
named_table table
named_table other
start_nic
start_reddnd "$settings"
miss table || fail "no miss" "$work/get.log"
reported regions 'not any(r["unfinished_move"] or r["why"] for r in d)' || fail "unfinished moves from the beginning" "$work/ctl.out"
# The tables are looked at in the order of the configuration: "table", whose writer lives, has been looked at when "other", whose
# writer does not, is reported
background writer.log python3 -c "$half_move" "$data/table" wait
until_true grep -q "^writer" "$work/writer.log" || fail "no writer" "$work/writer.log"
python3 -c "$half_move" "$data/other" >/dev/null || fail "no half move"
until_true reported regions 'd[1]["unfinished_move"] and d[1]["state"] == "serving" and "reddn-table repair" in d[1]["why"]' ||
	fail "a writer died, and it is not reported" "$work/ctl.out"
reported regions 'not d[0]["unfinished_move"]' || fail "a living writer is reported" "$work/ctl.out"
[[ $(reports table) == 0 ]] || fail "a living writer is reported" "$work/reddnd.log"
reported status 'd["unfinished_moves"] == 1' || fail "status" "$work/ctl.out"
kill -9 "$(sed 's/writer //' "$work/writer.log")"
wait "$child"
until_true reported regions 'd[0]["unfinished_move"]' || fail "a killed writer is not reported" "$work/ctl.out"
reported status 'd["unfinished_moves"] == 2' || fail "status" "$work/ctl.out"
shows regions "reddn-table repair $data/table" || fail "no words" "$work/ctl.out"
shows metrics '^reddnd_unfinished_moves 2$' || fail "metric" "$work/ctl.out"
ctl --json audit || fail "no audit" "$work/ctl.err"
[[ $(grep -c '"event":"unfinished-move"' "$work/ctl.out") == 2 ]] || fail "audit" "$work/ctl.out"
gets table || fail "a key that is present is not found" "$work/get.log"
"$REDDN_TABLE" repair "$data/table" >"$work/repair" || fail "repair" "$work/repair"
until_true reported regions '[r["unfinished_move"] for r in d] == [False, True]' || fail "still reported" "$work/ctl.out"
miss table || fail "no miss after the repair" "$work/get.log"
# the next writer ends the move as well; and the next death is another occurrence
load_table "$data/other" <<<$'bob\t1'
until_true reported status 'd["unfinished_moves"] == 0' || fail "still reported" "$work/ctl.out"
shows metrics '^reddnd_unfinished_moves 0$' || fail "metric" "$work/ctl.out"
python3 -c "$half_move" "$data/other" >/dev/null || fail "no half move"
until_true reported status 'd["unfinished_moves"] == 1' || fail "not reported again" "$work/ctl.out"
[[ $(reports table) == 1 && $(reports other) == 2 ]] || fail "not once each" "$work/reddnd.log"
"$REDDN_TABLE" repair --quiet "$data/other" || fail "repair"
ok "a writer that dies in the middle of a move"

# "table" has no path any more, and "other" is another file
ln "$data/table" "$data/kept"
cp "$data/other" "$data/new"
rm "$data/table"
mv "$data/new" "$data/other"
until_true reported regions 'all(r["moved"] and r["state"] == "serving" for r in d) and "removed" in d[0]["why"] and "replaced" in d[1]["why"]' ||
	fail "files are removed and replaced, and it is not reported" "$work/ctl.out"
reported status 'd["moved_files"] == 2' || fail "status" "$work/ctl.out"
shows metrics '^reddnd_moved_files 2$' || fail "metric" "$work/ctl.out"
ctl --json audit || fail "no audit" "$work/ctl.err"
[[ $(grep -c '"event":"file-moved"' "$work/ctl.out") == 2 ]] || fail "audit" "$work/ctl.out"
grep -q "region table: file $data/table was removed" "$work/reddnd.log" || fail "no words" "$work/reddnd.log"
grep -q "region other: another file has replaced $data/other" "$work/reddnd.log" || fail "no words" "$work/reddnd.log"
gets table || fail "what was removed is not served" "$work/get.log"
mv "$data/kept" "$data/table"
until_true reported regions '[r["moved"] for r in d] == [False, True]' || fail "still reported" "$work/ctl.out"
ctl reload || fail "reload" "$work/ctl.err"
reported status 'd["moved_files"] == 0' || fail "after a reload" "$work/ctl.out"
ok "a file that is removed or replaced is reported"
stop_reddnd

# What is put into a store without a name would be lost
for name in store new; do
	"$REDDN_TABLE" create --quiet --store --capacity 100 --max-key 16 --max-value 16 "$memory/$name" || fail "no store"
done
start_reddnd "control = \"$control\"; regions = ( { name = \"store\"; kind = \"store\"; path = \"$memory/store\"; } );
offloads = ( { name = \"store\"; region = \"store\"; } );"
put() # VALUE: into $work/put.log
{
	on_nic put.log "$REDDN" put --timeout 100000 --port "$port" "$address" store alice "$1"
}
put store || fail "put" "$work/put.log" "$work/reddnd.log"
printf 'bob\tvalue\n' >"$work/keys.tsv"
background bench.log "$REDDN" bench --put --rate 2 --depth 1 --seconds 100000 --keys "$work/keys.tsv" --port "$port" "$address" store
bench=$child
until_true reported sessions 'any(s["offload"] == "store.put" for s in d)' || fail "no session that puts" "$work/ctl.out"
ln "$memory/store" "$memory/kept"
mv "$memory/new" "$memory/store"
until_true grep -q 'ends after .* the file of the store was removed or replaced: what is put would be lost' "$work/reddnd.log" ||
	fail "puts go on when they would be lost" "$work/bench.log" "$work/reddnd.log"
kill "$bench"
put lost && fail "a put that would be lost" "$work/reddnd.log"
grep -q 'disabled until its data can be served' "$work/put.log" || fail "no reason" "$work/put.log"
reported offloads '"the file of its store was removed or replaced" in next(o["why"] for o in d if o["offload"] == "store.put")' ||
	fail "it is not reported" "$work/ctl.out"
gets store || fail "no get" "$work/get.log"
mv "$memory/kept" "$memory/store"
until_true put back || fail "no put when the file is back" "$work/put.log" "$work/reddnd.log"
ok "nothing is put into a store whose file is removed or replaced"
stop_reddnd
done_testing
