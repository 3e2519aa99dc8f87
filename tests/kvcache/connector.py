# SPDX-License-Identifier: BSD-2-Clause
"""connector.py HOSTS BLOCK: the Connector of docs/examples/kvcache below a stand-in for the base class of LMCache's remote connectors, and what that
expects of each method."""

import abc
import asyncio
import sys
import threading
import unittest

import kvcache

HOSTS, BLOCK, PLACES = sys.argv[1].split(","), int(sys.argv[2]), 8


class RemoteConnector(abc.ABC):
    """What a connector must have, and the answers of one that has no batches."""

    @abc.abstractmethod
    async def exists(self, key): ...

    @abc.abstractmethod
    def exists_sync(self, key): ...

    @abc.abstractmethod
    async def get(self, key): ...

    @abc.abstractmethod
    async def put(self, key, memory_obj): ...

    @abc.abstractmethod
    async def list(self): ...

    @abc.abstractmethod
    async def close(self): ...

    def no(self):
        return False

    support_ping = support_batched_get = support_batched_put = support_batched_contains = no
    support_batched_async_contains = support_batched_get_non_blocking = no


class Stored(kvcache.Connector, RemoteConnector):
    pass


class Key:
    def __init__(self, text):
        self.text = text

    def to_string(self):
        return self.text


class Memory:
    """One of the places, and how often it was given back"""

    def __init__(self, free, place):
        self.free, self.byte_array, self.references = free, place, 1

    def ref_count_down(self):
        self.references -= 1
        if not self.references:
            self.free.append(self.byte_array)


class TestConnector(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        pool = bytearray(PLACES * BLOCK)
        self.free = [memoryview(pool)[i * BLOCK : (i + 1) * BLOCK] for i in range(PLACES)]
        self.connector = Stored(kvcache.KVCache(HOSTS, pool, BLOCK, timeout=60), self.allocate)

    async def asyncTearDown(self):
        await self.connector.close()
        self.assertEqual(len(self.free), PLACES)

    def allocate(self):
        return Memory(self.free, self.free.pop()) if self.free else None

    def filled(self, byte):
        memory = self.allocate()
        memory.byte_array[:] = bytes([byte]) * BLOCK
        return memory

    async def test_one(self):
        c, key = self.connector, Key("model@1@0@one")
        self.assertFalse(await c.exists(key) or c.exists_sync(key))
        self.assertIsNone(await c.get(key))
        await c.put(key, self.filled(7))
        self.assertEqual(len(self.free), PLACES)
        self.assertTrue(await c.exists(key) and c.exists_sync(key))
        got = await c.get(key)
        self.assertEqual(got.byte_array, bytes([7]) * BLOCK)
        got.ref_count_down()
        self.assertTrue(c.remove_sync(key))
        self.assertFalse(c.remove_sync(key))
        self.assertIsNone(await c.get(key))

    async def test_batches(self):
        c, keys = self.connector, [Key(f"model@1@0@{i}") for i in range(6)]
        for supported in ("ping", "batched_get", "batched_put", "batched_contains", "batched_async_contains", "batched_get_non_blocking"):
            self.assertTrue(getattr(c, "support_" + supported)())
        await c.batched_put(keys[:3] + keys[4:], [self.filled(i) for i in (0, 1, 2, 4, 5)])
        self.assertEqual(c.batched_contains(keys), [True] * 3 + [False] * 3)
        self.assertEqual(c.batched_contains(keys, False), [True] * 3 + [False] + [True] * 2)
        self.assertEqual(await c.batched_async_contains("lookup", keys), 3)
        self.assertEqual(await c.batched_async_contains("lookup", keys[:2]), 2)
        got = await c.batched_get(keys)
        self.assertEqual([one and one.byte_array[BLOCK - 1] for one in got], [0, 1, 2, None, 4, 5])
        # there is memory for three more
        rest = await c.batched_get(keys[:3] + keys[4:])
        self.assertEqual([one is None for one in rest], [False] * 3 + [True] * 2)
        for one in got + rest:
            if one:
                one.ref_count_down()
        got = await c.batched_get_non_blocking("lookup", keys)
        self.assertEqual([one.byte_array[0] for one in got], [0, 1, 2])
        for one in got:
            one.ref_count_down()

    async def test_cancelled(self):
        """Memory is given back when nothing is written to it any more."""
        get, started, go = self.connector._cache.get, threading.Event(), threading.Event()

        def slow(names, places):
            started.set()
            go.wait()
            return get(names, places)

        self.connector._cache.get = slow
        asked = asyncio.ensure_future(self.connector.batched_get([Key("x"), Key("y")]))
        await asyncio.to_thread(started.wait)
        asked.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await asked
        self.assertEqual(len(self.free), PLACES - 2)
        go.set()
        while len(self.free) < PLACES:
            await asyncio.sleep(0.01)

    async def test_rest(self):
        self.assertEqual(await self.connector.ping(), 0)
        with self.assertRaises(NotImplementedError):
            await self.connector.list()
        with self.assertRaises(ValueError):
            await self.connector.put(Key("short"), Memory(self.free, self.free.pop()[:5]))

    def test_wrong_places(self):
        with kvcache.KVCache(HOSTS, bytearray(BLOCK), BLOCK, timeout=60) as cache:
            for place, words in ((memoryview(bytearray(BLOCK)), "not in the cache's pool"), (memoryview(bytearray(BLOCK - 1)), "too short")):
                with self.assertRaisesRegex(ValueError, words):
                    cache.get([b"key"], [place])
            self.assertEqual([host.losses for host in cache.hosts], [0] * len(HOSTS))

    async def test_blocks_of_another_store(self):
        with kvcache.KVCache(HOSTS, bytearray(2 * BLOCK), 2 * BLOCK, timeout=60) as cache:
            with self.assertRaisesRegex(ValueError, f"a block of {2 * BLOCK} bytes is larger than its store's max_value"):
                cache.put(b"key", bytes(2 * BLOCK))


unittest.main(argv=["connector.py"])
