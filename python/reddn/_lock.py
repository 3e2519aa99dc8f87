# SPDX-License-Identifier: BSD-2-Clause
"""Locks that clients of words share."""

import errno
import time
from types import TracebackType
from typing import Any, Optional, Type

from ._connection import Connection
from ._lib import NoCopy, fail, ffi, lib
from ._steps import Ask, Steps, end_of, pauses


class LockWord(NoCopy):
    """What a Lock and one of asyncio have in common."""

    def __init__(self, word: int, lease: float) -> None:
        if lease < 0.001:
            raise ValueError(f"lease={lease!r}: seconds, at least 0.001")
        self._lock = ffi.new("struct reddn_lock *", {"word": word, "lease_ms": round(lease * 1000)})

    @property
    def token(self) -> int:
        """The fencing token; 0: it is not held here."""
        return int(self._lock.token)

    def _acquire(self, timeout: float) -> Steps[bool]:
        until = end_of(timeout)
        waits = pauses(until)
        while not (yield from self._step(lib.REDDN_LOCK, until)):
            pause = next(waits, None)
            if pause is None:
                return False
            yield pause
        return True

    def _hold(self, step: int, timeout: float) -> Steps[None]:
        """A step of the holder"""
        if not (yield from self._step(step, end_of(timeout))):
            fail(-errno.ETIMEDOUT, "its word was another one each time")

    def _step(self, step: int, until: float) -> Steps[bool]:
        """That the word is another one than expected is normal once, and a server may answer so for ever."""
        ask = Ask(lambda handle, cookie: int(lib.reddn_lock_submit(handle, self._lock, step, cookie)), self._learn)
        surprised = False
        while (status := (yield ask)) == lib.REDDN_AGAIN and not (surprised and time.monotonic() >= until):
            surprised = True
        return self._judge(status)

    def _learn(self, result: Any) -> int:
        return int(lib.reddn_lock_result(self._lock, ffi.addressof(result)))

    @staticmethod
    def _judge(status: int) -> bool:
        """False: another one holds it, or its word was another one each time"""
        if status == -errno.EPERM:
            fail(status, "its lease was over, and another client has taken it")
        if status < 0 and status != -errno.EAGAIN:
            fail(status)
        return status == 0


class Lock(LockWord):
    """A lock: a word of the server that a client holds for a lease of so many seconds, which it renews.

    >>> with Connection("storage1", "words") as words:
    ...     with Lock(words, 0, lease=2) as lock:
    ...         words.cas(1, lock.token << 16 | 5, lock.token << 16 | 6)

    `lease` is the same for all clients of the lock. A waiter takes the lock from a holder that has not renewed it for so long. So
    what it protects is changed by a cas() that expects the token: see Locks in libreddn(3). PermissionError: another client has
    taken it.
    """

    def __init__(self, connection: Connection, word: int, lease: float) -> None:
        super().__init__(word, lease)
        self._connection = connection

    def acquire(self, timeout: float = -1) -> bool:
        """Takes it. False: another one held it all the time, of `timeout` seconds, without a limit if that is negative."""
        return self._connection._run(self._acquire(timeout))

    def renew(self) -> None:
        """Begins a new lease."""
        self._connection._run(self._hold(lib.REDDN_RENEW, self._connection.timeout))

    def release(self) -> None:
        """Gives it back."""
        self._connection._run(self._hold(lib.REDDN_UNLOCK, self._connection.timeout))

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.release()
