# SPDX-License-Identifier: BSD-2-Clause
"""shards.py FOLDER WANTED HOSTS REDDN: clients of a cluster whose slots are in the tables of hosts a, b and c; d is a replica of b. Each get
must have a value, or the lack of one, that its key had between its as-of and its result. What is to happen to a host is written to the file
WANTED, and has happened when that has gone (shards.sh)."""
import asyncio
import errno
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter

nic = {"LD_PRELOAD": os.environ.pop("LD_PRELOAD")}  # not for what this process starts
import reddn  # noqa: E402
import reddn.aio  # noqa: E402
from cluster import SHORT_MS, SLOTS, TIMEOUT_MS, Cluster, Load, Writer, migrate, now_us, of_slots, slot_of  # noqa: E402
from reddn._lib import ffi, lib, to_keys  # noqa: E402
from source import Follower, check, ok, until  # noqa: E402

FOLDER, WANTED, HOSTS, REDDN = sys.argv[1:]
THIRDS = [(i * SLOTS // 3, (i + 1) * SLOTS // 3 - 1) for i in range(3)]
HOSTS_OF = ("a", "bd", "c")  # of each third
MAX_AGE, DEPTH = 0.3, 16


def third_of(key):
    return next(i for i, (_, last) in enumerate(THIRDS) if slot_of(key) <= last)


def happens(what, host):
    with open(WANTED + ".new", "w", encoding="ascii") as f:
        print(what, host, file=f)
    os.rename(WANTED + ".new", WANTED)
    until(lambda: not os.path.exists(WANTED), f"{what} {host}")


def connect(**options):
    return reddn.connect(HOSTS, "t", timeout=100, shards="redis", **options)


def submit_get(handle, keys, number):
    return lib.reddn_get_submit(handle, keys[0], len(keys[0]), number)


def submit_mget(handle, keys, number):
    several, keep = to_keys(keys)
    return keep and lib.reddn_mget_submit(handle, several, len(keys), number)


def submit_exists(handle, keys, number):
    several, keep = to_keys(keys)
    return keep and lib.reddn_exists_submit(handle, several, len(keys), number)


class Readers(Load):
    """The writer of a Load, and readers by the NIC, each of which has a way of asking, for so many keys at a time."""

    WAYS = {"get": (submit_get, 1, None), "young": (submit_get, 1, MAX_AGE), "mget": (submit_mget, 4, None), "exists": (submit_exists, 8, None)}

    def __init__(self, writer):
        super().__init__(writer, None)
        self.answers = Counter()  # by way and third: those that were judged
        self.nobody = False  # slots are nobody's for a time, which may be longer than a get is repeated
        self.threads[1:] = [threading.Thread(target=self.guard, args=[lambda w=w: self.read_by(w)], daemon=True) for w in self.WAYS]

    def judge(self, way, key, r, at):
        value = bytes(ffi.buffer(r.value, r.length)) if r.value != ffi.NULL else None
        if r.status == -errno.ESTALE and (way == "young" or self.nobody):
            self.counts["refused"] = self.counts.get("refused", 0) + 1
            return
        check(r.status >= 0, f"{way} {key}: {os.strerror(-r.status)}")
        if not r.as_of.source or (r.status and not r.as_of.flags & lib.REDDN_COMPLETE) or (way == "exists" and r.status == 0):
            return  # it claims nothing
        check(self.writer.history.had(key, value, r.as_of.source, at),
              f"{way} {key} is {value} as of {r.as_of.source}, at {at}: {self.writer.history.of.get(key, [])[-6:]}")
        self.answers[way, third_of(key)] += 1
        self.counts["misses" if r.status else "hits"] += 1

    def read_by(self, way):
        submit, several, max_age = self.WAYS[way]
        rnd, asked, number = random.Random(way), {}, 0
        with connect(depth=DEPTH, max_age=max_age) as c:
            handle, results = c._handle(), ffi.new("struct reddn_result[]", DEPTH)
            while not self.over:
                for _ in range(DEPTH):
                    keys = [b"w%d" % k for k in rnd.sample(range(self.KEYS), several)]
                    r = submit(handle, keys, number)
                    check(r in (0, -errno.EAGAIN), f"{way}: {r}")
                    if r == 0:
                        asked.update({number + i: key for i, key in enumerate(keys)})
                        number += several
                n = lib.reddn_wait(handle, results, DEPTH, 100)
                check(n >= 0, f"{way}: {n}")
                at = now_us()
                for i in range(n):
                    self.judge(way, asked.pop(results[i].cookie), results[i], at)
                time.sleep(0.02)

    def more(self, n=20, thirds=(0, 1, 2), ways=("get", "mget", "exists")):
        """So many answers that claim something, of each"""
        before = dict(self.answers)
        until(lambda: self.over or all(self.answers[w, t] >= before.get((w, t), 0) + n for w in ways for t in thirds),
              lambda: f"there are no answers: {self.answers} {before} {self.counts}")
        if self.failure:
            raise self.failure


def follow(cluster, host, first, last):
    return Follower(f"{cluster.url()}/?slots={first}-{last}", table=f"{FOLDER}/{host}.table")


def resharding(cluster, writer, readers):
    slots = [slot_of(b"w%d" % i) for i in range(60)]
    for i, node in enumerate(cluster.nodes[:3]):
        for slot in slots[i::3]:
            migrate(cluster, slot, node)
        cluster.settles()
        readers.more()
    ok(f"slots that move: {readers.counts}")


def failover(cluster, writer, readers):
    master = cluster.nodes[0]
    replica = cluster.add_replica(master)
    cluster.has_replica = [master, replica]
    # what was set before is also at the replica when it has this
    Writer(cluster)("SET", next(k for k in (b"last %d" % i for i in range(1000)) if cluster.owner(slot_of(k)) is master), b"value")
    readers.more()
    cluster.set_timeout(SHORT_MS)
    master.kill()
    until(lambda: replica in cluster.masters, "the replica is not promoted")
    cluster.set_timeout(TIMEOUT_MS)
    cluster.has_replica = []
    readers.more()
    master.run()
    cluster.settles()
    readers.more()
    ok(f"a master is killed, and its replica promoted: {readers.counts}")


def hosts_die(cluster, writer, readers):
    for host in "bd":  # whichever it is that is asked
        happens("kill", host)
        readers.more()
        happens("start", host)
        readers.more()
    ok(f"hosts with a replica are killed: {readers.counts}")
    key = next(b"of c %d" % i for i in range(1000) if third_of(b"of c %d" % i) == 2)
    with connect() as c:
        happens("kill", "c")
        readers.more(thirds=(0, 1), ways=["get"])
        Writer(cluster)("SET", key, b"value")
        results = ffi.new("struct reddn_result *")
        check(lib.reddn_get_submit(c._handle(), key, len(key), 1) == 0, "it is not asked")
        with connect() as late:  # which has not learnt yet what c has
            check(lib.reddn_get_submit(late._handle(), key, len(key), 1) == 0, "it is not asked")
            happens("start", "c")
            for handle in (c._handle(), late._handle()):
                until(lambda h=handle: lib.reddn_wait(h, results, 1, 100) == 1, "no answer")
                check(results.status == 0 and bytes(ffi.buffer(results.value, results.length)) == b"value", f"{results.status}")
    readers.more()
    ok(f"a host without a replica is killed: {readers.counts}")


def other_slots(cluster, followers, readers):
    """The tables get other slots, while clients go on."""
    global THIRDS
    THIRDS = [(0, 1999), (2000, 11999), (12000, SLOTS - 1)]
    readers.nobody = True
    for hosts, (first, last) in zip(HOSTS_OF, THIRDS):
        for host in hosts:
            followers[host].end()
            followers[host] = follow(cluster, host, first, last)
    readers.more()
    ok(f"tables with other slots: {readers.counts}")


def run_tool(verb, *args, options=()):
    return subprocess.run([REDDN, verb, "--shards", "redis", *options, HOSTS, "t", *args], capture_output=True, text=True, env={**os.environ, **nic}, check=False)


def tools(key, value, nobody, expected):
    """`nobody`: a key whose slot no table has"""
    run = run_tool("get", key, "absent")
    check(run.returncode == 1 and run.stdout == f"{value.decode()}\n", f"{run}")
    check(run_tool("ping", options=["--count", "1"]).returncode == 0, "ping")
    with open(WANTED + ".keys", "wb") as f:
        f.writelines(b"%s\t%s\n" % record for record in expected.items())
    run = run_tool("bench", options=["--json", "--verify", "--keys", WANTED + ".keys", "--count", "300"])
    check(run.returncode == 0, f"{run}")
    sent = {h["host"]: h["sent"] for h in json.loads(run.stdout)["hosts"]}
    check(all(sum(sent[h.split(":")[0]] for h in hosts.split(",")) > 10 for hosts in HOSTS.split(";")), f"{sent}")
    run = run_tool("get", nobody)
    check(run.returncode == 2 and f"no shard states that its table has slot {slot_of(nobody)} of Redis" in run.stderr, f"{run}")


async def ask(expected):
    async with await reddn.aio.connect(HOSTS, "t", shards="redis", timeout=100) as c:
        check(await asyncio.gather(*(c.get(k) for k in expected)) == list(expected.values()), "asyncio: another value")


def main():
    cluster = Cluster()
    cluster.has_replica = []
    writer = Writer(cluster)
    for i in range(100):
        writer("SET", b"{tag%d}%d" % (i % 10, i), b"%d" % i)
    followers = {h: follow(cluster, h, *THIRDS[i]) for i, hosts in enumerate(HOSTS_OF) for h in hosts}
    with Readers(writer) as readers:
        resharding(cluster, writer, readers)
        failover(cluster, writer, readers)
        hosts_die(cluster, writer, readers)
        other_slots(cluster, followers, readers)
    for i, hosts in enumerate(HOSTS_OF):
        for host in hosts:
            followers[host].equals(cluster, wanted=of_slots(*THIRDS[i]))
    expected = cluster.strings()
    check(expected, "there are no keys")
    with connect() as c:
        check(dict(zip(expected, c.mget(expected))) == expected and all(c.exists_many(expected)), "another value")
        check(c.get("absent") is None and c.as_of.follows, f"{c.as_of}")
        check([h.name for h in c.hosts] == [h.rsplit(":", 1)[0] for h in HOSTS.replace(";", ",").split(",")], f"{c.hosts}")
        for call in (lambda: c.put("k", "v"), lambda: c.faa(0, 1)):
            try:
                call()
                check(False, "a put with shards")
            except OSError as e:
                check(e.errno == errno.EINVAL, f"{e}")
    asyncio.run(ask(expected))
    followers["c"].end()
    last = SLOTS - 1000
    followers["c"] = follow(cluster, "c", THIRDS[2][0], last)
    nobody = next(b"nobody %d" % i for i in range(1000) if slot_of(b"nobody %d" % i) > last)
    tools(*next((k, v) for k, v in expected.items() if slot_of(k) <= last and k.startswith(b"w")), nobody, {k: v for k, v in expected.items() if slot_of(k) <= last})
    ok("mget, exists, asyncio, reddn, and a slot that no table has")
    for f in followers.values():
        f.end()


main()
