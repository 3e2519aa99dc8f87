# SPDX-License-Identifier: BSD-2-Clause
"""words.py CLIENT HOST PORT FOLDER WORDS SWAPS[,SWAPS] ADDS[,ADDS] [ASK DONE]: clients of sharing.c share words, are stopped and
killed, and what they say of the words is compared with the file WORDS. With ASK and DONE: makes the file ASK when all of them are at
work, and waits for the file DONE, when the server has been killed and started."""
import itertools
import os
import signal
import struct
import subprocess
import sys
import time

CLIENT, HOST, PORT, FOLDER, WORDS, SWAPS, ADDS = sys.argv[1:8]
LOCK, COUNTED, KEPT, ADDED, SWAPPED = range(5)
HELD, COUNT_MASK, SECONDS = 1 << 63, (1 << 32) - 1, 100
numbers = itertools.count()
clients = []


class Client:
    def __init__(self, role):
        number = next(numbers)
        self.role, self.tally = role, f"{FOLDER}/tally.{number}"
        swaps, adds = SWAPS.split(","), ADDS.split(",")
        self.output = open(f"{FOLDER}/client.{number}", "w+b")
        self.process = subprocess.Popen(
            [os.environ["SOFTCX"], "run", CLIENT, HOST, PORT, swaps[number % len(swaps)], adds[number % len(adds)], self.tally, role], stdout=self.output, stderr=self.output)
        clients.append(self)

    def __getattr__(self, name):
        try:
            with open(self.tally, "rb") as file:
                values = struct.unpack("<6Q", file.read())
        except (FileNotFoundError, struct.error):
            values = (0,) * 6
        return dict(zip(("begun", "done", "unknown", "overtaken", "taken", "token"), values))[name]

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        if self.role != "swap":
            self.signal(signal.SIGINT)
        status = self.process.wait(SECONDS)
        self.output.seek(0)
        text = self.output.read().decode()
        assert status == 0, (self.role, status, text)
        return text


def word(number):
    with open(WORDS, "rb") as file:
        file.seek(8 * number)
        return int.from_bytes(file.read(8), "little")


def wait(true, what):
    until = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < until, f"{what}: never"
        time.sleep(0.002)


def linearizable(histories):
    """Each swap took the value of another one, and all of them, and those that only saw a value, fit into one order with the clock"""
    swaps = [tuple(map(int, line.split())) for text in histories for line in text.splitlines()]
    by_old = {}
    for begin, end, old, new, was in swaps:
        if was == old:
            assert old not in by_old, f"two swaps took {old}"
            by_old[old] = begin, end, new
    place, value, order = {0: 0}, 0, []
    while value in by_old:
        begin, end, value = by_old[value]
        place[value] = len(place)
        order.append((2 * place[value], begin, end))
    assert len(order) == len(by_old) and value == word(SWAPPED), "the swaps are no chain"
    seen = [(2 * place[was] + 1, begin, end) for begin, end, old, new, was in swaps if was != old]
    latest, behind = 0, 0
    for at, same in itertools.groupby(sorted(order + seen), key=lambda o: o[0]):
        for _, begin, end in (same := list(same)):
            assert end > latest, f"operation {at} had ended before an earlier one began"
        latest = max(latest, *(begin for _, begin, _ in same))
        behind += len(same)
    assert behind == len(swaps)
    return len(order), len(seen)


def stop_holder(counters):
    """A client that has the lock, and is stopped"""
    while True:
        for client in counters:
            if not client.token:
                continue
            client.signal(signal.SIGSTOP)
            time.sleep(0.01)
            if client.token and word(LOCK) & HELD and word(LOCK) >> 16 & (1 << 47) - 1 == client.token:
                return client
            client.signal(signal.SIGCONT)
        time.sleep(0.001)


def sums(kills):
    """All that was done is there, and nothing that was not begun; of each kill at most one is unknown, besides what a client knows to be"""
    for role, value in (("count", word(COUNTED) & COUNT_MASK), ("add", word(ADDED))):
        done, begun, unknown = (sum(getattr(c, n) for c in clients if c.role == role) for n in ("done", "begun", "unknown"))
        print(f"{role}: {done} to {begun}, {unknown} unknown, {value}", flush=True)
        assert 0 < done <= value <= begun <= done + unknown + kills


def share():
    histories = [c.end() for c in [Client("swap") for _ in range(4)]]
    print("swaps, and values seen:", *linearizable(histories))

    kept = Client("keep")
    wait(lambda: kept.token, "the lock that is kept")
    wanting = [Client("want") for _ in range(2)]
    wait(lambda: kept.done > 150 and all(c.done > 10 for c in wanting), "renewals")
    taken, done = any(c.taken for c in wanting), kept.done
    wait(lambda: kept.done > done + 1, "a renewal")  # it knows by then that it was late
    assert kept.overtaken or not taken, "a lease was ended that had been renewed"
    kept.end()
    wait(lambda: all(c.taken for c in wanting), "the lock that was given back")
    for client in wanting:
        client.end()
    print("renewals:", kept.done)

    counters, adders = [Client("count") for _ in range(4)], [Client("add") for _ in range(2)]
    kills = 0
    for _ in range(5):
        holder = stop_holder(counters)
        holder.signal(signal.SIGKILL)
        holder.process.wait(SECONDS)
        counters.remove(holder)
        taken = {c: c.taken for c in counters}
        wait(lambda: all(c.taken > taken[c] for c in counters), "the lock of one that died")
        counters.append(Client("count"))
        adders[0].signal(signal.SIGKILL)
        adders[0].process.wait(SECONDS)
        adders = adders[1:] + [Client("add")]
        kills += 1

        holder = stop_holder(counters)
        token, overtaken = holder.token, holder.overtaken
        wait(lambda: word(LOCK) >> 16 & (1 << 47) - 1 > token, "the lock of one that is stopped")
        holder.signal(signal.SIGCONT)
        wait(lambda: holder.overtaken > overtaken, "one that was stopped notices that")
    wait(lambda: all(c.done for c in counters + adders), "clients at work")
    for client in counters + adders:
        client.end()
    sums(kills)


def outage(ask, done):
    for role in ("count", "count", "count", "add", "add"):
        Client(role)
    wait(lambda: all(c.done for c in clients), "clients at work")
    open(ask, "w").close()
    wait(lambda: os.path.exists(done), "another daemon")
    before = {c: c.done for c in clients}
    wait(lambda: all(c.done > before[c] for c in clients), "clients at work again")
    for client in clients:
        client.end()
    sums(0)


try:
    outage(*sys.argv[8:]) if sys.argv[8:] else share()
finally:
    for client in clients:
        if client.process.poll() is None:
            client.signal(signal.SIGKILL)
