# SPDX-License-Identifier: BSD-2-Clause
"""A cache of a language model's KV blocks in the stores of several hosts, whose NICs answer. README.md explains it.

    pool = bytearray(64 * BLOCK)                     # where blocks arrive, and come from, pinned
    with KVCache(["storage1", "storage2"], pool, BLOCK) as cache:
        keys = block_keys(tokens, 256, "my-model")
        n = cache.first_missing(keys)                # of so many blocks nothing has to be computed
        there = cache.get(keys[:n], places)
        cache.put(keys[n], block)
"""

import asyncio
import concurrent.futures
import errno
import hashlib
import struct
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Sequence, Type, TypeVar

import reddn

Result = TypeVar("Result")
AGAIN_S = 1.0
"""How long a host is left alone after a failure, before the next attempt to connect."""
NOT_THE_HOST = (errno.EAGAIN, errno.EBADMSG, errno.EMSGSIZE, errno.ENOSPC)
"""Errors of one request, after which the next one can succeed."""


def block_keys(tokens: Sequence[int], size: int, model: str) -> List[bytes]:
    """The keys of the blocks of `size` tokens, as many as are full. Each is a hash of the model, of its tokens and of all before them: so
    equal keys have equal blocks, whoever computed them."""
    keys, last = [], hashlib.sha256(model.encode()).digest()
    for at in range(0, len(tokens) - size + 1, size):
        last = hashlib.sha256(last + struct.pack(f"<{size}I", *tokens[at : at + size])).digest()
        keys.append(last)
    return keys


class Host:
    """One host: its connections, and the thread that uses them. While it does not answer it is out, and nobody waits for it."""

    def __init__(self, name: str, offload: str, pool: Any, timeout: float) -> None:
        self.name, self.up, self.losses = name, False, 0
        self._offload, self._pool, self._timeout = offload, pool, timeout
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._connections: List[reddn.Connection] = []
        self._again, self._error = 0.0, ""
        self._thread.submit(self._connect).result()

    def _connect(self) -> None:
        try:
            for offload, into in ((self._offload, False), (self._offload + ".into", True)):
                self._connections.append(reddn.Connection(self.name, offload, timeout=self._timeout, reconnect=False, into=into))
                self._connections[-1].register(self._pool)
            self.up = True
        except OSError as error:
            self._leave(error)

    def _leave(self, error: Optional[OSError] = None) -> None:
        self._error = str(error)
        self.losses += self.up
        self.up, self._again = False, time.monotonic() + AGAIN_S
        for connection in self._connections:
            connection.close()
        self._connections = []

    def is_up(self) -> bool:
        if not self.up and time.monotonic() >= self._again:
            self._again = float("inf")  # until this attempt has failed
            self._thread.submit(self._connect)
        return self.up

    def _ask(self, call: Callable[[], Result], otherwise: Result) -> "concurrent.futures.Future[Result]":
        """Calls it on the thread. `otherwise`: what is returned if the host fails."""

        def run() -> Result:
            try:
                return call() if self.up else otherwise
            except OSError as error:
                if error.errno not in NOT_THE_HOST:
                    self._leave(error)
                return otherwise

        return self._thread.submit(run)

    def first_missing(self, keys: List[bytes]) -> "concurrent.futures.Future[int]":
        return self._ask(lambda: self._connections[0].first_missing(keys), 0)

    def get(self, keys: List[bytes], places: List[memoryview]) -> "concurrent.futures.Future[List[Optional[int]]]":
        def get() -> "List[Optional[int]]":
            try:
                return self._connections[1].mget_into(keys, places)
            except OSError as error:
                if error.errno == errno.EFAULT:
                    raise ValueError("a place that is not in the cache's pool") from error
                raise

        return self._ask(get, [])

    def put(self, key: bytes, block: Any) -> "concurrent.futures.Future[bool]":
        def put() -> bool:
            try:
                self._connections[0].put(key, block)
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    raise ValueError(f"{self.name}: a block of {len(block)} bytes is larger than its store's max_value") from error
                raise
            return True

        return self._ask(put, False)

    def delete(self, key: bytes) -> "concurrent.futures.Future[bool]":
        return self._ask(lambda: self._connections[0].delete(key), False)

    def close(self) -> None:
        self._thread.submit(self._leave).result()
        self._thread.shutdown()


class KVCache:
    """Blocks of `block` bytes in the offload `offload` of each of the hosts. Places are parts of `pool`, a writable buffer; a block that is put
    from there is not copied, and stays as it is until put() returns. Any thread.

    A block is on one host, which follows from its key: the first one that is up in an order of its own (rendezvous hashing). So the hosts'
    memory adds up, one that fails takes its share of the blocks with it and moves no others, and what is computed again goes to the next. No
    call fails because a host does: its blocks are missing.
    """

    def __init__(self, hosts: Sequence[str], pool: Any, block: int, offload: str = "kv", timeout: float = 1.0) -> None:
        self.block = block
        self.hosts = [Host(host, offload, pool, timeout) for host in hosts]

    def _host_of(self, key: bytes, up: Sequence[Host]) -> Optional[Host]:
        def rank(host: Host) -> bytes:
            return hashlib.blake2b(key + host.name.encode(), digest_size=8).digest()

        return max(up, key=rank) if up else None

    def _up(self) -> List[Host]:
        return [host for host in self.hosts if host.is_up()]

    def _by_host(self, keys: Sequence[bytes]) -> Dict[Host, List[int]]:
        """The indices of the keys of each host; of all keys, or of none if no host is up."""
        up = self._up()
        shares: Dict[Host, List[int]] = {}
        for i, key in enumerate(keys):
            host = self._host_of(key, up)
            if host is not None:
                shares.setdefault(host, []).append(i)
        return shares

    def first_missing(self, keys: Sequence[bytes]) -> int:
        """How many of the first keys exist, as far as hosts tell: get() knows. Of a prompt's keys, that is the prefix to be got."""
        asked = [(mine, host.first_missing([keys[i] for i in mine])) for host, mine in self._by_host(keys).items()]
        missing = [mine[n] for mine, future in asked if (n := future.result()) < len(mine)]
        return min(missing, default=len(keys) if asked else 0)

    def get(self, keys: Sequence[bytes], places: Sequence[memoryview]) -> List[bool]:
        """Gets blocks into their places, and returns which of them are there. Places of the others may have anything."""
        if any(place.nbytes < self.block for place in places):
            raise ValueError(f"a place is too short: a block of this cache has {self.block} bytes")
        there = [False] * len(keys)
        asked = [(mine, host.get([keys[i] for i in mine], [places[i] for i in mine])) for host, mine in self._by_host(keys).items()]
        for mine, future in asked:
            for i, length in zip(mine, future.result()):
                there[i] = length == self.block
        return there

    def put(self, key: bytes, block: Any) -> bool:
        """Puts a block. False: no host has taken it."""
        if len(block) != self.block:
            raise ValueError(f"{len(block)} bytes: a block of this cache has {self.block}")
        host = self._host_of(key, self._up())
        return host.put(key, block).result() if host is not None else False

    def delete(self, key: bytes) -> bool:
        """Deletes a block from its host. False: it was not there."""
        host = self._host_of(key, self._up())
        return host.delete(key).result() if host is not None else False

    def close(self) -> None:
        for host in self.hosts:
            host.close()

    def __enter__(self) -> "KVCache":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class Connector:
    """The cache by the method names of LMCache's remote connectors (lmcache/v1/storage_backend/connector/base_connector.py).

    A key has to_string(). A memory object has byte_array, a memoryview, and ref_count_down(); `allocate` makes one whose bytes are in the pool of
    the cache, or returns None.
    """

    def __init__(self, cache: KVCache, allocate: Callable[[], Any]) -> None:
        self._cache, self._allocate = cache, allocate

    @staticmethod
    def _name(key: Any) -> bytes:
        return hashlib.sha256(key.to_string().encode()).digest()

    def exists_sync(self, key: Any) -> bool:
        return self.batched_contains([key])[0]

    async def exists(self, key: Any) -> bool:
        return await asyncio.to_thread(self.exists_sync, key)

    async def get(self, key: Any) -> Any:
        return (await self.batched_get([key]))[0]

    async def put(self, key: Any, memory_obj: Any) -> None:
        await self.batched_put([key], [memory_obj])

    async def list(self) -> List[str]:
        raise NotImplementedError("a NIC finds keys, and does not list them: reddn-table dump does, on each host")

    async def close(self) -> None:
        await asyncio.to_thread(self._cache.close)

    def support_ping(self) -> bool:
        return True

    async def ping(self) -> int:
        return 0 if any(host.is_up() for host in self._cache.hosts) else errno.EHOSTDOWN

    def support_batched_get(self) -> bool:
        return True

    async def batched_get(self, keys: Sequence[Any]) -> "List[Any]":
        objects = [self._allocate() for _ in keys]
        wanted = [i for i, one in enumerate(objects) if one is not None]
        names, places = [self._name(keys[i]) for i in wanted], [objects[i].byte_array for i in wanted]
        got = asyncio.ensure_future(asyncio.to_thread(self._cache.get, names, places))
        try:
            there = await asyncio.shield(got)
        except BaseException:  # a NIC may write there until the thread has ended, also if nobody waits for it
            got.add_done_callback(lambda _: [objects[i].ref_count_down() for i in wanted])
            raise
        for i in (i for i, arrived in zip(wanted, there) if not arrived):
            objects[i].ref_count_down()
            objects[i] = None
        return objects

    def support_batched_put(self) -> bool:
        return True

    async def batched_put(self, keys: Sequence[Any], memory_objs: Sequence[Any]) -> None:
        def put(key: Any, memory_obj: Any) -> None:
            try:
                self._cache.put(self._name(key), memory_obj.byte_array)
            finally:
                memory_obj.ref_count_down()

        # what is cancelled is put nevertheless: else nobody would give the object back
        await asyncio.gather(*(asyncio.shield(asyncio.to_thread(put, key, one)) for key, one in zip(keys, memory_objs)))

    def support_batched_contains(self) -> bool:
        return True

    def batched_contains(self, keys: Sequence[Any], stop_after_first_not_exits: bool = True) -> "List[bool]":
        if not stop_after_first_not_exits:
            return [self.exists_sync(key) for key in keys]
        n = self._cache.first_missing([self._name(key) for key in keys])
        return [i < n for i in range(len(keys))]

    def support_batched_async_contains(self) -> bool:
        return True

    async def batched_async_contains(self, lookup_id: str, keys: Sequence[Any], pin: bool = False) -> int:
        """How many of the first keys exist. Nothing is pinned: a block may be evicted before it is got."""
        return await asyncio.to_thread(self._cache.first_missing, [self._name(key) for key in keys])

    def support_batched_get_non_blocking(self) -> bool:
        return True

    async def batched_get_non_blocking(self, lookup_id: str, keys: Sequence[Any]) -> "List[Any]":
        """The blocks up to the first one that is missing."""
        objects = await self.batched_get(keys)
        n = next((i for i, one in enumerate(objects) if one is None), len(objects))
        for one in objects[n:]:
            if one is not None:
                one.ref_count_down()
        return objects[:n]

    def remove_sync(self, key: Any) -> bool:
        return self._cache.delete(self._name(key))
