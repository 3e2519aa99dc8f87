#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""promise.py TABLE HOST:PORT GETS SEED OFFLOAD...: what readers of a table that follows may rely on. A writer knows when each value was that
of its key, by the source's clock; each get must have a value, or the lack of one, that its key had between its as-of and its result. The
source, the follower and their connections are killed meanwhile, and the daemon by promise.sh. REDDN_FOLLOW_WITHOUT leaves out a rule."""
import errno
import os
import random
import sys
import threading
import time
from collections import Counter, deque

os.environ.pop("LD_PRELOAD")  # for this process only
import reddn  # noqa: E402
from reddn._lib import ffi, lib  # noqa: E402
from source import EVER, FOLLOW, WITHOUT, Error, Follower, Redis, check, had, ok, until  # noqa: E402

TABLE, SERVER, GETS, SEED, *OFFLOADS = sys.argv[1:]
GETS, rng = int(GETS), random.Random(int(SEED))
KEYS = 200
MAX_AGE = 0.3
PROGRAM = WITHOUT if "REDDN_FOLLOW_WITHOUT" in os.environ else FOLLOW
TOO_LONG = b"too long for the table".ljust(65)
EVENTS = ("follower", "stop", "pubsub", "normal", "source", "save")

ended, failures, counts, ages = threading.Event(), [], Counter(), []
source = Redis()
clock = lambda: time.time_ns() // 1000  # noqa: E731


def fail(*words):
    failures.append(words)
    ended.set()


class History:
    """Of each key: (from, to, value), it became that between the two. What is not known yet becomes so at some time."""

    def __init__(self):
        self.of = [[(0, 0, None)] for _ in range(KEYS)]
        self.mortal = [deque(maxlen=200) for _ in range(KEYS)]  # (value, until when it may have been there)
        self.until = 0  # all is there that happened before

    def add(self, k, begin, end, value):
        entries = self.of[k]
        while entries[-1][2] is None and entries[-1][0] > end:  # it would have expired later
            entries.pop()
        entries.append((begin, end, value))
        if len(entries) > 4000:
            del entries[:2000]

    def expires(self, k, begin, end, ms, value):
        by = end + 2000 + ms * 1000
        self.of[k].append((begin - 2000 + ms * 1000, by, None))
        self.mortal[k].append((value, by))

    def had(self, k, value, begin, end):
        return had(self.of[k], value, begin, end)


history = History()


def us(answer):
    return int(answer[0]) * 1000000 + int(answer[1])


def batch(client, number):
    """Some changes; what each key is then, and after how many ms it expires"""
    changes = []
    if rng.random() < 0.002:
        return [("FLUSHALL",)], [(k, None, 0) for k in range(KEYS)]
    for k in rng.sample(range(KEYS), 12):
        value, what = b"%d:%d" % (k, number), rng.random()
        if what < 0.7:
            changes.append((("SET", f"k{k}", value), k, value, 0))
        elif what < 0.8:
            changes.append((("DEL", f"k{k}"), k, None, 0))
        elif what < 0.95 or clock() // 1000000 % 4:
            ms = rng.choice((5, 30, 200))
            changes.append((("SET", f"k{k}", value, "PX", ms), k, value, ms))
        else:
            changes.append((("SET", f"k{k}", TOO_LONG), k, TOO_LONG, 0))
    return [c[0] for c in changes], [c[1:] for c in changes]


def write():
    client, number = source.client(), 0
    while not ended.is_set():
        number += 1
        commands, what = batch(client, number)
        sent = clock()
        try:
            answers = client.many([("TIME",), *commands, ("TIME",)])
            check(not any(isinstance(a, Error) for a in answers), f"{answers}")
            begin, end = us(answers[0]), us(answers[-1])
            for k, value, ms in what:
                history.add(k, begin, end, value)
                if ms:
                    history.expires(k, begin, end, ms, value)
            history.until = end
        except (OSError, Error, ValueError):  # perhaps, at some time before what follows
            for k, value, ms in what:
                history.add(k, sent, EVER, value)
                if ms:
                    history.add(k, sent, EVER, None)
                    history.mortal[k].append((value, clock() + 2000 + ms * 1000))
            client = restart()
        time.sleep(rng.choice((0, 0.001, 0.005)))


def again():
    """A connection, if the source runs"""
    while not ended.is_set():
        try:
            client = source.client()
            client("PING")
            return client
        except (OSError, Error, ValueError):
            time.sleep(0.01)
    return None


def restart():
    """The connection was killed, or the source: then it begins with what it has saved."""
    before = clock()
    while True:
        try:
            client = source.client()
            client("PING")
            return client
        except (OSError, Error, ValueError):
            if source.process.poll() is not None:
                break
    while True:  # it may be killed again
        source.run(wait=False)
        until(lambda: source.answers() or source.process.poll() is not None, "redis-server does not answer")
        try:
            client = source.client()
            learn(client, before)
            return client
        except (OSError, Error, ValueError):
            source.process.wait()


def learn(client, before):
    """What a source that was started again has"""
    answers = client.many([("TIME",)] + [(c, f"k{k}") for k in range(KEYS) for c in ("GET", "PTTL")] + [("TIME",)])
    begin, end = us(answers[0]), us(answers[-1])
    for k in range(KEYS):
        value, ms = answers[1 + 2 * k], answers[2 + 2 * k]
        if value is None:  # it may have been saved with a value that has expired since
            for mortal, by in history.mortal[k]:
                if by >= before:
                    history.add(k, before, EVER, mortal)
        history.add(k, before, end, value)
        if ms >= 0:
            history.expires(k, begin, end, ms, value)
    history.until = end


def judge(k, asked, at, status, value, as_of, source_us, host_ns, flags):
    if status == -errno.ESTALE:
        counts["refused"] += 1
    elif status < 0:
        fail("an error", status)
    elif not source_us:
        counts["unknown"] += 1
    elif status and not flags & lib.REDDN_COMPLETE:
        counts["misses of an incomplete table"] += 1
    elif not history.had(k, value, source_us, at):
        fail("a wrong answer", k, value, source_us, at, history.of[k][-8:])
    else:
        counts["misses" if status else "hits"] += 1
        if as_of:
            ages.append(at - host_ns // 1000)
            if host_ns < (asked - as_of) * 1000:
                fail("too old", asked, host_ns)


def connect(offload, **options):
    while True:
        try:
            return reddn.connect(SERVER, offload, timeout=100, **options)
        except OSError:  # the daemon is being started
            time.sleep(0.05)


def read(offload, max_age):
    connection = connect(offload, depth=16, max_age=max_age)
    handle, results = connection._handle(), ffi.new("struct reddn_result[]", 16)
    asked, due, rnd = {}, deque(), random.Random(offload + str(max_age))
    age_us = int(max_age * 1e6) if max_age else 0
    number = 0
    while not ended.is_set():
        while len(asked) < 16:
            k = rnd.randrange(KEYS)
            key, now = b"k%d" % k, clock()
            if lib.reddn_get_submit(handle, key, len(key), number) < 0:
                break
            asked[number] = (k, now)
            number += 1
        n = lib.reddn_wait(handle, results, 16, 100)
        if n < 0:
            return fail("no session", n)
        at = clock()
        for i in range(n):
            r = results[i]
            k, when = asked.pop(r.cookie)
            value = bytes(ffi.buffer(r.value, r.length)) if r.status == 0 else None
            due.append((k, when, at, r.status, value, age_us, r.as_of.source, r.as_of.host, r.as_of.flags))
        lib.reddn_release(handle)
        while due and due[0][2] < history.until:
            judge(*due.popleft())
            counts["gets"] += 1


def own_writes(offload):
    """A client waits until its write must be there."""
    connection, client, n = connect(offload), again(), 0
    while not ended.is_set():
        n += 1
        try:
            connection.get("k0")
            epoch = connection.newest.epoch
            client("SET", f"mine {offload}", n)
            written = us(client("TIME"))
            while connection.newest.epoch == epoch and connection.newest.source <= written and not ended.is_set():
                connection.get("k0")
            newest = connection.newest
            value = connection.get(f"mine {offload}")
            if newest.epoch == connection.newest.epoch == epoch and newest.source > written:
                counts["own writes"] += 1
                # FLUSHALL is of the writer
                if value != b"%d" % n and (value is not None or client("EXISTS", f"mine {offload}")):
                    fail("the own write is missing", n, value, newest, written)
        except (OSError, Error, ValueError):
            client = again()


def guarded(function, *args):
    try:
        function(*args)
    except BaseException as e:  # noqa: B036
        fail(function.__name__, repr(e))


def events():
    """Until enough has been asked, and each has happened"""
    follower, stops = Follower(source.url(), table=TABLE, program=PROGRAM, wait=False), 0
    while not ended.wait(rng.choice((0.05, 0.3, 1))):
        if counts["gets"] >= GETS and all(counts[what] for what in (*EVENTS, "hits", "misses", "refused", "own writes")):
            ended.set()
        what = rng.choice((*EVENTS, "save"))
        counts[what] += 1
        if follower.process.poll() is not None:
            return fail("the follower has ended", follower.last)
        try:
            if what == "follower":
                follower.end(9)
                follower = Follower(source.url(), table=TABLE, program=PROGRAM, wait=False)
            elif what == "stop":
                follower.send(19)
                ended.wait(rng.choice((0.1, 0.5)) if stops % 8 else 2.5)
                follower.send(18)
                stops += 1
            elif what in ("pubsub", "normal"):
                source.client()("CLIENT", "KILL", "TYPE", what, "SKIPME", "yes")
            elif what == "save":
                source.client()("SAVE")
            elif what == "source":
                source.process.kill()
        except (OSError, Error, ValueError):  # it is being started
            pass
    return follower


threads = [threading.Thread(target=guarded, args=a) for a in
           [(write,)] + [(read, o, age) for o in OFFLOADS for age in (None, MAX_AGE)] + [(own_writes, OFFLOADS[0])]]
for t in threads:
    t.start()
follower = events()
for t in threads:
    t.join()
ages.sort()
check(not failures, f"{failures[:3]} {dict(counts)}")
restart().many([("DEL", f"k{k}") for k in range(KEYS)])
follower.equals(source)
ok(f"{counts['gets']} gets, none of them outside of its time: {dict(counts)}; ages of hits within max_age, us: "
   f"p50 {ages[len(ages) // 2]}, p99 {ages[len(ages) * 99 // 100]}, most {ages[-1]}")
