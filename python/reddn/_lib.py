# SPDX-License-Identifier: BSD-2-Clause
"""The C library, and what its calls have in common. Private."""

import os
from types import TracebackType
from typing import Any, List, NoReturn, Optional, Tuple, Type, TypeVar, Union

from . import _ffi

ffi: Any = _ffi.ffi
lib: Any = ffi.dlopen("libreddn.so.0")

Key = Union[str, bytes, bytearray, memoryview]
"""A key or a value: bytes, or text, which is encoded as UTF-8."""

ERR_BYTES = 512


def to_bytes(text: Key) -> bytes:
    """TypeError for anything else: bytes(5) is five zeroes."""
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"{text!r}: a key or a value is str or bytes, not {type(text).__name__}")


def to_value(value: Key) -> Any:
    """The same, of a value: of a buffer itself, without a copy."""
    if isinstance(value, bytearray) or (isinstance(value, memoryview) and value.c_contiguous):
        return ffi.from_buffer(value)
    return to_bytes(value)


def to_keys(keys: List[bytes]) -> Tuple[Any, Any]:
    """The keys as struct reddn_key[], and what has to live as long"""
    keep = [ffi.new("char[]", key) for key in keys]
    return ffi.new("struct reddn_key[]", [{"key": k, "key_len": len(key)} for k, key in zip(keep, keys)]), keep


def to_name(what: str, text: Union[str, bytes]) -> Any:
    """A string of C, which ends at its first zero: ValueError if there is one inside."""
    name = to_bytes(text)
    if b"\0" in name:
        raise ValueError(f"{what}={text!r}: a zero byte is inside")
    return ffi.new("char[]", name)


def to_str(text: Any) -> str:
    return str(ffi.string(text), errors="replace")


def fail(result: int, words: str = "") -> NoReturn:
    """Raises the OSError of a call that returned -errno: OSError makes PermissionError and the like of some."""
    raise OSError(-result, words or os.strerror(-result))


Self = TypeVar("Self", bound="Handle")


class NoCopy:
    """Two objects with one handle of C would free it twice."""

    def __reduce__(self) -> NoReturn:  # copy and pickle ask it, too
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled")


class Handle(NoCopy):
    """What is closed at the end of a with statement, or with the last reference."""

    _pointer: Any = None
    _process = 0

    def _open(self, pointer: Any) -> None:
        self._pointer, self._process = pointer, os.getpid()

    def _free(self, pointer: Any) -> None:
        raise NotImplementedError

    def _is_own(self) -> bool:
        """False in a child of fork()."""
        return self._process == os.getpid()

    def _shared(self) -> Any:
        """For what a child of fork() may do, too."""
        if self._pointer is None:
            raise ValueError("it is closed")
        return self._pointer

    def _handle(self) -> Any:
        pointer = self._shared()
        if not self._is_own():
            raise ValueError(f"it belongs to process {self._process}, which this one is a child of; open another one here")
        return pointer

    def close(self) -> None:
        """Closes it. More than once is fine."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            self._free(pointer)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self._pointer is not None:
            self.close()
