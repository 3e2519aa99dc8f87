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
from collections import deque
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Deque, Dict, Iterable, List, NamedTuple, Optional, Tuple, Type

from ._connection import Connection, Reply, Value, Versioned, judge_change, take_change, take_exists, take_value, take_versioned, take_word, to_delete, to_put
from ._lib import Key, NoCopy, fail, lib, to_bytes, to_keys
from ._lock import LockWord
from ._log import Entry, LogReader
from ._steps import Ask, Steps, T, append_steps


class _Request(NamedTuple):
    submit: Callable[[], int]  # as the functions of reddn.h
    cookie: int  # of its first result
    take: Callable[[Any], Any]  # of a result that is no error
    future: "asyncio.Future[List[Any]]"
    values: List[Any]  # of the results, as many as it has
    left: List[int]  # how many have not come: one number


class AsyncConnection(NoCopy):
    """A Connection whose requests are awaited. Made by connect(); belongs to the loop that was running then.

    Any number of tasks may ask at once: up to `depth` requests are sent, and the others wait for their turn. Errors are
    those of Connection. TimeoutError: a request had no answer `timeout` seconds after it was made; others go on. A request
    whose task is cancelled, or whose time is over, may still be answered by the server; the answer is dropped.
    """

    def __init__(self, connection: Connection) -> None:
        self._inner = connection
        self._loop = asyncio.get_running_loop()
        self._waiting: Deque[_Request] = deque()  # for room
        self._due: Dict[int, _Request] = {}  # by cookie: those that the server has
        self._cookie = 0
        self._closed = False
        # of a lost connection: the question why, which has the handle to itself, and the answer
        self._question: Optional["asyncio.Future[str]"] = None
        self._loss: Optional[Tuple[int, str]] = None
        self._fd = lib.reddn_fd(connection._handle())
        self._loop.add_reader(self._fd, self._collect)
        lib.reddn_arm(connection._handle())

    async def get(self, key: Key) -> Optional[bytes]:
        """As Connection.get()."""
        k, handle = to_bytes(key), await self._handle()
        value: Optional[bytes] = await self._request(functools.partial(lib.reddn_get_submit, handle, k, len(k)), take_value)
        return value

    async def get_versioned(self, key: Key) -> Versioned:
        """As Connection.get_versioned()."""
        k, handle = to_bytes(key), await self._handle()
        found: Versioned = await self._request(functools.partial(lib.reddn_get_submit, handle, k, len(k)), take_versioned)
        return found

    async def exists_many(self, keys: Iterable[Key]) -> List[bool]:
        """As Connection.exists_many()."""
        asked = [to_bytes(key) for key in keys]
        return await self._exist(asked, range(0, len(asked), self._inner._exists_keys()))

    async def first_missing(self, keys: Iterable[Key]) -> int:
        """As Connection.first_missing(): asks for as many keys at a time as `depth` requests have."""
        asked = [to_bytes(key) for key in keys]
        await self._handle()
        lib.reddn_get_info(self._inner._handle(), self._inner._info)
        fits = next((i for i, key in enumerate(asked) if len(key) > self._inner._info.max_key), len(asked))
        keys_of_one = self._inner._exists_keys()
        step = self._inner.depth * keys_of_one
        for first in range(0, fits, step):
            there = await self._exist(asked[:fits], range(first, min(first + step, fits), keys_of_one))
            if False in there:
                return first + there.index(False)
        return fits

    async def _exist(self, keys: List[bytes], firsts: range) -> List[bool]:
        """Whether those from each of `firsts` on exist, as many as a request has"""
        parts = [keys[first : first + firsts.step] for first in firsts]
        answers = await asyncio.gather(*(self._exist_of(part) for part in parts))
        return [there for answer in answers for there in answer]

    async def _exist_of(self, keys: List[bytes]) -> List[bool]:
        several, keep = to_keys(keys)
        submit = functools.partial(lib.reddn_exists_submit, await self._handle(), several, len(keys))
        there: List[bool] = await self._request_many(submit, take_exists, len(keys))
        del keep
        return there

    async def call(self, **arguments: Value) -> Reply:
        """As Connection.call(). The first one asks the server for names, which other tasks wait for."""
        handle = await self._handle()
        args, keep = self._inner._encode(arguments)
        reply: Reply = await self._request(functools.partial(lib.reddn_call_submit, handle, args, len(args)), self._inner._take_reply)
        del keep
        return reply

    async def put(self, key: Key, value: Key, *, if_version: Optional[int] = None, ttl: Optional[float] = None) -> None:
        """As Connection.put()."""
        judge_change(await self._request(to_put(await self._handle(), key, to_bytes(value), if_version, ttl), take_change))

    async def delete(self, key: Key, *, if_version: Optional[int] = None) -> bool:
        """As Connection.delete()."""
        return judge_change(await self._request(to_delete(await self._handle(), key, if_version), take_change))

    async def cas(self, word: int, old: int, new: int) -> int:
        """As Connection.cas()."""
        was: int = await self._request(functools.partial(lib.reddn_cas_submit, await self._handle(), word, old, new), take_word)
        return was

    async def faa(self, word: int, by: int) -> int:
        """As Connection.faa()."""
        was: int = await self._request(functools.partial(lib.reddn_faa_submit, await self._handle(), word, by % 2**64), take_word)
        return was

    async def append(self, value: Key) -> int:
        """As Connection.append()."""
        return await self._run(append_steps(value, self._inner.timeout))

    async def _handle(self) -> Any:
        """Raises the reason if the connection is closed or lost."""
        if self._question is not None:
            await asyncio.wait([self._question])
        if self._closed:
            raise ValueError("it is closed")
        if self._loss is not None:
            raise OSError(*self._loss)
        return self._inner._handle()

    async def _run(self, steps: Steps[T]) -> T:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Ask):
                answer = await self._request(functools.partial(step.submit, await self._handle()), step.take)
                continue
            await asyncio.sleep(step)
            answer = None

    async def _request(self, submit: Any, take: Callable[[Any], Any]) -> Any:
        return (await self._request_many(submit, take, 1))[0]

    async def _request_many(self, submit: Any, take: Callable[[Any], Any], n: int) -> List[Any]:
        """Of a request that has several results, whose cookies follow each other"""
        first, self._cookie = self._cookie + 1, self._cookie + n
        future: "asyncio.Future[List[Any]]" = self._loop.create_future()
        self._waiting.append(_Request(functools.partial(submit, first), first, take, future, [None] * n, [n]))
        self._send()
        timer = self._loop.call_later(self._inner.timeout, self._expire, future)
        try:
            return await future
        finally:
            timer.cancel()

    def _expire(self, future: "asyncio.Future[Any]") -> None:
        if not future.done():
            future.set_exception(OSError(errno.ETIMEDOUT, f"no answer in {self._inner.timeout} s"))

    def _send(self) -> None:
        """Submits those that wait, as far as there is room."""
        while self._waiting and self._question is None:
            request = self._waiting[0]
            result = 0 if request.future.done() else request.submit()
            if result == -errno.EAGAIN:
                return
            if result < 0 and self._is_over():
                self._lose(result)
                return
            self._waiting.popleft()
            if result < 0:
                request.future.set_exception(self._error(result))
            elif not request.future.done():
                for i in range(len(request.values)):
                    self._due[request.cookie + i] = request

    def _is_over(self) -> bool:
        """True: the session is lost, and there will be no other. That of puts is another one, whose end is an error of puts."""
        return not self._inner._reconnect and all(host.state != "in use" for host in self._inner.hosts)

    def _error(self, result: int) -> OSError:
        return OSError(-result, self._inner._words() or os.strerror(-result))

    def _finish(self, result: Any) -> None:
        if result.status < 0 and self._is_over():
            return  # the server is asked first
        request = self._due.pop(result.cookie)
        future = request.future
        if future.done():
            return
        if result.status < 0:
            future.set_exception(self._error(result.status))
            return
        try:
            request.values[result.cookie - request.cookie] = request.take(result)
        except OSError as error:
            future.set_exception(error)
            return
        request.left[0] -= 1
        if not request.left[0]:
            future.set_result(request.values)

    def _collect(self) -> None:
        """Arm, take all results, and only then sleep: a result between the two wakes the loop again."""
        handle, results = self._inner._handle(), self._inner._results
        lib.reddn_arm(handle)
        n = 1
        while n > 0:
            n = lib.reddn_poll(handle, results, len(results))
            for result in results[0 : max(n, 0)]:
                self._finish(result)
        lib.reddn_release(handle)
        if n < 0 and self._is_over():
            self._lose(n)
        else:
            self._send()

    def _lose(self, result: int) -> None:
        """Asks the server why it ended the session, in a thread, so that the loop goes on meanwhile."""
        self._loop.remove_reader(self._fd)
        self._question = self._loop.run_in_executor(None, self._inner._end_words)
        self._question.add_done_callback(functools.partial(self._lost, -result))

    def _lost(self, error: int, question: "asyncio.Future[str]") -> None:
        """Every request gets the answer. One that was closed meanwhile is given back only now."""
        self._loss = (error, question.result())
        self._drop(lambda future: future.set_exception(OSError(error, question.result())))
        if self._closed:
            self._inner.close()

    def _drop(self, drop: Callable[["asyncio.Future[Any]"], Any]) -> None:
        for request in (*self._due.values(), *self._waiting):
            if not request.future.done():
                drop(request.future)
        self._due.clear()
        self._waiting.clear()

    def close(self) -> None:
        """Disconnects; requests without an answer are cancelled. More than once is fine."""
        if self._closed:
            return
        self._closed = True
        if not self._inner._is_own():  # nor is what the loop sleeps on that of this child of fork()
            self._inner.close()
            return
        self._loop.remove_reader(self._fd)
        self._drop(lambda future: future.cancel())
        if self._question is None or self._loss is not None:
            self._inner.close()

    async def __aenter__(self) -> "AsyncConnection":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class Lock(LockWord):
    """A reddn.Lock whose steps are awaited. One task at a time uses it. What becomes of it is not known when a step was cancelled, or
    its time was over: then another Lock takes it, after a lease."""

    def __init__(self, connection: AsyncConnection, word: int, lease: float) -> None:
        super().__init__(word, lease)
        self._connection = connection

    async def acquire(self, timeout: float = -1) -> bool:
        """As Lock.acquire()."""
        return await self._connection._run(self._acquire(timeout))

    async def renew(self) -> None:
        """Begins a new lease."""
        await self._connection._run(self._hold(lib.REDDN_RENEW, self._connection._inner.timeout))

    async def release(self) -> None:
        """Gives it back."""
        await self._connection._run(self._hold(lib.REDDN_UNLOCK, self._connection._inner.timeout))

    async def __aenter__(self) -> "Lock":
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.release()


class Log(LogReader):
    """A reddn.Log whose entries are awaited. One task at a time uses it.

    >>> async with await connect("storage1", "events.read") as events:
    ...     async for number, value in Log(events):
    ...         print(number, value)
    """

    def __init__(self, connection: AsyncConnection, start: Optional[int] = 0, patience: float = 1.0) -> None:
        super().__init__(start, patience)
        self._connection = connection

    async def read(self, timeout: float = 0) -> Optional[Entry]:
        """As Log.read(). One that is cancelled has read nothing."""
        return await self._connection._run(self._read(timeout, self._connection._inner.timeout))

    async def __aiter__(self) -> AsyncIterator[Entry]:
        """Entries, for ever."""
        while True:
            entry = await self.read(-1)
            if entry is not None:
                yield entry


async def connect(host: str, offload: str, **options: Any) -> AsyncConnection:
    """Connects with the options of Connection, in a thread, so that the loop goes on meanwhile."""
    loop = asyncio.get_running_loop()
    return AsyncConnection(await loop.run_in_executor(None, functools.partial(Connection, host, offload, **options)))
