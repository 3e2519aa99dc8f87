#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""history.py finds what is wrong, and only that.

Each rule has histories that break it. Random histories that took place are right. Short ones in which one operation was changed are
compared with a search of all orders: what history.py finds is always wrong, and of puts and gets alone it finds all that is wrong."""

import random
import sys
import tempfile

import history
from history import DELETE, GET, NEVER, PUT, PUT_IF, RECORD, Op


def put(value, start, end=NEVER, status=0):
    return Op(PUT, 1, start, end, value, status)


def get(value, start, end, version=0):
    return Op(GET, 1, start, end, value, 0 if value else history.MISS, version or value)


def delete(start, end=NEVER, found=True):
    return Op(DELETE, 1, start, end, 0, 0 if found else history.MISS)


def put_if(value, start, end, wanted, found=None):
    """On the condition of a version, which held, unless another one was found"""
    return Op(PUT_IF, 1, start, end, value, 0 if found is None else history.CONFLICT, found or 0, wanted=wanted)


WRONG_CONDITIONS = {
    "two changes of one version": [put(1, 0, 10), get(1, 11, 12, version=7), put_if(2, 20, 30, 7), put_if(3, 20, 30, 7)],
    "a change of what was replaced": [put(1, 0, 10), get(1, 11, 12, version=7), put(2, 20, 30), get(2, 31, 32, version=8), put_if(3, 40, 50, 7)],
    "a value that was changed": [put(1, 0, 10), get(1, 11, 12, version=7), put_if(2, 20, 30, 7), get(1, 40, 50, version=7)],
    "a put over a value, as if there were none": [put(1, 0, 10), put_if(2, 20, 30, 0), get(1, 40, 50)],
    "two puts of a new key": [put_if(1, 0, 10, 0), put_if(2, 20, 30, 0)],
    "two puts of a new key at a time": [put_if(1, 0, 30, 0), put_if(2, 20, 30, 0), get(1, 40, 50), get(0, 60, 70)],
    "a condition that found nothing, beside a value": [put(1, 0, 10), put_if(2, 20, 30, 5, found=0), get(1, 40, 50)],
    "a condition that found what was replaced": [put(1, 0, 10), get(1, 11, 12, version=7), put(2, 20, 30), get(2, 31, 32), put_if(3, 40, 50, 5, found=7)],
}

RIGHT_CONDITIONS = {
    "one after the other": [put_if(1, 0, 10, 0), get(1, 11, 12, version=7), put_if(2, 20, 30, 7), put_if(3, 40, 50, 7, found=8), get(2, 60, 70, version=8)],
    "two of a new key": [put_if(1, 0, 10, 0), put_if(2, 0, 10, 0, found=7), get(1, 20, 30, version=7)],
    "one that found what a put replaced meanwhile": [put(1, 0, 10), get(1, 11, 12, version=7), put(2, 20, 50), put_if(3, 30, 40, 7), get(2, 60, 70, version=8)],
    "one without an outcome": [put(1, 0, 10), get(1, 11, 12, version=7), put_if(2, 20, NEVER, 7), get(1, 40, 50, version=7), get(2, 60, 70, version=8)],
}

WRONG = {
    "a value that nobody put": [put(1, 0, 10), get(2, 20, 30)],
    "what is no value": [put(1, 0, 10), get(history.TORN, 20, 30)],
    "a value before it was put": [get(1, 0, 10), put(1, 20, 30)],
    "a value of a put that did nothing": [put(1, 0, 10, status=-11), get(1, 20, 30)],
    "a stale value": [put(1, 0, 10), put(2, 20, 30), get(1, 40, 50)],
    "a stale miss": [put(1, 0, 10), get(0, 20, 30)],
    "a stale miss beside later puts": [put(1, 0, 10), get(0, 20, 30), put(2, 15, 40), put(3, 16)],
    "a stale value behind a miss": [put(1, 0, 10), delete(12, 14), get(0, 20, 30), get(1, 40, 50)],
    "a lost put": [put(1, 0, 10), put(2, 20, 30), get(1, 31, 32), get(1, 40, 50)],
    "a lost put beside another": [put(1, 0, 10), put(2, 20, 30), put(3, 20, 60), get(1, 40, 50)],
    "a lost delete": [put(1, 0, 10), delete(20, 30), get(1, 40, 50)],
    "a value back": [put(1, 0, 10), put(2, 0, 10), get(1, 20, 30), get(2, 40, 50), get(1, 60, 70)],
    "a value back over a put": [put(1, 0, 10), get(1, 11, 12), put(2, 20, 30), get(2, 40, 50), get(1, 60, 70)],
    "a value back of a put without an outcome": [put(1, 0), put(2, 20, 30), get(1, 40, 50), get(2, 60, 70), get(1, 80, 90)],
    "a value that vanished": [put(1, 0, 10), get(1, 20, 30), get(0, 40, 50)],
    "a value that vanished behind a delete": [put(1, 0, 10), delete(12, 18), put(2, 20, 30), get(0, 40, 50)],
    "a value that vanished, though it was seen behind the delete": [put(1, 0, 40), delete(0, 12), put(2, 0, 3), get(1, 20, 30), get(0, 50, 60)],
    "a delete that missed what was there": [put(1, 0, 10), delete(20, 30, found=False), get(1, 40, 50)],
    "two deletes of one value": [put(1, 0, 10), delete(20, 30), delete(20, 30)],
    "a delete of nothing": [delete(0, 10)],
    "a delete of what was deleted": [put(1, 0, 10), put(2, 0, 10), delete(20, 30), delete(40, 50)],
    "a version of two values": [put(1, 0, 10), get(1, 20, 30, version=7), put(2, 40, 50), get(2, 60, 70, version=7)],
}

RIGHT = {
    "nothing": [],
    "one after the other": [get(0, 0, 1), put(1, 2, 3), get(1, 4, 5), put(2, 6, 7), get(2, 8, 9), delete(10, 11), get(0, 12, 13), put(3, 14, 15)],
    "both orders of two puts": [put(1, 0, 10), put(2, 5, 15), get(2, 7, 12), get(1, 14, 20)],
    "a get beside a put": [put(1, 0, 10), put(2, 20, 50), get(2, 25, 26), get(2, 27, 28)],
    "a put without an outcome, late": [put(1, 0), put(2, 20, 30), get(2, 40, 50), get(1, 60, 70), get(1, 80, 90)],
    "one that has no effect": [put(1, 0), put(2, 20, 30), get(2, 80, 90)],
    "a delete without an outcome, late": [put(1, 10, 20), delete(0), get(1, 30, 40), get(0, 50, 60)],
    "two puts and two deletes at once": [put(1, 0, 50), put(2, 0, 50), delete(0, 50), delete(0, 50), get(0, 60, 70)],
    "touching ends": [put(1, 0, 10), get(1, 10, 20), put(2, 20, 20), get(2, 20, 30)],
    "one that did nothing": [put(1, 0, 10), put(2, 20, 30, status=-28), get(1, 40, 50)],
}


def is_linearizable(ops):
    """All orders, for short histories."""
    ops = [op for op in ops if op.status not in history.NOTHING_HAPPENED]
    seen = set()

    def step(left, value):
        if all(ops[i].end == NEVER for i in left):
            return True
        if (left, value) in seen:
            return False
        seen.add((left, value))
        first = min(ops[i].end for i in left)
        for i in left:
            op = ops[i]
            if op.start > first:
                continue
            if op.is_absent() and value:
                continue
            if op.kind == GET and op.status == 0 and op.value != value:
                continue
            if op.kind == DELETE and op.status == 0 and not value and op.end != NEVER:
                continue
            if step(left - {i}, op.value if op.kind == PUT else 0 if op.kind == DELETE else value):
                return True
        return False

    return step(frozenset(range(len(ops))), 0)


def took_place(rnd, n, with_deletes):
    """A history of n operations: each has its moment, and begins before it and ends after it."""
    ops, value = [], 0
    for i in range(n):
        at = 10 * i + 5
        start, end = at - rnd.randrange(1, 40), at + rnd.randrange(1, 40)
        kind = rnd.choice((PUT, GET, GET, DELETE) if with_deletes else (PUT, GET, GET))
        lost = rnd.random() < 0.1
        if kind == PUT:
            status = -11 if rnd.random() < 0.1 else 0
            ops.append(put(i + 1, start, NEVER if lost and not status else end, status))
            value = value if status else i + 1
        elif kind == DELETE:
            ops.append(delete(start, NEVER if lost else end, found=bool(value) or lost))
            value = 0
        else:
            ops.append(get(value, start, end))
    return ops


def change(rnd, ops):
    """Another result of one operation, or another time"""
    i = rnd.randrange(len(ops))
    op = ops[i]
    if op.kind == GET and rnd.random() < 0.7:
        op = get(rnd.choice([0] + [o.value for o in ops if o.kind == PUT]), op.start, op.end)
    elif op.kind == DELETE and op.end != NEVER and rnd.random() < 0.7:
        op = delete(op.start, op.end, found=op.is_absent())
    elif op.end != NEVER:
        moved = rnd.randrange(-60, 60)
        op = op._replace(start=op.start + moved, end=op.end + moved)
    return ops[:i] + [op] + ops[i + 1 :]


def compare(rnd, times, with_deletes):
    """Returns how many histories were wrong, and how many of them were found."""
    wrong = found = 0
    for _ in range(times):
        ops = took_place(rnd, 8, with_deletes)
        for _ in range(rnd.randrange(1, 3)):
            ops = change(rnd, ops)
        is_wrong, is_found = not is_linearizable(ops), bool(history.check_key(ops))
        wrong += is_wrong
        found += is_found
        if is_found and not is_wrong:
            sys.exit("FAIL what is right is found wrong: %s\n%s" % ("\n".join(map(str, ops)), history.check_key(ops)))
        if is_wrong and not is_found and not with_deletes:
            sys.exit("FAIL not found: %s" % "\n".join(map(str, ops)))
    return wrong, found


def files():
    """What a client that was killed has left, and what the tool makes of it"""
    with tempfile.NamedTemporaryFile() as file:
        for end, value, status, kind in ((10, 5, 0, PUT), (0, 6, 0, PUT), (30, 5, 0, GET), (0, 0, 0, GET), (40, 6, -115, DELETE), (50, 0, 1, DELETE)):
            file.write(RECORD.pack(1, end, value, 9, 0, status, 7, kind))
        file.write(bytes(RECORD.size + 3))
        file.flush()
        ops = list(history.read(file.name, 3))
    assert [op.kind for op in ops] == [PUT, PUT, GET, DELETE, DELETE]
    assert [op.end for op in ops] == [10, NEVER, 30, NEVER, 50]
    assert ops[4].is_absent() and not ops[3].is_absent() and ops[0].client == 3 and ops[0].key == 7


def main():
    rnd = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    for name, ops in WRONG.items():
        assert name == "a version of two values" or name == "what is no value" or not is_linearizable(ops), "the search of %s" % name
        assert history.check_key(ops), "not found: %s" % name
        for i in range(20):  # in any order
            assert history.check_key(rnd.sample(ops, len(ops))), "not found in another order: %s" % name
    for name, ops in RIGHT.items():
        assert is_linearizable(ops), "the search of %s" % name
        assert not history.check_key(ops), "%s: %s" % (name, history.check_key(ops))
    for name, ops in WRONG_CONDITIONS.items():
        assert history.check_key(ops), "not found: %s" % name
    for name, ops in RIGHT_CONDITIONS.items():
        assert not history.check_key(ops), "%s: %s" % (name, history.check_key(ops))
    for n in range(300):
        ops = took_place(rnd, 200, n % 2)
        assert not history.check_key(ops), history.check_key(ops)
    files()
    print("%d of %d wrong histories of puts and gets are found" % compare(rnd, 3000, False)[::-1])
    wrong, found = compare(rnd, 3000, True)
    print("%d of %d with deletes" % (found, wrong))
    assert found > 0.9 * wrong


if __name__ == "__main__":
    main()
