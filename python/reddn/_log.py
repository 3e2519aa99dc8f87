# SPDX-License-Identifier: BSD-2-Clause
"""Logs that clients append to, as those who follow them read them."""

import errno
import time
from typing import Iterator, NamedTuple, Optional, Union

from ._connection import _TIMEOUT_MAX, Connection, take_value
from ._lib import NoCopy, fail, ffi, lib
from ._steps import Ask, Steps, end_of, pauses

_END = 2**64 - 1
"""REDDN_LOG_END"""


class Entry(NamedTuple):
    """An entry of a log."""

    number: int
    value: bytes


class LogReader(NoCopy):
    """What a Log and one of asyncio have in common."""

    def __init__(self, start: Optional[int], patience: float) -> None:
        if not 0.001 <= patience <= _TIMEOUT_MAX:
            raise ValueError(f"patience={patience!r}: seconds, at least 0.001 and at most {_TIMEOUT_MAX}")
        self._log = ffi.new("struct reddn_log *", {"next": _END if start is None else start, "patience_ms": round(patience * 1000)})

    @property
    def next(self) -> int:
        """The number of the entry that is read next."""
        return int(self._log.next)

    @property
    def lost(self) -> int:
        """How many entries were overwritten, or were about to be, before they were read."""
        return int(self._log.lost)

    @property
    def skipped(self) -> int:
        """How many numbers had no entry."""
        return int(self._log.skipped)

    def _read(self, timeout: float, call: float) -> Steps[Optional[Entry]]:
        """What is passed takes no time, unless a server answers what it likes: it is for so long as a `call` may take."""
        until, most = end_of(timeout), end_of(call)
        waits = pauses(until)
        ask = Ask(lambda handle, cookie: int(lib.reddn_log_submit(handle, self._log, cookie)), take_value)
        while True:
            number = self.next
            reply = yield ask
            # another task may have read the entry meanwhile; and one that was cancelled has read nothing
            found = self._learn(reply) if self.next == number else lib.REDDN_AGAIN
            if isinstance(found, Entry):
                return found
            if found == lib.REDDN_AGAIN:
                if time.monotonic() >= max(until, most):
                    return None
            elif found != -errno.EAGAIN:
                fail(found, "the log has fewer entries than that: is it another one now?" if found == -errno.ESTALE else "")
            elif (pause := next(waits, None)) is None:
                return None
            else:
                yield pause

    def _learn(self, reply: bytes) -> Union[Entry, int]:
        memory = ffi.from_buffer(reply)
        result = ffi.new("struct reddn_result *", {"value": memory, "length": len(reply)})
        status = int(lib.reddn_log_result(self._log, result))
        return status or Entry(self.next - 1, bytes(ffi.buffer(result.value, result.length)))


class Log(LogReader):
    """Who follows a log, by a connection to an offload of log-read: gets all entries in the order of their numbers.

    >>> with Connection("storage1", "events.read") as events:
    ...     for number, value in Log(events):
    ...         print(number, value)

    Begins with entry `start`, or with what is appended next, None. Waits up to `patience` seconds for an entry whose number is drawn and that
    is not there: longer than a request may take, see Logs in libreddn(3). Who reads slower than others append is overtaken: `lost` counts the
    entries that it did not get.
    """

    def __init__(self, connection: Connection, start: Optional[int] = 0, patience: float = 1.0) -> None:
        super().__init__(start, patience)
        self._connection = connection

    def read(self, timeout: float = 0) -> Optional[Entry]:
        """The next entry; None: there is none within so many seconds, without a limit if that is negative. OSError (EBADMSG): this one has a
        length that no entry can have, and the next one is read next; (ESTALE): the log has fewer entries, so it is another one."""
        return self._connection._run(self._read(timeout, self._connection.timeout))

    def __iter__(self) -> Iterator[Entry]:
        """Entries, for ever."""
        while True:
            entry = self.read(-1)
            if entry is not None:
                yield entry
