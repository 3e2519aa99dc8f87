# SPDX-License-Identifier: BSD-2-Clause
"""Tables that NICs read."""

import os
from typing import Any, Iterator, MutableMapping, NamedTuple, Tuple

from ._lib import ERR_BYTES, Handle, Key, fail, ffi, lib, to_bytes, to_name, to_str


class AsOf(NamedTuple):
    """How new a table is that follows a source; see reddn-as-of.h. All 0 of one that follows none.

    `source`: us by the clock of the source; `host`: ns by time.time_ns() of the writer's host; 0: unknown. `epoch`: of the source.
    `complete`: it has all keys of the source; else a miss proves nothing. `origin`: which source, as reddn.redis compares it; 0: unknown.
    """

    source: int
    host: int
    epoch: int
    follows: bool
    complete: bool
    origin: int = 0


def to_as_of(as_of: Any) -> AsOf:
    """Of a struct reddn_as_of."""
    return AsOf(as_of.source, as_of.host, as_of.epoch, bool(as_of.flags & lib.REDDN_FOLLOWS), bool(as_of.flags & lib.REDDN_COMPLETE), as_of.origin)


class Stat(NamedTuple):
    """What is in a table; sizes in bytes. Of a cluster of Redis: it has the keys of `slots` slots from `slot` on; 0: it does not state that."""

    entries: int
    buckets: int
    heap_size: int
    heap_used: int
    file_size: int
    max_key: int
    max_value: int
    slot: int
    slots: int
    as_of: AsOf


class Table(Handle, MutableMapping[Key, bytes]):
    """A hash table of byte strings in a file that NICs read: a mapping from bytes to bytes.

    One process writes. Others read at the same time, without locks; so does the NIC of a reddnd. Keys and values may be
    given as str, which is encoded as UTF-8; what comes out is bytes. Other types are a TypeError: a number is no text.
    One thread at a time uses a Table. Close it, or use it as a context manager.
    A child of fork() may read it.

    >>> with Table.create("/dev/shm/users.table", capacity=1000) as users:
    ...     users["alice"] = "admin"
    ...     users["alice"]
    b'admin'

    Errors are OSError with the errno that reddn-table.h documents: ENOSPC, no room in the buckets or the heap; EBUSY,
    another process has the table open for writing; EROFS, this one does not; and so on.
    """

    _popped: Any = None

    def __init__(self, path: "os.PathLike[str] | str", *, write: bool = False) -> None:
        """Opens a table; with `write` for writing, exclusively, which repairs what a killed writer left."""
        out, err = ffi.new("struct reddn_table **"), ffi.new("char[]", ERR_BYTES)
        result = lib.reddn_table_open(out, to_name("path", os.fsencode(path)), lib.REDDN_TABLE_WRITE if write else 0, err, ERR_BYTES)
        if result < 0:
            fail(result, to_str(err))
        self.close()
        self._open(out[0])

    @classmethod
    def create(
        cls,
        path: "os.PathLike[str] | str",
        *,
        capacity: int = 0,
        heap_size: int = 0,
        max_key: int = 0,
        max_value: int = 0,
        replace: bool = False,
        grow: bool = False,
    ) -> "Table":
        """Makes a table in a new file, open for writing.

        `capacity`: expected entries (10,000). `heap_size`: bytes for records, each rounded up to 64 (512 per expected
        entry). `max_key`, `max_value`: bytes (65536). `replace`: in place of an existing table of that name.
        `grow`: what is stored makes it larger when it is nearly full; see grow().
        """
        options = ffi.new("struct reddn_table_options *")
        options.capacity, options.heap_size = capacity, heap_size
        options.max_key, options.max_value, options.replace, options.grow = max_key, max_value, replace, grow
        out, err = ffi.new("struct reddn_table **"), ffi.new("char[]", ERR_BYTES)
        result = lib.reddn_table_create(out, to_name("path", os.fsencode(path)), options, err, ERR_BYTES)
        if result < 0:
            fail(result, to_str(err))
        table = cls.__new__(cls)
        table._open(out[0])
        return table

    def _free(self, pointer: Any) -> None:
        lib.reddn_table_close(pointer)

    def stat(self) -> Stat:
        st = ffi.new("struct reddn_table_stat *")
        lib.reddn_table_stat(self._shared(), st)
        values = [getattr(st, name) for name in Stat._fields]
        values[-1] = to_as_of(values[-1])
        return Stat(*values)

    def set_as_of(self, source: int, host: int, *, epoch: int = 0, complete: bool = False, origin: int = 0) -> None:
        """States how new the table is, which follows a source: when all changes until then are in it, and before a change after which
        it is not complete any more. Another `origin` needs another `epoch`."""
        as_of = {"source": source, "host": host, "epoch": epoch, "origin": origin, "flags": lib.REDDN_FOLLOWS | (lib.REDDN_COMPLETE if complete else 0)}
        result = lib.reddn_table_set_as_of(self._handle(), ffi.new("struct reddn_as_of *", as_of))
        if result < 0:
            fail(result)

    def grow(self, *, capacity: int = 0, heap_size: int = 0, max_key: int = 0, max_value: int = 0) -> None:
        """Puts a larger table with the same records in the place of this one: twice the size, or what create() would make
        of the arguments, with room for both meanwhile. Readers and NICs go on reading the old one, which is then marked
        as replaced. On an error the table is as it was.
        """
        options, err = ffi.new("struct reddn_table_options *"), ffi.new("char[]", ERR_BYTES)
        options.capacity, options.heap_size, options.max_key, options.max_value = capacity, heap_size, max_key, max_value
        result = lib.reddn_table_grow(self._handle(), options, err, ERR_BYTES)
        if result == 0:
            result = lib.reddn_table_grow_step(self._handle(), 2**64 - 1, err, ERR_BYTES)
        if result < 0:
            fail(result, to_str(err))

    def __getitem__(self, key: Key) -> bytes:
        k, val, length = to_bytes(key), ffi.new("const void **"), ffi.new("size_t *")
        result = lib.reddn_table_get(self._shared(), k, len(k), val, length)
        if result == lib.REDDN_TABLE_MISS:
            raise KeyError(key)
        if result < 0:
            fail(result)
        return bytes(ffi.buffer(val[0], length[0]))

    def __setitem__(self, key: Key, value: Key) -> None:
        k, v = to_bytes(key), to_bytes(value)
        result = lib.reddn_table_put(self._handle(), k, len(k), v, len(v))
        if result < 0:
            fail(result)

    def __delitem__(self, key: Key) -> None:
        k = to_bytes(key)
        result = lib.reddn_table_delete(self._handle(), k, len(k))
        if result == lib.REDDN_TABLE_MISS:
            raise KeyError(key)
        if result < 0:
            fail(result)

    def records(self) -> Iterator[Tuple[bytes, bytes]]:
        """Keys and values, in the order of the buckets. One that moves meanwhile may come twice or not at all."""
        return self._records_from(ffi.new("uint64_t *"))

    def _records_from(self, pos: Any) -> Iterator[Tuple[bytes, bytes]]:
        """Moves pos on, a bucket at a time."""
        entry = ffi.new("struct reddn_table_entry *")
        while True:
            result = lib.reddn_table_next(self._shared(), pos, entry)
            if result == lib.REDDN_TABLE_END:
                return
            if result < 0:
                fail(result)
            yield bytes(ffi.buffer(entry.key, entry.key_len)), bytes(ffi.buffer(entry.val, entry.val_len))

    def popitem(self) -> Tuple[bytes, bytes]:
        """Removes a record, of the buckets behind the last one: all of them, as clear() does, takes one round."""
        if self._popped is None:
            self._popped = ffi.new("uint64_t *")
        for _ in range(2):
            for key, value in self._records_from(self._popped):
                del self[key]
                return key, value
            self._popped[0] = 0
        raise KeyError("the table is empty")

    def __iter__(self) -> Iterator[Key]:
        return (key for key, _ in self.records())

    def __len__(self) -> int:
        return self.stat().entries
