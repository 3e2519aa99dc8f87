# SPDX-License-Identifier: BSD-2-Clause
"""Connections for asyncio: the loop sleeps on the descriptor of the library, and many requests are in flight.

>>> async def main():
...     async with await connect("storage1", "users") as users:
...         return await asyncio.gather(*(users.get(name) for name in ("alice", "bob")))
"""

import asyncio
import errno
import functools
import os
from types import TracebackType
from typing import Any, Deque, Dict, Optional, Tuple, Type

from collections import deque

from ._connection import Connection, Reply, Value
from ._lib import Key, ffi, lib, to_str


class AsyncConnection:
    """A Connection whose requests are awaited. Made by connect(); belongs to the loop that was running then.

    Any number of tasks may ask at once: up to `depth` requests are sent, and the others wait for their turn. Errors are
    those of Connection. A request whose task is cancelled is still answered by the server; the answer is dropped.
    """

    def __init__(self, connection: Connection) -> None:
        self._inner = connection
        self._loop = asyncio.get_running_loop()
        self._due: Dict[int, Tuple["asyncio.Future[Any]", bool]] = {}  # by cookie: whose it is, and whether it is a call
        self._turns: Deque["asyncio.Future[None]"] = deque()  # those that wait for room
        self._cookie = 0
        self._fd = lib.reddn_fd(connection._handle())
        self._loop.add_reader(self._fd, self._collect)
        lib.reddn_arm(connection._handle())

    async def get(self, key: Key) -> Optional[bytes]:
        """As Connection.get()."""
        value: Optional[bytes] = await self._request(functools.partial(self._inner._submit_get, key), False)
        return value

    async def call(self, **arguments: Value) -> Reply:
        """As Connection.call(). The first one asks the server for names, which other tasks wait for."""
        args, keep = self._inner._encode(arguments)

        def submit(cookie: int) -> bool:
            assert keep is not None
            result = lib.reddn_call_submit(self._inner._handle(), args, len(args), cookie)
            if result < 0 and result != -errno.EAGAIN:
                self._inner._lost(result)
            return bool(result != -errno.EAGAIN)

        reply: Reply = await self._request(submit, True)
        return reply

    async def _request(self, submit: Any, is_call: bool) -> Any:
        self._cookie += 1
        cookie = self._cookie
        while not submit(cookie):
            turn = self._loop.create_future()
            self._turns.append(turn)
            await turn
        future: "asyncio.Future[Any]" = self._loop.create_future()
        self._due[cookie] = (future, is_call)
        return await future

    def _finish(self, result: Any) -> None:
        future, is_call = self._due.pop(result.cookie)
        if future.done():
            return
        if result.status < 0:
            words = to_str(lib.reddn_errmsg(self._inner._handle()))
            future.set_exception(OSError(-result.status, words or os.strerror(-result.status)))
        elif is_call:
            future.set_result(self._inner._decode(ffi.cast("uint8_t *", result.value)))
        else:
            future.set_result(bytes(ffi.buffer(result.value, result.length)) if result.status == 0 else None)

    def _collect(self) -> None:
        """Arm, take all results, and only then sleep: a result between the two wakes the loop again."""
        handle, results = self._inner._handle(), self._inner._results
        lib.reddn_arm(handle)
        while True:
            n = lib.reddn_poll(handle, results, len(results))
            for result in results[0 : max(n, 0)]:
                self._finish(result)
            if n <= 0:
                break
        if n < 0:  # lost: every request has had its result
            self._loop.remove_reader(self._fd)
        lib.reddn_release(handle)
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)

    def close(self) -> None:
        """Disconnects; requests without an answer are cancelled. More than once is fine."""
        if self._inner._pointer is None:
            return
        self._loop.remove_reader(self._fd)
        for future, _ in self._due.values():
            future.cancel()
        for turn in self._turns:
            turn.cancel()
        self._inner.close()

    async def __aenter__(self) -> "AsyncConnection":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


async def connect(host: str, offload: str, **options: Any) -> AsyncConnection:
    """Connects with the options of Connection, in a thread, so that the loop goes on meanwhile."""
    loop = asyncio.get_running_loop()
    return AsyncConnection(await loop.run_in_executor(None, functools.partial(Connection, host, offload, **options)))
