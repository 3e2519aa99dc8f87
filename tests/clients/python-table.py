# SPDX-License-Identifier: BSD-2-Clause
"""python-table.py DIR: what reddn.Table does; leaves users.table with 300 entries in DIR."""
import copy
import errno
import os
import pickle
import sys
import unittest.mock

import reddn


def raises(kind, action, *words):
    try:
        action()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return error
    raise AssertionError(f"no {kind.__name__}")


class Counting:
    nexts, real = 0, reddn._table.lib

    def __getattr__(self, name):
        self.nexts += name == "reddn_table_next"
        return getattr(self.real, name)


os.chdir(sys.argv[1])
with reddn.Table.create("users.table", capacity=1000, max_value=100, max_key=50) as t:
    for i in range(300):
        t[f"user {i}"] = f"value {i}"
    t["gone"] = b"\x00\xff"
    assert t[b"gone"] == b"\x00\xff" and "gone" in t and t.get("absent") is None
    del t["gone"]
    assert "gone" not in t and len(t) == 300 == t.stat().entries
    assert dict(t.records()) == {b"user %d" % i: b"value %d" % i for i in range(300)}
    assert sorted(t) == sorted(b"user %d" % i for i in range(300))
    raises(KeyError, lambda: t["gone"])
    raises(KeyError, lambda: t.__delitem__("gone"))
    assert raises(OSError, lambda: t.__setitem__("key", "x" * 101)).errno == errno.EMSGSIZE
    assert raises(OSError, lambda: t.__setitem__("", "x")).errno == errno.EINVAL
    assert raises(OSError, lambda: reddn.Table("users.table", write=True)).errno == errno.EBUSY
    for wrong in (5, True, None, [1, 2], 1.5):
        raises(TypeError, lambda wrong=wrong: t.__setitem__("key", wrong), repr(wrong), "str or bytes")
        raises(TypeError, lambda wrong=wrong: t.__setitem__(wrong, "value"), repr(wrong), "str or bytes")
        raises(TypeError, lambda wrong=wrong: t[wrong], repr(wrong), "str or bytes")
    assert "key" not in t and len(t) == 300
    t[bytearray(b"array")] = memoryview(b"view")
    assert t.pop(memoryview(b"array")) == b"view"
    with reddn.Table("users.table") as second:
        assert second["user 7"] == b"value 7"
        assert raises(OSError, lambda: second.__setitem__("a", "b")).errno == errno.EROFS
with reddn.Table("users.table", write=True) as t, reddn.Table("users.table") as old:
    buckets = t.stat().buckets
    assert raises(OSError, lambda: t.grow(max_value=5), "longer").errno == errno.EMSGSIZE
    assert raises(OSError, lambda: old.grow()).errno == errno.EROFS
    t.grow(capacity=100000)
    assert t.stat().buckets > buckets == old.stat().buckets
    assert dict(t.records()) == dict(old.records()) and len(t) == 300
    t["new"] = "value"
    assert "new" not in old
    with reddn.Table("users.table") as now:
        assert now["new"] == b"value"
    del t["new"]
    assert t.stat().as_of == (0, 0, 0, False, False, 0)
    t.set_as_of(5, 6, epoch=7, complete=True, origin=8)
    with reddn.Table("users.table") as reader:
        assert reader.stat().as_of == reddn.AsOf(source=5, host=6, epoch=7, follows=True, complete=True, origin=8)
        assert raises(OSError, lambda: reader.set_as_of(5, 6)).errno == errno.EROFS
with reddn.Table.create("small.table", capacity=1, heap_size=4096, max_value=100, grow=True) as t:
    for i in range(10000):
        t[f"key {i}"] = f"value {i}"
    assert len(t) == 10000 and t["key 0"] == b"value 0"
os.unlink("small.table")
assert not [name for name in os.listdir(".") if name.endswith(".new")], os.listdir(".")
raises(ValueError, lambda: t["user 7"], "closed")
for wrong in (copy.copy, copy.deepcopy, pickle.dumps):
    raises(TypeError, lambda wrong=wrong: wrong(t), "Table")
raises(ValueError, lambda: reddn.Table.__new__(reddn.Table)["user 7"], "closed")

# clear() goes through the buckets once, not once for each record
with reddn.Table.create("clear.table", capacity=2000) as t, unittest.mock.patch.object(reddn._table, "lib", Counting()) as lib:
    raises(KeyError, t.popitem)
    for i in range(2000):
        t[f"{i}"] = "x"
    assert t.popitem()[1] == b"x" and len(t) == 1999
    t["again"] = "x"
    before = lib.nexts
    t.clear()
    assert len(t) == 0 and lib.nexts - before < 20000
    t["key"] = "value"
    assert t.popitem() == (b"key", b"value")
    t["key"] = "value"
    if (child := os.fork()) == 0:  # it reads, and cannot write; what it closes stays open here
        try:
            assert t["key"] == b"value" and len(t) == 1
            raises(ValueError, lambda: t.__setitem__("key", "x"), "child")
            raises(ValueError, t.clear, "child")
            t.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    t["key"] = "other"
    assert t["key"] == b"other"
t.close()
raises(FileExistsError, lambda: reddn.Table.create("users.table"), "users.table")
raises(FileNotFoundError, lambda: reddn.Table("absent.table"), "absent.table")
raises(ValueError, lambda: reddn.Table("users.table\0x"), "zero byte")
raises(ValueError, lambda: reddn.Table.create("other.table\0x"), "zero byte")
assert not os.path.exists("other.table")
