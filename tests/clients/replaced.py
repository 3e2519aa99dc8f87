# SPDX-License-Identifier: BSD-2-Clause
"""replaced.py TABLE HOST:PORT OFFLOAD...: sessions whose table is replaced in each way (replaced.sh), and the daemon reloads."""
import asyncio
import errno
import json
import os
import subprocess
import sys
import threading
import time

import reddn
from reddn import aio

TABLE, SERVER, *OFFLOADS = sys.argv[1:]
OTHER = TABLE + ".other"
CONTROL = os.environ["CONTROL"]


def run(tool, *words, text=""):
    subprocess.run([os.environ[tool], *words], input=text, text=True, check=True, stdout=subprocess.DEVNULL)


def make(path, value, *options):
    run("REDDN_TABLE", "create", "--quiet", "--capacity", "100", "--max-key", "16", "--max-value", "16", *options, path)
    run("REDDN_TABLE", "load", "--quiet", path, text=f"alice\t{value}\nbob\t{value}\n")


def reload():
    run("REDDNCTL", "--socket", CONTROL, "reload")


def connect(offload, **options):
    return reddn.connect(SERVER, offload, timeout=60, **options)


def sessions(value):
    """Of each offload a connection for each way to learn that its table was replaced: by a hit, a miss, a get before which there was none, several keys."""
    made = {(offload, way): connect(offload) for offload in OFFLOADS for way in ("hit", "miss", "first", "several")}
    for (offload, way), c in made.items():
        if way != "first":
            got = c.get("alice"), c.get("nobody")
            assert got == (value, None), (offload, way, got)
    return made


def ask(c, way, value):
    """What a table with this value has, in place of what the connection gets, or None if it is the same"""
    asked = ["alice", "nobody", "bob"] if way == "several" else ["nobody" if way == "miss" else "alice"]
    got = c.mget(asked) if way == "several" else [c.get(asked[0])]
    return got if got != [None if key == "nobody" else value for key in asked] else None


def all_renewed(made, value, once=False):
    """Each has the value that is there now, without an error; and at once, if the daemon knew that it had to open it."""
    for (offload, way), c in made.items():
        for _ in range(2):
            assert ask(c, way, value) is None, (offload, way, ask(c, way, value))
        assert c.get("alice") == value and c.reconnects >= 1, (offload, way, c.reconnects)
        assert not once or c.reconnects == 1, (offload, way, c.reconnects)
        c.close()


def lost(c, error, words=""):
    """One that does not connect again has the reason; that of a session which the daemon ended, if it still knows it."""
    for _ in range(2):
        try:
            got = c.get("alice")
        except OSError as e:
            assert e.errno == error and words in str(e), e
        else:
            raise AssertionError(f"{got}")
    c.close()


async def asynchronous(then):
    """Gets between the replacement and the reload wait for it."""
    async with await aio.connect(SERVER, OFFLOADS[0], timeout=60) as c:
        assert await c.get("alice") == b"first"
        then()
        gets = asyncio.gather(c.get("alice"), c.get("nobody"))
        await asyncio.get_running_loop().run_in_executor(None, reload)
        got = await gets
        assert got == [b"second", None], got


made, old = sessions(b"first"), connect(OFFLOADS[0], reconnect=False)
assert old.get("alice") == b"first"
asyncio.run(asynchronous(lambda: make(TABLE, "second", "--replace")))
all_renewed(made, b"second")
lost(old, errno.ESTALE, "another table has replaced the one of this")
print("replaced by another one")

# No one marks a table that mv(1) replaces
made, old = sessions(b"second"), connect(OFFLOADS[0], reconnect=False)
make(OTHER, "third")
os.rename(OTHER, TABLE)
for (offload, way), c in made.items():
    assert c.get("alice") == b"second", (offload, way)  # until the reload
reload()
all_renewed(made, b"third")
lost(old, errno.ECONNRESET)
print("replaced by a file that was renamed")

# What nothing has replaced is not old
made = sessions(b"third")
os.unlink(TABLE)
reload()
for (offload, way), c in made.items():
    assert c.get("alice") == b"third", (offload, way)
make(TABLE, "fourth")
reload()
all_renewed(made, b"fourth")
print("removed, and another one made")

# Who comes before the daemon has opened the next one waits for it: a session with the old one would end again
for old, new in (b"fourth", "fifth"), (b"fifth", "sixth"):
    made = sessions(old)
    make(TABLE, new, "--replace")
    all_renewed(made, new.encode(), once=True)
print("replaced, without a reload")


def wait_for_mark(pause):
    """A client asks for a table that is marked as replaced, and soon is not any more (reddn-table-format(5): epoch)."""
    fd, got = os.open(TABLE, os.O_RDWR), []
    epoch = os.pread(fd, 8, 144)

    def ask():
        with connect(OFFLOADS[0]) as c:
            got.append(c.get("alice"))

    asks = threading.Thread(target=ask)
    os.pwrite(fd, bytes(8), 144)
    asks.start()
    time.sleep(pause)
    os.pwrite(fd, epoch, 144)
    os.close(fd)
    asks.join()
    assert got == [b"seventh"], got


for i in range(8):
    make(TABLE, "seventh", "--replace")
    with connect(OFFLOADS[0]) as c:  # the daemon opens it, and soon after no other one
        assert c.get("alice") == b"seventh"
    wait_for_mark(0.01 + 0.01 * i)
print("marked for a while")


def slots():
    """Bytes of reply slots that are charged to the only tenant."""
    return json.loads(subprocess.check_output([os.environ["REDDNCTL"], "--socket", CONTROL, "--json", "tenants"]))[0]["slot_bytes"]


# Slots for large values are not kept for small ones
make(TABLE, "large", "--replace", "--max-value", "1M", "--heap", "8M")
reload()
with connect(OFFLOADS[0]) as c:
    assert c.get("alice") == b"large" and slots() > 1 << 20, slots()
    make(TABLE, "small", "--replace")
    reload()
    assert c.get("alice") == b"small"
    while slots() > 1 << 20:  # until the session with the old one has ended
        time.sleep(0.05)
print("replaced by one of smaller values")


def left():
    """Sessions of the daemon."""
    return json.loads(subprocess.check_output([os.environ["REDDNCTL"], "--socket", CONTROL, "--json", "status"]))["sessions"]


# Those who ask nothing do not learn it; there are more than end at once
idle = [connect(OFFLOADS[0]) for _ in range(40)]
make(TABLE, "last", "--replace")
reload()
while left():
    time.sleep(0.05)
assert {c.get("alice") for c in idle} == {b"last"}
print("replaced, and nobody asks")
