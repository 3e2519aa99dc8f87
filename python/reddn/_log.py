# SPDX-License-Identifier: BSD-2-Clause
"""Logs that clients append to, as those who follow them read them."""

import errno
import time
from typing import Iterator, NamedTuple, Optional

from ._connection import Connection
from ._lib import NoCopy, fail, ffi, lib

_SLICE_MS = 50
"""Signals are heard so often"""

_ROOM = 256
"""More than an entry has"""

_END = 2**64 - 1
"""REDDN_LOG_END"""


class Entry(NamedTuple):
    """An entry of a log."""

    number: int
    value: bytes


class Log(NoCopy):
    """Who follows a log, by a connection to an offload of log-read: gets all entries in the order of their numbers.

    >>> with Connection("storage1", "events.read") as events:
    ...     for number, value in Log(events):
    ...         print(number, value)

    Begins with entry `start`, or with what is appended next, None. Waits up to `patience` seconds for an entry whose number is drawn and that
    is not there: longer than a request may take, see Logs in libreddn(3). Who reads slower than others append is overtaken: `lost` counts the
    entries that it did not get.
    """

    def __init__(self, connection: Connection, start: Optional[int] = 0, patience: float = 1.0) -> None:
        if patience < 0.001:
            raise ValueError(f"patience={patience!r}: seconds, at least 0.001")
        first = _END if start is None else start
        self._connection = connection
        self._log = ffi.new("struct reddn_log *", {"next": first, "patience_ms": round(patience * 1000)})
        self._buffer, self._length = ffi.new("char[]", _ROOM), ffi.new("size_t *")

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

    def read(self, timeout: float = 0) -> Optional[Entry]:
        """The next entry; None: there is none within so many seconds. OSError (EBADMSG): this one has a length that no entry can have, and the
        next one is read next; (ESTALE): the log has fewer entries than before, so it is another one."""
        until, result = time.monotonic() + timeout, -errno.EAGAIN
        while result == -errno.EAGAIN:
            left = max(0, min(_SLICE_MS, int((until - time.monotonic()) * 1000)))
            with self._connection._alone():
                result = lib.reddn_log_next(self._connection._handle(), self._log, self._buffer, _ROOM, self._length, left)
            if result == -errno.EAGAIN and time.monotonic() >= until:
                return None
        if result in (-errno.EBADMSG, -errno.ESTALE):
            fail(result)
        if result < 0:
            self._connection._lost(result)
        return Entry(self.next - 1, bytes(ffi.buffer(self._buffer, self._length[0])))

    def __iter__(self) -> Iterator[Entry]:
        """Entries, for ever."""
        while True:
            entry = self.read(1)
            if entry is not None:
                yield entry
