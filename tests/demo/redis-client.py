# SPDX-License-Identifier: BSD-2-Clause
"""redis-client.py DATA SOCKET HOST:PORT OFFLOAD SECONDS RATE: fills a Redis with Debian control stanzas and changes them, gets them by
the NIC, and compares each answer with what Redis had. Prints a line after each part and then waits for one (tests/demo/redis)."""
import os
import random
import statistics
import sys
import threading
import time

os.environ.pop("LD_PRELOAD")  # for this process only
import redis  # noqa: E402
import reddn  # noqa: E402

DATA, SOCKET, SERVER, OFFLOAD, SECONDS, RATE = sys.argv[1:]
SECONDS, RATE = float(SECONDS), float(RATE)
EVER = 1 << 62
stanzas = {}
for text in open(DATA, "rb").read().split(b"\n\n"):
    for line in text.split(b"\n"):
        if line.startswith(b"Package: "):
            stanzas.setdefault(line[9:], text)
keys = sorted(stanzas)
source = redis.Redis(unix_socket_path=SOCKET)
# Of each key, by number of the change: when that began and when it had ended, us by the clock of Redis, which is that of this host
changes = {key: [(0, 0)] for key in keys}
ended, dead = threading.Event(), threading.Event()
wrong, ages, counts = [], [], {"gets": 0, "dead": 0, "changes": 0, "lost": 0}


def now():
    return time.time_ns() // 1000


def part(words):
    print(words, flush=True)
    sys.stdin.readline()


def value(key, number):
    return b"%d\n%s" % (number, stanzas[key])


def fill():
    begin = time.monotonic()
    for i in range(0, len(keys), 1000):
        with source.pipeline(transaction=False) as p:
            for key in keys[i : i + 1000]:
                p.set(key, value(key, 0))
            p.execute()
    return time.monotonic() - begin


def change():
    rng, begin = random.Random(1), time.monotonic()
    while not ended.is_set():
        key = keys[int(len(keys) * rng.random() ** 3)]  # some more often than others
        of = changes[key]
        of.append((now(), EVER))  # one that is lost may have happened
        try:
            source.set(key, value(key, len(of) - 1))
            of[-1] = (of[-1][0], now())
            counts["changes"] += 1
        except redis.RedisError:
            counts["lost"] += 1
            time.sleep(0.05)
        ahead = counts["changes"] / RATE - (time.monotonic() - begin)
        if ahead > 0:
            time.sleep(ahead)


def had(key, number, since, until):
    """The key had that value at some moment between the two"""
    of = changes[key]
    return number < len(of) and of[number][0] <= until and all(end >= since for _, end in of[number + 1 :])


def get(connection, rng):
    key = keys[int(len(keys) * rng.random() ** 3)]
    answer, until, as_of = connection.get(key), now(), connection.as_of
    number = int(answer.split(b"\n", 1)[0]) if answer else -1
    if number < 0 or answer != value(key, number) or not had(key, number, as_of.source, until):
        wrong.append((key, number, as_of, until, changes[key]))
    counts["gets"] += 1
    counts["dead"] += dead.is_set()
    if not dead.is_set():
        ages.append((until - as_of.source) / 1000)


def gets(seconds):
    begin, before = time.monotonic(), counts["gets"]
    while time.monotonic() < begin + seconds:
        get(connection, rng)
    return (counts["gets"] - before) / (time.monotonic() - begin)


part(f"redis-server {source.info('server')['redis_version']} has {len(keys)} of them, set in {fill():.1f} s")
rng = random.Random(2)
connection = reddn.connect(SERVER, OFFLOAD)
writer = threading.Thread(target=change)
writer.start()
speed = gets(SECONDS / 3)
dead.set()
part(f"{counts['gets']} gets, {speed:.0f} per second, beside {counts['changes']} changes; an answer was as of {statistics.median(ages):.0f} ms before it")
gets(SECONDS / 3)
part(f"{counts['dead']} gets of a Redis that is dead")
dead.clear()
before = len(ages)
gets(SECONDS / 3)
ended.set()
writer.join()
last = now()
while connection.get(keys[0]) is None or connection.as_of.source <= last:
    time.sleep(0.01)
different = sum(connection.get(key) != source.get(key) for key in keys)
print(f"{counts['gets']} gets in all, {counts['changes']} changes, {counts['lost']} lost by the death of Redis; {len(wrong)} wrong answers, {different} keys that differ in the end")
for words in wrong[:5]:
    print("wrong:", *words)
sys.exit(bool(wrong or different))
