#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# reddnd as a service: options, errors for a wrong configuration and wrong files, notifications to systemd, and its end.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"

: "${REDDN:?set REDDN to the path of the client tool}"

# expect RC WORDS CMD...: CMD ends with status RC and prints WORDS (an extended regular expression).
expect()
{
	local rc=0 want=$1 words=$2
	shift 2

	timeout -k "$limit" "$limit" "$@" >"$work/output" 2>&1 </dev/null || rc=$?
	[[ $rc -eq $want ]] || fail "status $rc, not $want, of: $*" "$work/output"
	grep -qE -- "$words" "$work/output" || fail "no \"$words\" in the output of: $*" "$work/output"
	ok "$words"
}

# config TEXT: writes a configuration.
config()
{
	printf '%s\nprograms = "%s";\n' "$1" "$programs" >"$work/reddnd.conf"
}

expect 0 '^usage: reddnd' "$REDDND" --help
expect 0 '^reddnd [0-9]' "$REDDND" --version
expect 1 '--help lists the options' "$REDDND" --nonsense
expect 1 'unexpected argument "x"' "$REDDND" x
expect 1 'absent: cannot be read: No such file' "$REDDND" --check-config --config "$work/absent"
config 'lisen = 1;'
# the line begins with FILE:LINE, as editors expect
expect 1 "^$work/reddnd.conf:1: unknown setting \"lisen\" in the configuration; did you mean \"listen\"\?" \
	"$REDDND" --check-config --config "$work/reddnd.conf"
config 'listen = "127.0.0.1";'
expect 0 '0 regions, 0 offloads, no mistakes' "$REDDND" --check-config --config "$work/reddnd.conf"
grep -q "$work/reddnd.conf: it has no offloads, so every client is refused" "$work/output" || fail "no warning" "$work/output"
ok "a configuration without offloads gives a warning"

(ulimit -f 1000 && expect 1 'an arena of [0-9]+ bytes: this process may make files of up to 1024000 .*lower "arena"' \
	"$REDDND" --check-config --config "$work/reddnd.conf") || exit

start_nic
(ulimit -f 1000 && expect 69 'an arena of [0-9]+ bytes: this process may make files of up to 1024000' \
	"$SOFTCX" run "$REDDND" --config "$work/reddnd.conf") || exit
config 'device = "mlx5_7";'
expect 69 'there is no RDMA device "mlx5_7"' "$SOFTCX" run "$REDDND" --config "$work/reddnd.conf"
config 'listen = "192.0.2.77:1";'
expect 69 'cannot listen on 192.0.2.77 port 1' "$SOFTCX" run "$REDDND" --config "$work/reddnd.conf"
config "control = \"$work/no/control\";"
expect 69 "control socket $work/no/control: its directory: No such file or directory" "$SOFTCX" run "$REDDND" --config "$work/reddnd.conf"
config "control = \"$work/reddnd.conf\";"
expect 69 'control socket .*/reddnd.conf: something else is there, and no socket; remove it, or set "control"' \
	"$SOFTCX" run "$REDDND" --config "$work/reddnd.conf"
! grep -q '^listening on' "$work/output" || fail "it listened before that" "$work/output"
[[ -s $work/reddnd.conf ]] || fail "the file at the path of the control socket is gone"
until_true same_objects || fail "a daemon that did not start left objects"
ok "a daemon that does not start leaves no object"

# Signals of an operator that come while it reads its configuration, which takes long, wait until it serves
config 'listen = "127.0.0.1";'
mkfifo "$work/slow.conf"
background slow.log "$REDDND" --config "$work/slow.conf"
slow=$child
exec {text}<>"$work/slow.conf"
slow_pid=$(program_of "$slow")
reads() # PATH
{
	[[ $(find "/proc/$slow_pid/fd" -lname "$1") ]]
}
until_true reads "$work/slow.conf" || fail "the configuration is not read" "$work/slow.log"
kill -HUP "$slow_pid"
kill -USR1 "$slow_pid"
cp "$work/reddnd.conf" "$work/next.conf"
mv "$work/next.conf" "$work/slow.conf"
cat "$work/reddnd.conf" >&"$text"
exec {text}>&-
until_true grep -q 'the configuration is in force' "$work/slow.log" || fail "SIGHUP before it serves" "$work/slow.log"
grep -q '0 sessions now, 0 ever' "$work/slow.log" || fail "SIGUSR1 before it serves" "$work/slow.log"
kill "$slow"
expect_exit "$slow" reddnd slow.log
ok "signals before it serves are answered when it does"

make_table "$work/table" --max-value 1000 <<<$'alice\twonder'
table="regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/table\"; } );"

# An offload that does not fit is disabled; the others are served
start_reddnd "$table offloads = ( { name = \"o\"; program = \"hash-get\"; region = \"t\"; engine = \"nic\"; depth_max = 4096; },
  { name = \"fits\"; program = \"if\"; } );"
grep -qE 'offload o: 8192 instances do not fit a queue; at most [0-9]+ do, for a depth_max of [0-9]+' "$work/reddnd.log" ||
	fail "no reason" "$work/reddnd.log"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" fits x=5 y=5 || fail "no answer" "$work/call.log" "$work/reddnd.log"
expect 2 'offload o cannot run on the server' "$SOFTCX" run "$REDDN" get --port "$port" "$address" o alice
stop_reddnd

# Instances that overlap are longer, and their replies need more CQEs: where there is no room for that, they do not
head -c 4096 /dev/zero >"$work/array"
start_reddnd "regions = ( { name = \"a\"; kind = \"raw\"; path = \"$work/array\"; } );
offloads = ( { name = \"scan\"; program = \"scan\"; region = \"a\"; depth_max = 256; }, { name = \"if\"; program = \"if\"; depth_max = 2048; } );"
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" if x=5 y=5 || fail "no answer" "$work/call.log" "$work/reddnd.log"
stop_reddnd

cat >"$work/large.rdn" <<'END'
program large
arg x : u8
for i in 0..5 {
  if x == i {
    write i as u8 -> slot @ i
  }
  write 1 as u8 -> slot @ 16 + i
}
write_imm 1 as u8 -> slot @ 32
END
start_reddnd "arena = \"4M\"; offloads = ( { name = \"o\"; program = \"$work/large.rdn\"; depth_max = 1024; }, { name = \"fits\"; program = \"if\"; depth_max = 8; } );"
grep -qE 'offload o: the queues of one client take [0-9]+ bytes, the arena has room for [0-9]+; lower' "$work/reddnd.log" ||
	fail "no reason" "$work/reddnd.log"
# A client that asks for no depth takes what there is
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" fits x=5 y=5 || fail "no answer" "$work/call.log" "$work/reddnd.log"
expect 2 'offload o cannot run on the server' "$SOFTCX" run "$REDDN" call --port "$port" "$address" o x=1
stop_reddnd

# Receives the notifications in place of systemd.
python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(4096).decode(), flush=True)' "$work/notify" >"$work/notified" 2>&1 </dev/null &
manager=$!
pids+=("$manager")
until_true test -S "$work/notify" || fail "no socket for notifications"
export NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=2000000
start_reddnd "arena = \"4M\"; $table offloads = ( { name = \"o\"; program = \"hash-get\"; region = \"t\"; },
  { name = \"r\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; } );"
unset NOTIFY_SOCKET WATCHDOG_USEC
for words in READY=1 'STATUS=0 sessions' WATCHDOG=1; do
	until_true grep -q "$words" "$work/notified" || fail "no notification $words" "$work/notified" "$work/reddnd.log"
	ok "systemd gets $words"
done
[[ $(grep -oEm 1 'READY=1|WATCHDOG=1' "$work/notified") == READY=1 ]] || fail "the watchdog begins while the daemon starts" "$work/notified"
ok "the watchdog begins when the daemon is ready"
sed '/^listening on/,$d' "$work/reddnd.log" | grep '^offload o:' >"$work/before" || fail "the daemon listens before it can serve" "$work/reddnd.log"
ok "the daemon listens when it can serve"
daemon_pid=$(program_of "$reddnd") || exit
on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" o alice || fail "no answer" "$work/get.log" "$work/reddnd.log"
shows() # SESSIONS REQUESTS: extended regular expressions
{
	kill -USR1 "$daemon_pid"
	grep -qE "$1 sessions now, [1-9][0-9]* ever, [0-9]+ refused; $2 requests" "$work/reddnd.log"
}
until_true shows 0 1 ||
	fail "SIGUSR1 is not answered" "$work/reddnd.log"
ok "SIGUSR1 logs the counters"
# the NIC arms the instances of such a session again by itself, so nothing else takes its completions
background live.log "$REDDN" ping --timeout 100000 --port "$port" --count 1000000 --interval 20000 "$address" r
until_true grep -q 'STATUS=1 sessions' "$work/notified" || fail "the status has another number of sessions" "$work/notified"
until_true shows 1 '([2-9]|[1-9][0-9]+)' || fail "the requests of a recycled session are not counted" "$work/reddnd.log"
kill "$child"
wait "$child"
until_true sh -c "[ \$(grep -c 'ends after' '$work/reddnd.log') -eq 2 ]" || fail "the client stays" "$work/reddnd.log"
ok "requests of a recycled session that goes on are counted"
# The daemon waits for no manager that has stopped to read, also not to tell its watchdog, which it does twice a second
kill -STOP "$manager"
python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setblocking(False)
s.connect(sys.argv[1])
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try:
        s.send(b"full")
    except BlockingIOError:
        time.sleep(0.01)' "$work/notify" || fail "a manager that does not read gets all"
on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" o alice || fail "no answer while the manager does not read" "$work/get.log"
kill -CONT "$manager"
ok "the daemon does not wait for a manager that does not read"
kill -HUP "$daemon_pid"
until_true grep -q RELOADING=1 "$work/notified" || fail "no notification of a reload" "$work/notified" "$work/reddnd.log"
until_true grep -q 'the configuration is in force' "$work/reddnd.log" || fail "SIGHUP is not answered" "$work/reddnd.log"
ok "SIGHUP reloads and notifies systemd"

# More clients than the arena has room for: the last ones are refused
clients=()
for ((i = 0; i < 80; i++)); do
	background "client$i.log" "$REDDN" ping --timeout 100000 --port "$port" --count 100000 --interval 20000 "$address" o
	clients+=("$child")
done
until_true grep -q 'the server has no memory left for queues' "$work/reddnd.log" || fail "nobody is refused" "$work/reddnd.log"
ok "a client too many is refused"
kill "${clients[@]}" 2>/dev/null
wait "${clients[@]}"
until_true sh -c "[ \$(grep -c 'ends after' '$work/reddnd.log') -ge 10 ]" || fail "clients stay" "$work/reddnd.log"
on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" o alice || fail "no room after they left" "$work/get.log" "$work/reddnd.log"
ok "the memory is free again when clients have left"

kill -INT "$daemon_pid"
expect_exit "$reddnd" reddnd reddnd.log
until_true grep -q STOPPING=1 "$work/notified" || fail "no notification of the end" "$work/notified"
ok "SIGINT ends the daemon and notifies systemd"

# Whoever reads its messages stands still, and then leaves
mkfifo "$work/log"
exec {log}<>"$work/log"
"$SOFTCX" run "$REDDND" --config "$work/reddnd.conf" >/dev/null 2>"$work/log" {log}<&- &
reddnd=$!
pids+=("$reddnd")
answers()
{
	on_nic get.log "$REDDN" get --timeout 100000 --port "$port" "$address" o alice
}
until_true reddnd_listens || fail "it does not start when its messages go to a pipe"
dd if=/dev/zero of="$work/log" oflag=nonblock bs=4096 count=10000 2>/dev/null && fail "a pipe without an end"
for _ in 1 2; do
	answers || fail "no answer when nobody reads the messages" "$work/get.log"
done
dd if="$work/log" of=/dev/null iflag=nonblock bs=4096 2>/dev/null && fail "a pipe has an end"
answers || fail "no answer" "$work/get.log"
timeout "$limit" grep -aqEm 1 '^[1-9][0-9]* lines were lost: nobody read them' <&"$log" || fail "lines are lost, and nobody learns it"
ok "the daemon does not wait for whoever reads its messages"
exec {log}<&-
for _ in 1 2; do
	answers || fail "no answer when nobody reads the messages" "$work/get.log"
done
kill "$reddnd"
wait "$reddnd" || fail "the daemon ends with status $? when nobody reads its messages"
ok "the daemon goes on when nobody reads its messages any more"
done_testing
