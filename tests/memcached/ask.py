#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ask.py set PORT: sets keys at the memcached on PORT. ask.py flush PORT: flush_all. ask.py places PROOF: prints, for each of these keys
and for "none", which is not set, the argument of memcached-get; PROOF is what `reddn-memcached check --json` printed. ask.py items
REPLY N KEY: of the first N items in the reply, which the file REPLY has as `reddn call --json` printed it, checks the one with KEY.
ask.py lines REPLY EXPRESSION: checks the live line and what reddnd knows, the names in EXPRESSION."""
import json
import struct
import sys
import time

import stock

KEYS = 20
TABLES = 131072  # where the region of the tables begins
MOST = 300  # param of memcached-get
LINES = 144  # bytes before the items
WALKS = 88  # bytes of an item before those from 24 on
LINKED, CAS, CFLAGS = 1, 2, 256


def value(key):
    return (key * 40).encode()[:200]


def murmur3(key):
    """MurmurHash3_x86_32, seed 0."""

    def mix(k):
        k = k * 0xCC9E2D51 & 0xFFFFFFFF
        return (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF

    h, whole = 0, len(key) // 4 * 4
    for i in range(0, whole, 4):
        h ^= mix(int.from_bytes(key[i : i + 4], "little"))
        h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    h ^= mix(int.from_bytes(key[whole:], "little"))
    h ^= len(key)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor & 0xFFFFFFFF
    return h


def lines(reply):
    names = "generation tables pid".split() + ["_"] * 5 + "proved hash traits clock died identity flushed asked sum".split()
    return dict(zip(names, struct.unpack("<9Q2I6Q", reply[:128])))


def items(reply, n):
    rest, size = reply[LINES:], WALKS + MOST
    stock.check(struct.unpack(">II", reply[128:136]) == (n, MOST), "n and most")
    for i in range(n):
        part = rest[i * size : (i + 1) * size]
        places = {int.from_bytes(part[k : k + 8], "big") & (1 << 40) - 1 for k in (0, 8, 16)}
        states = {part[24:48], part[64:88], part[96:120]}
        stock.check(i > 0 or int.from_bytes(reply[136:141], "little") in places, "the bucket points elsewhere")
        stock.check(len(places) == 1 and len(states) == 1, f"the walks differ: {places} {states}")
        nbytes, refcount, flags, _, nkey, cas = struct.unpack("<iHHBB6xQ", part[24:48])
        key = part[120 : 120 + nkey].decode()
        at = 120 + nkey + 1 + (4 if flags & CFLAGS else 0)
        yield {"place": places.pop(), "flags": flags, "refcount": refcount, "cas": cas, "key": key, "value": part[at : at + nbytes]}


def print_places(path):
    with open(path) as f:
        proof = json.load(f)
    for key in ["none"] + [f"key{i}" for i in range(KEYS)]:
        bucket = murmur3(key.encode()) & (1 << proof["power"]) - 1
        print(key, proof["table_offset"] - TABLES + 8 * bucket)


def set_keys(port):
    client = stock.Client(port)
    for i in range(KEYS):
        stock.check(client.set(f"key{i}", value(f"key{i}"), flags=i % 3) == "STORED", "set")


def check_item(reply, n, key):
    found = [i for i in items(reply, n) if i["key"] == key]
    stock.check(len(found) == 1, f"{key} is not there: {list(items(reply, n))}")
    item = found[0]
    stock.check(item["value"] == value(key) + b"\r\n", f"{item}")
    stock.check(item["flags"] & 3 == LINKED | CAS and item["cas"] and item["refcount"] == 1, f"{item}")


def main():
    what, *args = sys.argv[1:]
    if what == "places":
        print_places(args[0])
    elif what == "flush":
        stock.check(stock.Client(int(args[0])).ask("flush_all") == "OK", "flush_all")
    elif what == "set":
        set_keys(int(args[0]))
    else:
        with open(args[0]) as f:
            reply = bytes.fromhex(json.load(f)["reply"])
        if what == "items":
            check_item(reply, int(args[1]), args[2])
        else:
            stock.check(eval(args[1], {"now": time.time()}, lines(reply)), f"{args[1]}: {lines(reply)}")


if __name__ == "__main__":
    main()
