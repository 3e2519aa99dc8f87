# SPDX-License-Identifier: BSD-2-Clause
"""growth.py TABLE HOST:PORT OFFLOAD...: clients of a table that grows several times, and is served without a reload (growth.sh)."""
import errno
import json
import os
import subprocess
import sys
import threading
import time

import reddn

TABLE, SERVER, *OFFLOADS = sys.argv[1:]
KEYS = 4000
written, failed, done = 0, [], threading.Event()


def value(key):
    return f"value {key}".encode()


def connect(offload):
    return reddn.connect(SERVER, offload, timeout=60)


def ask(offload):
    """Gets what was written before, and connects again where the table was replaced."""
    c, answers = connect(offload), 0
    while not done.is_set() or answers < 100:
        key = answers * 7919 % max(written, 1)
        try:
            got = c.get(f"key {key}")
        except OSError as e:
            assert e.errno in (errno.ESTALE, errno.ECONNRESET), e
            c.close()
            time.sleep(0.02)
            c = connect(offload)
            continue
        assert got == value(key), (offload, key, got)
        answers += 1
    c.close()


def reader(offload):
    try:
        ask(offload)
    except BaseException as e:
        failed.append((offload, e))
        done.set()


def sessions():
    state = subprocess.run([os.environ["REDDNCTL"], "--socket", os.environ["CONTROL"], "--json", "status"], check=True, capture_output=True)
    return json.loads(state.stdout)["sessions"]


with reddn.Table(TABLE, write=True) as t:
    before = t.stat().buckets
    t["key 0"] = value(0)
    written = 1
    idle = [connect(offload) for offload in OFFLOADS]
    for c in idle:
        assert c.get("key 0") == value(0)
    readers = [threading.Thread(target=reader, args=(offload,)) for offload in OFFLOADS]
    for r in readers:
        r.start()
    for key in range(1, KEYS):
        t[f"key {key}"] = value(key)
        written = key + 1
        time.sleep(0.0005)
        if failed:
            break
    done.set()
    for r in readers:
        r.join()
    assert not failed, failed
    assert t.stat().buckets >= 16 * before, t.stat()
    print("each get had the value that was put before")
    for offload in OFFLOADS:
        with connect(offload) as c:
            for key in (0, 1, KEYS - 1):
                assert c.get(f"key {key}") == value(key)
            assert c.get("nobody") is None
    print("new sessions get the larger table")
limit = time.monotonic() + 60
while sessions() and time.monotonic() < limit:
    time.sleep(0.1)
assert not sessions(), sessions()
print("sessions of clients that are idle give the old one up")
