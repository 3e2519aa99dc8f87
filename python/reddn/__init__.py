# SPDX-License-Identifier: BSD-2-Clause
"""Ask the NIC of a reddnd server, and write the tables that it reads.

    import reddn

    with reddn.connect("storage1", "users") as users:
        users.get("alice")              # b"admin", or None
        users.mget(["alice", "bob"])    # many at once
        users.put("carol", "guest")     # in a store, by the NIC
        users.put("dave", "guest", ttl=60)  # expires in a minute
        users.delete("bob")             # True, or False: it was absent
        value, version = users.get_versioned("carol")
        users.put("carol", value + b"s", if_version=version)  # or reddn.Conflict: another client was first
        users.exists_many(["alice", "bob"])    # [True, False]
        users.first_missing(["alice", "bob"])  # 1

    with reddn.connect("storage1", "blocks.into", into=True) as blocks:
        blocks.register(pool)           # a bytearray: large values go there, without a copy
        blocks.get_into("block 7", memoryview(pool)[:65536])  # its length, or None

    with reddn.connect("storage1", "blocks") as blocks:
        blocks.register(pool)           # and come from there, to a store
        blocks.put("block 8", memoryview(pool)[65536:131072])

    with reddn.connect("storage1", "seats") as seats:
        seats.call(at=16)               # {"sold": 40, "seats": 100}: any program, by the names that it has

    with reddn.connect("storage1", "words") as words, reddn.Lock(words, 0, lease=2) as lock:
        words.cas(1, 0, lock.token)     # words that clients share

    with reddn.connect("storage1", "events") as events:
        events.append("disk 7 failed")  # 4711, its number in the log

    with reddn.connect("storage1", "events.read") as events:
        for number, value in reddn.Log(events, start=4700):
            print(number, value)

    with reddn.Table.create("/dev/shm/reddn/users.table", capacity=1000) as table:
        table["alice"] = "admin"

reddn.aio has the same for asyncio. The calls are those of the C library: see libreddn(3).
"""

import importlib
from typing import TYPE_CHECKING

from ._connection import Argument, Conflict, Connection, End, Field, Host, Reply, Value, Versioned
from ._lib import Key
from ._lock import Lock
from ._log import Entry, Log
from ._table import AsOf, Stat, Table

if TYPE_CHECKING:
    from . import aio
else:
    def __getattr__(name):
        """reddn.aio, for those who use it: to import asyncio takes longer than all else."""
        if name == "aio":
            return importlib.import_module("reddn.aio")
        raise AttributeError(f"module 'reddn' has no attribute {name!r}")

connect = Connection

__all__ = [
    "Argument", "AsOf", "Conflict", "Connection", "End", "Entry", "Field", "Host", "Key", "Lock", "Log", "Reply", "Stat", "Table", "Value", "Versioned", "aio",
    "connect",
]
