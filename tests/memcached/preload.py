#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The distribution's memcached with libreddn-memcached.so: it answers as without, its tables and items are in the cache file, through
growth, restarts and kills; and what cannot be served is refused with words."""
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile

import stock
from stock import CacheFile, Memcached, check, ok, until


def value(i, size=50):
    return (f"{i:08d}".encode() * (size // 8 + 1))[:size]


def fill(client, n, size=50, prefix="key"):
    for i in range(n):
        answer = client.set(f"{prefix}{i}", value(i, size))
        check(answer == "STORED", f"set {prefix}{i}: {answer}")


def present(client, n, size=50, prefix="key"):
    """Values that are there; none may be another one's."""
    count = 0
    for i in range(0, n, 100):
        keys = [f"{prefix}{k}" for k in range(i, min(i + 100, n))]
        for key, found in client.values("get " + " ".join(keys)).items():
            check(found == value(int(key[len(prefix) :]), size), f"get {key}: {found[:40]}")
            count += 1
    return count


def is_in_file(cache, bytes_):
    with open(cache.path, "rb") as f:
        return bytes_ in f.read()


def grows(path):
    """The table doubles; the place of the smaller one is free afterwards."""
    cache = CacheFile(path)
    with Memcached("-m", "8", "-t", "2", "-o", "hashpower=12", cache=path) as mc:
        client = mc.client()
        check(cache.powers() == [12], f"tables {cache.powers()}")
        check(cache.live()["pid"] == mc.process.pid, "the pid in the header")
        fill(client, 6500)
        until(lambda: cache.powers() == [13], f"the table does not grow: {cache.powers()}")
        pointers = cache.table(13)
        header = cache.header()
        low, high = header["base"] + header["pages_off"], header["base"] + header["file_size"]
        check(len(pointers) > 3000 and all(low <= p < high for p in pointers), "pointers do not lead into slab pages")
        check(present(client, 6500) == 6500, "a key is lost")
        check(is_in_file(cache, value(4711)), "no value in the cache file")
    ok("tables and items are in the cache file; the table grows")


def restarts(path):
    """Killed, and started again: the same file. What was there is there until the next one has its table."""
    cache, before = CacheFile(path), os.stat(path)
    args = ("-m", "8", "-t", "2", "-o", "hashpower=12")
    mc = Memcached(*args, cache=path)
    check(os.stat(path).st_ino == before.st_ino, "a restart makes a new file")
    check(mc.client().get("key7") is None, "a key of the memcached before")
    fill(mc.client(), 6500)
    until(lambda: cache.powers() == [13], "the table does not grow")
    generation, pointers = cache.live()["generation"], cache.table(13)
    check(cache.locked(), "no lock")
    mc.end(signal.SIGKILL)
    check(not cache.locked(), "the lock outlives memcached")
    check(cache.table(13) == pointers and cache.live()["generation"] == generation, "a kill changes the cache file")
    # one that does not get to its table changes nothing
    subprocess.run([stock.PATH, "-m", "8", "-t", "2", "-o", "hashpower=12,nonsense"], env=os.environ | stock.preloaded(path), capture_output=True)
    check(cache.table(13) == pointers and cache.live()["generation"] == generation, "one that does not start changes the cache file")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = subprocess.run([stock.PATH, "-p", str(taken.getsockname()[1]), "-l", "127.0.0.1", "-u", "root", *args], env=os.environ | stock.preloaded(path), capture_output=True, text=True)
        check("Address already in use" in run.stderr, f"a port that another program has: {run.stderr}")
    check(cache.table(13) == pointers and cache.live()["generation"] == generation, "one that does not get its port changes the cache file")
    with Memcached(*args, cache=path) as mc:
        check(os.stat(path).st_ino == before.st_ino, "a restart makes a new file")
        check(cache.live()["generation"] > generation and cache.powers() == [12], "no new generation")
        check(cache.table(12) == [] and cache.table(13) == [], "a table has items of the memcached before")
        check(mc.client().get("key7") is None, "a key of the memcached before")
        fill(mc.client(), 100)
        check(present(mc.client(), 100) == 100, "a key is lost")
        # another one cannot have the same cache file
        refused(path, "is locked: by another memcached, which runs")
    with Memcached("-m", "9", cache=path) as mc:
        check(os.stat(path).st_ino != before.st_ino, "another layout in the same file")
        check(mc.client().set("a", b"b") == "STORED", "no set")
    ok("after a kill the cache file stays; the next memcached begins it anew")


def fills_up(path):
    """A limit that is raised beyond the cache file: memcached has no memory then, and goes on."""
    with Memcached("-m", "2", "-t", "2", "-o", "hashpower=12", cache=path) as mc:
        client = mc.client()
        check(client.ask("cache_memlimit 1000") == "OK", "cache_memlimit")
        answers = {client.set(f"big{i}", value(i, 400000)) for i in range(250)}
        check("STORED" in answers and all(a == "STORED" or a.startswith("SERVER_ERROR out of memory") for a in answers), f"{answers}")
        count = present(client, 250, 400000, "big")
        check(10 < count < 200, f"{count} of 250 items in a cache file of 66 pages")
        check(client.set("big3", value(3, 400000)) == "STORED" and client.get("big3") == value(3, 400000), "it does not go on")
        check(client.set("small", b"s").startswith("SERVER_ERROR out of memory"), "a page from elsewhere")
    ok("a full cache file")


def other_allocations(path):
    """The array of connections has as many elements as the table; all pages at once; a daemon that has left its parent."""
    cache = CacheFile(path)
    with Memcached("-m", "8", "-c", "4096", "-t", "2", "-o", "hashpower=12", cache=path) as mc:
        check(cache.powers() == [0], f"tables {cache.powers()}")
        fill(mc.client(), 6500)
        until(lambda: cache.powers() == [13], f"the table does not grow: {cache.powers()}")
        check(present(mc.client(), 6500) == 6500, "a key is lost")
    with Memcached("-m", "64", "-L", cache=path) as mc:
        fill(mc.client(), 1000)
        check(present(mc.client(), 1000) == 1000 and len(cache.table(16)) > 900, "items are elsewhere")
    with Memcached("-m", "8", "-d", cache=path) as mc:
        mc.process.wait(stock.LIMIT)
        pid = cache.live()["pid"]
        check(pid != mc.process.pid and str(pid) == mc.client().stats()["pid"] and cache.locked(), "the pid of a daemon")
        os.kill(pid, signal.SIGTERM)
        until(lambda: not cache.locked(), "the daemon does not end")
    ok("-c 4096, -L, -d")


def behind_another(path):
    """Another library is in front of bind(2): what a memcached held is over nevertheless when the next one has its port."""
    cache, libraries = CacheFile(path), {"LD_PRELOAD": os.environ["IN_FRONT"] + ":" + os.environ["LIBREDDN_MEMCACHED"]}
    for more in (libraries, libraries | {"PAST_BIND": "1"}):
        with Memcached("-m", "8", "-t", "2", "-o", "hashpower=12", cache=path) as mc:
            fill(mc.client(), 10)
        before = cache.live()
        with Memcached("-m", "8", "-t", "2", "-o", "hashpower=12", cache=path, more=more) as mc:
            check(mc.client().ask("flush_all") == "OK", "flush_all")
            live = cache.live()
            check(live["generation"] > before["generation"] and live["pid"] == mc.process.pid, f"items of the memcached before are not over: {more}")
            check(not any(cache.table(p) for p in cache.powers()), "a table has items of the memcached before")
    ok("another library in front of bind(2)")


def refused(path, words, *args, env=None, limit=()):
    start = (lambda: resource.setrlimit(*limit)) if limit else None
    run = subprocess.run([stock.PATH, *args], env=os.environ | stock.preloaded(path) | (env or {}), capture_output=True, text=True, timeout=stock.LIMIT, preexec_fn=start)
    check(run.returncode == os.EX_CONFIG and words in run.stderr, f"{args}: {run.returncode}, {run.stderr}")
    check(run.stderr.startswith("libreddn-memcached: memcached does not start: ") and run.stderr.count("\n") == 1, run.stderr)


def refusals(path):
    refused(path, "leave -e out", "-e", "/nowhere")
    refused(path, "leave -C out", "-C")
    refused(path, "leave no_modern out", "-o", "no_modern")
    refused(path, f"{os.environ['ALLOCATOR']}, which has calloc() too, is preloaded in front", env={"LD_PRELOAD": os.environ["ALLOCATOR"] + ":" + os.environ["LIBREDDN_MEMCACHED"]})
    fresh = path + ".fresh"
    refused(fresh, "cannot be mapped", "-m", "1000", limit=(resource.RLIMIT_AS, (1 << 29, 1 << 29)))
    check(not os.path.exists(fresh), "a cache file that cannot be mapped stays")
    refused(fresh, "memcached may make files of 1048576 (ulimit -f, LimitFSIZE=)", limit=(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    check(os.stat(fresh).st_size == 0, "a cache file that is too long stays")
    refused(path, "hashpower=30: from 12 to 27", "-o", "hashpower=30")
    refused(path, "-m 0: from 1 to", "-m", "0")
    refused(path, "REDDN_CACHE_FILE is not set", env={"REDDN_CACHE_FILE": ""})
    refused(path, "REDDN_CACHE_FILE is not set", env={"REDDN_CACHE_FILE": "cache"})
    refused(path, "cannot be opened: No such file", env={"REDDN_CACHE_FILE": path + "/x/y"} | {"REDDN_CACHE_FILE": "/nowhere/cache"})
    with open(path + ".text", "w") as f:
        f.write("not a cache file")
    refused(path, "is no cache file of memcached; remove it", env={"REDDN_CACHE_FILE": path + ".text"})
    os.unlink(path + ".text")
    # what serves nothing is not concerned, nor are other programs
    before = os.stat(path)
    version = subprocess.run([stock.PATH, "-V"], env=os.environ | stock.preloaded(path), capture_output=True, text=True, check=True)
    other = subprocess.run(["perl", "-e", "print 'x' x (1 << 20)"], env=os.environ | stock.preloaded(path), capture_output=True, check=True)
    check("memcached 1." in version.stdout and len(other.stdout) == 1 << 20, "memcached -V, perl")
    check(os.stat(path).st_ino == before.st_ino and os.stat(path).st_mtime_ns == before.st_mtime_ns, "the cache file has changed")
    ok("refusals")


def transcript(port):
    """Everything that an item can go through, and what memcached answers."""
    client, answers = stock.Client(port), []

    def ask(line, data=None, lines=1):
        answers.append((line, [client.ask(line, data)] + [client.line() for _ in range(lines - 1)]))

    for i in range(50):
        ask(f"set k{i} {i} 0 {i}", b"x" * i)
    ask("add k1 0 0 1", b"y")
    ask("add new 7 0 1", b"y")
    ask("replace none 0 0 1", b"y")
    ask("replace k2 9 0 3", b"abc")
    ask("append k2 0 0 2", b"de")
    ask("prepend k2 0 0 2", b"zz")
    ask("gets k2", lines=3)
    ask("cas k2 1 0 1 1", b"n")
    ask("cas k2 1 0 1 %s" % answers[-2][1][0].split()[4], b"n")
    ask("set n 0 0 1", b"9")
    for i in range(3):
        ask("incr n 18446744073709551610")
        ask(f"decr n {i}")
    ask("gets n", lines=3)
    ask("touch n 100")
    ask("gat 200 n", lines=3)
    ask("delete n")
    ask("get n")
    ask("ms m T0 F5 3", b"meta"[:3])
    ask("mg m s v f c t", lines=2)
    ask("md m q")
    ask("mn")
    ask("set large 0 0 700000", b"l" * 700000)
    ask("get large", lines=3)
    ask("set larger 0 0 2000000", b"l" * 2000000)
    client = stock.Client(port)
    ask("get larger")
    ask("flush_all")
    ask("get k3")
    return [(line, [a if len(a) < 100 else hash(a) for a in found]) for line, found in answers]


def answers_the_same(path):
    with Memcached("-m", "16") as without, Memcached("-m", "16", cache=path) as preloaded:
        one, other = transcript(without.port), transcript(preloaded.port)
        for a, b in zip(one, other):
            check(a == b, f"without the library {a}, with it {b}")
    ok(f"{len(one)} commands have the answers that they have without the library")


def main():
    if not stock.PATH:
        print("there is no memcached")
        return 77
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        path = os.path.join(memory, "cache")
        for part in (grows, restarts, fills_up, other_allocations, behind_another, refusals, answers_the_same):
            part(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
