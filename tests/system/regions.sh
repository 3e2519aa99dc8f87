#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Files of regions that cannot be served, before the daemon starts and while it runs: their offloads are disabled, with words, and
# tried again; other offloads serve, and the daemon goes on.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/lib/tables.sh
. "$here/../lib/tables.sh"

good_serves() # WHEN
{
	gets good || fail "$1: another offload does not serve" "$work/get.log" "$work/reddnd.log"
	alive "$reddnd" || fail "$1: the daemon has ended" "$work/reddnd.log"
}

# is_bad WHAT WORDS: the region is bad for this reason, its offload is disabled, others serve
is_bad()
{
	local want="[r[\"state\"] for r in d] == [\"bad\", \"serving\"] and \"$2\" in d[0][\"why\"]"

	until_true reported regions "$want" || fail "$1: no region is bad because of \"$2\"" "$work/ctl.out" "$work/reddnd.log"
	reported offloads 'd[0]["state"] == "disabled" and "region \"bad\"" in d[0]["why"] and d[1]["state"] == "serving"' ||
		fail "$1: the offload is not disabled" "$work/ctl.out"
	reported status 'd["disabled"] == 1' || fail "$1: status" "$work/ctl.out"
	grep -qF "$2" "$work/reddnd.log" || fail "$1: nothing in the log" "$work/reddnd.log"
	get bad && fail "$1: a disabled offload is served" "$work/get.log"
	grep -q 'refused by the server: offload bad is disabled until its data can be served' "$work/get.log" ||
		fail "$1: the client gets no reason" "$work/get.log"
	grep -qF "$data" "$work/get.log" && fail "$1: the client learns the path" "$work/get.log"
	good_serves "$1"
	ok "$1: $2"
}

# serves_again WHAT: without a reload
serves_again()
{
	named_table bad
	until_true gets bad || fail "$1: it is not tried again" "$work/get.log" "$work/reddnd.log"
	reported regions 'all(r["state"] == "serving" for r in d)' || fail "$1: a region is bad" "$work/ctl.out"
	good_serves "$1"
	ok "$1: served again"
}

: "${IDLE_CLIENTS:?set IDLE_CLIENTS to the path of the test client}"
settings="control = \"$control\"; regions = ( { name = \"bad\"; kind = \"table\"; path = \"$data/bad\"; },
  { name = \"good\"; kind = \"table\"; path = \"$data/good\"; } );
offloads = ( { name = \"bad\"; program = \"hash-get\"; region = \"bad\"; }, { name = \"good\"; program = \"hash-get\"; region = \"good\"; } );"

# Each variant makes $data/bad
absent() { rm -rf "${data:?}/bad"; }
empty() { absent && : >"$data/bad"; }
short() { absent && head -c 100 "$data/good" >"$data/bad"; }
cut_off() { named_table bad && truncate -s 8192 "$data/bad"; }
hole() { absent && truncate -s 1M "$data/bad"; }
random() { absent && head -c 65536 /dev/urandom >"$data/bad"; }
folder() { absent && mkdir "$data/bad"; }
fifo() { absent && mkfifo "$data/bad"; }
socket() { absent && python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$data/bad"; }
device() { absent && ln -s /dev/zero "$data/bad"; }
link() { absent && ln -s "$data/good" "$data/bad"; }
unreadable() { named_table bad && chmod 0 "$data/bad"; }
header() # OFFSET BYTES...: overwrites a field
{
	named_table bad
	printf '%b' "$2" | dd of="$data/bad" bs=1 seek="$1" conv=notrunc status=none
}
few_buckets() { header 24 '\x03\0\0\0\0\0\0\0'; }
heap_beyond() { header 48 '\xff\xff\xff\xff\xff\0\0\0'; }
size_beyond() { header 56 '\xff\xff\xff\xff\xff\0\0\0'; }

variants=("absent|No such file" "empty|it is empty" "short|it has 100 bytes" "cut_off|the file has 8192" "hole|it is not a reddnd table"
	"random|it is not a reddnd table" "folder|it is no regular file" "fifo|it is no regular file" "socket|No such device"
	"device|a symbolic link is in its path" "link|a symbolic link is in its path"
	"few_buckets|3 buckets" "heap_beyond|heap at" "size_beyond|its header has a size of")
# root reads everything
[[ $EUID -eq 0 ]] || variants+=("unreadable|Permission denied")

named_table good
start_nic
# at the start, and again when it is right
for v in "absent|No such file" "empty|it is empty" "fifo|it is no regular file"; do
	${v%%|*}
	start_reddnd "$settings"
	is_bad "started with ${v%%|*}" "${v#*|}"
	serves_again "started with ${v%%|*}"
	stop_reddnd
done

# on reload: what was served stays where it is, for its sessions; nobody else gets it
named_table bad
start_reddnd "$settings"
for v in "${variants[@]}"; do
	${v%%|*}
	ctl reload || fail "a reload is refused because of a region" "$work/ctl.err"
	is_bad "reloaded with ${v%%|*}" "${v#*|}"
	# nothing is right before the next reload: the next variant follows
done
named_table bad
ctl reload || fail "no reload" "$work/ctl.err"
gets bad || fail "a reload does not try again" "$work/get.log"
ok "a reload tries again"

# an owner
configure() # SETTINGS
{
	configure_reddnd "$1"
	ctl reload || fail "no reload" "$work/ctl.err"
}
plain="path = \"$data/bad\";"
configure "${settings/"$plain"/"$plain owner = $((EUID + 1));"}"
is_bad "a file of another user" "it belongs to user $EUID, not to user $((EUID + 1)), its"
configure "${settings/"$plain"/"$plain owner = \"$(id -un)\";"}"
gets bad || fail "a file of its owner is not served" "$work/get.log" "$work/reddnd.log"
ok "a file of its owner"

# a link to the directory
ln -s "$data" "$work/elsewhere"
configure "${settings/"$data/bad"/"$work/elsewhere/bad"}"
is_bad "a link in the path" "a symbolic link is in its path"
configure "$settings"
gets bad || fail "the same file without a link is not served" "$work/get.log" "$work/reddnd.log"

# while it is served: cut, and removed
printf 'alice\tbad\n' >"$data/keys"
background stay.log "$REDDN" bench --timeout 100000 --keys "$data/keys" --rate 100 --seconds 800 --depth 4 --port "$port" "$address" bad
stay=$child
until_true reported sessions 'len(d) == 1' || fail "no session" "$work/stay.log"
ctl limit --rate 54321 everyone || fail "no limit" "$work/ctl.err"
truncate -s 0 "$data/bad"
wait "$stay" && fail "a session on a file that is gone goes on" "$work/stay.log"
is_bad "cut while it is served" 'has been cut to less than'
truncate -s 1M "$data/bad"
good_serves "a hole where a table was"
serves_again "cut while it is served"
reported tenants '[t["rate"] for t in d] == [54321]' || fail "a limit is forgotten when a file is right again" "$work/ctl.out"
# the same file, as long as before
named_table other
background stay.log "$REDDN" bench --timeout 100000 --keys "$data/keys" --rate 100 --seconds 800 --depth 4 --port "$port" "$address" bad
stay=$child
until_true reported sessions 'len(d) == 1' || fail "no session" "$work/stay.log"
cp "$data/other" "$data/bad"
wait "$stay" && fail "a session on a file that was overwritten goes on" "$work/stay.log"
until_true grep -q 'region bad cannot be served: file .* has been overwritten with another table' "$work/reddnd.log" ||
	fail "nothing in the log" "$work/reddnd.log"
has_other()
{
	get bad && grep -q other "$work/get.log"
}
until_true has_other || fail "what was written is not served" "$work/get.log" "$work/reddnd.log"
ok "overwritten while it is served"
named_table bad
ctl reload || fail "no reload" "$work/ctl.err"
rm "$data/bad"
gets bad || fail "a removed file is served as long as the daemon has it" "$work/get.log" "$work/reddnd.log"
ok "a removed file is served as long as the daemon has it"
named_table bad
ctl reload || fail "no reload" "$work/ctl.err"
gets bad || fail "a new file in place of a removed one" "$work/get.log"

# cut under a session from before a reload, after which it is no region
named_table other
background stay.log "$REDDN" bench --timeout 100000 --keys "$data/keys" --rate 100 --seconds 800 --depth 4 --port "$port" "$address" bad
stay=$child
until_true reported sessions 'len(d) == 1' || fail "no session" "$work/stay.log"
configure "${settings/"$data/bad"/"$data/other"}"
truncate -s 0 "$data/bad"
wait "$stay" && fail "a session on a file of an earlier configuration goes on" "$work/stay.log"
until_true reported sessions 'len(d) == 0' || fail "the session does not end" "$work/ctl.out"
good_serves "a file of an earlier configuration was cut"
ok "a session ends when a file is cut that is no region any more"

stop_reddnd

# What clients store is followed by files, whatever region, path or configuration they come by: no program takes it for a length
cat >"$work/put.rdn" <<'END'
program put
region to writable
arg len : be32
write len -> to @ 4096
write_imm 1 as u8 -> slot @ 0
END
cat >"$work/use.rdn" <<'END'
program use
region lengths, data
read lengths @ 1 as be24 -> w.length
w: write data -> slot @ 64, max 64
write_imm 1 as u8 -> slot @ 0
END
sed 's/@ 1 as/@ 4097 as/; s/program use/program use_raw/' "$work/use.rdn" >"$work/use-raw.rdn"
follow() # OFFLOAD..., with the regions of $regions: put, use (by a table) or raw (by a raw region)
{
	local all=() o

	for o in "$@"; do
		case $o in
		put) all+=("{ name = \"put\"; program = \"$work/put.rdn\"; region = \"raw\"; }") ;;
		use) all+=("{ name = \"use\"; program = \"$work/use.rdn\"; regions = { lengths = \"t.buckets\"; data = \"t.heap\"; }; }") ;;
		raw) all+=("{ name = \"use\"; program = \"$work/use-raw.rdn\"; regions = { lengths = \"other\"; data = \"other\"; }; }") ;;
		esac
	done
	printf 'control = "%s"; regions = ( %s ); offloads = ( %s );' "$control" "$regions" "$(IFS=, && echo "${all[*]}")"
}
reload_to() # OFFLOAD...
{
	configure_reddnd "$(follow "$@")"
	ctl reload || fail "reload to $*" "$work/ctl.err" "$work/reddnd.log"
}
states() # WHAT STATE...: of offloads, in their order
{
	reported offloads "[o['state'] for o in d] == '${*:2}'.split()" || fail "$1" "$work/ctl.out" "$work/reddnd.log"
	ok "$1"
}
writable() # FILE
{
	printf '{ name = "raw"; kind = "raw"; path = "%s"; writable = true; }' "$1"
}
read_only() # FILE
{
	printf '{ name = "other"; kind = "raw"; path = "%s"; }' "$1"
}
cp "$data/good" "$memory/table"
head -c 8192 /dev/zero >"$memory/words"
ln "$memory/words" "$memory/link"
regions="$(writable "$memory/table"), { name = \"t\"; kind = \"table\"; path = \"$memory/table\"; }"
start_reddnd "$(follow put use)"
states "parts of a table are bytes of its file" serving disabled
regions="$(writable "$memory/words"), $(read_only "$memory/link")"
reload_to put raw
states "a file by another path is the same" serving disabled
regions="$(writable "$memory/words")"
reload_to put
mv "$memory/words" "$memory/moved"
head -c 8192 /dev/zero >"$memory/words"
regions=$(read_only "$memory/moved")
reload_to raw
states "a file that was renamed is the same" disabled
regions=$(read_only "$memory/words")
reload_to raw
states "the new one is another" serving
# a session that takes a length from the file goes on, whatever the configuration is by then
background stay.log "$IDLE_CLIENTS" "$address" "$port" use "" 1 1 "$work/never"
stay=$child
until_true reported sessions 'len(d) == 1' || fail "no session" "$work/stay.log"
regions=$(writable "$memory/words")
reload_to put
states "nothing is stored that an earlier session relies on" disabled
reported offloads '"offload \"use\", as it was before, relies on what it would store" in d[0]["why"]' || fail "no reason" "$work/ctl.out"
kill "$stay"
wait "$stay"
until_true reported offloads 'd[0]["state"] == "serving"' || fail "it is not tried again" "$work/ctl.out" "$work/reddnd.log"
ok "it is when that has ended"
stop_reddnd

# a reply slot smaller than a record of the table: the next request's slot begins there
small_slots() # SETTING
{
	printf 'control = "%s"; regions = ( { name = "good"; kind = "table"; path = "%s/good"; } );
offloads = ( { name = "good"; program = "hash-get"; region = "good"; %s } );' "$control" "$data" "${1-}"
}
start_reddnd "$(small_slots)"
gets good || fail "no answer" "$work/get.log" "$work/reddnd.log"
configure_reddnd "$(small_slots 'params = { record = 64; };')"
ctl reload || fail "a table makes a reload fail" "$work/ctl.err"
reported offloads 'd[0]["state"] == "disabled" and "must have at least 256 bytes, not 128: see its param \"record\"" in d[0]["why"]' ||
	fail "replies may be longer than their slots" "$work/ctl.out" "$work/reddnd.log"
get good && fail "a disabled offload is served" "$work/get.log"
ok "reply slots smaller than a record disable an offload"
stop_reddnd

# parts of a file
{
	head -c 8192 /dev/zero
	printf '\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0'
	head -c 4080 /dev/zero
} >"$memory/parts"
printf 'program at\nregion words\narg place : offset(1) in words\nread words @ place as le64 -> word\nwrite_imm word -> slot @ 0\n' >"$work/at.rdn"
parts() # OFFSET LENGTH
{
	printf 'control = "%s"; regions = ( { name = "part"; kind = "raw"; path = "%s/parts"; offset = %s; length = %s; } );
offloads = ( { name = "part"; program = "%s"; region = "part"; } );' "$control" "$memory" "$1" "$2" "$work/at.rdn"
}
word_is() # PLACE HEX: what the NIC reads there
{
	on_nic word.log "$REDDN" call --json --timeout 100000 --port "$port" "$address" part "$1" && grep -q "\"$2" "$work/word.log"
}
start_reddnd "$(parts 8192 16)"
reported regions 'd[0]["state"] == "serving" and d[0]["bytes"] == 16 and d[0]["offset"] == 8192' ||
	fail "a part of a file" "$work/ctl.out" "$work/reddnd.log"
word_is 0 0100000000000000 || fail "the first word of a part" "$work/word.log"
word_is 8 0200000000000000 || fail "the second word of a part" "$work/word.log"
word_is 16 '' && fail "a word behind a part is read" "$work/word.log"
ok "a part of a file, and nothing behind it"
stop_reddnd
start_reddnd "$(parts 8192 4097)"
reported regions 'd[0]["state"] == "bad" and "it has 12288 bytes, and the part that is served ends at 12289" in d[0]["why"]' ||
	fail "a part beyond the file" "$work/ctl.out" "$work/reddnd.log"
ok "a part beyond the file"
stop_reddnd

# a hole where the file system has no room for it
if mkdir "$work/full" && mount -t tmpfs -o size=1m none "$work/full" 2>/dev/null; then
	trap 'end_processes; umount -l "$work/full"; finish' EXIT
	data_before=$data
	named_table bad
	size=$(stat -c %s "$data/bad")
	head -c 8192 "$data/bad" >"$work/full/bad"
	truncate -s "$size" "$work/full/bad"
	dd if=/dev/zero of="$work/full/fill" bs=4k 2>/dev/null
	start_reddnd "${settings/"$data/bad"/"$work/full/bad"}"
	# Linux cannot pin such pages (test reddnd-waits: registration fails); the emulated NIC finds out when it reads them
	get bad
	good_serves "a hole without room"
	ctl reload || fail "no reload" "$work/ctl.err"
	good_serves "a reload with a hole without room"
	ok "a hole without room"
	stop_reddnd
	data=$data_before
fi
done_testing
