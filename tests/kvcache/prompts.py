# SPDX-License-Identifier: BSD-2-Clause
"""prompts.py HOSTS BLOCK PROMPTS SEED TIMEOUT STOP: serves prompts out of the cache of docs/examples/kvcache, at least PROMPTS, and until the file STOP
exists. Every block that arrives is compared with what its key has to have. Prints "prompts N" now and then, "out HOST" and "up HOST", "again" when a block
is computed that was put before, and in the end what came of it; a wrong block ends it at once."""

import hashlib
import os
import random
import sys

import kvcache

TOKENS, BLOCKS, FAMILIES = 16, 8, 40


def block_of(key, size):
    """What a model would compute for a key: here, a function of it alone"""
    return hashlib.shake_128(key).digest(size)


def prompt(rng):
    """A conversation goes on, or another one begins: prompts share the first blocks with others of their family."""
    family = min(int(rng.paretovariate(0.7)), FAMILIES)
    turn = rng.randrange(4)
    shared, blocks = rng.randrange(1, BLOCKS), rng.randrange(2, BLOCKS + 1)
    return [(family << 8) + i if i < shared * TOKENS else (family << 8) + i + (turn << 20) for i in range(blocks * TOKENS + rng.randrange(TOKENS))]


def main():
    hosts, size, least, seed, stop = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[6]
    rng, served, hits, computed, again, short, lost = random.Random(seed), 0, 0, 0, 0, 0, 0
    known = set()
    pool = bytearray(BLOCKS * size)
    places = [memoryview(pool)[i * size : (i + 1) * size] for i in range(BLOCKS)]
    up = {}
    with kvcache.KVCache(hosts, pool, size, timeout=float(sys.argv[5])) as cache:
        while served < least or not os.path.exists(stop):
            keys = kvcache.block_keys(prompt(rng), TOKENS, "model")
            n = cache.first_missing(keys)
            there = cache.get(keys[:n], places)
            for i in range(n):
                if there[i] and places[i] != block_of(keys[i], size):
                    sys.exit(f"prompt {served}: block {i} is not that of its key")
            # attention needs all before a block
            prefix = there.index(False) if False in there else n
            short += prefix < n
            hits += prefix
            for key in keys[prefix:]:
                computed += 1
                if key in known:
                    again += 1
                    print("again", flush=True)
                known.add(key)
                lost += not cache.put(key, block_of(key, size))
            served += 1
            if served % 20 == 0:
                print("prompts", served, flush=True)
            for host in cache.hosts:
                if up.get(host.name) != host.up:
                    up[host.name] = host.up
                    print("up" if host.up else "out", host.name, flush=True)
        losses = sum(host.losses for host in cache.hosts)
    print(
        f"{served} prompts, 0 wrong blocks: {hits} blocks of the cache, {computed} computed, {again} of them again; {losses} times a host was lost, "
        f"{short} prefixes were shorter than exists said, {lost} puts went nowhere"
    )


main()
