# SPDX-License-Identifier: BSD-2-Clause
"""stock.py: for tests with the memcached of the distribution: one with its memory in a cache file, or without; its protocol; the cache file.
MEMCACHED, if it is set, is another one."""
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds until a wait counts as hanging
HEADER, LIVE = 65536, 65536 + 128
PATH = os.environ.get("MEMCACHED") or shutil.which("memcached", path=os.environ["PATH"] + ":/usr/bin")


def fail(words):
    sys.exit(f"FAIL {words}")


def ok(words):
    print("ok  ", words, flush=True)


def check(condition, words):
    if not condition:
        fail(words)


def until(condition, words):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            fail(words)
        time.sleep(0.02)


class CacheFile:
    """The file, as a reader sees it."""

    def __init__(self, path):
        self.path = path

    def read(self, off, size):
        with open(self.path, "rb") as f:
            f.seek(off)
            return f.read(size)

    def header(self):
        names = "magic version header_size file_size base tables_off power_min power_max pages_off pages_size"
        return dict(zip(names.split(), struct.unpack("<QIIQQQIIQQ", self.read(HEADER, 64))))

    def live(self):
        return dict(zip(("generation", "tables", "pid"), struct.unpack("<QQQ", self.read(LIVE, 24))))

    def powers(self):
        """Of the tables in use; 0: the other place of the smallest."""
        tables = self.live()["tables"]
        return [p for p in range(64) if tables >> p & 1]

    def table(self, power):
        """The pointers in a table that are not null."""
        h = self.header()
        off, size = (h["tables_off"] + (8 << power), power) if power else (h["tables_off"], h["power_min"])
        return [p for (p,) in struct.iter_unpack("<Q", self.read(off, 8 << size)) if p]

    def locked(self):
        with open(self.path, "rb") as f:
            lock = fcntl.fcntl(f, fcntl.F_OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
        return struct.unpack("h", lock[:2])[0] != fcntl.F_UNLCK


class Memcached:
    """A memcached with these arguments, on a port that it chooses itself. cache: None for one without. more: of its environment."""

    def __init__(self, *args, cache=None, more=None):
        self.dir = tempfile.mkdtemp()
        self.log = open(os.path.join(self.dir, "log"), "w+b")
        self.port_file = os.path.join(self.dir, "port")
        env = dict(os.environ, MEMCACHED_PORT_FILENAME=self.port_file)
        if cache:
            env |= preloaded(cache)
        env |= more or {}
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen([PATH, "-p", "-1", "-l", "127.0.0.1", *user, *args], env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until(lambda: os.path.exists(self.port_file) or self.process.poll(), "memcached does not listen")
        if not os.path.exists(self.port_file):
            fail(f"memcached has ended with {self.process.returncode}: {self.words()}")
        self.port = int(open(self.port_file).read().split(":")[1].split()[0])

    def words(self):
        with open(self.log.name, "rb") as f:
            return f.read().decode(errors="replace")

    def client(self):
        return Client(self.port)

    def end(self, how=signal.SIGKILL):  # SIGTERM takes it up to a second
        self.process.send_signal(how)
        self.process.wait(LIMIT)
        self.log.close()
        shutil.rmtree(self.dir)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
        else:
            shutil.rmtree(self.dir, ignore_errors=True)


def preloaded(cache):
    return {"LD_PRELOAD": os.environ["LIBREDDN_MEMCACHED"], "REDDN_CACHE_FILE": cache}


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def ask(self, line, value=None):
        """Sends a command; returns the first line of the answer."""
        self.socket.sendall(line.encode() + b"\r\n" + (b"" if value is None else value + b"\r\n"))
        return self.line()

    def line(self):
        return self.file.readline().decode().rstrip("\r\n")

    def set(self, key, value, flags=0, ttl=0, verb="set"):
        return self.ask(f"{verb} {key} {flags} {ttl} {len(value)}", value)

    def values(self, line):
        """{key: value} of a get or gets."""
        found, answer = {}, self.ask(line)
        while answer != "END":
            words = answer.split()
            if words[0] != "VALUE":
                fail(f"{line}: {answer}")
            found[words[1]] = self.file.read(int(words[3]) + 2)[:-2]
            answer = self.line()
        return found

    def get(self, key):
        return self.values(f"get {key}").get(key)

    def stats(self, what=""):
        found, answer = {}, self.ask(f"stats {what}".strip())
        while answer != "END":
            _, name, value = answer.split(" ", 2)
            found[name] = value
            answer = self.line()
        return found
