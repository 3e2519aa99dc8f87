#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# reddnd-run: whose messages it takes, and what is left of its socket. That it starts a daemon again is part of many other tests.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
: "${REDDND_RUN:?set REDDND_RUN to the path of reddnd-run}"

# The service stores a descriptor, and so does a child of it; then it ends with status 75. The next one prints what it got.
cat >"$work/service.py" <<'END'
import os, socket, stat, sys, time

path = os.environ["NOTIFY_SOCKET"]
if "LISTEN_FDS" in os.environ:
    print("names", os.environ["LISTEN_FDNAMES"], flush=True)
    sys.exit(0)
directory = os.stat(os.path.dirname(path))
print("mode", oct(stat.S_IMODE(directory.st_mode)), "owner", directory.st_uid == os.getuid(), flush=True)


def store(name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.connect(path)
    socket.send_fds(s, [b"FDSTORE=1\nFDNAME=" + name], [0])


if os.getuid() == 0 and os.fork() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    try:
        store(b"stranger")
    except OSError as e:
        print("stranger", type(e).__name__, flush=True)
    os._exit(0)
if os.fork() == 0:
    store(b"child")
    os._exit(0)
time.sleep(0.2)
store(b"mine")
store(b"again")
sys.exit(75)
END
chmod 711 "$work"
mkdir -m 1777 "$work/tmp"
TMPDIR=$work/tmp timeout "$limit" "$REDDND_RUN" python3 "$work/service.py" >"$work/run.log" 2>&1 || fail "reddnd-run" "$work/run.log"
grep -qx 'mode 0o700 owner True' "$work/run.log" || fail "others may send to its socket" "$work/run.log"
grep -qx 'names mine' "$work/run.log" || fail "not the descriptors of the service" "$work/run.log"
[[ $UID -ne 0 ]] || grep -qx 'stranger PermissionError' "$work/run.log" || fail "another user may send to it" "$work/run.log"
ok "only its service stores descriptors, and each open file once"
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
chmod 644 "$work/service.py"
if [[ $UID -eq 0 ]] && "${other[@]}" test -x "$REDDND_RUN"; then
	TMPDIR=$work/tmp timeout "$limit" "${other[@]}" "$REDDND_RUN" python3 "$work/service.py" >"$work/run.log" 2>&1 ||
		fail "reddnd-run as another user" "$work/run.log"
	grep -qx 'names mine' "$work/run.log" || fail "another user's service stores nothing" "$work/run.log"
	ok "also as another user"
fi
[[ -z $(ls "$work/tmp") ]] || fail "left behind: $(ls -R "$work/tmp")"
TMPDIR=$work/tmp timeout "$limit" "$REDDND_RUN" false && fail "the status of the service is lost"
[[ -z $(ls "$work/tmp") ]] || fail "left behind: $(ls -R "$work/tmp")"
ok "nothing is left of its socket"
long=$work/$(printf '%0100d' 0)
TMPDIR=$long timeout "$limit" "$REDDND_RUN" true 2>"$work/run.log" && fail "a path that is too long"
grep -q 'TMPDIR is too long for a socket' "$work/run.log" || fail "no reason" "$work/run.log"

# The service stores a descriptor and fails, and so does the next one; with status 1 it is over
cat >"$work/fails.py" <<'END'
import os, socket, sys

kept = os.environ.get("LISTEN_FDNAMES")
print("kept", kept, flush=True)
if kept == "first:second":
    sys.exit(1)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["NOTIFY_SOCKET"])
socket.send_fds(s, [b"FDSTORE=1\nFDNAME=" + (b"second" if kept else b"first")], [s.fileno()])
sys.exit(69)
END
status=0
timeout "$limit" "$REDDND_RUN" python3 "$work/fails.py" >"$work/run.log" 2>&1 || status=$?
[[ $status -eq 1 ]] || fail "status $status of a service that fails with 69 and then with 1" "$work/run.log"
[[ $(grep -c '^kept' "$work/run.log") -eq 3 ]] || fail "not run again while there are descriptors" "$work/run.log"
ok "what is stored is given to the next one after a failure, and not after a mistake"

# The service writes until nobody reads, is killed, and the next one ends with status 7
cat >"$work/service.sh" <<'END'
[ ! -e "$1" ] || exit 7
touch "$1"
trap '' PIPE
while echo more; do :; done >&2
kill -KILL $$
END
timeout "$limit" "$REDDND_RUN" sh "$work/service.sh" "$work/ran" 2>&1 >/dev/null | true
[[ ${PIPESTATUS[0]} -eq 7 ]] || fail "it ends when nobody reads its messages"
ok "it goes on when nobody reads its messages any more"
printf "%d checks\n" "$checks"
