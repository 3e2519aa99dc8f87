#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ask.py set PORT: sets keys at the memcached on PORT. ask.py places PROOF: prints, for each of these keys and for "none", which is not
set, the argument of memcached-get; PROOF is what `reddn-memcached check --json` printed. ask.py items REPLY N KEY: of the first N
items in the reply, which the file REPLY has as `reddn call --json` printed it, checks the one with KEY."""
import json
import struct
import sys

import stock

KEYS = 20
TABLES = 131072  # where the region of the tables begins
MOST = 300  # param of memcached-get
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


def items(reply, n):
    live, rest = struct.unpack("<QQQ", reply[:24]), reply[64:]
    size = 72 + MOST
    for i in range(n):
        part = rest[i * size : (i + 1) * size]
        places = {int.from_bytes(part[k : k + 8], "big") & (1 << 40) - 1 for k in (0, 8, 16)}
        states = {part[24:48], part[48:72], part[80:104]}
        stock.check(len(places) == 1 and len(states) == 1, f"the walks differ: {places} {states}")
        nbytes, refcount, flags, _, nkey, cas = struct.unpack("<iHHBB6xQ", part[24:48])
        key = part[104 : 104 + nkey].decode()
        at = 104 + nkey + 1 + (4 if flags & CFLAGS else 0)
        yield {"live": live, "place": places.pop(), "flags": flags, "refcount": refcount, "cas": cas, "key": key, "value": part[at : at + nbytes]}


def main():
    what, *args = sys.argv[1:]
    if what == "places":
        proof = json.load(open(args[0]))
        for key in ["none"] + [f"key{i}" for i in range(KEYS)]:
            bucket = murmur3(key.encode()) & (1 << proof["power"]) - 1
            print(key, proof["table_offset"] - TABLES + 8 * bucket)
    elif what == "set":
        client = stock.Client(int(args[0]))
        for i in range(KEYS):
            stock.check(client.set(f"key{i}", value(f"key{i}"), flags=i % 3) == "STORED", "set")
    else:
        reply = bytes.fromhex(json.load(open(args[0]))["reply"])
        found = [i for i in items(reply, int(args[1])) if i["key"] == args[2]]
        stock.check(len(found) == 1, f"{args[2]} is not there: {list(items(reply, int(args[1])))}")
        item = found[0]
        stock.check(item["value"] == value(args[2]) + b"\r\n", f"{item}")
        stock.check(item["flags"] & 3 == LINKED | CAS and item["cas"] and item["refcount"] == 1 and item["live"][0] % 2 == 0, f"{item}")


if __name__ == "__main__":
    main()
