# SPDX-License-Identifier: BSD-2-Clause
"""Locks that clients of words share."""

import errno
import functools
import math
import time
from types import TracebackType
from typing import Any, Iterator, Optional, Type

from ._connection import Connection
from ._lib import NoCopy, fail, ffi, lib

_PAUSES = 0.0001, 0.005
"""Seconds between two looks at a lock that another client has: the first, and at most"""


def end_of(timeout: float) -> float:
    """By the monotonic clock; never if it is negative."""
    return math.inf if timeout < 0 else time.monotonic() + timeout


def pauses(until: float) -> Iterator[float]:
    """Seconds to wait between two attempts, until the time is over."""
    pause = _PAUSES[0]
    while time.monotonic() < until:
        yield pause
        pause = min(2 * pause, _PAUSES[1])


def is_over(surprises: int, until: float) -> bool:
    """Of a step whose word was another one than expected, so often: once is normal, and a server may answer so for ever."""
    return surprises > 1 and time.monotonic() >= until


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

    @staticmethod
    def _done(done: bool) -> None:
        """Of a step of the holder"""
        if not done:
            fail(-errno.ETIMEDOUT, "its word was another one each time")


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
        until = end_of(timeout)
        waits = pauses(until)
        while not self._step(lib.REDDN_LOCK, until):
            pause = next(waits, None)
            if pause is None:
                return False
            time.sleep(pause)
        return True

    def renew(self) -> None:
        """Begins a new lease."""
        self._done(self._step(lib.REDDN_RENEW, end_of(self._connection.timeout)))

    def release(self) -> None:
        """Gives it back."""
        self._done(self._step(lib.REDDN_UNLOCK, end_of(self._connection.timeout)))

    def _step(self, step: int, until: float) -> bool:
        status, surprises = lib.REDDN_AGAIN, 0
        while status == lib.REDDN_AGAIN and not is_over(surprises, until):
            surprises += 1
            submit = functools.partial(lib.reddn_lock_submit, self._connection._handle(), self._lock, step)
            status = self._connection._ask(submit, self._learn)
        return self._judge(status)

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.release()
