# SPDX-License-Identifier: BSD-2-Clause
"""What an application of a cluster makes of two nodes that are none: clocks that differ by minutes, slots that others have by now,
and a node that has not heard of that. The table is of this process, and claims what a follower might. For clustered.py."""
import contextlib
import os
import socket
import threading
import time

import reddn
from cluster import SLOTS, slot_of
from source import check, ok, until, work

HALF, AHEAD = SLOTS // 2, 1000  # seconds


def fnv(text):
    h = 0xcbf29ce484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return h


class Node:
    def __init__(self, name):
        self.id, self.path, self.ahead, self.values, self.masters = name * 40, f"{work}/{name}", 0, {}, {}
        self.redirects, self.connections = {}, []  # errors, by key
        self.loading = 0  # so often it does not name the nodes
        unix, self.tcp = socket.socket(socket.AF_UNIX), socket.socket()
        unix.bind(self.path)
        self.tcp.bind(("127.0.0.1", 0))
        for listener in (unix, self.tcp):
            listener.listen()
            threading.Thread(target=self.accept, args=[listener], daemon=True).start()

    def redirect(self, what, key, to):
        return b"-%s %d 127.0.0.1:%d\r\n" % (what, slot_of(key), to.tcp.getsockname()[1])

    def accept(self, listener):
        while True:
            connection = listener.accept()[0]
            self.connections.append(connection)
            threading.Thread(target=self.serve_until_lost, args=[connection], daemon=True).start()

    def serve_until_lost(self, connection):
        with contextlib.suppress(OSError):
            self.serve(connection, connection.makefile("rb"))

    def serve(self, connection, file):
        asked = False
        while line := file.readline():
            words = [file.read(int(file.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
            connection.sendall(self.answer(words, asked))
            asked = words[0] == b"ASKING"

    @staticmethod
    def string(text):
        return b"$%d\r\n%b\r\n" % (len(text), text)

    def answer(self, words, asked):
        name = words[0]
        if name == b"TIME":
            us = time.time_ns() // 1000 + self.ahead * 1000000
            return b"*2\r\n" + self.string(b"%d" % (us // 1000000)) + self.string(b"%d" % (us % 1000000))
        if words[:2] == [b"CLUSTER", b"NODES"] and self.loading:
            self.loading -= 1
            return b"-LOADING Redis is loading the dataset in memory\r\n"
        if name in (b"INFO", b"CLIENT", b"CLUSTER"):
            return self.string({b"INFO": b"# Server\r\nredis_mode:cluster\r\n", b"CLIENT": b"id=1 db=0", b"CLUSTER": self.nodes()}[name])
        if words[1:] and words[1] in self.redirects and not asked:
            return self.redirects[words[1]]
        if name == b"SET":
            self.values[words[1]] = words[2]
        elif name == b"GET":
            return self.string(self.values[words[1]]) if words[1] in self.values else b"$-1\r\n"
        return b"+OK\r\n"

    def nodes(self):
        return "".join(f"{i} 127.0.0.1:1@2 {'myself,' * (i == self.id)}master - 0 0 {epoch} connected {ranges}\n" for i, (epoch, ranges) in self.masters.items()).encode()

    @property
    def origin(self):
        return sum(fnv(f"{i} {epoch} {ranges}") for i, (epoch, ranges) in self.masters.items()) & (1 << 64) - 1


def clocks(path, connect):
    """`connect` makes an application of the node at a socket."""
    a, b = Node("a"), Node("b")
    of_a, new, other = (next(k for k in (b"%s%d" % (name, i) for i in range(1000)) if slot_of(k) < HALF) for name in (b"a", b"new", b"other"))
    of_b = next(k for k in (b"b%d" % i for i in range(1000)) if slot_of(k) >= HALF)
    epoch = 0

    def agree(nodes=(a, b), **masters):
        for node in nodes:
            node.masters = {name * 40: master for name, master in masters.items()}

    with reddn.Table(path, write=True) as table:
        def states(origin, seconds):
            """As of so many seconds from now"""
            nonlocal epoch
            epoch += 1
            table.set_as_of(time.time_ns() // 1000 + seconds * 1000000, time.time_ns(), epoch=epoch, complete=True, origin=origin)

        def by_redis(key, value):
            before = c.nic_answers
            for _ in range(5):
                check(c("GET", key) == value, f"{key} is not {value}")
            check(c.nic_answers == before, f"the NIC answers for {key}")

        def by_nic(key):
            def answered():
                before = c.nic_answers
                check(c("GET", key) == b"old" or c.lost, f"{key}: another value")
                return c.nic_answers > before
            until(answered, f"{key} is asked for at the nodes all the time")

        for key in (of_a, of_b, new, other):
            table[key] = b"old"
            a.values[key] = b.values[key] = b"old"
        def begin():
            agree(a=(1, f"0-{HALF - 1}"), b=(2, f"{HALF}-{SLOTS - 1}"))
            a.redirects, b.redirects = {of_b: a.redirect(b"MOVED", of_b, b)}, {}

        def lose(*nodes):
            for connection in (c for node in nodes for c in node.connections):
                with contextlib.suppress(OSError):  # it may have been closed
                    connection.shutdown(socket.SHUT_RDWR)

        begin()

        def begins():
            a.ahead = b.ahead = 0
            states(a.origin, 500)
            return connect(a.path)

        def knows():
            check(c("") is None and c("GET", of_b) == b"old", "an answer by b")  # where a has sent it
            for key in (of_a, of_b):
                by_nic(key)

        c = begins()
        knows()
        b.ahead = AHEAD
        check(c("SET", of_b, b"b1") is True and c("GET", of_a) == b"old", "an answer by a")
        by_redis(of_b, b"b1")
        b.values[of_b] = b"old"
        states(a.origin, 2 * AHEAD)
        by_nic(of_b)
        c = begins()
        knows()
        a.ahead, a.values[of_a] = AHEAD, b"a1"
        check(c("") is None and c("GET", of_b) == b"old", "an answer by b")  # it has changed something at a without the handle
        by_redis(of_a, b"a1")
        a.values[of_a] = b"old"
        c = begins()
        knows()
        a.ahead = AHEAD
        a.redirects[new] = a.redirect(b"ASK", new, b)
        check(c("SET", new, b"n1") is True and b.values[new] == b"n1" and c("GET", of_b) == b"old", "an answer by b")
        by_redis(new, b"n1")
        c = begins()
        knows()
        check(c("SET", of_b, b"old") is True, "SET")
        lose(b)
        by_nic(of_a)
        c = begins()
        knows()
        b.ahead = AHEAD
        check(c("SET", of_b, b"b2") is True, "SET")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            b.redirects = {of_b: b"-MOVED %d 127.0.0.1:%d\r\n" % (slot_of(of_b), nobody.getsockname()[1])}
            check(c("GET", of_b) is None and c.lost, "an answer by nobody")  # b has reported its time, too
        b.redirects = {}
        check(c("GET", of_a) == b"old", "an answer by a")
        by_redis(of_b, b"b2")
        b.values[of_b] = b"old"
        ok("each node has its own clock")

        c = begins()
        by_nic(of_b)
        before = a.origin
        agree(a=(3, f"0-{HALF - 1} {slot_of(of_b)}"), b=(2, f"{HALF}-{slot_of(of_b) - 1} {slot_of(of_b) + 1}-{SLOTS - 1}"))
        a.redirects, b.redirects = {}, {of_b: b.redirect(b"MOVED", of_b, a)}
        check(c("SET", of_b, b"b2") is True and a.values[of_b] == b"b2", "MOVED")
        by_redis(of_b, b"b2")
        ok("a table that follows who has had the slot before is not believed")
        agree((b,), a=(1, f"0-{HALF - 1}"), b=(2, f"{HALF}-{SLOTS - 1}"))
        check(b.origin == before, "it is not the one before")
        a.redirects = {other: a.redirect(b"MOVED", other, b)}
        by_redis(other, b"old")
        by_redis(of_b, b"b2")
        ok("nor after an answer of a node that has not heard of it")
        a.values[of_b] = b"old"
        states(a.origin, 500)
        by_nic(of_b)
        agree(a=(5, f"0-{HALF - 1} {slot_of(of_b)}"), b=(4, f"{HALF}-{slot_of(of_b) - 1} {slot_of(of_b) + 1}-{SLOTS - 1}"))
        states(a.origin, 500)
        by_nic(of_a)
        ok("the NIC answers again when a table and the nodes agree, also without a redirect")
        lose(a, b)
        begin()
        a.loading = b.loading = 2
        states(a.origin, 500)
        until(lambda: c("GET", of_a) == b"old", "it does not connect again")
        for key in (of_a, of_b):
            by_nic(key)
        check(not a.loading, "it has not asked again")
        ok("and when it is another cluster that is there, of lower epochs, whose nodes load their data first")
    os.unlink(a.path)
