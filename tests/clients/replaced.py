# SPDX-License-Identifier: BSD-2-Clause
"""replaced.py TABLE HOST:PORT OFFLOAD...: sessions whose table is replaced in each way (replaced.sh), and the daemon reloads."""
import asyncio
import errno
import os
import subprocess
import sys

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


def connect(offload):
    return reddn.connect(SERVER, offload, timeout=60)


def sessions(value, ways=("hit",)):
    """Of each offload one for each way to learn that its table was replaced. A daemon knows the reasons of 32 of a client that it ended."""
    made = {(offload, way): connect(offload) for offload in OFFLOADS for way in ways}
    for (offload, way), c in made.items():
        if way != "first":
            got = c.get("alice"), c.get("nobody")
            assert got == (value, None), (offload, way, got)
    return made


def ask(c, way):
    return c.mget(["alice", "nobody", "bob"]) if way == "several" else c.get("nobody" if way == "miss" else "alice")


def lost(what, c, way, error):
    for _ in range(2):
        try:
            got = ask(c, way)
        except OSError as e:
            assert e.errno == error and "another table has replaced the one of this" in str(e), (what, way, e)
        else:
            raise AssertionError(f"{what}, {way}: {got}")


def all_lost(made, error, value):
    for (offload, way), c in made.items():
        lost(offload, c, way, error)
        c.close()
    for offload in OFFLOADS:
        with connect(offload) as c:
            got = c.get("alice"), c.get("nobody")
            assert got == (value, None), (offload, got)


async def asynchronous(then):
    async with await aio.connect(SERVER, OFFLOADS[0], timeout=60) as c:
        assert await c.get("alice") == b"first"
        then()
        for _ in range(2):
            got = await asyncio.gather(c.get("alice"), c.get("nobody"), return_exceptions=True)
            assert [getattr(e, "errno", e) for e in got] == [errno.ESTALE] * 2, got


# a hit, a miss, a get before which there was none, and several keys
made = sessions(b"first", ("hit", "miss", "first", "several"))
asyncio.run(asynchronous(lambda: make(TABLE, "second", "--replace")))
reload()
all_lost(made, errno.ESTALE, b"second")
print("replaced by another one")

# No one marks a table that mv(1) replaces
made = sessions(b"second")
make(OTHER, "third")
os.rename(OTHER, TABLE)
for (offload, way), c in made.items():
    assert c.get("alice") == b"second", (offload, way)  # until the reload
reload()
all_lost(made, errno.ECONNRESET, b"third")
print("replaced by a file that was renamed")

# What nothing has replaced is not old
made = sessions(b"third")
os.unlink(TABLE)
reload()
for (offload, way), c in made.items():
    assert c.get("alice") == b"third", (offload, way)
make(TABLE, "fourth")
reload()
all_lost(made, errno.ECONNRESET, b"fourth")
print("removed, and another one made")
