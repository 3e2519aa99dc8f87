#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""history.py FILE...: was what clients of a store did linearizable? Each file has the operations of one client (store-client.c).

Each key is a register of its own. An operation takes effect at one moment between its start and its end: a put gives the key its value,
which no other put has; a delete that found the key takes it away; a get, and a delete that found nothing, see what is there. One
without a known outcome has no end, and perhaps no effect. One that ended with an error by which nothing happened has none.

The intervals are judged without a search. All that is known of a value is a *zone*: its put and the gets that saw it are a set of
operations within one period of the key. `first` is the smallest end in the set: the value was there then, or had been. `last` is the
largest start: it was still there, or was to come. If first < last, the key had the value all that time (Gibbons and Korach, Testing
Shared Memories, 1997: for puts and gets alone these rules are all that is needed):

  1. A value was put, and not after it was seen.
  2. No two values are there at a time.
  3. No other put, delete or get lies within the time of a value.

Deletes are alike, so that nobody knows which one a get of an absent key has seen. For those:

  4. Between a value and a moment without one there is room for a delete.
  5. Between a moment without a value and a delete that found one there is room for a put.
  6. There are at least as many puts as deletes that found the key.

Whatever breaks a rule is not linearizable. The store adds one: a version belongs to one value.

A put or a delete on a condition is a get, too: of the value that has the version, or of nothing. If the condition held, it changes that
in the same moment, so:

  7. What a condition has found is changed by one operation at most, and no get that begins later sees it.

One whose condition did not hold is a get of what it has found."""

import bisect
import os
import struct
import sys
from collections import defaultdict
from typing import NamedTuple

PUT, DELETE, GET, PUT_IF, DELETE_IF = 1, 2, 3, 4, 5
NEVER = 1 << 62  # an end that has not come
TORN = 2**64 - 1  # what a get returned is no value of any client
RECORD = struct.Struct("<QQQQQiIB7x")  # struct record of store-client.c
NOTHING_HAPPENED = {-11, -28, -90}  # EAGAIN, ENOSPC, EMSGSIZE
UNKNOWN = {-115, -110}  # EINPROGRESS, ETIMEDOUT
MISS = 1
CONFLICT = 3


class Op(NamedTuple):
    kind: int
    key: int
    start: int
    end: int  # NEVER: the outcome is unknown
    value: int  # 0: none
    status: int = 0
    version: int = 0
    client: int = 0
    wanted: int = -1  # version of the condition, which held; -1: there was none

    def is_absent(self):
        return self.kind != PUT and self.status == MISS

    def __str__(self):
        name = {PUT: "put", DELETE: "delete", GET: "get", PUT_IF: "put if", DELETE_IF: "delete if"}[self.kind]
        value = "nothing" if self.is_absent() else f"0x{self.value:x}" if self.value else ""
        return f"{name} {value} by client {self.client} [{self.start}, {'?' if self.end == NEVER else self.end}]"


class Zone:
    """What is known of a value."""

    def __init__(self, put):
        self.put, self.first, self.last, self.seen = put, put.end, put.start, None

    def add(self, get):
        if get.end < self.first:
            self.first = get.end
        if get.start > self.last:
            self.last, self.seen = get.start, get

    def __str__(self):
        return f"{self.put}, seen by {self.seen}" if self.seen else str(self.put)


def zones_of(ops, values, found):
    """The zones of the values of a key, by which version they have; rule 1."""
    zones = {op.value: Zone(op) for op in ops if op.kind == PUT}
    for op in ops:
        if op.kind != GET or op.status != 0:
            continue
        zone = zones.get(op.value)
        if op.value == TORN:
            found.append(f"{op} is not what any client put")
        elif zone is None:
            found.append(f"{op}, which was not put")
        elif op.end < zone.put.start:
            found.append(f"{op}, before it was put: {zone.put}")
        else:
            zone.add(op)
    for op in ops:
        seen = zones.get(values.get(op.wanted)) if op.wanted > 0 else None
        if seen and op.end != NEVER:
            seen.add(op)
    return zones.values()


def check_times(ops, zones, found):
    """Rules 2 and 3."""
    held = sorted((zone for zone in zones if zone.first < zone.last), key=lambda zone: zone.first)
    disjoint = []
    for zone in held:
        if disjoint and zone.first < disjoint[-1].last:
            found.append(f"two values at a time: {disjoint[-1]}; {zone}")
            if zone.last <= disjoint[-1].last:
                continue
        disjoint.append(zone)
    firsts = [zone.first for zone in disjoint]
    points = [(zone.last, zone.first, zone) for zone in zones if zone.first >= zone.last]
    points += [(op.start, op.end, op) for op in ops if op.is_absent() or (op.kind == DELETE and op.status == 0)]
    for start, end, what in points:
        at = bisect.bisect_left(firsts, start) - 1
        if at >= 0 and end < disjoint[at].last:
            found.append(f"within the time of {disjoint[at]}: {what}")


class Room:
    """Whether there is one of these intervals between two moments"""

    def __init__(self, intervals):
        intervals = sorted(intervals)
        self.starts, self.ends = [start for start, _ in intervals], []
        for _, end in intervals:
            self.ends.append(max(end, self.ends[-1] if self.ends else 0))

    def between(self, after, before):
        n = bisect.bisect_right(self.starts, before) - 1
        return n >= 0 and self.ends[n] >= after


class Latest:
    """Of things that were certain at a moment, and may have gone on to another: the one that went on longest"""

    def __init__(self, things):
        things = sorted(things, key=lambda thing: thing[0])
        self.firsts, self.longest = [first for first, _, _ in things], []
        for _, last, what in things:
            self.longest.append((last, what) if not self.longest or last > self.longest[-1][0] else self.longest[-1])

    def before(self, moment):
        """When it went on at least, and what it was; None: nothing was certain before."""
        at = bisect.bisect_left(self.firsts, moment) - 1
        return self.longest[at] if at >= 0 else None


def check_changes(ops, zones, found):
    """Rules 4 and 5."""
    deletes = Room((op.start, op.end) for op in ops if op.kind == DELETE and op.status != MISS)
    puts = Room((zone.put.start, zone.first) for zone in zones)
    values = Latest((zone.first, zone.last, zone) for zone in zones)
    absences = Latest((op.end, op.start, op) for op in ops if op.kind != PUT and (op.is_absent() or op.kind == DELETE) and op.end != NEVER)
    for op in ops:
        if op.is_absent():
            before = values.before(op.start)
            if before and not deletes.between(before[0], op.end):
                found.append(f"{op}, and no delete since {before[1]}")
        elif op.kind == DELETE and op.end != NEVER:
            before = absences.before(op.start)
            if not puts.between(before[0] if before else 0, op.end):
                found.append(f"{op} found the key, and no put since {before[1] if before else 'ever'}")


def check_versions(ops, found):
    versions = {}
    for op in ops:
        if op.kind == GET and op.status == 0 and versions.setdefault(op.version, op.value) != op.value:
            found.append(f"version {op.version} has two values: {op}")


def split(ops):
    """Those on a condition, as what they are without it, and the gets that they are besides."""
    for op in ops:
        if op.kind < PUT_IF:
            yield op
        elif op.status == CONFLICT:
            yield op._replace(kind=GET, status=0 if op.version else MISS, value=0, wanted=-1)
        else:
            yield op._replace(kind=PUT if op.kind == PUT_IF else DELETE)
            if not op.wanted and op.end != NEVER:
                yield op._replace(kind=GET, status=MISS, value=0, wanted=-1)


def with_values(ops, values):
    """A condition that did not hold has found a version: of that value, if any get has seen both."""
    for op in ops:
        if op.kind == GET and op.status == 0 and not op.value:
            if op.version not in values:
                continue
            op = op._replace(value=values[op.version])
        yield op


def check_conditions(ops, values, found):
    """Rule 7."""
    held = {}
    for op in ops:
        if op.wanted > 0 and op.end != NEVER:
            if held.setdefault(op.wanted, op) is not op:
                found.append(f"version {op.wanted} was replaced twice: {held[op.wanted]}; {op}")
    for op in ops:
        by = held.get(op.version) if op.kind == GET and op.status == 0 else None
        if by and op.start > by.end:
            found.append(f"{op}, which was replaced: {by}")


def check_key(ops):
    """What is wrong with the operations of one key."""
    found = []
    ops = [op for op in ops if op.status not in NOTHING_HAPPENED]
    values = {op.version: op.value for op in ops if op.kind == GET and op.status == 0}
    ops = list(with_values(split(ops), values))
    check_conditions(ops, values, found)
    zones = zones_of(ops, values, found)
    check_times(ops, zones, found)
    check_changes(ops, zones, found)
    check_versions(ops, found)
    if sum(op.kind == PUT for op in ops) < sum(op.kind == DELETE and op.status == 0 and op.end != NEVER for op in ops):
        found.append("more deletes have found the key than there are puts")
    return found


def read(path, client):
    """The operations of a client. A get without an answer has seen nothing."""
    with open(path, "rb") as file:
        data = file.read()
    for start, end, value, version, wanted, status, key, kind in RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size]):
        if not kind:
            return
        unknown = not end or status in UNKNOWN
        if kind == GET and (unknown or status < 0):
            continue
        if status < 0 and status not in NOTHING_HAPPENED and not unknown:
            sys.exit(f"{path}: an operation ended with {os.strerror(-status)}")
        wanted = wanted if kind >= PUT_IF else -1
        yield Op(kind, key, start, NEVER if unknown else end, value, 0 if unknown else status, version, client, wanted)


def main():
    keys, n, unknown = defaultdict(list), 0, 0
    for client, path in enumerate(sys.argv[1:], 1):
        for op in read(path, client):
            keys[op.key].append(op)
            n += 1
            unknown += op.end == NEVER
    wrong = [(key, found) for key, ops in sorted(keys.items()) for found in check_key(ops)]
    for key, found in wrong[:20]:
        print(f"key {key}: {found}")
    print(f"{n} operations, {unknown} without an outcome, on {len(keys)} keys: {len(wrong)} are wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
