# SPDX-License-Identifier: BSD-2-Clause
"""python-client.py HOST:PORT: asks the offloads of python.sh. FAILED in the environment: words of a step that failed."""
import asyncio
import contextlib
import copy
import errno
import os
import pickle
import signal
import sys
import threading
import time
import unittest
import unittest.mock

import reddn

SERVER = sys.argv.pop()
KEYS = [f"user {i}" for i in range(300)]


def connect(offload, **options):
    return reddn.connect(SERVER, offload, timeout=60, **options)


class Gets(unittest.TestCase):
    def test_get(self):
        with connect("users") as c:
            self.assertTrue(c.is_table)
            self.assertEqual(c.get("user 7"), b"value 7")
            self.assertEqual(c.get(b"user 299"), b"value 299")
            self.assertIsNone(c.get("absent"))
            for wrong in (5, True, None, [1, 2]):
                with self.assertRaisesRegex(TypeError, "str or bytes"):
                    c.get(wrong)
                with self.assertRaisesRegex(TypeError, "str or bytes"):
                    c.mget(["user 7", wrong])
            self.assertEqual(c.get(bytearray(b"user 8")), b"value 8")
            with self.assertRaises(OSError):
                c.get("k" * 51)
        with self.assertRaisesRegex(ValueError, "closed"):
            c.get("user 7")

    def test_mget(self):
        with connect("users", depth=8) as c:
            self.assertEqual(c.depth, 8)
            self.assertEqual(c.mget(["absent", *KEYS, "absent"]), [None, *(f"value {i}".encode() for i in range(300)), None])
            self.assertEqual(c.mget([]), [])
            with self.assertRaises(OSError):
                c.mget([*KEYS[:20], "k" * 51])
            self.assertEqual(c.get("user 1"), b"value 1")

    def test_timeout(self):
        real_lib, real = reddn._connection.lib, reddn._connection.lib.reddn_wait
        with connect("users") as c, unittest.mock.patch.object(reddn._connection, "lib", wraps=real_lib) as lib:
            lib.reddn_wait = lambda *_: 0
            c._timeout = 0.05
            with self.assertRaises(TimeoutError):
                c.mget(KEYS)
            c._timeout = 60
            lib.reddn_wait = real
            self.assertEqual(c.get("user 7"), b"value 7")
        with connect("users", reconnect=False) as c, unittest.mock.patch.object(reddn._connection, "lib", wraps=real_lib) as lib:
            lib.reddn_wait = lambda *_: 0
            c._timeout = 0.05
            with self.assertRaises(TimeoutError):
                c.mget(KEYS)
            with self.assertRaisesRegex(ValueError, "closed"):
                c.get("user 7")

    def test_timeouts(self):
        for timeout in (0, -5, float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "more than 0"):
                reddn.connect(SERVER, "users", timeout=timeout)

    def test_interrupted(self):
        """A signal ends a call at once, and its late answer is none of the next call."""

        def interrupt(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        with connect("users") as c, connect("ticket") as ticket, connect("entries") as entries:
            ticket.arguments
            log = reddn.Log(entries, start=None)
            self.assertIsNone(log.read())
            real = reddn._connection.lib
            for call in (lambda: c.get("user 1"), lambda: c.mget(KEYS), lambda: ticket.call(at=40, limit=0), log.read):
                with unittest.mock.patch.object(reddn._connection, "lib", wraps=real) as lib:
                    lib.reddn_wait = lambda handle, results, n, ms: time.sleep(ms / 1000) or 0  # no answer comes, as in C
                    signal.setitimer(signal.ITIMER_REAL, 0.05)
                    with self.assertRaises(KeyboardInterrupt):
                        call()
                self.assertEqual(c.get("user 2"), b"value 2")
                self.assertEqual(c.mget(KEYS), [f"value {i}".encode() for i in range(300)])
                self.assertEqual(ticket.call(at=40, limit=0)["next"], 0)
                self.assertIsNone(log.read())

    def test_in_use(self):
        """A handler of a signal does not take the results of the call that it interrupts."""
        real, refused = reddn._connection.lib, []
        with connect("users") as c:
            for use in (lambda: c.get("user 2"), lambda: c.mget(KEYS), lambda: c.fields, c.close):

                def handle(*_, use=use):
                    with self.assertRaisesRegex(RuntimeError, "in use"):
                        use()
                    refused.append(use)

                signal.signal(signal.SIGALRM, handle)
                with unittest.mock.patch.object(reddn._connection, "lib", wraps=real) as lib:
                    lib.reddn_wait = lambda *arguments: signal.raise_signal(signal.SIGALRM) or real.reddn_wait(*arguments)
                    self.assertEqual(c.mget(["user 1"] * 20), [b"value 1"] * 20)
                self.assertIn(use, refused)
            self.assertRaises(RuntimeError, lambda: c.mget(key for key in KEYS if c.get(key)))
            self.assertEqual(c.get("user 1"), b"value 1")

    def test_interrupted_connect(self):
        closed, began, go, real = threading.Event(), threading.Event(), threading.Event(), reddn._connection.lib

        def interrupt(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

        def late(*arguments):
            began.set()
            # again and again: one that comes right before the main thread waits wakes nobody
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.01)
            go.wait(60)
            return real.reddn_connect(*arguments)

        def close(handle):
            real.reddn_close(handle)
            closed.set()

        signal.signal(signal.SIGALRM, interrupt)
        with unittest.mock.patch.object(reddn._connection, "lib", wraps=real) as lib:
            lib.reddn_connect, lib.reddn_close = late, close
            with self.assertRaises(KeyboardInterrupt):
                connect("users")
            go.set()
            self.assertTrue(began.is_set() and closed.wait(60))

    def test_interrupted_question(self):
        """It ends by itself, and then the connection, which nobody can use meanwhile."""
        real = reddn._connection.lib

        def interrupt(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        for name, use in (("reddn_describe", lambda c: c.arguments), ("reddn_describe", lambda c: c.call(at=40, limit=0)), ("reddn_end_reason", lambda c: c.end_reason())):
            go, asked, closed = threading.Event(), threading.Event(), threading.Event()

            def late(handle, name=name, go=go, asked=asked):
                # again and again: one that comes right before the main thread waits wakes nobody
                signal.setitimer(signal.ITIMER_REAL, 0.001, 0.01)
                go.wait(60)
                asked.set()
                return getattr(real, name)(handle)

            def close(handle, closed=closed, asked=asked):
                real.reddn_close(handle)
                if asked.is_set():
                    closed.set()

            with unittest.mock.patch.object(reddn._connection, "lib", wraps=real) as lib:
                c = connect("ticket")
                setattr(lib, name, late)
                lib.reddn_close = close
                self.assertRaises(KeyboardInterrupt, use, c)
                self.assertRaisesRegex(ValueError, "closed", use, c)
                c.close()
                self.assertFalse(asked.is_set())
                go.set()
                self.assertTrue(closed.wait(60))

    def test_fork(self):
        """Whatever a child does, the session is the parent's."""
        with connect("users") as c:
            for use in (lambda: sys.exit(0), c.close, c.__exit__, lambda: c.get("user 1")):
                if (child := os.fork()) == 0:
                    try:
                        use(None, None, None) if use == c.__exit__ else use()
                    except ValueError as error:
                        os._exit(0 if "child" in str(error) else 2)
                    except SystemExit:
                        del c
                    os._exit(0)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                self.assertEqual(c.get("user 7"), b"value 7")

    def test_copy(self):
        with connect("users") as c:
            for wrong in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "Connection"):
                    wrong(c)
            with self.assertRaisesRegex(ValueError, "closed"):
                reddn.Connection.__new__(reddn.Connection).get("user 7")

    def test_hosts(self):
        for host in ("", ":1", "a:", "a:0", "a:65536", "a:7_471", "a: 7", "a:+7", "a:\u0667", "[::1", "[]:1", "[::1]x", "a:1\n", "a,,b", "a,b:0"):
            with self.assertRaisesRegex(OSError, "is no host, nor HOST:PORT"):
                reddn.connect(host, "users")
        for wrong in ({"port": 65536}, {"port": -1}, {"depth": 65536}, {"connections": -1}):
            with self.assertRaisesRegex(ValueError, "from 0 to 65535"):
                reddn.connect("a", "users", **wrong)
        with self.assertRaisesRegex(ValueError, "one of first, spread"):
            reddn.connect("a", "users", policy="any")
        with reddn.connect(f"256.1.1.1,{SERVER}", "users", policy="spread", timeout=60) as c:
            self.assertEqual(sorted((h.name == "256.1.1.1", h.state, h.sessions) for h in c.hosts), [(False, "in use", 1), (True, "none", 0)])
            c.get("user 7")
            self.assertTrue([h for h in c.hosts if h.state == "in use" and h.sent])
        with self.assertRaisesRegex(OSError, "interface"):
            reddn.connect("fe80::1", "users")

    def test_names(self):
        for host, offload, file in ((f"{SERVER}\0x", "users", None), (SERVER, "users\0x", None), (SERVER, "users", "/dev/null\0x")):
            with self.assertRaisesRegex(ValueError, "zero byte"):
                reddn.connect(host, offload, token_file=file)

    def test_several(self):
        with connect("parts", depth=4) as c, unittest.mock.patch.object(reddn._connection, "lib", wraps=reddn._connection.lib) as lib:
            self.assertEqual(c.mget(["absent", *KEYS]), [None, *(f"value {i}".encode() for i in range(300))])
            self.assertGreater(lib.reddn_mget_submit.call_count, 70)
            self.assertEqual(c.get("user 7"), b"value 7")

    def test_exists(self):
        there = [*KEYS, "absent", KEYS[0], "nobody", KEYS[0]]
        with connect("parts", depth=4) as c, unittest.mock.patch.object(reddn._connection, "lib", wraps=reddn._connection.lib) as lib:
            self.assertEqual(c.exists_many(there), [*[True] * 300, False, True, False, True])
            self.assertEqual(c.exists_many([]), [])
            self.assertEqual(c.first_missing(there), 300)
            self.assertEqual(c.first_missing(KEYS), 300)
            self.assertEqual(c.first_missing(["user 1", "k" * 51, "user 2"]), 1)
            self.assertEqual((c.first_missing([]), c.first_missing(["nobody"])), (0, 0))
            lib.reddn_exists_submit.reset_mock()
            self.assertEqual(c.first_missing(iter(["nobody", *KEYS])), 0)
            # those that were under way, of nearly forty
            self.assertLess(lib.reddn_exists_submit.call_count, 16)
            with self.assertRaises(OSError):
                c.exists_many(["user 1", "k" * 51])
            with self.assertRaises(OSError):
                c.exists_many(["user 1", ""])
            with self.assertRaisesRegex(TypeError, "str or bytes"):
                c.first_missing(["user 7", 7])
            self.assertEqual(c.get("user 7"), b"value 7")
        with connect("users") as c, self.assertRaisesRegex(OSError, "no part for questions which keys exist"):
            c.exists_many(["user 1"])
        with connect("parts.exists8") as c:
            self.assertEqual(c.exists_many(["user 1", "nobody"]), [True, False])
            self.assertFalse(c.is_table)
            with self.assertRaises(OSError):
                c.get("user 7")

    def test_into(self):
        pool = bytearray(20 * 64)
        places = [memoryview(pool)[i * 64 : i * 64 + 50] for i in range(20)]
        with connect("into", depth=4, into=True) as c:
            with self.assertRaisesRegex(OSError, "Bad address"):
                c.get_into("user 7", places[0])
            c.register(pool)
            self.assertEqual(c.get_into("user 7", places[1]), len(b"value 7"))
            self.assertEqual(bytes(pool[64:71]), b"value 7")
            self.assertIsNone(c.get_into("absent", places[0]))
            keys = [*KEYS[10:29], "absent"]
            lengths = c.mget_into(keys, places)
            self.assertEqual([bytes(places[i][:n]) for i, n in enumerate(lengths[:-1])], [f"value {i}".encode() for i in range(10, 29)])
            self.assertIsNone(lengths[-1])
            self.assertEqual([pool[i * 64 + 50 : i * 64 + 64] for i in range(20)], [bytes(14)] * 20)
            with self.assertRaises(OSError) as caught:
                c.get_into("user 7", places[0][:6])
            self.assertEqual(caught.exception.errno, errno.EMSGSIZE)
            for wrong in (b"user 7", memoryview(b"abc")):
                with self.assertRaises((BufferError, TypeError)):
                    c.get_into("user 7", wrong)
            with self.assertRaisesRegex(ValueError, "2 keys, and 1 places"):
                c.mget_into(["user 7", "user 8"], places[:1])
            with self.assertRaises(OSError):
                c.get("user 7")
            self.assertEqual(c.get_into("user 8", places[0]), 7)
            c.unregister(pool)
            twice = bytearray(64)
            c.register(twice)
            c.register(twice)
            c.unregister(twice)
            with self.assertRaises(BufferError):
                twice.extend(b"more")
            c.unregister(twice)
            twice.extend(b"more")
            with self.assertRaises(OSError):
                c.get_into("user 7", places[0])
        for options, offload in (({"into": True}, "users"), ({}, "into")):
            with self.assertRaisesRegex(OSError, "REDDN_INTO"):
                connect(offload, **options)

    def test_connections(self):
        with connect("users", connections=4, depth=8) as c:
            self.assertEqual(c.mget(KEYS), [f"value {i}".encode() for i in range(300)])

    def test_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "nothing"):
            connect("nothing")
        with connect("ticket") as c, self.assertRaises(OSError):
            c.get("key")


class Calls(unittest.TestCase):
    def test_names(self):
        with connect("ticket") as c:
            self.assertEqual(c.arguments, [("at", "offset", 1), ("limit", "number", 7)])
            self.assertEqual(c.fields, [("sold", "be", 0, 1), ("next", "le", 8, 8)])
            self.assertEqual(c.call(limit=2, at=8), {"sold": 1, "next": 0})
            self.assertEqual([c.call(at=8, limit=2)["sold"] for _ in range(3)], [1, 0, 0])

    def test_bytes(self):
        with connect("same") as c:
            self.assertEqual(c.call(at=1, key="!\"#$%&'()*+,-./0"), {"equal": 1, "seen": b"!\"#$%&'()*+,-./0"})
            self.assertEqual(c.call(at=1, key=b"short")["equal"], 0)

    def test_short(self):
        """The answer of another session, which has less than the description of this one"""
        with connect("ticket") as c:
            c._fields = [*c.fields, reddn.Field("more", "bytes", 8, 65536)]
            with self.assertRaises(OSError) as short:
                c.call(at=0, limit=0)
            self.assertEqual(short.exception.errno, errno.EPROTO)

    def test_wrong(self):
        with connect("ticket") as c:
            for arguments, words in (({"at": 8}, "'limit' is missing"), ({"at": 8, "limt": 1, "limit": 1}, "no argument 'limt'")):
                with self.assertRaisesRegex(TypeError, words):
                    c.call(**arguments)
            for at in (256, -1, "8"):
                with self.assertRaisesRegex(ValueError, "a number of 1 bytes"):
                    c.call(at=at, limit=1)
        with connect("same") as c:
            self.assertEqual(c.depth, 8)
            with self.assertRaisesRegex(TypeError, "str or bytes"):
                c.call(at=0, key=[1, 2])
            for key in (b"k" * 17, 5):
                with self.assertRaisesRegex(ValueError, "at most 16"):
                    c.call(at=0, key=key)

    def test_lost(self):
        with connect("ticket") as c:
            with self.assertRaisesRegex(OSError, os.environ["FAILED"]):
                c.call(at=200, limit=1)
            self.assertEqual(c.end_reason(), reddn.End.FAILED)
            self.assertEqual(c.call(at=0, limit=0)["sold"], 0)
            self.assertEqual(c.reconnects, 1)
        with connect("ticket", reconnect=False) as c:
            for at in (200, 0):
                with self.assertRaisesRegex(OSError, os.environ["FAILED"]):
                    c.call(at=at, limit=1)


class Logs(unittest.TestCase):
    def test_log(self):
        with connect("events") as events, connect("entries") as entries:
            late = reddn.Log(entries, start=None)
            self.assertIsNone(late.read())
            first = events.append("one")
            self.assertEqual([events.append(b""), events.append(b"\0" * 248)], [first + 1, first + 2])
            log = reddn.Log(entries, start=first)
            self.assertEqual([log.read(), log.read(60), log.read()], [(first, b"one"), (first + 1, b""), (first + 2, b"\0" * 248)])
            self.assertEqual((log.read(0.1), log.next, log.lost, log.skipped), (None, first + 3, 0, 0))
            events.append("two")
            self.assertEqual(next(iter(log)).value, b"two")
            self.assertEqual(late.read(), (first, b"one"))
            with self.assertRaises(OSError) as too_long:
                events.append("x" * 249)
            self.assertEqual(too_long.exception.errno, errno.EMSGSIZE)
            for other in (lambda: entries.append("x"), reddn.Log(events).read):
                self.assertRaises(OSError, other)
            self.assertIsNone(reddn.Log(entries, start=log.next).read(float("nan")))
            with self.assertRaisesRegex(OSError, "fewer entries"):
                reddn.Log(entries, start=2**40).read(float("inf"))
            for patience in (0, 1e10, float("nan")):
                self.assertRaises(ValueError, lambda: reddn.Log(entries, patience=patience))
            self.assertRaises(OverflowError, lambda: reddn.Log(entries, start=-1))


class Words(unittest.TestCase):
    def test_words(self):
        with connect("swaps") as swaps, connect("adds") as adds:
            self.assertEqual([swaps.cas(3, 0, 2**64 - 1), swaps.cas(3, 0, 5), swaps.cas(3, 2**64 - 1, 7)], [0, 2**64 - 1, 2**64 - 1])
            self.assertEqual([adds.faa(3, 5), adds.faa(3, -2), adds.faa(3, 0)], [7, 12, 10])
            for other in (lambda: adds.cas(3, 0, 1), lambda: swaps.faa(3, 1), lambda: swaps.cas(8192, 0, 1)):
                self.assertRaises(OSError, other)
            self.assertRaises(OverflowError, lambda: swaps.cas(3, -1, 0))

    def test_lock(self):
        with connect("swaps") as one, connect("swaps") as two:
            with reddn.Lock(one, 0, lease=60) as lock:
                token = lock.token
                lock.renew()
                other = reddn.Lock(two, 0, lease=0.1)
                self.assertFalse(other.acquire(timeout=0))
                self.assertEqual(other.token, 0)
                self.assertRaises(PermissionError, other.release)
            self.assertTrue(other.acquire(timeout=0))
            self.assertEqual(other.token, token + 1)
            with self.assertRaises(OSError) as twice:
                other.acquire()
            self.assertEqual(twice.exception.errno, errno.EDEADLK)
            last = reddn.Lock(one, 0, lease=0.1)
            self.assertTrue(last.acquire(timeout=60))  # it is not renewed
            with self.assertRaisesRegex(PermissionError, "another client has taken it"):
                other.renew()
            last.release()
            self.assertRaises(ValueError, reddn.Lock, one, 0, lease=0)

    def test_surprises(self):
        """A server whose word is another one each time"""
        with connect("swaps") as c, unittest.mock.patch.object(reddn._lock.LockWord, "_learn", return_value=2):
            lock = reddn.Lock(c, 7, lease=60)
            self.assertFalse(lock.acquire(timeout=0))
            self.assertFalse(lock.acquire(timeout=0.01))
            lock._lock.token = 1
            c._timeout = 0.5
            self.assertRaises(TimeoutError, lock.renew)
            self.assertRaises(TimeoutError, lock.release)


class Loop(unittest.IsolatedAsyncioTestCase):
    async def test_many(self):
        async with await reddn.aio.connect(SERVER, "users", timeout=60, depth=4) as c:
            got = await asyncio.gather(*(c.get(key) for key in [*KEYS, "absent"]))
            self.assertEqual(got, [*(f"value {i}".encode() for i in range(300)), None])
            dropped = asyncio.create_task(c.get("user 1"))
            await asyncio.sleep(0)
            dropped.cancel()
            self.assertEqual(await c.get("user 2"), b"value 2")

    async def test_exists(self):
        there = [*KEYS, "absent", KEYS[0]]
        async with await reddn.aio.connect(SERVER, "parts", timeout=60, depth=4) as c:
            got = await asyncio.gather(*(c.exists_many(there) for _ in range(5)), c.first_missing(there), c.first_missing(KEYS))
            self.assertEqual(got, [[*[True] * 300, False, True]] * 5 + [300, 300])
            self.assertEqual((await c.exists_many([]), await c.first_missing([]), await c.first_missing(["user 1", "k" * 51])), ([], 0, 1))
            dropped = asyncio.create_task(c.exists_many(there))
            await asyncio.sleep(0)
            dropped.cancel()
            self.assertEqual(await c.exists_many(["user 2", "user 2", "absent"]), [True, True, False])
            with self.assertRaises(OSError):
                await c.exists_many(["k" * 51])

    async def test_fork(self):
        async with await reddn.aio.connect(SERVER, "users", timeout=60) as c:
            if (child := os.fork()) == 0:
                c.close()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(await c.get("user 7"), b"value 7")
            with self.assertRaisesRegex(TypeError, "AsyncConnection"):
                copy.copy(c)

    async def test_call(self):
        async with await reddn.aio.connect(SERVER, "ticket", timeout=60) as c:
            got = await asyncio.gather(*(c.call(at=24, limit=5) for _ in range(20)))
            self.assertEqual([r["next"] for r in got if r["sold"]], [0, 1, 2, 3, 4])
            with self.assertRaises(BlockingIOError):
                await c.call(at=200, limit=1)
            self.assertEqual((await c.call(at=0, limit=0))["sold"], 0)
            self.assertEqual(c._inner.reconnects, 1)

    async def test_log(self):
        async with await reddn.aio.connect(SERVER, "events", timeout=60, depth=4) as c, await reddn.aio.connect(SERVER, "entries", timeout=60) as entries:
            late = reddn.aio.Log(entries, start=None)
            self.assertIsNone(await late.read())
            numbers = await asyncio.gather(*(c.append(f"value {i}") for i in range(20)))
            appended = sorted(zip(numbers, (b"value %d" % i for i in range(20))))
            log = reddn.aio.Log(entries, start=min(numbers))
            self.assertEqual([await log.read() for _ in numbers], appended)
            self.assertIsNone(await log.read(0.01))
            waiting = asyncio.create_task(log.read(-1))
            await asyncio.sleep(0)
            number = await c.append("later")
            self.assertEqual(await waiting, (number, b"later"))
            async for entry in late:
                self.assertEqual(entry, appended[0])
                break
            # one that is cancelled when its answer is there has read nothing
            cancelled = asyncio.create_task(late.read(60))
            with unittest.mock.patch.object(entries, "_finish", side_effect=lambda result: reddn.aio.AsyncConnection._finish(entries, result) or cancelled.cancel()):
                with self.assertRaises(asyncio.CancelledError):
                    await cancelled
            # one that several tasks use has each entry once
            self.assertEqual(sorted(await asyncio.gather(*(late.read(60) for _ in numbers[1:]))), appended[1:])
            with self.assertRaisesRegex(OSError, "fewer entries"):
                await reddn.aio.Log(entries, start=2**40).read(60)

    async def test_words(self):
        async with await reddn.aio.connect(SERVER, "adds", timeout=60, depth=4) as c:
            self.assertEqual(sorted(await asyncio.gather(*(c.faa(5, 1) for _ in range(20)))), list(range(20)))
        async with await reddn.aio.connect(SERVER, "swaps", timeout=60) as c:
            self.assertEqual((await c.cas(5, 20, 0), await c.cas(5, 20, 0)), (20, 0))
            held = 0

            async def hold():
                nonlocal held
                async with reddn.aio.Lock(c, 6, lease=60) as lock:
                    self.assertEqual(held, 0)
                    held = lock.token
                    self.assertFalse(await reddn.aio.Lock(c, 6, lease=60).acquire(timeout=0.001))
                    await lock.renew()
                    held = 0
                    return lock.token

            self.assertEqual(sorted(await asyncio.gather(*(hold() for _ in range(5)))), [1, 2, 3, 4, 5])

    async def test_surprises(self):
        async with await reddn.aio.connect(SERVER, "swaps", timeout=60) as c:
            with unittest.mock.patch.object(reddn._lock.LockWord, "_learn", return_value=2):
                self.assertFalse(await reddn.aio.Lock(c, 7, lease=60).acquire(timeout=0))

    async def test_short(self):
        async with await reddn.aio.connect(SERVER, "ticket", timeout=60) as c:
            await c.call(at=0, limit=0)
            c._inner._fields.append(reddn.Field("more", "bytes", 8, 65536))
            with self.assertRaisesRegex(OSError, "no 'more'"):
                await c.call(at=0, limit=0)

    @contextlib.asynccontextmanager
    async def lose(self, c, go):
        """A call that is lost; the server is asked why not before go is set."""
        real, began, in_time = reddn._connection.lib.reddn_end_reason, asyncio.Event(), []
        loop = asyncio.get_running_loop()

        def ask(handle):
            loop.call_soon_threadsafe(began.set)
            in_time.append(go.wait(60))
            return real(handle)

        await c.call(at=0, limit=0)
        with unittest.mock.patch.object(reddn._connection, "lib", wraps=reddn._connection.lib) as lib:
            lib.reddn_end_reason = ask
            calls = [asyncio.create_task(c.call(at=at, limit=1)) for at in (200, 0)]
            await began.wait()
            calls.append(asyncio.create_task(c.call(at=0, limit=1)))
            yield calls
            self.assertEqual(in_time, [True], "the loop stood still")

    async def test_lost(self):
        go = threading.Event()
        async with await reddn.aio.connect(SERVER, "ticket", timeout=60, reconnect=False) as c:
            async with self.lose(c, go) as calls:
                go.set()
                errors = await asyncio.gather(*calls, return_exceptions=True)
            # all have the words of the library, with those of the server unless it is later than the library waits for
            self.assertEqual({str(e) for e in errors}, {f"[Errno {errors[0].errno}] {c._inner._words()}"})

    async def test_closed_when_lost(self):
        go = threading.Event()
        c = await reddn.aio.connect(SERVER, "ticket", timeout=60, reconnect=False)
        async with self.lose(c, go) as calls:
            c.close()
            go.set()
            for call in calls:
                with self.assertRaises((asyncio.CancelledError, ValueError)):
                    await call
            with self.assertRaisesRegex(ValueError, "closed"):
                await c.call(at=0, limit=1)
        self.assertIsNone(c._inner._pointer)

    async def test_timeout(self):
        async with await reddn.aio.connect(SERVER, "users", timeout=60, depth=2) as c:
            with unittest.mock.patch.object(reddn.aio, "lib", wraps=reddn.aio.lib) as lib:
                lib.reddn_poll = lambda *_: 0  # no answer comes
                c._inner._timeout = 0.05
                for error in await asyncio.wait_for(asyncio.gather(*(c.get("user 1") for _ in range(5)), return_exceptions=True), 60):
                    self.assertIsInstance(error, TimeoutError)
                    self.assertEqual(error.errno, errno.ETIMEDOUT)
            c._inner._timeout = 60
            c._collect()
            self.assertEqual(await c.get("user 2"), b"value 2")


unittest.main(verbosity=2)
