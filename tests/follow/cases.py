#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reddn-follow and the distribution's redis-server: what clients do, what a table cannot hold, what ends and comes back. Each case ends
with a table that is equal to its source."""
import os
import random
import re
import signal
import socket
import subprocess
import threading

import reddn
from source import FOLLOW, LIMIT, Client, Error, Follower, Proxy, Redis, check, memory, ok, until, work


class Writer(threading.Thread):
    """Sets and deletes random keys, many at once, until it is ended."""

    def __init__(self, source, keys=2000):
        super().__init__(daemon=True)
        self.source, self.keys, self.ended, self.written = source, keys, False, 0
        self.start()

    def run(self):
        client, rng = self.source.client(), random.Random(7)
        while not self.ended:
            commands = [("SET", f"k{rng.randrange(self.keys)}", rng.randbytes(rng.randrange(100))) for _ in range(40)]
            try:
                client.many(commands + [("DEL", f"k{rng.randrange(self.keys)}") for _ in range(10)])
                self.written += 1
            except (OSError, Error, ValueError):
                until(self.source.answers, "the source does not come back")
                client = self.source.client()

    def more(self, turns=20):
        until(lambda at=self.written: self.written >= at + turns, "nothing is written")

    def __enter__(self):
        self.more()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.join()


def commands(source, follower):
    c = source.client()
    steps = [
        (("SET", "a", 1), ("APPEND", "a", 23), ("SETRANGE", "a", 5, "xyz"), ("INCR", "n"), ("INCRBYFLOAT", "f", 1.5), ("SETBIT", "bits", 100, 1),
         ("PFADD", "hll", "x", "y"), ("GETSET", "g", 1), ("SET", "gd", 1), ("GETDEL", "gd"), ("MSET", "m1", 1, "m2", 2), ("BITOP", "NOT", "b2", "bits")),
        (("SET", "r1", "one"), ("RENAME", "r1", "r2"), ("COPY", "r2", "r3"), ("SET", "mv", "x"), ("MOVE", "mv", 1)),
        (("MULTI",), ("SET", "t1", 1), ("SET", "t2", 2), ("DEL", "a"), ("EXEC",), ("EVAL", "for i=1,100 do redis.call('set','lua'..i,i) end", 0),
         ("UNLINK", "t1")),
        (("SET", "ty", "s"), ("SET", "so", 1)),
        (("DEL", "ty"), ("LPUSH", "ty", "x"), ("SADD", "ss", 3, 1, 2), ("SORT", "ss", "STORE", "so"), ("HSET", "hh", "a", 1), ("XADD", "st", "*", "a", 1)),
        (("DEL", "ty"), ("SET", "ty", "back")),
        (("SET", b"k\0nul", "v"), ("SET", b"k\nnl\ttab", "v2"), ("SET", b"\xff\xfe", b"\0\1\r\n\xa5"), ("SET", "ek", "")),
        [("SET", "k" * n, "long key") for n in (250, 251, 1000, 65535, 65536)],
    ]
    for step in steps:
        for answer in c.many(step):
            check(not isinstance(answer, Error), f"{step}: {answer}")
        follower.equals(source)
    check(follower.has(b"ty", b"back") and not follower.has(b"so"), "a type has changed")
    ok("commands, transactions, scripts, other types, binary keys")


def databases(source, follower):
    """What is done in another database changes nothing, and removes nothing for a moment."""
    c, other = source.client(), source.client(1)
    c("SET", "same", "x")
    deletes = []
    for _ in range(2):
        loads = follower.last["loads"]
        other.many([("SET", "same", "y"), ("FLUSHDB",)])
        follower.reaches("following", loads + 1)
        follower.equals(source)
        deletes.append(follower.last["deletes"])
    check(deletes[0] == deletes[1], f"FLUSHDB of another database removed keys: {follower.last}")
    ok("the same key in another database, and FLUSHDB of that")
    for i, swap in enumerate((("SWAPDB", 0, 2), ("MULTI",), ("EVAL", "redis.call('swapdb', 0, 2)", 0))):
        loads = follower.last["loads"]
        source.client(2)("SET", f"swapped{i}", "1")
        c.many([swap] if len(swap) > 1 else [("MULTI",), ("SWAPDB", 0, 2), ("EXEC",)])
        follower.reaches("following", loads + 1)
        follower.equals(source)
    ok("SWAPDB, in a transaction and in a script too")
    with Follower(source.url(db=2)) as second:
        second.equals(source, db=2)
        source.client(2)("SET", "only there", "v")
        second.equals(source, db=2)
    ok("another database")


def all_gone(source, follower):
    c = source.client()
    for words in (("FLUSHALL", "ASYNC"), ("FLUSHDB",)):
        c.many([("SET", f"k{i}", i) for i in range(100)])
        follower.equals(source)
        c.many([words, ("SET", "after", 1)])
        follower.equals(source)
    loads = follower.last["loads"]
    c("DEBUG", "RELOAD")
    follower.reaches("following", loads + 1)
    follower.equals(source)
    # what another user publishes on the channel comes before what Redis reports after it
    loads = follower.last["loads"]
    c("PUBLISH", "__redis__:invalidate", "k1")
    c("SET", "k1", "last")
    until(lambda: follower.has(b"k1", b"last"), lambda: f"{follower.last}")
    check(follower.last["loads"] == loads and follower.last["state"] == "following", f"a text puts all keys in doubt: {follower.last}")
    ok("FLUSHALL, FLUSHDB, DEBUG RELOAD, and a text on the channel")


def expiry(source, follower):
    """Nobody but the follower makes the source notice."""
    c = source.client()
    c.many([("FLUSHALL",), ("DEBUG", "SET-ACTIVE-EXPIRE", 0)])
    c.many([("SET", f"e{i}", "v", "PX", 50 + i) for i in range(300)] + [("SET", f"p{i}", "v") for i in range(300)])
    c.many([("PEXPIRE", f"p{i}", 60) for i in range(100)] + [("SET", f"p{i}", "v", "PX", 60) for i in range(100, 200)])
    c.many([("SET", "kept", "v", "EX", 1), ("PERSIST", "kept"), ("SET", "long", "v", "EX", 7200), ("SET", "again", "v", "PX", 80), ("SET", "again", "w")])
    until(lambda: set(follower.table()) == {b"kept", b"long", b"again"} | {b"p%d" % i for i in range(200, 300)}, lambda: f"{sorted(follower.table())[:20]}")
    c("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    follower.equals(source)
    c("FLUSHALL")
    ok("expiry")


def eviction(source, follower):
    c = source.client()
    used = int(re.search(rb"used_memory:(\d+)", c("INFO", "memory"))[1])
    c.many([("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"), ("CONFIG", "SET", "maxmemory", used + (2 << 20))])
    for i in range(0, 10000, 500):
        c.many([("SET", f"ev{j}", "v" * 300) for j in range(i, i + 500)])
    c("CONFIG", "SET", "maxmemory", 0)
    check(int(re.search(rb"evicted_keys:(\d+)", c("INFO", "stats"))[1]) > 0, "nothing was evicted")
    follower.equals(source)
    c("FLUSHALL")
    ok("eviction")


def limits(source):
    c = source.client()
    with Follower(source.url(), "--max-value", "15000000") as f:
        c.many([("SET", b"", "empty key"), ("SET", "k" * 65537, "long key"), ("SET", "big15", b"x" * 15000000), ("SET", "big16", b"y" * 15000001),
                ("SET", "grows", "z")])
        absent = [b"", b"k" * 65537, b"big16"]
        f.equals(source, absent=absent)
        until(lambda: f.last["state"] == "following" and not f.last["complete"], lambda: f"{f.last}")
        c("SETRANGE", "grows", 15000000, "end")
        f.equals(source, absent=absent + [b"grows"])
        check(f.end() == 0 and Follower.once(source, f.path) == 1, "the exit status for an incomplete table")
        # what the follower did not see
        c("SET", "grows", "less")
    with Follower(source.url(), table=f.path) as f:
        f.equals(source, absent=absent)
        check(f.last["absent"] == 3, f"{f.last}")
        c("DEL", *absent)
        until(lambda: f.last["complete"], lambda: f"{f.last}")
        f.equals(source)
    c("FLUSHALL")
    ok("what the table cannot hold is absent, with what was there before, until it can")
    path = f"{memory}/small"
    reddn.Table.create(path, capacity=500, heap_size=10240, max_value=100).close()
    with Follower(source.url(), table=path) as f:
        c.many([("SET", f"k{i}", "old") for i in range(300)])
        until(lambda: not f.last["complete"], lambda: f"{f.last}")
        c.many([("SET", f"k{i}", "new") for i in range(300)])
        c("SET", "marker", "x")
        until(lambda: f.last["absent"] and set(f.table().values()) <= {b"new", b"x"}, lambda: f"{f.table()}")
        c.many([("DEL", f"k{i}") for i in range(250)])
        until(lambda: f.last["complete"], lambda: f"what there was no room for is not tried again: {f.last}")
        f.equals(source)
    c("FLUSHALL")
    ok("a table that is full, and is not any more")


def prefixes(source):
    c = source.client()
    c.many([("SET", f"{p}:{i}", i) for p in ("app", "user", "other", "a*b") for i in range(50)])
    path = f"{memory}/prefixes"
    with reddn.Table.create(path, grow=True) as t:
        t["other:1"] = "from before"
        t["app:gone"] = "from before"
    for words in (["app:"], ["a*"], ["app:", "user:"]):
        wanted = lambda key, words=words: key.decode().startswith(tuple(words))  # noqa: E731
        with Follower(source.url(), *[x for w in words for x in ("--prefix", w)], table=path) as f:
            f.equals(source, wanted=wanted)
            c.many([("SET", f"{p}:{i}", i + 1) for p in ("app", "user", "other", "a*b") for i in range(50)])
            c.many([("DEL", f"{p}:9") for p in ("app", "user", "other", "a*b")])
            f.equals(source, wanted=wanted)
    ok("prefixes")


def rights(source):
    """What --acl prints is enough, and no more than is needed."""
    c = source.client()
    words = subprocess.run([FOLLOW, "--acl", "-p", "app:", "-p", "a*b"], capture_output=True, text=True, check=True).stdout.replace(">PASSWORD", ">p@ss")
    for line in (words, subprocess.run([FOLLOW, "--acl"], capture_output=True, text=True, check=True).stdout.replace(">PASSWORD", ">p@ss")):
        done = subprocess.run(["redis-cli", "-s", source.path + "/socket"], input=line, capture_output=True, text=True, check=True)
        check(done.stdout.strip() == "OK", f"{line}: {done.stdout}")
        options = ["-p", "app:", "-p", "a*b"] if line == words else []
        with Follower(source.url(user="follower:p%40ss@"), *options) as f:
            c("SET", "app:1", random.random())
            f.equals(source, wanted=lambda key, o=options: not o or key.startswith((b"app:", b"a*b")))
    odd = ['q"uote', "back\\slash", "wh ite", "[a-c]?"]
    options = [word for prefix in odd for word in ("-p", prefix)]
    line = subprocess.run([FOLLOW, "--acl", *options], capture_output=True, text=True, check=True).stdout.replace(">PASSWORD", ">p@ss")
    done = subprocess.run(["redis-cli", "-s", source.path + "/socket"], input=line, capture_output=True, text=True, check=True)
    check(done.stdout.strip() == "OK", f"{line}: {done.stdout}")
    with Follower(source.url(user="follower:p%40ss@"), *options) as f:
        c.many([("SET", prefix + "1", random.random()) for prefix in odd])
        f.equals(source, wanted=lambda key: key.startswith(tuple(prefix.encode() for prefix in odd)))
    granted = re.findall(r"\+(\S+)", words)
    check(len(granted) == 10, f"{granted}")
    subprocess.run(["redis-cli", "-s", source.path + "/socket"], input=words, capture_output=True, text=True, check=True)
    source.client(1)("SET", "app:1", "v")
    for name in granted:
        c("ACL", "SETUSER", "follower", "-" + name)
        f = Follower(source.url(user="follower:p%40ss@", db=1), "-p", "app:", "--once", wait=False)
        if name == "ping":
            # nothing is asked for when nothing changes, but for this
            f.end()
            f = Follower(source.url(user="follower:p%40ss@", db=1), "-p", "app:", wait=False)
            until(lambda: "'ping'" in (f.last.get("why") or ""), lambda: f"+{name} is not needed: {f.last}")
        else:
            check(f.process.wait(60) == 2, f"+{name} is not needed: {f.last}")
        f.end()
        c("ACL", "SETUSER", "follower", "+" + name)
    c("ACL", "SETUSER", "follower", "resetchannels")
    f = Follower(source.url(user="follower:p%40ss@"), "-p", "app:", wait=False)
    f.reaches("apart", 0)
    until(lambda: "NOPERM" in (f.last["why"] or ""), lambda: f"{f.last}")
    c("ACL", "DELUSER", "follower")
    until(lambda: "WRONGPASS" in (f.last["why"] or ""), lambda: f"{f.last}")
    f.end()
    c("FLUSHALL")
    ok("rights")


def connections(source):
    """Under load"""
    c = source.client()
    with Follower(source.url()) as f:
        with Writer(source) as w:
            for kind in ("pubsub", "normal"):
                loads = f.last["loads"]
                mine = re.findall(rb"id=(\d+) .*cmd=(?:get|pttl|info|ping|subscribe|client\|tracking|scan)\b", c("CLIENT", "LIST", "TYPE", kind))
                c.many([("CLIENT", "KILL", "ID", i) for i in mine])
                f.reaches("following", loads + 1)
                w.more()
            # longer than the patience of the follower
            loads = f.last["loads"]
            source.process.send_signal(signal.SIGSTOP)
            f.reaches("apart", loads)
            check("no answer" in f.last["why"], f"{f.last}")
            source.process.send_signal(signal.SIGCONT)
            f.reaches("following", loads + 1)
            w.more()
        f.equals(source)
        ok("each connection killed, and the source stopped for a time")
        # the follower
        with Writer(source) as w:
            loads = f.last["loads"]
            f.send(signal.SIGSTOP)
            w.more(100)
            f.send(signal.SIGCONT)
            w.more()
        f.equals(source)
        c("CONFIG", "SET", "client-output-buffer-limit", "pubsub 256kb 128kb 1")
        with Writer(source) as w:
            f.send(signal.SIGSTOP)
            until(lambda: c("PUBSUB", "NUMSUB", "__redis__:invalidate")[1] == 0, "the source keeps everything")
            f.send(signal.SIGCONT)
            f.reaches("following", loads + 1)
            w.more()
        f.equals(source)
        ok("the follower stopped for a time, with and without room at the source")
        with Writer(source) as w:
            f.end(signal.SIGKILL)
            w.more()
            f = Follower(source.url(), table=f.path)
            w.more()
        f.equals(source)
        check(f.end() == 0, "SIGTERM")
    c("FLUSHALL")
    ok("the follower killed, and started again")


def restart(source):
    c = source.client()
    c.many([("SET", f"k{i}", i) for i in range(3000)] + [("SAVE",)])
    with Follower(source.url()) as f:
        before = f.table()
        c.many([("SET", "not saved", 1), ("DEL", "k1")])
        f.equals(source)
        source.kill()
        f.reaches("apart", 1)
        deletes = f.last["deletes"]
        source.run("--key-load-delay", "200", "--loading-process-events-interval-bytes", "1024", wait=False)
        f.reaches("following", 2)
        loading = [line for line in f.lines if line["state"] == "apart" and "load" in (line["why"] or "").lower()]
        check(loading and all(line["deletes"] == deletes for line in loading), f"keys were removed before the source had loaded: {f.lines}")
        f.equals(source)
        check(f.table() == before, "the source has something else")
    source.client()("FLUSHALL")
    os.unlink(source.path + "/dump.rdb")
    ok("the source killed, and started again: it loads for a time")


def replica(master):
    slave = Redis("--replicaof", "127.0.0.1", str(master.port), tcp=True)
    c = master.client()
    c.many([("SET", f"k{i}", i) for i in range(3000)])
    until(lambda: b"master_link_status:up" in slave.client()("INFO", "replication"), "the replica has no master")
    with Follower(f"redis://127.0.0.1:{slave.port}", wait=True) as f:
        c.many([("SET", "k1", "new"), ("DEL", "k2"), ("SET", "short", "v", "PX", 100)])
        until(lambda: f.has(b"k1", b"new") and not f.has(b"k2") and not f.has(b"short"), lambda: f"{f.last}")
        f.equals(master)
        # changes that it misses, and then all data again
        loads = f.last["loads"]
        slave.client()("REPLICAOF", "127.0.0.1", 1)
        c.many([("DEL", f"k{i}") for i in range(10, 20)] + [("DEBUG", "CHANGE-REPL-ID")])
        slave.client()("REPLICAOF", "127.0.0.1", master.port)
        f.reaches("following", loads + 1)
        until(lambda: slave.strings() == master.strings(), "the replica is not equal")
        f.equals(master)
        slave.client()("REPLICAOF", "NO", "ONE")
        slave.client()("SET", "of its own", "v")
        f.equals(slave)
    c("FLUSHALL")
    ok("a replica, that is emptied, and becomes a master")


def doubts(source):
    """Another database is emptied all the time: there are times without a load, in which new keys come in."""
    c, over = source.client(), threading.Event()
    c.many([("SET", f"k{i}", i) for i in range(3000)])

    def empty():
        other = source.client(3)
        while not over.is_set():
            other("FLUSHDB")

    with Follower(source.url()) as f:
        t = threading.Thread(target=empty)
        t.start()
        f.reaches("following", f.last["loads"] + 2)
        check(not f.last["complete"], f"{f.last}")
        over.set()
        t.join()
        until(lambda: f.last["complete"], lambda: f"{f.last}")
        f.equals(source)
    c("FLUSHALL")
    ok("a database that is emptied all the time")


def removed(source):
    """The name of the table leads to nothing, or to a table of somebody else."""
    source.client()("SET", "k", "v")
    for rename in (False, True):
        f = Follower(source.url())
        if rename:
            reddn.Table.create(f.path + ".other", grow=True).close()
            os.rename(f.path + ".other", f.path)
        else:
            os.unlink(f.path)
        check(f.process.wait(LIMIT) == 2, "it goes on with a table that nobody finds")
    source.client()("FLUSHALL")
    ok("the table removed, and renamed over")


def notifies(source):
    """The service manager"""
    source.client()("SET", "k", "v")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{work}/notify")
        with Follower(source.url(), env={"NOTIFY_SOCKET": f"{work}/notify"}) as f:
            text = manager.recv(4096)
            while b"READY" not in text:
                check(b"loading" in text, f"{text}")
                text = manager.recv(4096)
            check(text == b"READY=1\nSTATUS=" + source.url().encode() + b": following, 1 keys", f"{text}")
            source.client()("CLIENT", "KILL", "TYPE", "pubsub")
            f.reaches("following", 2)
            while b"trying again" not in text:
                text = manager.recv(4096)
            check(text.startswith(b"STATUS="), f"{text}")
        while b"STOPPING" not in text:
            text = manager.recv(4096)
    source.client()("FLUSHALL")
    ok("notifications")


def unasked(source):
    """Answers that come again"""
    for kind in (b"subscribe", b"pong"):
        proxy = Proxy(source)
        proxy.change = lambda c, data, kind=kind: data * 2000 if c.invalidates and kind in data else data
        with Follower(source.url(path=proxy.path), wait=False) as f:
            until(lambda f=f: "no question" in (f.last.get("why") or ""), lambda f=f: f"{kind}: {f.last}")
            proxy.change = lambda c, data: data
            f.reaches("following")
    ok("answers to no question")


def command_line(source):
    for words, args in (
        ("a source is redis://", ["http://x", "t"]), ("is no number of a database", ["redis://h/x", "t"]), ("USER:PASSWORD", ["redis://u@h", "t"]),
        ("USER:PASSWORD", ["redis://u:%4@h", "t"]), ("is not HOST", ["redis://h:0", "t"]), ("absolute path", ["unix://t", "t"]),
        ("only .db=N", ["unix:///t?x=1", "t"]), ("usage", ["redis://h"]), ("no value of -k", ["-k", "x", "redis://h", "t"]),
        ("is there already", ["-p", "user:", "-p", "user", "redis://h", "t"]),
    ):
        done = subprocess.run([FOLLOW, *args], capture_output=True, text=True, timeout=60)
        check(done.returncode == os.EX_USAGE and re.search(words, done.stderr), f"{args}: {done.returncode} {done.stderr}")
    for words, args in (
        ("not a regular file", ["redis://h", "/dev/null"]), ("refused|No such", ["--once", f"unix://{work}/none", f"{memory}/t"]),
        ("No such", ["redis://h", f"{memory}/none/t"]), ("WRONGPASS|no password", ["--once", source.url(user="x:y@"), f"{memory}/t"]),
    ):
        done = subprocess.run([FOLLOW, *args], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and re.search(words, done.stderr), f"{args}: {done.returncode} {done.stderr}")
    # a server without AUTH repeats what it was asked
    deaf = Redis("--rename-command", "AUTH", "")
    done = subprocess.run([FOLLOW, "--once", deaf.url(user=":topsecret@"), f"{memory}/t"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and "unknown command" in done.stderr and "topsecret" not in done.stderr, f"{done}")
    deaf.kill()
    c = source.client()
    c("CONFIG", "SET", "requirepass", "secret")
    os.environ["REDISCLI_AUTH"] = "secret"
    with Follower(source.url()):
        pass
    del os.environ["REDISCLI_AUTH"]
    with Follower(source.url(user=":secret@")) as f:
        c("CONFIG", "SET", "requirepass", "")
        busy = subprocess.run([FOLLOW, source.url(), f.path], capture_output=True, text=True, timeout=60)
        check(busy.returncode == 2 and "writ" in busy.stderr, f"{busy}")
        reddn.Table.create(f.path, replace=True).close()
        check(f.process.wait(60) == 2, "it goes on with a table that was replaced")
    ok("the command line")


def main():
    source = Redis(tcp=True)
    with Follower(source.url()) as follower:
        for case in (commands, databases, all_gone, expiry, eviction):
            case(source, follower)
    for case in (limits, prefixes, rights, connections, restart, replica, notifies, doubts, removed, unasked, command_line):
        case(source)


main()
