# SPDX-License-Identifier: BSD-2-Clause
"""Clients of a log, and what is right about what they say:

log.py fill FILE                          a log that is full but for the last 100
log.py append SERVER OFFLOAD NAME OUT STOP
                                          appends until the file STOP is there
log.py follow SERVER OFFLOAD START OUT DONE
                                          reads from entry START on, and to the number in the file DONE, when that is there; "lost N" at the end
log.py check FOLDER                       of the files append.* and follow.*
log.py last FOLDER                        writes the largest number that was appended to the file done; and to late a number that a reader who
                                          is overtaken gets to soon
log.py stick FILE                         the next entry cannot be filled
"""
import glob
import os
import struct
import sys
import time

import reddn

RING, SIZE, EMPTY = 1 << 24, 256, 100
ENTRIES = RING // SIZE
WAIT = 100


def fill(path):
    entries = bytearray(RING)
    for number in range(ENTRIES - EMPTY):
        value = b"old %d" % number
        struct.pack_into(f"<5sB2x{len(value)}s", entries, number * SIZE, b"\1", len(value), value)
    with open(path, "wb") as file:
        file.write(entries + struct.pack("<Q", (ENTRIES - EMPTY) * SIZE).ljust(64, b"\0"))


def stick(path):
    with open(path, "r+b") as file:
        file.seek(RING)
        position = struct.unpack("<Q", file.read(8))[0]
        file.seek(position % RING)
        file.write(((position // RING - 1) % 2**40).to_bytes(5, "little"))


def append(server, offload, name, out, stop):
    """Each value has its number among those of the client, and is as long as that states"""
    with reddn.connect(server, offload, timeout=WAIT) as log, open(out, "w", encoding="ascii", buffering=1) as file:
        sequence = 0
        while not os.path.exists(stop):
            sequence += 1
            print("begin", sequence, file=file)
            try:
                number = log.append(f"{name} {sequence} ".ljust(sequence % 37 * 6, "."))
                print("appended", sequence, number, file=file)
            except BlockingIOError:  # the session was lost
                print("unknown", sequence, file=file)
            if sequence % 20 == 0:  # a burst; the test is not to take all of the machine
                time.sleep(0.02)


def follow(server, offload, start, out, done):
    with reddn.connect(server, offload, timeout=WAIT) as connection, open(out, "w", encoding="ascii", buffering=1) as file:
        log, last = reddn.Log(connection, int(start), patience=WAIT), None
        while last is None or log.next <= last:
            if last is None and os.path.exists(done):
                with open(done, encoding="ascii") as text:
                    last = int(text.read())
                # nobody appends any more, so what is not there will not be
                log = reddn.Log(connection, log.next, patience=0.001)
            try:
                entry = log.read(0.05)
            except BlockingIOError:
                continue
            if entry is not None:
                print(entry.number, entry.value.decode(), file=file)
        print("lost", log.lost, file=file)


def lines(pattern):
    for path in glob.glob(pattern):
        with open(path, encoding="ascii") as file:
            yield path.split(".")[-1], [line.split() for line in file.read().split("\n")[:-1]]


def last(folder):
    number = max(int(words[2]) for _, said in lines(f"{folder}/append.*") for words in said if words[0] == "appended")
    for name, to in ("late", number - ENTRIES + ENTRIES // 8 + EMPTY), ("done", number):
        with open(f"{folder}/{name}.part", "w", encoding="ascii") as file:
            file.write(str(to))
        os.rename(f"{folder}/{name}.part", f"{folder}/{name}")


def check(folder):
    begun, appended = set(), {}
    for name, said in lines(f"{folder}/append.*"):
        numbers = [int(words[2]) for words in said if words[0] == "appended"]
        assert numbers and numbers == sorted(numbers), f"{name}: its numbers do not grow"
        begun |= {(name, words[1]) for words in said if words[0] == "begin"}
        for number, words in zip(numbers, (words for words in said if words[0] == "appended")):
            assert number not in appended, f"{number} was appended twice"
            appended[number] = name, words[1]
    assert min(appended) < ENTRIES <= max(appended) < 2 * ENTRIES - EMPTY, "no lap, or too many"
    for name, said in lines(f"{folder}/follow.*"):
        read = {}
        assert said[-1][0] == "lost"
        for words in said[:-1]:
            number = int(words[0])
            assert not read or number > max(read), f"{name}: {number} after {max(read)}"
            value = tuple(words[1:3])
            if value[0] == "old":
                assert int(value[1]) == number, f"{name}: {number} is {value}"
            else:
                assert value in begun, f"{name}: {number} is {value}"
                size = max(int(value[1]) % 37 * 6, len(" ".join(value)) + 1)
                assert len(" ".join(words[1:])) in (size, size - 1), f"{name}: {number} has {len(words[-1])} bytes"
            read[number] = value
        assert len(set(read.values())) == len(read), f"{name}: an entry twice"
        first = min(read)
        missing = [number for number, value in appended.items() if number >= first and read.get(number) != value and name != "late"]
        assert not missing, f"{name}: {missing} were appended, and not read"
        lost = int(said[-1][1])
        # an eighth of the ring further than it had to be
        assert lost == (0 if name != "late" else first) and (name != "late" or first > max(appended) - ENTRIES + ENTRIES // 8 - EMPTY), (name, lost, first)
        print(name, "read", len(read), "from", first)
    print("appended", len(appended), "to", max(appended))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
