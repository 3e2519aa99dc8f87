#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""conformance.py [COMMANDS [SEED]]: the distribution's memcached with libreddn-memcached.so answers, byte for byte, as one without: to
COMMANDS (4000) chosen at random, of the text and the meta protocol, right and wrong ones, while its table grows; and to memccapable(1)
of libmemcached, which tests the text and the binary protocol."""
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile

import stock
from stock import Memcached, check, fail, ok, until

# An incr or decr changes an item in place, and pads its value with spaces, unless another thread holds the item: no thread does that moves
# items between lists.
OPTIONS = ["-m", "64", "-t", "2", "-o", "hashpower=12,no_lru_maintainer,no_lru_crawler"]
KEYS, LONG = 60, ("key0", "key1", "key2")
COUNTED = "cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses delete_hits delete_misses incr_hits incr_misses cas_hits cas_misses cas_badval touch_hits".split()


def value(rng, long=False):
    kind = rng.random()
    if kind < 0.2:
        return str(rng.randrange(10 ** rng.randrange(1, 21))).encode()
    size = rng.randrange(400000, 1100000) if long and kind > 0.8 else rng.randrange(2000)
    return bytes([rng.randrange(256)]) * size


def store(rng, key):
    # a few keys have long values: there is room for all, and nothing is evicted
    data = value(rng, key in LONG)
    verb = rng.choice("set set set add replace append prepend cas".split())
    ttl = rng.choice((0, 0, 0, 1000, -1))
    more = f" {rng.randrange(6000)}" if verb == "cas" else ""
    silent = rng.choice(("", "", "", " noreply"))
    return f"{verb} {key} {rng.choice((0, 7, 4294967295))} {ttl} {len(data)}{more}{silent}".encode() + b"\r\n" + data


def meta(rng, key):
    kind = rng.choice("mg mg ms md ma mn".split())
    flags = {"mg": "v k f s c O77 q h N30 u", "ms": "k c T0 F9 I O5 q MA MP MR MS", "md": "k q O9 I T100", "ma": "v k N0 J13 D3 MI MD q c", "mn": ""}[kind].split()
    chosen = " ".join([""] + rng.sample(flags, min(len(flags), rng.randrange(4))))
    if kind == "mn":
        return b"mn"
    if kind != "ms":
        return f"{kind} {key}{chosen}".encode()
    data = value(rng)[:5000]
    return f"ms {key} {len(data)}{chosen}".encode() + b"\r\n" + data


def other(rng, key):
    many = " ".join(f"key{rng.randrange(KEYS)}" for _ in range(rng.randrange(1, 30)))
    return rng.choice((
        f"get {key}", f"gets {key}", f"get {many}", f"gets {many}", f"gat 1000 {many}", f"gats 0 {key}", f"delete {key}", f"delete {key} noreply",
        f"touch {key} {rng.choice((0, 1000, -1))}", f"incr {key} {rng.randrange(10 ** 9)}", f"decr {key} {rng.randrange(10 ** 9)}", "version", "verbosity 0",
        "get " + "k" * 250, "get " + "k" * 251, "get", "bogus", f"set {key} 0 0", f"set {key} 0 0 -1", f"set {key} x 0 1", f"incr {key} x", "mg", "ms x", "delete a b c",
    )).encode()


def commands(rng, count):
    for _ in range(count):
        key = f"key{rng.randrange(KEYS)}"
        kind = rng.random()
        yield (store(rng, key) if kind < 0.4 else meta(rng, key) if kind < 0.6 else other(rng, key)) + b"\r\n"


class Session:
    """A connection: commands, and everything that comes back."""

    def __init__(self, mc):
        self.client = mc.client()

    def ask(self, command, n):
        """What comes back before the answer to another command."""
        # a wrong command may have swallowed the begin of the next line
        self.client.socket.sendall(command + f"\r\nms mark 1 k O{n}\r\nx\r\n".encode())
        got, mark = [], f"HD kmark O{n}\r\n".encode()
        # a value may be a million empty lines
        for line in self.client.file:
            got.append(line)
            if line == mark:
                return got
        fail(f"memcached closes the connection after {command[:80]}")


def compare(path, count, seed):
    rng = random.Random(seed)
    with Memcached(*OPTIONS, cache=path) as with_it, Memcached(*OPTIONS) as without:
        ours, theirs = Session(with_it), Session(without)
        for n, command in enumerate(commands(rng, count)):
            a, b = ours.ask(command, n), theirs.ask(command, n)
            if a != b:
                differs = [(x[:100], y[:100]) for x, y in itertools.zip_longest(a, b, fillvalue=b"") if x != y]
                fail(f"command {n} of seed {seed}, {command[:80]}: (with, without the library) {differs[:3]}")
            if n == count // 2:  # larger tables
                for i in range(7000):
                    for session in (ours, theirs):
                        session.client.socket.sendall(f"set grow{i} 0 0 4 noreply\r\nabcd\r\n".encode())
                for session in (ours, theirs):
                    until(lambda client=session.client: int(client.stats()["hash_power_level"]) > 12, "the table does not grow")
        for session in (ours, theirs):
            check(session.ask(b"flush_all\r\nmg key0\r\nget key1 key2\r\n", count)[:3] == [b"OK\r\n", b"EN\r\n", b"END\r\n"], "flush_all")
        stats = [s.client.stats() for s in (ours, theirs)]
        for name in COUNTED:
            check(stats[0][name] == stats[1][name], f"{name}: {stats[0][name]}, and {stats[1][name]} without the library")
    ok(f"{count} commands of seed {seed} have the same answers, and the same counters")


def capable(path):
    tool = shutil.which("memccapable", path=os.environ["PATH"] + ":/usr/bin")
    if not tool:
        print("left out: memccapable is not installed")
        return
    with Memcached(*OPTIONS, cache=path) as with_it, Memcached(*OPTIONS) as without:
        # most of the time it sleeps
        runs = [subprocess.Popen([tool, "-h", "127.0.0.1", "-p", str(mc.port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for mc in (with_it, without)]
        printed = [run.communicate(timeout=stock.LIMIT)[0] for run in runs]
    check(printed[0] == printed[1] and printed[0].count("[pass]") > 30, f"memccapable: {printed[0]}\nwithout the library: {printed[1]}")
    ok(f"{printed[0].count('[pass]')} tests of memccapable pass, and {printed[0].count('[FAIL]')} fail, as without")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        compare(os.path.join(directory, "cache"), count, seed)
        capable(os.path.join(directory, "other"))


main()
