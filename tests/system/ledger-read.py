#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""ledger-read.py PID count STATUS ARENA: compares what the ledger of the daemon PID names (reddnd/ledger/format.h) with what there is:
STATUS, a file with the output of "softcx status --json", and ARENA, the bytes of the arena that are in use. Prints how many more
objects of each type there are, and bytes; those of other programs are among them.
ledger-read.py PID qpn SESSION PART: prints the number of a queue pair (reddnd/session/session.h: cookies).
ledger-read.py PID windows: prints the keys of windows that can be used, a line each."""

import glob
import json
import os
import struct
import sys

PAGE, SLOT, OBJECTS, OBJECT = 4096, 2048, 32, 48
USED, STATE, KIND, BLOCK, FIRST = 20, 0, 4, 16, 24  # offsets: in the head, and in a slot
COOKIE = 32  # of an object
QP, CQ, MR = 1, 2, 3
SESSION, NUMBER = 5, FIRST + OBJECTS * OBJECT  # kind of slots; and where they have their numbers
LIVE, WINDOW = 2, 4
KINDS = {1: "qps", 2: "cqs", 3: "mkeys", 4: "umems", 5: "uars", 6: "pds"}


def read_ledger(pid):
    for path in glob.glob("/proc/%d/fd/*" % pid):
        if os.readlink(path).startswith("/memfd:reddnd-ledger"):
            with open(path, "rb") as f:
                used = struct.unpack_from("=I", f.read(PAGE), USED)[0]
                return f.read(used * SLOT)
    sys.exit("process %d has no ledger" % pid)


def objects(ledger, slot):
    for i in range(OBJECTS):
        kind, _, number = struct.unpack_from("=III", ledger, slot + FIRST + i * OBJECT)
        if kind:
            yield kind, number, struct.unpack_from("=Q", ledger, slot + FIRST + i * OBJECT + COOKIE)[0]


def umems(files):
    """The device does not count them: they are of files"""
    return sum(o.get("kind") == "umem" for f in files for o in f.get("objects", []))


def count(ledger, status, arena):
    named, bytes_used = dict.fromkeys(KINDS.values(), 0), 0
    for slot in range(0, len(ledger), SLOT):
        if struct.unpack_from("=I", ledger, slot + STATE)[0] == 0:
            continue
        bytes_used += struct.unpack_from("=Q", ledger, slot + BLOCK)[0]
        for kind, _, _ in objects(ledger, slot):
            if kind in KINDS:
                named[KINDS[kind]] += 1
    with open(status, encoding="utf-8") as f:
        now = json.load(f)
    for kind, n in named.items():
        have = umems(now["open_files"]) if kind == "umems" else sum(d[kind] for d in now["devices"])
        print(kind, have - n)
    print("bytes", int(arena) - bytes_used)


def qpn(ledger, session, part):
    for slot in range(0, len(ledger), SLOT):
        if struct.unpack_from("=I", ledger, slot + STATE)[0] == 0:
            continue
        if struct.unpack_from("=I", ledger, slot + KIND)[0] != SESSION or struct.unpack_from("=Q", ledger, slot + NUMBER)[0] != int(session):
            continue
        for kind, number, cookie in objects(ledger, slot):
            if kind == QP and cookie == int(session) << 8 | 0x80 | int(part):
                print(number)


def windows(ledger):
    for slot in range(0, len(ledger), SLOT):
        if struct.unpack_from("=I", ledger, slot + STATE)[0] == LIVE and struct.unpack_from("=I", ledger, slot + KIND)[0] == WINDOW:
            print(*["%#x" % number for kind, number, _ in objects(ledger, slot) if kind == MR])


{"count": count, "qpn": qpn, "windows": windows}[sys.argv[2]](read_ledger(int(sys.argv[1])), *sys.argv[3:])
