# SPDX-License-Identifier: BSD-2-Clause
"""A node whose memcached is the distribution's, with its items in a cache file (reddn-memcached(8)) which reddnd serves, and beside it the
other ways to the same keys and values. Its clients are those of a user."""

import os
import re
import socket

from result import TOP
from rig import tcp_ready

PORT, TWO_SIDED = 21399, 7472
MOST = {1: 32000, 2: 16000, 4: 8000}  # items of a bucket: the most bytes of each that the scratch of an instance has room for
BESIDE = 100  # bytes of an item that are sent beside the value: enough for header and key
FEW = 1000  # bytes of an item that are sent where it comes in pieces
OURS, RECYCLED, TCP, PLAIN, LOCAL = "by the NIC", "by the NIC, recycled", "libmemcached, TCP", "a plain socket, TCP", "libmemcached, Unix socket"
MODES = {OURS: ("unrolled", "n2"), RECYCLED: ("recycled", "n2-recycled")}  # of the offload of two items, and its name


def in_pieces(value_bytes, items):
    """True if values of this size do not fit into the reply of memcached-get with @items of a bucket."""
    return value_bytes + BESIDE > MOST[items]


class Node:
    """@keys of @value_bytes, set over TCP. @cpu: of the servers. @items: of a bucket, for each an offload; of two, one more is recycled.
    @more: settings of offloads."""

    def __init__(self, rig, value_bytes, keys, cpu=None, items=(2,), more=""):
        self.rig, self.cpu, self.size, self.at_socket, self.two_sided = rig, cpu, value_bytes, None, None
        rig.table(keys=keys, value_bytes=value_bytes)
        self.cache, self.socket = (os.path.join(rig.shm, name) for name in ("cache", "socket"))
        self.start_memcached()
        offloads = []
        for n, (mode, name) in [(n, ("unrolled", "n%d" % n)) for n in items] + [(2, MODES[RECYCLED])]:
            most = FEW if in_pieces(value_bytes, n) else value_bytes + BESIDE
            offloads.append('{ name = "%s"; program = "memcached-get"; region = "cache"; params = { n = %d; most = %d; }; mode = "%s"; %s }' % (name, n, most, mode, more))
            offloads.append('{ name = "%s-pieces"; program = "memcached-piece"; region = "cache"; mode = "%s"; %s }' % (name, mode, more))
        regions = '{ name = "cache"; kind = "memcached"; path = "%s"; server = "%s:%d"; }, { name = "t"; kind = "table"; path = "%s"; }' % (self.cache, rig.ADDRESS, PORT, rig.table_file)
        self.reddnd = rig.reddnd(*offloads, '{ name = "get"; program = "hash-get"; region = "t"; %s }' % more, regions=regions, cpu=cpu)
        self.pool, self.socket_pool = "--SERVER=%s:%d" % (rig.ADDRESS, PORT), '--SOCKET="%s"' % self.socket
        self.fill(self.pool)

    # ---- servers ----

    def command(self, *where):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        return ["memcached", *user, "-m", 256, "-o", "hashpower=18,no_hashexpand", *where]

    def start_memcached(self):
        """The one that reddnd serves."""
        library = os.environ.get("LIBREDDN_MEMCACHED", os.path.join(TOP, "build", "memcached", "libreddn-memcached.so"))
        preloaded = ["env", "LD_PRELOAD=" + library, "REDDN_CACHE_FILE=" + self.cache, *self.command("-l", self.rig.ADDRESS, "-p", PORT, "-U", 0)]
        self.memcached = self.rig.start("memcached", preloaded, tcp_ready(PORT), self.cpu, on_nic=False)

    def start_at_socket(self):
        """A memcached at a Unix socket."""
        self.at_socket = self.rig.start("memcached-socket", self.command("-s", self.socket), lambda _: os.path.exists(self.socket), self.cpu, on_nic=False)
        self.fill(self.socket_pool)

    def start_two_sided(self):
        """A server of the same values that polls for requests."""
        self.two_sided = self.rig.start("two-sided", ["baseline-server", self.rig.table_file, self.rig.ADDRESS, TWO_SIDED], "listening", self.cpu)

    def sets(self):
        """Sets of memcached since its start."""
        with socket.create_connection((self.rig.ADDRESS, PORT)) as talk:
            talk.sendall(b"stats\r\nquit\r\n")
            answer = talk.makefile().read()
        return int(re.search(r"STAT cmd_set (\d+)", answer)[1])

    def kill_memcached(self):
        self.memcached.popen.kill()
        self.memcached.popen.wait()
        self.rig.processes.remove(self.memcached)

    # ---- clients ----

    def bench(self, more, pool, seed=1, **how):
        return self.rig.ask(["reddn", "mc", "bench", "--json", "--verify", "--keys", self.rig.keys_file, "--depth", 1, "--seed", seed, *more, "--", pool], **how)

    def client(self, more, where, seed=1, on=(), **how):
        return self.rig.ask([*on, "baseline-client", "--json", "--verify", "--keys", self.rig.keys_file, "--depth", 1, "--seed", seed, *more, "--", *where], **how)

    def round_trips(self, where):
        """Of a get by client(), if nothing is asked again."""
        if where[0] == "mc":
            return 3 if in_pieces(self.size, int(where[-1][1])) else 1
        return 2 if where[0] == "onesided" else 1

    def fill(self, pool):
        self.bench(["--fill", "--tcp", "--count", 1], pool)

    def by_nic(self, offload):
        return lambda more, seed, **how: self.bench(["--offload", offload, *more], self.pool, seed, **how)

    def ways(self):
        """{name: function of options and seed}, which gets one key at a time."""
        address = self.rig.ADDRESS
        ways = {
            **{way: self.by_nic(offload) for way, (_, offload) in MODES.items()},
            TCP: lambda more, seed, **how: self.bench(["--tcp", *more], self.pool, seed, **how),
            PLAIN: lambda more, seed, **how: self.client(more, ["memcached", address, PORT], seed, on_nic=False, **how),
        }
        if self.at_socket:
            ways[LOCAL] = lambda more, seed, **how: self.bench(["--tcp", *more], self.socket_pool, seed, **how)
            ways["a plain socket, Unix"] = lambda more, seed, **how: self.client(more, ["memcached", self.socket, PORT], seed, on_nic=False, **how)
        if self.two_sided:
            ways["two-sided"] = lambda more, seed, **how: self.client(more, ["requests", address, TWO_SIDED], seed, **how)
            ways["one-sided"] = lambda more, seed, **how: self.client(more, ["onesided", address, TWO_SIDED], seed, **how)
        return ways
