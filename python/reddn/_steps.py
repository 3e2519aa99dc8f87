# SPDX-License-Identifier: BSD-2-Clause
"""What takes several requests: written once, for connections that wait for a result and for those of asyncio. Private.

It is a generator, which _run() of a connection goes through: it yields an Ask, and is sent what this makes of the result, or yields how
many seconds to wait.
"""

import errno
import math
import time
from typing import Any, Callable, Generator, Iterator, NamedTuple, TypeVar, Union

from ._lib import Key, fail, ffi, lib, to_bytes

T = TypeVar("T")


class Ask(NamedTuple):
    """`submit` gets the handle and a cookie, `take` a result that is no error."""

    submit: Callable[[Any, int], int]
    take: Callable[[Any], Any]


Steps = Generator[Union[Ask, float], Any, T]

_PAUSES = 0.0001, 0.005
"""Seconds between two looks at what other clients do: the first, and at most"""


def end_of(timeout: float) -> float:
    """By the monotonic clock; never if it is negative."""
    return math.inf if timeout < 0 else time.monotonic() + timeout


def pauses(until: float) -> Iterator[float]:
    """Seconds to wait between two attempts, until the time is over."""
    pause = _PAUSES[0]
    while time.monotonic() < until:
        yield pause
        pause = min(2 * pause, _PAUSES[1])


def append_steps(value: Key, timeout: float) -> Steps[int]:
    """Appends until there is an entry: where a request of a lap ago has left its own empty, another one is tried."""
    data, number, until = to_bytes(value), ffi.new("uint64_t *"), end_of(timeout)

    def take(result: Any) -> int:
        return int(lib.reddn_append_result(ffi.addressof(result), number))

    while (yield Ask(lambda handle, cookie: int(lib.reddn_append_submit(handle, data, len(data), cookie)), take)):
        if time.monotonic() >= until:
            fail(-errno.EAGAIN)
    return int(number[0])
