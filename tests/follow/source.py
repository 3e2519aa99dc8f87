# SPDX-License-Identifier: BSD-2-Clause
"""The distribution's redis-server, followers of it, and what is between them. What is started ends with the test."""
import atexit
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import reddn

FOLLOW = os.environ["REDDN_FOLLOW"]
WITHOUT = os.environ.get("REDDN_FOLLOW_RULES", "")
LIMIT = int(os.environ.get("TEST_LIMIT", "120"))  # seconds of a test that hangs

work = tempfile.mkdtemp()
memory = tempfile.mkdtemp(dir="/dev/shm")
processes = []


def clean():
    for p in processes:
        if p.poll() is None:
            p.kill()
            p.wait()
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(memory, ignore_errors=True)


atexit.register(clean)
signal.signal(signal.SIGTERM, lambda *_: os._exit(clean() or 143))


def check(truth, words):
    if not truth:
        raise AssertionError(words)


def ok(words):
    print("ok  ", words, flush=True)


def until(true, words):
    """Polls; the limit only ends a test that hangs."""
    for _ in range(LIMIT * 20):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError(words() if callable(words) else words)


def start(*args, **more):
    p = subprocess.Popen(args, stdin=subprocess.DEVNULL, **more)
    processes.append(p)
    return p


def refuses(args, status, words, secret=None):
    """The follower ends with this exit status and these words, and without a secret."""
    done = subprocess.run([FOLLOW, *args], capture_output=True, text=True, timeout=LIMIT, check=False)
    check(done.returncode == status and words in done.stderr and not (secret and secret in done.stderr), f"{args}: {done.returncode} {done.stderr}")


class Error(Exception):
    pass


class Client:
    """Commands as calls: client("SET", "k", 1)."""

    def __init__(self, path, db=0):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        if db:
            self("SELECT", db)

    def reply(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            return Error(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        raise Error("the source has gone")

    def many(self, commands):
        """The answers, which may be errors"""
        out = b""
        for words in commands:
            words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
            out += b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)
        self.socket.sendall(out)
        return [self.reply() for _ in commands]

    def __call__(self, *words):
        answer = self.many([words])[0]
        if isinstance(answer, Error):
            raise answer
        return answer


class Commands:
    """An application of libreddn-redis: the program `commands` (commands.c)"""

    error = Error

    def __init__(self, program, socket, database, server, offload, *prefixes, env=None):
        self._lock, self.nic_answers, self.source_answers, self.lost = threading.Lock(), 0, 0, ""
        self._process = subprocess.Popen([program, socket, str(database), *server.rsplit(":", 1), offload, *prefixes], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, *words):
        """The reply; None, too, if there is none: `lost` has the reason."""
        with self._lock:
            words = [str(w).encode() if not isinstance(w, bytes) else w for w in words]
            self._process.stdin.write(b" ".join(w.hex().encode() or b"-" for w in words) + b"\n")
            self._process.stdin.flush()
            nic, of_source, *reply = self._process.stdout.readline().decode().split()
            self.nic_answers, self.source_answers, self.lost = int(nic), int(of_source), ""
        return self._take(reply)

    def _take(self, reply):
        kind, text = reply[0][0], reply.pop(0)[1:]
        if kind == "*":
            return [self._take(reply) for _ in range(int(text))]
        if kind == "-":
            raise self.error(bytes.fromhex(text).decode().removeprefix("ERR "))
        if kind == "!":
            self.lost = bytes.fromhex(text).decode()
        return {"$": bytes.fromhex, ":": int, "+": lambda t: bytes.fromhex(t) == b"OK" or bytes.fromhex(t), "_": lambda t: None, "!": lambda t: None}[kind](text)


class Redis:
    """A server on a Unix socket; with `tcp` also on a port of the loopback."""

    count = 0

    def __init__(self, *options, tcp=False):
        Redis.count += 1
        self.path = os.path.join(work, f"redis{Redis.count}")
        self.port = 0
        if tcp:
            self.port = self.free_port()
        os.mkdir(self.path)
        self.options = options
        self.run()

    @staticmethod
    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def run(self, *options, wait=True):
        self.process = start("redis-server", "--port", str(self.port), "--unixsocket", self.path + "/socket", "--dir", self.path, "--save", "",
                             "--bind", "127.0.0.1", "--enable-debug-command", "yes", *self.options, *options, stdout=subprocess.DEVNULL)
        if wait:
            until(self.answers, "redis-server does not answer")

    def answers(self):
        try:
            return self.client()("PING") == b"PONG"
        except (OSError, Error):
            return False

    def client(self, db=0):
        return Client(self.path + "/socket", db)

    def url(self, db=0, user="", path=None):
        return f"unix://{user}{path or self.path + '/socket'}?db={db}"

    def time(self):
        """us"""
        seconds, us = self.client()("TIME")
        return int(seconds) * 1000000 + int(us)

    def strings(self, db=0, wanted=lambda key: True):
        """What is there when nobody writes"""
        client, keys, cursor = self.client(db), set(), b""
        while cursor != b"0":
            cursor, some = client("SCAN", cursor or 0, "COUNT", 1000, "TYPE", "string")
            keys.update(k for k in some if wanted(k))
        values = zip(keys, client.many([("GET", k) for k in keys]))
        return {k: v for k, v in values if v is not None}

    def kill(self):
        self.process.kill()
        self.process.wait()


EVER = 1 << 62


def had(entries, value, begin, end):
    """Of a key's entries (from, to, value), each of which it became between the two: it had the value at some moment from begin to end."""
    over = EVER
    for became, by, v in reversed(entries[:]):
        if became <= end and v == value and over >= begin:
            return True
        over = min(over, by)
        if over < begin:
            return False
    return False


class Follower:
    count = 0

    def __init__(self, url, *options, table=None, program=FOLLOW, env=None, wait=True):
        Follower.count += 1
        self.path = table or f"{memory}/table{Follower.count}"
        self.lines = []
        self.process = start(*(program if isinstance(program, tuple) else (program,)), "--json", *options, url, self.path, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        if wait:
            self.reaches("following")

    def read(self):
        for line in self.process.stdout:
            self.lines.append({**json.loads(line), "at": time.monotonic()})

    @property
    def last(self):
        return self.lines[-1] if self.lines else {"state": "none", "loads": 0, "complete": False}

    def reaches(self, state, loads=1):
        until(lambda: self.last["state"] == state and self.last["loads"] >= loads or self.process.poll() is not None,
              lambda: f"it is not {state}, but {self.last}")
        check(self.last["state"] == state, f"it has ended, and is not {state}, but {self.last}")

    def table(self):
        with reddn.Table(self.path) as t:
            values = {k: t.get(k) for k in t}  # one may have gone meanwhile
        return {k: v for k, v in values.items() if v is not None}

    def has(self, key, value=None):
        try:
            with reddn.Table(self.path) as t:
                return t.get(key, None) == value if value is not None else key in t
        except OSError:  # it grows at this moment
            return False

    def becomes(self, expected):
        """Keys and values; when nobody writes."""
        got = {}

        def same():
            nonlocal got
            got = self.table()
            return got == expected

        def differences():
            keys = sorted(k for k in got.keys() | expected.keys() if got.get(k) != expected.get(k))
            return f"{len(keys)} keys differ: {[(k[:40], got.get(k, b'absent')[:40], expected.get(k, b'absent')[:40]) for k in keys[:5]]}; {self.last}"

        until(same, differences)

    def equals(self, source, db=0, wanted=lambda key: True, absent=()):
        """When nobody writes."""
        expected = source.strings(db, wanted)
        for key in absent:
            expected.pop(key, None)
        self.becomes(expected)

    def ask(self, key):
        """The as-of before a get of the key, and its value or None. None: the table grows at this moment."""
        try:
            with reddn.Table(self.path) as t:
                return t.stat().as_of, t.get(key, None)
        except OSError:
            return None

    def stat(self):
        with reddn.Table(self.path) as t:
            return t.stat()

    def as_of(self):
        return self.stat().as_of

    def send(self, number):
        self.process.send_signal(number)

    @staticmethod
    def once(source, table):
        """The exit status"""
        return subprocess.run([FOLLOW, "--once", source.url(), table], stderr=subprocess.DEVNULL, timeout=LIMIT).returncode

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            status = self.end()
            check(kind or status == 0, f"it does not end well: {status}")

    def end(self, number=signal.SIGTERM):
        """The exit status"""
        self.send(number)
        self.send(signal.SIGCONT)
        status = self.process.wait(LIMIT)
        self.thread.join(LIMIT)
        return status


class Proxy:
    """Passes bytes on. What a test does in `on_answer`, of bytes to the follower on one of its connections, and in `on_question`, of
    bytes to the source, happens before they arrive; `change` makes others of those to the follower."""

    count = 0

    class Connection:
        def __init__(self, near, far):
            self.near, self.far, self.asked = near, far, bytearray()

        @property
        def invalidates(self):
            return self.asked.find(b"SUBSCRIBE", 0, 4096) >= 0  # among its first commands

    def __init__(self, *sources):
        Proxy.count += 1
        self.path, self.connections = f"{work}/proxy{Proxy.count}", []
        self.sources = itertools.cycle([s.path + "/socket" for s in sources])  # addresses: one connection to each, in turn
        self.on_answer = self.on_question = lambda connection, data: None
        self.change = lambda connection, data: data
        self.passed = bytearray()  # messages of invalidation
        # without sources they are ports, named later
        self.listener = socket.socket(socket.AF_UNIX if sources else socket.AF_INET)
        self.listener.bind(self.path if sources else ("127.0.0.1", 0))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def port(self):
        return self.listener.getsockname()[1]

    def accept(self):
        while True:
            near, far = self.listener.accept()[0], socket.socket(self.listener.family)
            try:
                far.connect(next(self.sources))
            except OSError:
                near.close()
                continue
            c = Proxy.Connection(near, far)
            self.connections.append(c)
            for pump in (self.ask, self.answer):
                threading.Thread(target=pump, args=[c], daemon=True).start()

    def ask(self, c):
        try:
            while data := c.near.recv(65536):
                c.asked += data
                self.on_question(c, data)
                c.far.sendall(data)
        except OSError:
            pass
        self.close(c.far)

    def answer(self, c):
        try:
            while data := c.far.recv(65536):
                self.on_answer(c, data)
                data = self.change(c, data)
                c.near.sendall(data)
                if c.invalidates:
                    self.passed += data
        except OSError:
            pass
        if not getattr(c, "silent", False):
            self.close(c.near)

    @staticmethod
    def close(s):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def cut_silently(self):
        """The source loses the invalidation connection, and the follower does not see it, as when a router has failed."""
        for c in self.connections:
            if c.invalidates:
                c.silent = True
                self.close(c.far)
