# SPDX-License-Identifier: BSD-2-Clause
"""stores-replaced.py HOST:PORT TABLE STORE: a store is replaced while sessions of it are in use (stores-replaced.sh)."""
import os
import subprocess
import sys
import time

import reddn

SERVER, TABLE, STORE = sys.argv[1:]
STALL = os.environ["STALL"]


def connect():
    return reddn.connect(SERVER, "store", timeout=60)


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_new():
    with connect() as new:
        return new.get("key") is None


old = [connect() for _ in range(4)]
old[0].put("key", "old")
assert all(c.get("key") == b"old" for c in old)

# From here on nobody learns what has become of a file, until the daemon gives up to wait for that of the table
with open(STALL + ".new", "w") as f:
    f.write(TABLE)
os.rename(STALL + ".new", STALL)
until(lambda: os.path.exists(STALL + ".waits"))

other = STORE + ".other"
create = "create", "--quiet", "--store", "--capacity", "100", "--max-key", "16", "--max-value", "16"
subprocess.run([os.environ["REDDN_TABLE"], *create, other], check=True)
os.rename(other, STORE)
assert all(c.get("key") == b"old" for c in old)  # the daemon does not know it yet
with subprocess.Popen([os.environ["REDDNCTL"], "--socket", os.environ["CONTROL"], "reload"]) as reload:
    until(is_new)
    with connect() as new:
        assert old[1].get("key") is None
        new.put("key", "new")
        got = old[2].get("key")
        assert got == b"new", got
        old[3].put("key", "newer")
        assert new.get("key") == b"newer"
    os.unlink(STALL)
    assert reload.wait(60) == 0
assert all(c.get("key") == b"newer" for c in old)
print("sessions of a store that is replaced have ended when those of the other begin")
