# SPDX-License-Identifier: BSD-2-Clause
"""stores-replaced.py HOST:PORT STORE reload TABLE | same PID | larger PID | late PID | inside PID: a store is replaced while sessions
of it are in use (stores-replaced.sh), by a reload that waits for TABLE, or by the death of the daemon PID: by a store of the same size,
a larger one, one that comes after the next daemon has begun without, or one that is copied into the same file while none runs.
"stays PID": it is not replaced when that daemon dies."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import reddn

SERVER, STORE, HOW, WHAT = sys.argv[1:]
CTL = os.environ["REDDNCTL"], "--socket", os.environ["CONTROL"]
RELOAD = *CTL, "reload"


def connect(offload="store"):
    return reddn.connect(SERVER, offload, timeout=60)


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_new():
    try:
        with connect() as new:
            return new.get("key") is None
    except OSError:  # the session ended while the client connected its queue pair
        return False


def make(capacity=100):
    other = STORE + ".other"
    create = "create", "--quiet", "--store", "--capacity", str(capacity), "--heap", "2M", "--max-key", "16", "--max-value", "16"
    subprocess.run([os.environ["REDDN_TABLE"], *create, other], check=True)
    return other


def replace(capacity=100):
    os.rename(make(capacity), STORE)


def overwrite():
    other = make()
    shutil.copyfile(other, STORE)
    os.unlink(other)


def reload():
    return subprocess.run(RELOAD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def reloaded():
    stall = os.environ["STALL"]
    old = [connect() for _ in range(4)]
    old[0].put("key", "old")
    assert all(c.get("key") == b"old" for c in old)

    # From here on nobody learns what has become of a file, until the daemon gives up to wait for that of the table
    with open(stall + ".new", "w") as f:
        f.write(WHAT)
    os.rename(stall + ".new", stall)
    until(lambda: os.path.exists(stall + ".waits"))

    replace()
    assert all(c.get("key") == b"old" for c in old)  # the daemon does not know it yet
    with subprocess.Popen(RELOAD) as waiting:
        until(is_new)
        with connect() as new:
            assert old[1].get("key") is None
            new.put("key", "new")
            got = old[2].get("key")
            assert got == b"new", got
            old[3].put("key", "newer")
            assert new.get("key") == b"newer"
        os.unlink(stall)
        assert waiting.wait(60) == 0
    assert all(c.get("key") == b"newer" for c in old)
    print("sessions of a store that is replaced have ended when those of the other begin")


def extents_held():
    asked = subprocess.run((*CTL, "--json", "tenants"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return asked.returncode == 0 and sum(tenant["extent_bytes"] for tenant in json.loads(asked.stdout))


def stays():
    with connect() as c:
        c.put("key", "old")
        held = extents_held()
        assert held
        os.kill(int(WHAT), signal.SIGKILL)
        c.put("key", "new")
        assert c.get("key") == b"new"
        until(lambda: extents_held() == held)
    print("one that is not replaced goes on, and its tenant is charged for the extents that it holds")


def die():
    os.kill(int(WHAT), signal.SIGKILL)
    until(lambda: not os.path.exists("/proc/" + WHAT))


def die_and_overwrite():  # before another one is started
    with open(f"/proc/{WHAT}/stat") as f:
        above = int(f.read().rpartition(")")[2].split()[1])
    os.kill(above, signal.SIGSTOP)
    os.kill(int(WHAT), signal.SIGKILL)
    overwrite()
    os.kill(above, signal.SIGCONT)


def restarted():
    old = {offload: connect(offload) for offload in ("store", "armed", "cpu")}
    if HOW == "inside":
        old["store"].put("key", "old")
    else:
        with connect() as before:
            before.put("key", "old")
    assert all(c.get("key") == b"old" for c in old.values())
    if HOW == "late":
        os.rename(STORE, STORE + ".away")
    elif HOW != "inside":
        replace(1000 if HOW == "larger" else 100)
    if HOW == "inside":
        die_and_overwrite()
    else:
        die()
    if HOW == "late":
        until(reload)
        assert old["store"].get("key") == b"old"
        replace()
        assert reload()
    with connect() as new:
        new.put("key", "new")
    for offload, c in old.items():
        got = c.get("key")
        assert got == b"new", (offload, got)
    print(f"nor do they go on when the daemon dies: {HOW}")


if HOW == "reload":
    reloaded()
elif HOW == "stays":
    stays()
else:
    restarted()
