# SPDX-License-Identifier: BSD-2-Clause
"""served.py TABLE HOST:PORT OFFLOAD...: what the NIC answers is what the source had: of keys that are set to growing numbers, and never
deleted, each get returns a number that was set, none before the last one that was returned, and it never misses (served.sh)."""
import errno
import os
import sys
import threading

os.environ.pop("LD_PRELOAD")  # for this process only
import reddn  # noqa: E402
from source import Follower, Redis, check, ok, until  # noqa: E402

TABLE, SERVER, *OFFLOADS = sys.argv[1:]
KEYS = 1500
issued, ended, failures, answers = [0] * KEYS, threading.Event(), [], {o: 0 for o in OFFLOADS}
source = Redis()


def write():
    """`issued` is ahead of what the source has."""
    client, turn = source.client(), 0
    while not ended.is_set():
        turn += 1
        some = [(turn * 37 + i) % KEYS for i in range(50)]
        for k in some:
            issued[k] += 1
        client.many([("SET", f"k{k}", issued[k]) for k in some] + [("SET", f"x{turn % 900}", turn), ("DEL", f"x{turn * 7 % 900}")])


def read(offload):
    last = [1] * KEYS
    connection = reddn.connect(SERVER, offload, timeout=60)
    while not ended.is_set():
        k = answers[offload] * 7919 % KEYS
        value = connection.get(f"k{k}")
        if value is None or not last[k] <= int(value) <= issued[k]:
            failures.append((offload, k, value, last[k], issued[k]))
            ended.set()
            return
        last[k] = int(value)
        answers[offload] += 1


def reader(offload):
    try:
        read(offload)
    except BaseException as e:
        failures.append((offload, e))
        ended.set()


def more():
    before = dict(answers)
    until(lambda: ended.is_set() or all(answers[o] > before[o] + 100 for o in OFFLOADS), "there are no answers")


client = source.client()
for k in range(KEYS):
    issued[k] = 1
client.many([("SET", f"k{k}", 1) for k in range(KEYS)])
follower = Follower(source.url(), table=TABLE)
threads = [threading.Thread(target=write)] + [threading.Thread(target=reader, args=[o]) for o in OFFLOADS]
for t in threads:
    t.start()
more()
client("CLIENT", "KILL", "TYPE", "pubsub")
follower.reaches("following", 2)
more()
follower.end(9)
more()
follower = Follower(source.url(), table=TABLE)
more()
source.client(1)("FLUSHDB")
follower.reaches("following", 2)
more()
ended.set()
for t in threads:
    t.join()
check(not failures, f"{failures}")
follower.equals(source)
expected = source.strings()
for o in OFFLOADS:
    with reddn.connect(SERVER, o, timeout=60) as c:
        got = c.mget(list(expected)) if hasattr(c, "mget") else [c.get(k) for k in expected]
        check(dict(zip(expected, got)) == expected, f"{o}: another value than the source's")


def is_refused(connection):
    try:
        connection.get("k0")
    except OSError as e:
        check(e.errno == errno.ESTALE, f"{e}")
        return True
    return False


for o in OFFLOADS:
    with reddn.connect(SERVER, o, timeout=60, max_age=1000) as c, reddn.connect(SERVER, o, timeout=60, max_age=0.001) as strict:
        for n in range(20):  # one's own writes, when the table is as new as they are
            client("SET", "mine", n)
            written = source.time()
            until(lambda: c.get("k0") and c.newest.source > written, lambda: f"{c.newest}")
            check(c.get("mine") == b"%d" % n and c.as_of.source > written and c.as_of.complete, f"{n}: {c.as_of}")
        until(lambda: is_refused(strict), "a millisecond is never over")
        # when nobody follows, it is as new as before
        follower.end(9)
        until(lambda: is_refused(strict), "it does not become old")
        stated = c.newest
        check(c.get("k0") and c.as_of == stated and stated.follows, f"{c.as_of} {stated}")
        follower = Follower(source.url(), table=TABLE)
ok("what is too old is refused, and what is new enough has one's own writes")
ok(f"gets while the source changes, without a wrong one: {answers}")
