#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reddn-memcached: proves how memcached has its items, with each hash, a table that has grown, and one that is full; names what
cannot be served. And writes the drop-in of memcached's unit."""
import json
import os
import signal
import subprocess
import sys
import tempfile

import stock
from stock import CacheFile, Memcached, check, ok, until

TOOL = os.environ["REDDN_MEMCACHED"]


def run(status, *args):
    """The JSON that it prints, or its words if it fails."""
    done = subprocess.run([TOOL, *args], capture_output=True, text=True, timeout=stock.LIMIT)
    check(done.returncode == status, f"{args}: exit status {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout + done.stderr


def prove(path, mc, **facts):
    proof = run(0, "check", "-j", "-f", path, "-s", f"127.0.0.1:{mc.port}")
    for name, value in facts.items():
        check(proof[name] == value, f"{name}: {proof}")
    check(mc.client().stats()["curr_items"] == facts.get("items", "0"), "probe keys are left")
    return proof


def refused(words, path, port):
    answer = run(1, "check", "-j", "-f", path, "-s", f"127.0.0.1:{port}")
    check(not answer["served"] and words in answer["why"], f"{words}: {answer}")


def hashes(path):
    for hash_ in ("murmur3", "jenkins", "xxh3"):
        with Memcached("-m", "8", "-o", f"hash_algorithm={hash_}", cache=path) as mc:
            proof = prove(path, mc, hash=hash_, power=16, pid=mc.process.pid, version=mc.client().stats()["version"])
            check(proof["generation"] == CacheFile(path).live()["generation"], "the generation")
            # memory that has been used before
            for _ in range(5):
                prove(path, mc, hash=hash_)
    ok("each hash")


def tables(path):
    with Memcached("-m", "8", "-c", "4096", "-t", "2", "-o", "hashpower=12", cache=path) as mc:
        at = CacheFile(path).header()["tables_off"]
        prove(path, mc, power=12, table_offset=at)
        client = mc.client()
        for i in range(6500):
            client.set(f"key{i}", b"x")
        until(lambda: CacheFile(path).powers() == [13], "the table does not grow")
        run(0, "check", "-f", path, "-s", f"127.0.0.1:{mc.port}")
        proof = run(0, "check", "-j", "-f", path, "-s", f"127.0.0.1:{mc.port}")
        check(proof["power"] == 13 and proof["table_offset"] == at + (8 << 13), f"{proof}")
        check(client.stats()["curr_items"] == "6500", "probe keys are left")
    ok("a table beside the connections, and one that has grown")


def others(path):
    """A file of another memcached; one that has ended; what is no cache file; nobody there."""
    with Memcached("-m", "8", cache=path) as mc, Memcached("-m", "8") as other:
        refused("or another memcached runs with this file", path, other.port)
        mc.end(signal.SIGKILL)
        refused("no memcached runs with this file", path, other.port)
        port = other.port
    check("Connection refused" in run(2, "check", "-f", path, "-s", f"127.0.0.1:{port}"), "nobody listens")
    check("HOST:PORT" in run(2, "check", "-f", path, "-s", "here"), "no port")
    check("No such file" in run(2, "check", "-f", path + ".no", "-s", f"127.0.0.1:{port}"), "no file")
    with open(path + ".text", "w") as f:
        f.write("x" * 100000)
    refused("it is no cache file of memcached", path + ".text", port)
    os.unlink(path + ".text")
    ok("refusals")


def setup(path):
    root = path + ".root"
    unit = root + "/etc/systemd/system/memcached.service.d/reddn.conf"
    check("No such file" in run(2, "setup", "-r", root), "no configuration")
    os.makedirs(root + "/etc")
    data = root + os.environ["REDDN_DATADIR"]
    os.makedirs(data)
    with open(os.environ["DROP_IN"]) as f, open(data + "/memcached.conf", "w") as to:
        text = f.read()
        to.write(text)

    def configure(options):
        with open(root + "/etc/memcached.conf", "w") as conf:
            conf.write("# memcached\n-d\nlogfile /var/log/memcached.log\n-m 100 # MiB\n-l 127.0.0.1\n" + options)

    for options, words in (
        ("-C\n", "-C leaves out"),
        ("-v -e /mnt/x\n", "-e puts"),
        ("-o no_modern\n", "leave no_modern out"),
        ("-v\n-Y /etc/auth\n", "leave -Y out"),
        ("-o hashpower=30\n", "hashpower=30 cannot be served"),
    ):
        configure(options)
        check(words in run(1, "setup", "-r", root), words)
        check(not os.path.exists(unit), "a drop-in although it is refused")
    configure("# -C\n-u memcache\n")
    first = run(0, "setup", "-j", "-r", root)
    check(not first["unchanged"] and first["file"] == "/dev/shm/reddn/memcached.cache" and first["bytes"] > 164 << 20, f"{first}")
    check(open(unit).read() == text, "the drop-in")
    check(run(0, "setup", "-j", "-r", root)["unchanged"], "a second time")
    check("restart memcached.service" in run(0, "setup", "-r", root), "what is next")
    check(run(0, "setup", "-j", "-r", root, "-u", "memcached@a.service")["file"] == "/dev/shm/reddn/memcached@a.cache", "another unit")
    check("is no name of a service" in run(2, "setup", "-r", root, "-u", "../x.service"), "a path")
    check("did you mean" in run(2, "sutup"), "a wrong command")
    ok("the drop-in")


def main():
    if not stock.PATH:
        print("there is no memcached")
        return 77
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        path = os.path.join(memory, "cache")
        for part in (hashes, tables, others, setup):
            part(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
