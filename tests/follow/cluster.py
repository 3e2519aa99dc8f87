#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reddn-follow and a cluster of the distribution's redis-servers: three masters and a replica, slots that move, masters that are killed,
and that an answer of the table is one that the cluster had at the moment that the table states, or later."""
import binascii
import itertools
import os
import random
import signal
import socket
import subprocess
import threading
import time

import reddn
from source import EVER, FOLLOW, LIMIT, Commands, Error, Follower, Proxy, Redis, check, had, memory, ok, refuses, until

SLOTS = 16384
TIMEOUT_MS, SHORT_MS = 15000, 1000  # until a master counts as dead; where it is


def slot_of(key):
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1) if begin >= 0 else -1
    return binascii.crc_hqx(key[begin + 1:end] if end > begin + 1 else key, 0) % SLOTS


class Node(Redis):
    def __init__(self, *options):
        super().__init__("--cluster-enabled", "yes", "--cluster-node-timeout", str(TIMEOUT_MS), "--appendonly", "yes", "--appendfsync", "no", "--repl-diskless-sync-delay", "0", *options, tcp=True)
        self.id = self.client()("CLUSTER", "MYID").decode()

    @staticmethod
    def free_port():
        """A cluster's bus has the port + 10000"""
        while True:
            with socket.socket() as bus:
                port = Redis.free_port()
                try:
                    if port < 55536:
                        bus.bind(("127.0.0.1", port + 10000))
                        return port
                except OSError:
                    pass

    def nodes(self):
        """Words of each line"""
        return [line.split() for line in self.client()("CLUSTER", "NODES").decode().splitlines()]


class Cluster:
    def __init__(self, masters=3):
        self.nodes = [Node() for _ in range(masters)]
        for i, node in enumerate(self.nodes):
            c, first, last = node.client(), i * SLOTS // masters, (i + 1) * SLOTS // masters - 1
            c.many([("CLUSTER", "ADDSLOTSRANGE", first, last), ("CLUSTER", "SET-CONFIG-EPOCH", i + 1)])
        for node in self.nodes[1:]:
            self.meet(node)
        self.settles()

    def meet(self, node):
        check(node.client()("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port) == b"OK", "they do not meet")

    def set_timeout(self, ms):
        for node in self.alive:
            node.client()("CONFIG", "SET", "cluster-node-timeout", ms)

    @property
    def alive(self):
        return [n for n in self.nodes if n.process.poll() is None]

    def is_saved(self):
        """What was acknowledged survives SIGKILL: a replica that was loaded writes its log anew."""
        return all(b"aof_rewrite_in_progress:0" in text and b"aof_rewrite_scheduled:0" in text for text in (n.client()("INFO", "persistence") for n in self.alive))

    def settles(self):
        """All that live know each other, and agree."""
        def agree():
            try:
                views = {tuple(sorted((w[0], *w[8:]) for w in n.nodes() if "master" in w[2] and len(w) > 8)) for n in self.alive}
                return len(views) == 1 and all(b"cluster_state:ok" in n.client()("CLUSTER", "INFO") and len(n.nodes()) == len(self.nodes) for n in self.alive)
            except (OSError, Error):
                return False
        until(agree, lambda: "the nodes do not agree:\n" + "\n".join(n.client()("CLUSTER", "NODES").decode() for n in self.alive))

    def add_replica(self, master):
        node = Node()
        self.nodes.append(node)
        self.meet(node)
        until(lambda: any(w[0] == master.id for w in node.nodes()), "the replica does not know its master")
        self.settles()
        node.client()("CLUSTER", "REPLICATE", master.id)
        until(lambda: b"master_link_status:up" in node.client()("INFO", "replication"), "the replica has no master")
        return node

    @property
    def masters(self):
        return [n for n in self.alive if any("myself,master" in w[2] and len(w) > 8 for w in n.nodes())]

    def owner(self, slot):
        """By what each node states of itself"""
        for node in self.alive:
            for words in node.nodes():
                if "myself" not in words[2]:
                    continue
                for r in words[8:]:
                    ends = r.split("-")
                    if "[" not in r and int(ends[0]) <= slot <= int(ends[-1]):
                        return node
        return None

    def url(self, user="", nodes=None):
        return f"redis+cluster://{user}" + ",".join(f"127.0.0.1:{n.port}" for n in nodes or self.nodes[:2])

    def strings(self, db=0, wanted=lambda key: True):
        """What is there when nobody writes"""
        found = {}
        for node in self.masters:
            client, cursor = node.client(), b""
            while cursor != b"0":
                cursor, keys = client("SCAN", cursor or 0, "COUNT", 1000, "TYPE", "string")
                found.update(zip(keys, client.many([("GET", k) for k in keys])))
        return {k: v for k, v in found.items() if isinstance(v, bytes) and wanted(k)}


class History:
    """Of a key: [from, to, value], it became that between the two; what is not known to have been done may become so at any time."""

    def __init__(self):
        self.of = {}

    def begin(self, key, value):
        entry = [now_us(), EVER, value]
        self.of.setdefault(key, [[0, 0, None]]).append(entry)
        return entry

    def had(self, key, value, begin, end):
        return had(self.of.get(key, [[0, 0, None]]), value, begin, end)


def now_us():
    return time.time_ns() // 1000


class Writer:
    """A client of the cluster: it goes where MOVED and ASK send it. What it has set is also at a replica, if there is one."""

    def __init__(self, cluster):
        self.cluster, self.at, self.clients, self.history = cluster, {}, {}, History()

    def ask(self, node, commands):
        if node not in self.clients:
            self.clients[node] = node.client()
        return self.clients[node].many(commands)

    def node_of(self, answer):
        port = int(str(answer).rsplit(":", 1)[1])
        return next(n for n in self.cluster.nodes if n.port == port)

    def try_once(self, words):
        """True: it was done."""
        slot, asking, node = slot_of(words[1]), [], None
        for _ in range(50):
            node = node or self.at.get(slot) or random.choice(self.cluster.alive)
            wait = [("WAIT", 1, 1000)] if node in self.cluster.has_replica else []
            try:
                *_, answer, enough = self.ask(node, asking + [words] + wait) + ([1] if not wait else [])
            except (OSError, ValueError, Error):
                self.clients.pop(node, None)
                self.at.pop(slot, None)
                return False
            asking = []
            if isinstance(answer, Error) and str(answer).startswith("MOVED"):
                self.at[slot] = node = self.node_of(answer)
            elif isinstance(answer, Error) and str(answer).startswith("ASK"):
                node, asking = self.node_of(answer), [("ASKING",)]
            else:
                return not isinstance(answer, Error) and not isinstance(enough, Error) and enough >= 1
        return False

    def __call__(self, *words):
        """SET or DEL"""
        value = words[2] if words[0] == "SET" else None
        for _ in range(LIMIT * 100):
            entry = self.history.begin(words[1], value)
            if self.try_once(words):
                entry[1] = now_us()
                return
            time.sleep(0.01)
        raise AssertionError(f"{words} is not done")


class Load:
    """A writer, and a reader of the table that compares each answer with what the cluster had."""

    KEYS = 300

    def __init__(self, writer, follower):
        self.writer, self.follower, self.over, self.failure, self.counts = writer, follower, False, None, {"hits": 0, "misses": 0, "writes": 0}
        self.threads = [threading.Thread(target=self.guard, args=[f], daemon=True) for f in (self.write, self.read)]

    def guard(self, function):
        try:
            while not self.over:
                function()
        except BaseException as e:  # noqa: B036
            self.failure = e
            self.over = True

    def write(self, rng=random.Random(3)):  # noqa: B008
        key = b"w%d" % rng.randrange(self.KEYS)
        self.counts["writes"] += 1
        if rng.random() < 0.3:
            self.writer("DEL", key)
        else:
            self.writer("SET", key, b"%s %d" % (key, self.counts["writes"]))
        time.sleep(0.001)

    def read(self, rng=random.Random(4)):  # noqa: B008
        key = b"w%d" % rng.randrange(self.KEYS)
        asked = self.follower.ask(key)
        if asked is None or not asked[0].source:
            return time.sleep(0.001)
        as_of, value = asked
        at = now_us()
        if value is None and not as_of.complete:
            return None
        check(self.writer.history.had(key, value, as_of.source, at), f"{key} is {value} as of {as_of}, at {at}: {self.writer.history.of.get(key, [])[-6:]}")
        self.counts["misses" if value is None else "hits"] += 1
        return time.sleep(0.0005)

    def more(self, n=50):
        """Something is written, and the table is as of a moment after that and complete."""
        at = self.counts["writes"] + n
        until(lambda: self.counts["writes"] >= at or self.over, "nothing is written")
        written = now_us()
        until(lambda: self.over or (self.follower.as_of().complete and self.follower.as_of().source > written), lambda: f"it is not as of now: {self.follower.last} {self.follower.as_of()}")
        if self.failure:
            raise self.failure

    def __enter__(self):
        for t in self.threads:
            t.start()
        self.more()
        return self

    def __exit__(self, kind, *_):
        self.over = True
        for t in self.threads:
            t.join(LIMIT)
        if self.failure and not kind:
            raise self.failure


def fill(cluster, writer):
    for i in range(1500):
        writer("SET", b"{tag%d}k%d" % (i % 40, i), b"v%d" % i)
    for i in range(50):
        writer.try_once(("HSET", b"hash%d" % i, "a", 1))


def changes(cluster, writer, follower):
    follower.equals(cluster)
    until(lambda: follower.last["complete"], lambda: f"{follower.last}")
    for i in range(0, 300, 3):
        writer("SET", b"{tag%d}k%d" % (i % 40, i), b"new")
        writer("DEL", b"{tag%d}k%d" % ((i + 1) % 40, i + 1))
        writer.try_once(("PEXPIRE", b"{tag%d}k%d" % ((i + 2) % 40, i + 2), 50 + i))
    until(lambda: not any(int(k.split(b"k")[1]) % 3 == 2 for k in cluster.strings() if int(k.split(b"k")[1]) < 300), "keys do not expire")
    follower.equals(cluster)
    loads = follower.last["loads"]
    cluster.nodes[1].client()("FLUSHALL")
    follower.reaches("following", loads + 1)
    follower.equals(cluster)
    fill(cluster, writer)
    follower.equals(cluster)
    ok("changes on all masters, and one of them emptied")


def migrate(cluster, slot, to, between=lambda: None):
    """As redis-cli does it"""
    source = cluster.owner(slot)
    if source is to:
        return
    s, t = source.client(), to.client()
    check(t("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id) == s("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id) == b"OK", "it does not begin")
    between()
    while keys := s("CLUSTER", "GETKEYSINSLOT", slot, 5):
        s.many([("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)])
    for node in (to, source, *(n for n in cluster.masters if n not in (to, source))):
        node.client().many([("CLUSTER", "SETSLOT", slot, "NODE", to.id)])  # who has lost its last slot becomes a replica, and refuses


def resharding(cluster, writer, follower):
    slots = [slot_of(b"tag%d" % i) for i in range(10)] + [slot_of(b"w%d" % i) for i in range(40)]
    with Load(writer, follower) as load:
        for i, node in enumerate(cluster.nodes):  # to one after the other: else they may take the same epoch, and then a slot is nobody's
            for slot in slots[i::3]:
                migrate(cluster, slot, node)
            cluster.settles()
            load.more()
        # one that takes long: the table is as of the moment before, and follows on
        tag = next(tag for tag in (b"{tag%d}" % i for i in range(40)) if cluster.owner(slot_of(tag)) is cluster.nodes[0])
        slot, key = slot_of(tag), tag + b"between"

        def between():
            at = load.counts["writes"] + 100
            Writer(cluster)("SET", key, b"between")
            written = now_us()
            until(lambda: load.counts["writes"] >= at or load.over, "nothing is written")
            as_of, value = next(asked for asked in iter(lambda: follower.ask(key), 0) if asked)
            check(value or as_of.source <= written, f"a key that came while its slot was moved is absent as of {as_of}, and was there at {written}")

        migrate(cluster, slot, cluster.nodes[1], between)
        load.more()
        check(follower.has(key, b"between"), "a key that came while its slot was moved is absent")
    follower.equals(cluster)
    ok(f"slots that move: {load.counts}")


def of_slots(first, last):
    return lambda key: first <= slot_of(key) <= last


def some_slots(cluster, writer, _):
    """A follower of some slots: those of one master, then of another one too, in the same table."""
    first = SLOTS // 3
    with Follower(cluster.url() + f"/?slots=0-{first - 1}") as f:
        f.equals(cluster, wanted=of_slots(0, first - 1))
        until(lambda: f.stat().as_of.complete, lambda: f"{f.last}")
        check((f.stat().slot, f.stat().slots) == (0, first), f"{f.stat()}")
        # without the others, the master answers nothing, and what it has may be old
        others = [n for n in cluster.alive if n is not cluster.nodes[0]]
        cluster.set_timeout(SHORT_MS)
        for n in others:
            n.process.send_signal(signal.SIGSTOP)
        until(lambda: b"cluster_state:fail" in cluster.nodes[0].client()("CLUSTER", "INFO"), "it is not cut off")
        cut_off = now_us()
        for _ in range(20):
            check(f.as_of().source <= cut_off, f"a master that is cut off since {cut_off} is followed: {f.as_of()}")
            time.sleep(0.02)
        for n in others:
            n.process.send_signal(signal.SIGCONT)
        cluster.settles()
        cluster.set_timeout(TIMEOUT_MS)
        until(lambda: f.as_of().source > cut_off and f.as_of().complete, lambda: f"it is not followed any more: {f.last}")
        # only what this table has is asked for again
        loads, slot = f.last["loads"], first + 1
        migrate(cluster, slot, cluster.nodes[2])
        cluster.settles()
        moved = now_us()
        until(lambda: f.as_of().source > moved, lambda: f"{f.last}")
        check(f.last["loads"] == loads, f"slots of others have moved: {f.last}")
        migrate(cluster, slot, cluster.nodes[1])
        cluster.settles()
    with Follower(cluster.url() + f"/?slots={first - 1}-{first}", table=f.path) as f:  # those of two masters
        f.equals(cluster, wanted=of_slots(first - 1, first))
        until(lambda: (f.stat().slot, f.stat().slots) == (first - 1, 2), lambda: f"{f.stat()}")
    ok("some of the slots; a master that is cut off; another range")


def connections(cluster, writer, follower):
    with Load(writer, follower) as load:
        for i in range(10):
            loads = follower.last["loads"]
            cluster.nodes[i % 3].client()("CLIENT", "KILL", "TYPE", "pubsub")
            follower.reaches("following", loads + 1)
        load.more()
    follower.equals(cluster)
    ok(f"connections of one master that are lost: {load.counts}")


def join(cluster, node):
    cluster.nodes.append(node)
    cluster.meet(node)
    cluster.settles()


def leave(cluster, node):
    node.kill()
    cluster.nodes.remove(node)
    for n in cluster.nodes:
        n.client()("CLUSTER", "FORGET", node.id)
    cluster.settles()


class Application:
    """What an application has written by libreddn-redis, over one node, it reads: without an error, whichever node has the key."""

    def __init__(self, node):
        self.send = Commands(os.environ["COMMANDS"], node.path + "/socket", 0, "127.0.0.1:1", "none")
        self.have, self.steps, self.over, self.failure = {}, 0, False, None
        self.thread = threading.Thread(target=self.guard, daemon=True)

    def __call__(self, *words):
        while True:
            try:
                answer = self.send(*words)
                check(not self.send.lost, f"{words}: {self.send.lost}")
                return answer
            except Error as e:
                if not str(e).startswith("CLUSTERDOWN"):  # a machine that stands still for long
                    raise

    def reads(self, key, value):
        """Perhaps not yet"""
        try:
            return self.send("GET", key) == value
        except Error:
            return False

    def step(self, rng=random.Random(5)):  # noqa: B008
        key, other = (b"{r%d}%d" % (rng.randrange(60), i) for i in range(2))
        what = rng.randrange(3)
        if what == 0:
            self.have[key] = b"%d" % self.steps
            check(self("SET", key, self.have[key]) is True, "SET")
        elif what == 1:
            check(self("DEL", key) == (self.have.pop(key, None) is not None), "DEL")
        for k in (key, other):
            check(self("GET", k) == self.have.get(k), f"{k} is not {self.have.get(k)}")
        self.steps += 1

    def guard(self):
        try:
            while not self.over:
                self.step()
        except BaseException as e:  # noqa: B036
            self.failure = e

    def more(self):
        at = self.steps + 20
        until(lambda: self.steps >= at or self.failure, "it does not go on")
        if self.failure:
            raise self.failure


def fails(words, call, *args):
    try:
        raise AssertionError(f"{args}: {call(*args)}, not {words}")
    except Error as e:
        check(str(e).startswith(words), f"{args}: {e}")


def count(cluster, error):
    """Answers of all nodes that were this error"""
    found = (n.client()("INFO", "errorstats").partition(b"errorstat_%s:count=" % error)[2] for n in cluster.alive)
    return sum(int(text.split(b"\r")[0] or 0) for text in found)


def redirects(cluster, writer, follower):
    """Of an application of libreddn-redis"""
    a, here, there = Application(cluster.nodes[0]), *cluster.nodes[:2]
    tag = next(tag for tag in (b"{of%d}" % i for i in range(1000)) if cluster.owner(slot_of(tag)) is there)
    slot, old, new = slot_of(tag), tag + b"old", tag + b"new"
    check(a("SET", old, "1") is True and a("GET", old) == b"1" and there.client()("GET", old) == b"1", "MOVED is not followed")
    check(a("EVAL", "return redis.call('GET', KEYS[1])", 1, old) == b"1" and a("OBJECT", "ENCODING", old) == b"int", "a key that is not the first word")
    moved = count(cluster, b"MOVED")
    for _ in range(10):
        check(a("INCR", old) and a("EVAL", "return redis.call('GET', KEYS[1])", 1, old) and a("STRLEN", old) and a("MGET", old, new), "no answer")
    check(count(cluster, b"MOVED") <= moved + 3, "INCR, STRLEN and MGET are sent to another node each time")
    check(a("PING") == b"PONG" and b"tcp_port:%d\r" % here.port in a("INFO", "server"), "a command without a key goes elsewhere")
    for words in (("WATCH", old), ("MULTI",)):
        if words[0] == "MULTI":
            check(a(*words) is True, "MULTI")
            words = "SET", old, 1
        fails("MOVED ", a.send, *words)
    fails("EXECABORT ", a.send, "EXEC")
    fails("CROSSSLOT ", a.send, "MGET", old, "another")

    def between():
        check(a("SET", new, "2") is True and a("GET", new) == b"2" and a("GET", old) == b"11", "ASK is not followed")
        check(here.client().many([("ASKING",), ("GET", new)])[1] == b"2", "it is not where ASK leads")
        moved = count(cluster, b"MOVED")
        check(all(a("GET", new) == b"2" for _ in range(10)) and count(cluster, b"MOVED") <= moved + 3, "who has the slot is asked elsewhere after ASK")
        fails("TRYAGAIN ", a.send, "MGET", old, new)
        check(count(cluster, b"TRYAGAIN") > 2, "it is not tried again")

    migrate(cluster, slot, here, between)
    check(a("MGET", old, new) == [b"11", b"2"] and a("DEL", old) == 1 and a("GET", old) is None, "another value")
    # two nodes that name each other
    a("DEL", new)
    here.client()("CLUSTER", "SETSLOT", slot, "NODE", there.id)
    fails("MOVED ", a.send, "GET", old)
    here.client()("CLUSTER", "SETSLOT", slot, "NODE", here.id)
    migrate(cluster, slot, there)
    check(a("SET", old, "3") is True, "SET")
    there.client()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    check(a.send("GET", old) is None and f"node 127.0.0.1:{there.port}: " in a.send.lost, f"no error: {a.send.lost}")
    check(a("GET", old) == b"3", "another value")
    cluster.settles()
    ok("redirects of an application: MOVED, ASK, and what has another end")
    a.thread.start()
    slots = [slot_of(b"r%d" % i) for i in range(30)]
    for i, node in enumerate(cluster.nodes):
        for slot in slots[i::3]:
            migrate(cluster, slot, node, a.more)
        cluster.settles()
        a.more()
    a.over = True
    a.thread.join(LIMIT)
    check(not a.failure, f"{a.failure}")
    follower.equals(cluster)
    ok(f"an application while slots move: {a.steps} turns")


def another_master(cluster, writer, follower):
    node = Node()
    join(cluster, node)
    with Load(writer, follower) as load:
        for i in range(20, 40):
            migrate(cluster, slot_of(b"tag%d" % i), node)
        cluster.settles()
        load.more()
        for i in range(20, 40):
            migrate(cluster, slot_of(b"tag%d" % i), cluster.nodes[2])
        cluster.settles()
        load.more()
    follower.equals(cluster)
    leave(cluster, node)
    ok(f"a master that comes, and goes: {load.counts}")


def late_answer(cluster, writer, follower):
    """An answer of a master that comes when its slot has moved, and the next one has answered."""
    key, proxy, held, free = b"{late}", Proxy(), threading.Event(), threading.Event()
    node = Node("--cluster-announce-port", str(proxy.port))
    proxy.sources, node.port = itertools.repeat(("127.0.0.1", node.port)), proxy.port
    join(cluster, node)
    migrate(cluster, slot_of(key), node)
    cluster.settles()
    writer("SET", key, b"first")
    until(lambda: follower.has(key, b"first"), "it is not followed")

    def hold(connection, data):
        if b"GET\r\n" in data and key in data and not held.is_set():
            connection.held = True
            held.set()

    proxy.on_question, proxy.on_answer = hold, lambda connection, _: getattr(connection, "held", False) and free.wait(LIMIT)
    writer("SET", key, b"second")
    until(held.is_set, "it is not asked for")
    migrate(cluster, slot_of(key), cluster.nodes[0])
    writer("SET", key, b"third")
    written = now_us()
    until(lambda: follower.has(key, b"third"), "it is not followed to the next master")
    free.set()
    until(lambda: follower.as_of().complete and follower.as_of().source > written, lambda: f"{follower.last}")
    follower.equals(cluster)
    leave(cluster, node)
    ok("an answer that comes when its slot has moved")


def failover(cluster, writer, follower):
    master = cluster.nodes[0]
    replica = cluster.add_replica(master)
    cluster.has_replica = [master, replica]
    a, key = Application(cluster.nodes[1]), next(key for key in (b"failover %d" % i for i in range(1000)) if cluster.owner(slot_of(key)) is master)
    writer("SET", key, b"value")
    check(a("GET", key) == b"value", "another value")
    with Load(writer, follower) as load:
        epoch = follower.as_of().epoch
        cluster.set_timeout(SHORT_MS)
        master.kill()
        until(lambda: replica in cluster.masters, "the replica is not promoted")
        cluster.set_timeout(TIMEOUT_MS)
        cluster.has_replica = []
        load.more()
        check(follower.as_of().epoch != epoch, "the epoch is the one before")
        # once it has noticed, it is led to the other one
        until(lambda: a.reads(key, b"value"), lambda: f"no answer: {a.send.lost}")
        master.run()
        cluster.settles()
        load.more()
    follower.equals(cluster)
    ok(f"a master is killed, and its replica promoted: {load.counts}")
    # as an administrator does it
    with Load(writer, follower) as load:
        until(lambda: b"master_link_status:up" in master.client()("INFO", "replication"), "the replica has no master")
        cluster.has_replica = [master, replica]
        load.more()  # the replica has what was set before, too
        master.client()("CLUSTER", "FAILOVER", "TAKEOVER")  # without, it is given up after 5 seconds
        until(lambda: master in cluster.masters and replica not in cluster.masters, "there is no failover")
        cluster.settles()
        load.more()
    follower.equals(cluster)
    ok(f"a failover by hand: {load.counts}")


def restart(cluster, writer, follower):
    """Without a replica: its slots are nobody's meanwhile, and the table keeps what it has."""
    node = cluster.nodes[2]
    until(cluster.is_saved, "a log is written all the time")
    with Load(writer, follower) as load:
        node.kill()
        until(lambda: follower.last["state"] == "apart" and f":{node.port}: " in follower.last["why"], lambda: f"{follower.last}")
        node.run()
        cluster.settles()
        load.more()
    follower.equals(cluster)
    until(cluster.is_saved, "a log is written all the time")
    for node in cluster.nodes:
        node.kill()
    until(lambda: follower.last["state"] == "apart", lambda: f"{follower.last}")
    for node in cluster.nodes:
        node.run()
    cluster.settles()
    with Load(writer, follower) as load:
        load.more()
    follower.equals(cluster)
    ok("a master, and all of them, killed and started again")


def seeds(cluster):
    replica, gone = next(n for n in cluster.nodes if n not in cluster.masters), Node()
    gone.kill()
    with Follower(cluster.url(nodes=[replica]), "--prefix", "{tag1}", "--prefix", "w") as f:
        f.equals(cluster, wanted=lambda k: k.startswith((b"{tag1}", b"w")))
    done = subprocess.run([FOLLOW, "--once", cluster.url(nodes=[gone, *cluster.nodes]), f"{memory}/once"], timeout=LIMIT, check=False)
    with reddn.Table(f"{memory}/once") as t:
        check(done.returncode == 0 and dict(t.records()) == cluster.strings(), f"--once: {done}")
    refuses(["--once", cluster.url(nodes=[gone]), f"{memory}/none"], 2, f"127.0.0.1:{gone.port}: Connection refused")
    line = subprocess.run([FOLLOW, "--acl", "redis+cluster://h"], capture_output=True, text=True, check=True).stdout.replace(">PASSWORD", ">p@ss")
    for n in cluster.nodes:
        out = subprocess.run(["redis-cli", "-s", n.path + "/socket"], input=line, capture_output=True, text=True, check=True).stdout
        check(out.strip() == "OK", f"{line}: {out}")
    with Follower(cluster.url(user="follower:p%40ss@")) as f:
        f.equals(cluster)
    with Follower(cluster.url(nodes=[gone, *cluster.nodes]).replace("127.0.0.1", "localhost")) as f:
        f.equals(cluster)
    alone = Redis(tcp=True)
    refuses(["--once", cluster.url(nodes=[alone]), f"{memory}/alone"], 2, "cluster support disabled")
    refuses(["--once", f"redis://127.0.0.1:{cluster.nodes[0].port}", f"{memory}/one"], 2, "to be followed as redis+cluster://")
    ok("some nodes are given, one of them a replica; --once; rights; servers of no cluster, and without the cluster")


def command_line():
    for words, args in (("a cluster has database 0 only", ["redis+cluster://h/1", "t"]), ("is not HOST", ["redis+cluster://a,b:0", "t"]), ("is not HOST", ["redis+cluster://", "t"]),
                        ("USER:PASSWORD", ["redis+cluster://u@a,b", "t"]), ("hosts are enough", ["redis+cluster://" + ",".join("h" * 17), "t"]),
                        ("?slots=FIRST-LAST", ["redis+cluster://h/?slots=1", "t"]), ("slots 0 to 16383", ["redis+cluster://h?slots=1-16384", "t"])):
        refuses(args, os.EX_USAGE, words)
    ok("the command line")


def main():
    command_line()
    cluster = Cluster()
    cluster.has_replica = []
    writer = Writer(cluster)
    fill(cluster, writer)
    with Follower(cluster.url()) as follower:
        for case in (changes, some_slots, resharding, redirects, connections, another_master, late_answer, failover, restart):
            case(cluster, writer, follower)
    seeds(cluster)


if __name__ == "__main__":
    main()
