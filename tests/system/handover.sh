#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Regions whose files are handed over by their owner: before and after that, when the owner dies, when the next one takes the file
# back, when it hands another one over; and whoever may not, and files that cannot be served.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/lib/tables.sh
. "$here/../lib/tables.sh"

: "${IDLE_CLIENTS:?set IDLE_CLIENTS to the path of the test client}"
: "${REDDND_RUN:?set REDDND_RUN to the path of reddnd-run}"
nobody=65534
named_table users
named_table other
head -c 4096 /dev/zero >"$data/words"
settings="control = \"$control\";
regions = ( { name = \"users\"; kind = \"table\"; handover = true; owner = $UID; },
  { name = \"words\"; kind = \"raw\"; handover = true; owner = $UID; writable = true; },
  { name = \"foreign\"; kind = \"raw\"; handover = true; owner = $nobody; },
  { name = \"file\"; kind = \"table\"; path = \"$data/other\"; } );
offloads = ( { name = \"users\"; program = \"hash-get\"; region = \"users\"; },
  { name = \"counter\"; program = \"counter\"; region = \"words\"; },
  { name = \"other\"; program = \"hash-get\"; region = \"file\"; } );"
start_nic
printf 'listen = "%s:%s";\nprograms = "%s";\n%s\n' "$address" "$port" "$programs" "$settings" >"$work/reddnd.conf"
background reddnd.log "$REDDND_RUN" "$REDDND" --config "$work/reddnd.conf"
reddnd=$child
server_ready "$reddnd" reddnd reddnd.log reddnd_listens
until_true test -S "$control" || fail "no control socket" "$work/reddnd.log"

daemon() # prints its process id
{
	program_of "$(program_of "$reddnd")"
}

refused() # WORDS ARGUMENTS OF reddnctl...
{
	ctl "${@:2}" && fail "not refused: ${*:2}" "$work/ctl.out"
	grep -qE -- "$1" "$work/ctl.err" || fail "${*:2}: no \"$1\"" "$work/ctl.err"
	ok "refused: $1"
}

owns() # LOG REGION WHAT [FILE]: starts an owner; sets $owner to its process and $file to the path of its descriptor
{
	background "$1" python3 "$here/owner.py" "$control" "${@:2}"
	owner=$child
	until_true grep -q '^/proc' "$work/$1" || fail "${*:2}" "$work/$1" "$work/reddnd.log"
	file=$(<"$work/$1")
}

dies() # PROCESS
{
	kill_hard "$1"
}

# ---- nobody has handed anything over ------------------------------------------------------

becomes regions "without a file a region is bad" "[r['state'] for r in d] == ['bad', 'bad', 'bad', 'serving'] and 'has not handed its file over yet' in d[0]['why']"
gets users && fail "served without a file"
gets other || fail "another offload does not serve" "$work/get.log" "$work/reddnd.log"

# ---- what is refused, which loses nothing -------------------------------------------------

tries() # for files that cannot be served
{
	refused 'region "users" cannot be served: file handover:users: it is not a reddnd table' hand-over users --file "$memory/zeros"
	refused 'region "words" cannot be served: file handover:words: it is empty' hand-over words --file "$memory/empty"
	refused 'region "words" cannot be served: .*only files in memory can be handed over' hand-over words --file "$here/owner.py"
	refused 'region "words" cannot be served: .*only files in memory can be handed over' hand-over words --file /dev/null
	refused 'region "words" cannot be served: file handover:words has holes: 0 of the 1048576 bytes' hand-over words --file "$memory/holes"
	refused 'there is no region "file" whose file is handed over' hand-over file --file "$memory/zeros"
	refused 'there is no region "x" whose file is handed over' hand-over x --file "$memory/zeros"
	refused "region \"foreign\" cannot be served: .*it belongs to user $UID, not to user $nobody" hand-over foreign --file "$memory/zeros"
	refused 'No such file or directory' hand-over words --file "$memory/none"
	refused '--file is missing: the file of region words' hand-over words
}
head -c 4096 /dev/zero >"$memory/zeros"
: >"$memory/empty"
truncate -s 1M "$memory/holes"
tries
# a group may use the socket, but that does not make its members owners
if [[ $UID -eq 0 ]]; then
	chgrp 0 "$control"
	chmod 711 "$work"
	install -m 644 "$here/owner.py" "$work"
	# another one may be in a directory that nobody may read
	as_nobody=(setpriv --reuid "$nobody" --regid 0 --clear-groups /usr/bin/python3 "$work/owner.py" "$control")
	timeout "$limit" "${as_nobody[@]}" words make /dev/null >"$work/nobody.log" 2>&1 &&
		fail "nobody is the owner of words" "$work/nobody.log"
	grep -q 'only the "owner" of region "words", and root, may do that' "$work/nobody.log" || fail "no reason for nobody" "$work/nobody.log"
	timeout "$limit" "${as_nobody[@]}" words take >"$work/nobody.log" 2>&1 &&
		fail "nobody takes words" "$work/nobody.log"
	background foreign.log "${as_nobody[@]}" foreign make "$here/owner.py"
	until_true grep -q '^/proc' "$work/foreign.log" || fail "the owner of foreign cannot hand it over" "$work/foreign.log"
	kill "$child"
	wait "$child"
	becomes regions "an owner who is not root hands over, and dies" "[r['state'] for r in d] == ['bad', 'bad', 'serving', 'serving']"
	sed -i "s/owner = $nobody/owner = 1/" "$work/reddnd.conf"
	ctl reload || fail "reload" "$work/ctl.err"
	becomes regions "a file stays its owner's when the region gets another one" \
		"d[2]['state'] == 'bad' and 'user 1 has not handed its file over yet' in d[2]['why']"
	python3 "$here/owner.py" "$control" foreign take >"$work/foreign.log" 2>&1 && fail "another owner gets it" "$work/foreign.log"
	grep -q 'nobody has handed over' "$work/foreign.log" || fail "no reason" "$work/foreign.log"
	sed -i "s/owner = 1/owner = $nobody/" "$work/reddnd.conf"
	ctl reload || fail "reload" "$work/ctl.err"
fi

# ---- the owner hands over, dies, and comes back -------------------------------------------

owns first.log users make "$data/users"
gets users || fail "the file is not served" "$work/get.log" "$work/reddnd.log"
ok "what is handed over is served at once"
background bench.log "$REDDN" bench --lasting --port "$port" --timeout 100000 --count 1000000000 --verify --keys <(printf 'alice\tusers\n') "$address" users
bench=$child
becomes sessions "a client is served" "any(c['offload'] == 'users' and c['requests'] > 100 for c in d)"
dies "$owner"
ctl --json sessions || fail "no clients"
before=$(value '[c["requests"] for c in d if c["offload"] == "users"][0]')
becomes sessions "it is served when the owner is dead" "any(c['offload'] == 'users' and c['requests'] > $before + 1000 for c in d)"

owns second.log users take
load_table "$file" <<<$'bob\tbuilder'
bob()
{
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" users bob && [[ $(<"$work/get.log") == builder ]]
}
bob || fail "what the next owner has written is not there" "$work/get.log" "$work/reddnd.log"
ok "the next owner takes the file back, and writes"
tries
gets users || fail "after what was refused nothing is served" "$work/get.log"

# ---- the daemon dies as well --------------------------------------------------------------

dies "$owner"
again() # a daemon has gone on N times
{
	[[ $(grep -c 'of the daemon before this one go on' "$work/reddnd.log") -ge $1 ]] && ctl status
}
for n in 1 2; do
	kill -KILL "$(daemon)"
	until_true again "$n" || fail "no daemon goes on" "$work/reddnd.log"
	until_true gets users || fail "without owner and daemon a file is lost" "$work/get.log" "$work/reddnd.log"
done
alive "$bench" || fail "a client has ended" "$work/bench.log" "$work/reddnd.log"
ok "a file outlives its owner and daemons"

owns lock.log users lock
refused_lock=$(python3 "$here/owner.py" "$control" users lock 2>&1) && fail "two writers" "$work/lock.log"
grep -q BlockingIOError <<<"$refused_lock" || fail "$refused_lock"
dies "$owner"
owns lock.log users lock
dies "$owner"
ok "the lock of an owner ends with the owner"

# ---- another file -------------------------------------------------------------------------

owns third.log users make "$data/other"
other_users()
{
	get users && [[ $(<"$work/get.log") == other ]]
}
until_true other_users || fail "the other file is not served" "$work/get.log" "$work/reddnd.log"
alive "$bench" || fail "a session that goes on has ended" "$work/bench.log" "$work/reddnd.log"
ok "new sessions get another file, sessions of before keep theirs"
kill "$bench"
wait "$bench"
dies "$owner"
gets other || fail "another offload" "$work/get.log"

# ---- a file that the NIC changes ----------------------------------------------------------

owns words.log words make "$data/words"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" counter 0 5 || fail "counter" "$work/call.log" "$work/reddnd.log"
[[ $(od -An -tu8 -N8 "$file") -eq 1 ]] || fail "the owner does not see what the NIC did" "$work/reddnd.log"
ok "the owner sees what the NIC changes"

# ---- reload, and descriptors --------------------------------------------------------------

ctl reload || fail "reload" "$work/ctl.err"
[[ $(od -An -tu8 -N8 "$file") -eq 1 ]] || fail "a reload loses what the NIC wrote" "$work/reddnd.log"
other_users || fail "a reload loses a file" "$work/reddnd.log"
ok "a reload keeps the files"

count()
{
	find "/proc/$(daemon)/fd" -mindepth 1 | wc -l
}
before=$(count)
for _ in {1..5}; do
	ctl hand-over words --file "$memory/empty"
	python3 - "$control" "$memory/zeros" <<'END' || fail "descriptors without a request, and several with one"
import os, socket, sys
for n in 1, 2, 20:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    fds = [os.open(sys.argv[2], os.O_RDONLY) for _ in range(n)]
    socket.send_fds(s, [b'{"command": "status"}\n{"comm'], fds)
    if n == 1:
        socket.send_fds(s, [b'and": "status"}\n'], fds)
    try:
        answer = s.makefile().readline()
    except ConnectionResetError:
        answer = ""
    assert bool(answer) == (n == 1), answer
END
done
# sockets that close(2) waits for until this test is over: with half a request, with a request, out of band, several, and on
# connections that are refused. The daemon gets them when it has the last descriptors
PYTHONPATH=$here python3 - "$control" "$(daemon)" 2>"$work/linger.log" >"$work/lingers" <<'END' &
import os, signal, socket, sys
from lingering import connect, send
control = sys.argv[1]
for _ in range(28):
    c = connect(control)
c.send(b'{"command": "status"}\n')
c.recv(1)
os.kill(int(sys.argv[2]), signal.SIGSTOP)
for more in b"", b"x": # behind what is out of band
    c = connect(control)
    send(c, b"x", 1, socket.MSG_OOB)
    c.send(more)
for line, n in (b"x", 1), (b'{"command": "hand_over", "region": "words"}\n', 1), *[(b"x", 2)] * 4:
    send(connect(control), line, n)
os.kill(int(sys.argv[2]), signal.SIGCONT)
print("sent", flush=True)
signal.pause()
END
lingers=$!
pids+=("$lingers")
until_true grep -q sent "$work/lingers" || fail "nothing that lingers was sent" "$work/linger.log"
for _ in 1 2 3; do
	other_users || fail "the daemon waits for what it was sent" "$work/get.log" "$work/reddnd.log"
done
kill "$lingers"
wait "$lingers"
# their connections end when the daemon has read that
until_true ctl status || fail "no answer after what lingered" "$work/ctl.err"
ok "the daemon does not wait for a socket that lingers"
same()
{
	[[ $(count) -eq $before ]]
}
until_true same || fail "descriptors are left over: $(count), $before before"
ok "no descriptor is left over"

# ---- hand-overs are no reloads, and not too many -----------------------------------------

ctl limit everyone --rate 1000000 || fail "limit" "$work/ctl.err"
ctl --json status || fail "status"
before=$(value 'd["reloads"]')
cp "$work/reddnd.conf" "$work/whole.conf"
sed -i 's/{ name = "other".*} );/);/' "$work/reddnd.conf" # not whole while it is edited
python3 "$here/owner.py" "$control" users flood "$data/users" 2>"$work/flood.log" || fail "hand-overs at once" "$work/flood.log"
ctl --json status || fail "status"
[[ $(value 'd["reloads"]') -eq $before ]] || fail "a hand-over is a reload" "$work/reddnd.log"
becomes tenants "limits of an operator stay" "d[0]['rate'] == 1000000"
gets other || fail "a hand-over reads the configuration again" "$work/get.log" "$work/reddnd.log"
gets users || fail "after many hand-overs nothing is served" "$work/get.log"
cp "$work/whole.conf" "$work/reddnd.conf"
ok "hand-overs replace one region, and are not too many"

kept() # by the daemon, and by whoever keeps its descriptors
{
	[[ -n $(find "/proc/$(daemon)/fd" "/proc/$(program_of "$reddnd")/fd" -lname '*memfd:users*' -o -lname '*memfd:words*') ]]
}
closed()
{
	! kept
}
kept || fail "no file is kept" "$work/reddnd.log"
printf 'listen = "%s:%s";\ncontrol = "%s";\nregions = ();\noffloads = ();\n' "$address" "$port" "$control" >"$work/reddnd.conf"
ctl reload || fail "reload" "$work/ctl.err"
until_true closed || fail "files of regions that are gone are kept" "$work/reddnd.log"
ok "files of regions that the configuration has no more are closed"

# ---- what clients stored, the next daemon knows ------------------------------------------

printf 'program put\nregion r writable\narg x : be32\nwrite x -> r @ 0\nwrite_imm 1 as u8 -> slot @ 0\n' >"$work/put.rdn"
printf 'program use\nregion r\nread r @ 1 as be24 -> w.length\nw: write r -> slot @ 64, max 64\nwrite_imm 1 as u8 -> slot @ 0\n' >"$work/use.rdn"
raw() # PROGRAM SETTING
{
	printf 'listen = "%s:%s";\ncontrol = "%s";\nregions = ( { name = "r"; kind = "raw"; path = "%s/zeros"; %s } );\n' \
		"$address" "$port" "$control" "$memory" "$2"
	printf 'offloads = ( { name = "o"; program = "%s"; region = "r"; } );\n' "$work/$1.rdn"
}
raw put "writable = true;" >"$work/reddnd.conf"
ctl reload || fail "reload" "$work/ctl.err" "$work/reddnd.log"
raw use "" >"$work/reddnd.conf"
former=$(daemon)
kill -KILL "$former"
next() # prints the process id of the daemon after $former
{
	[[ -n $(daemon) && $(daemon) -ne $former ]] && ctl status
}
until_true next || fail "no daemon goes on" "$work/reddnd.log"
becomes offloads "the next daemon knows what was stored" "d[0]['state'] == 'disabled' and 'have stored it' in d[0]['why']"
cp "$memory/zeros" "$memory/new"
mv "$memory/new" "$memory/zeros"
ctl reload || fail "reload" "$work/ctl.err" "$work/reddnd.log"
becomes offloads "nothing was stored in another file" "d[0]['state'] == 'serving'"

# ---- a session of a program that the next daemon does not have ---------------------------

stays() # a session of "use" begins
{
	becomes offloads "a program is served" "d[0]['state'] == 'serving'"
	background stay.log "$IDLE_CLIENTS" "$address" "$port" o "" 1 1 "$work/never"
	stay=$child
	until_true grep -q connected "$work/stay.log" || fail "no session" "$work/stay.log" "$work/reddnd.log"
}

restarts()
{
	former=$(daemon)
	kill -KILL "$former"
	until_true next || fail "no daemon goes on" "$work/reddnd.log"
}

ends() # WORDS: why the session ended
{
	becomes sessions "it ends when a program stores what it relies on" "d == []"
	grep -q "$1 program stores what the session takes for its owner's" "$work/reddnd.log" || fail "no reason" "$work/reddnd.log"
	dies "$stay"
}

if able "sessions that go on without their program" "${recycling[@]}"; then
	sed -i 's/region = "r";/region = "r"; mode = "recycled";/' "$work/reddnd.conf"
	ctl reload || fail "reload" "$work/ctl.err" "$work/reddnd.log"
	stays
	printf 'listen = "%s:%s";\ncontrol = "%s";\nregions = ();\noffloads = ();\n' "$address" "$port" "$control" >"$work/reddnd.conf"
	restarts
	becomes sessions "it goes on while nobody stores what it relies on" "len(d) == 1"
	raw put "writable = true;" >"$work/reddnd.conf"
	ctl reload || fail "reload" "$work/ctl.err" "$work/reddnd.log"
	ends a
	cp "$memory/zeros" "$memory/new"
	mv "$memory/new" "$memory/zeros"
	raw use "" | sed 's/region = "r";/region = "r"; mode = "recycled";/' >"$work/reddnd.conf"
	ctl reload || fail "reload" "$work/ctl.err" "$work/reddnd.log"
	stays
	raw put "writable = true;" >"$work/reddnd.conf"
	restarts
	ends "the server was restarted, and a"
fi
stop_reddnd
done_testing
