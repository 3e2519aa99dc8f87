#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reddn-follow and files: what is published, what is wrong, what goes away and comes back; and that an answer of the table is one that the
files had at the moment that it states, or later."""
import json
import math
import os
import random
import shutil
import signal
import subprocess
import threading
import time

from source import FOLLOW, Follower, check, ok, refuses, until, work


def publish(path, records, written=None):
    """By rename; `written`: what to write instead."""
    temporary = os.path.join(os.path.dirname(path), "." + os.path.basename(path))
    with open(temporary, "w", encoding="utf-8") as f:
        if written is not None:
            f.write(written)
        elif path.endswith((".json", ".jsonl")):
            f.writelines(json.dumps({"key": k, "value": v}) + "\n" for k, v in records.items())
        else:
            f.writelines(f"{k}\t{v}\n" for k, v in records.items())
    os.rename(temporary, path)


def has(follower, *records, loads=1):
    """The table has these, and nothing else, after so many loads."""
    expected = {k.encode(): v.encode() for r in records for k, v in r.items()}
    until(lambda: follower.table() == expected and follower.last["complete"] and follower.last["loads"] >= loads, lambda: f"{follower.table()}, not {expected}; {follower.last}")


def one_file():
    path = f"{work}/one.tsv"
    first = {f"k{i}": f"v{i}" for i in range(10000)}
    with Follower(f"file://{path}", wait=False) as f:
        until(lambda: f.last.get("why") == "No such file or directory", lambda: f"{f.last}")
        publish(path, first)
        has(f, first)
        ok("a file that was not there yet")
        second = {**first, "k5": "changed", "more": "x"}
        del second["k7"]
        publish(path, second)
        has(f, second, loads=2)
        check(f.last["puts"] == 10002 and f.last["deletes"] == 1, f"more is written than what has changed: {f.last}")
        ok("what has changed is written, and nothing else")
        with open(path, "a", encoding="utf-8") as out:
            out.write("in place\t1\n")
        has(f, second, {"in place": "1"}, loads=3)
        ok("a file that is written in place, when it is closed")
        loads = f.last["loads"]
        publish(f"{work}/other.tsv", {"x": "y"})
        before = f.as_of()
        until(lambda: f.as_of().host > before.host, "the moment that it states does not go on")
        check(f.last["loads"] == loads, "another file of the folder is none of its own")
        os.unlink(path)
        f.reaches("apart")
        check(len(f.table()) == 10001, "the table loses what it has with the file")
        before = f.as_of()
        publish(path, first)
        has(f, first)
        check(f.as_of().host > before.host, "the moment goes back")
        ok("a file that goes away and comes back")


def folder():
    path = f"{work}/folder"
    os.mkdir(path)
    with Follower(f"file://{path}") as f:
        has(f)
        a, b = {"a": "1", "tab\\tin": "x"}, {"b": "2", "\u00fc": "\u00e4"}
        publish(f"{path}/a.tsv", a)
        publish(f"{path}/b.jsonl", b)
        publish(f"{path}/readme.txt", {"none": "0"})
        has(f, {"a": "1", "tab\tin": "x"}, b)
        ok("files of a folder: TSV, JSON, and others")
        os.unlink(f"{path}/a.tsv")
        has(f, b)
        os.rename(path, path + ".away")
        f.reaches("apart")
        os.rename(path + ".away", path)
        publish(f"{path}/a.tsv", {"a": "back"})
        has(f, b, {"a": "back"})
        ok("a file of it that is removed; the folder that is away for a moment")
    os.mkdir(f"{path}/v1")
    publish(f"{path}/v1/x.tsv", {"version": "1"})
    os.symlink("v1", f"{path}/now")
    os.symlink("now/x.tsv", f"{path}/x")
    with Follower(f"file://{path}/x") as f:
        has(f, {"version": "1"})
        os.mkdir(f"{path}/v2")
        publish(f"{path}/v2/x.tsv", {"version": "2"})
        os.symlink("v2", f"{path}/.now")
        os.rename(f"{path}/.now", f"{path}/now")
        has(f, {"version": "2"})
        ok("a symbolic link that leads over another one")


def mistakes():
    path = f"{work}/mistakes"
    os.mkdir(path)
    good = {"a": "1", "b": "2"}
    publish(f"{path}/a.tsv", good)
    with Follower(f"file://{path}") as f:
        has(f, good)
        for name, text, why in (("b.tsv", "c\t3\nd\n", "b.tsv:2: no value"), ("b.tsv", "c\t3\nb\t3\n", "b.tsv:2: the key is there twice, also in a.tsv:2"),
                                ("b.tsv", "c\t3\nc\t3\n", "b.tsv:2: the key is there twice, also in b.tsv:1"), ("b.json", '{"key":"c"}\n', 'b.json:1: no value'),
                                ("b.json", "no\n", "b.json:1: ")):
            publish(f"{path}/{name}", None, written=text)
            until(lambda why=why: why in (f.last.get("why") or ""), lambda why=why: f"{why}: {f.last}")
            check(f.table() == {k.encode(): v.encode() for k, v in good.items()}, f"{why}: the table has changed")
            os.unlink(f"{path}/{name}")
            has(f, good)
        publish(f"{path}/b.tsv", {"long": "x" * 65537})
        until(lambda: f.last["absent"] == 1 and not f.last["complete"], lambda: f"{f.last}")
        publish(f"{path}/b.tsv", {"long": "x" * 65536})
        has(f, good, {"long": "x" * 65536})
    ok("mistakes change nothing; what is too long is absent")
    with Follower(f"file://{path}", "--prefix", "a", "--prefix", "lo") as f:
        has(f, {"a": "1", "long": "x" * 65536})
    ok("prefixes")
    refuses(["--acl", "file:///x"], os.EX_USAGE, "files need no rights")
    for words, status, args in (("a source is redis://", os.EX_USAGE, ["file://here"]), ("No such file", 2, ["--once", f"file://{work}/none/x"]),
                                ("/dev/null: it is no regular file", 2, ["--once", "file:///dev/null"])):
        refuses([*args, f"{work}/t"], status, words)
    ok("the command line")


def in_place():
    """What is written in place, and not closed yet, is not published; nor does it keep from following what is."""
    path, n = f"{work}/in_place.tsv", 100000
    old, new = ({f"k{i}": value for i in range(n)} for value in ("old", "new"))
    publish(path, old)
    with Follower(f"file://{path}") as f:
        has(f, old)
        publish(path, new)
        published = time.time_ns()
        until(lambda: f.last["state"] == "loading" or f.last["loads"] == 2, lambda: f"{f.last}")
        with open(path, "w", encoding="utf-8") as out:
            until(lambda: "somebody is writing it" in (f.last.get("why") or "") or f.last["loads"] == 2, lambda: f"{f.last}")
            check(f.last["loads"] == 2 or f.as_of().host <= published, "it states to have what it has not")
            check(set(f.table().values()) <= {b"old", b"new"} and len(f.table()) == n, "the table has what was not published")
            out.write("k\tlast\n")
        has(f, {"k": "last"})
        ok("a file that somebody begins to write while it is read")
    os.mkdir(f"{work}/logs")
    publish(f"{work}/logs/a.tsv", old)
    ended = threading.Event()

    def append():
        with open(f"{work}/logs/log.tsv", "a", buffering=1, encoding="utf-8") as log:
            while not ended.wait(0.001):
                log.write(f"log{time.monotonic_ns()}\tx\n")

    with Follower(f"file://{work}/logs") as f:
        writer = threading.Thread(target=append, daemon=True)
        writer.start()
        until(lambda: os.path.exists(f"{work}/logs/log.tsv"), "there is no log")
        publish(f"{work}/logs/b.tsv", {"b": "1"})
        until(lambda: f.has(b"b", b"1") and f.last["complete"], lambda: f"{f.last}")
        ended.set()
        writer.join()
    ok("a file that is published while another one is appended to")


def same_times():
    path = f"{work}/times.tsv"
    publish(path, {"price": "1001"})
    os.utime(path, (1, 1))
    with Follower(f"file://{path}") as f:
        has(f, {"price": "1001"})
        with open(path, "r+", encoding="utf-8") as out:
            out.write("price\t1002\n")
            out.flush()
            os.utime(path, (1, 1))
        closed = time.time_ns()
        until(lambda: f.as_of().host > closed, "the moment that it states does not go on")
        check(f.has(b"price", b"1002"), f"it states that it has what was written before, and has {f.table()}")
    ok("a file that is written with as many bytes, and gets the time that it had")


def elsewhere():
    """The path leads to another file, and nothing happens in the folder that is watched."""
    for version in "12":
        os.makedirs(f"{work}/release{version}/data/sub")
        publish(f"{work}/release{version}/data/one.tsv", {"version": version})
    top = f"{work}/current"
    os.symlink("release1", top)
    os.mkdir(f"{work}/links")
    os.symlink("../current/data/one.tsv", f"{work}/links/one.tsv")
    with Follower(f"file://{top}/data/one.tsv") as f, Follower(f"file://{top}/data") as folder, Follower(f"file://{work}/links") as links:
        for each in (f, folder, links):
            has(each, {"version": "1"})
        os.symlink("release2", top + ".new")
        os.rename(top + ".new", top)
        replaced = time.time_ns()
        for each in (f, folder, links):
            until(lambda each=each: each.as_of().host > replaced, "the moment that it states does not go on")
            check(each.has(b"version", b"2"), f"it states to be as of now, and has {each.table()}")
        with open(f"{work}/release2/data/one.tsv", "w", encoding="utf-8") as out:
            out.write("version\t3\n")
        for each in (f, folder, links):
            has(each, {"version": "3"})
    ok("a link above, to another release; a file behind a link that is written in place")


def no_watch_left():
    """Only a watch reports that what is behind a link in a folder is written in place."""
    path, limit = f"{work}/watched", "/proc/sys/user/max_inotify_watches"
    os.mkdir(path)
    publish(f"{work}/behind.tsv", {"a": "1"})
    os.symlink("../behind.tsv", f"{path}/link.tsv")
    if subprocess.run(["unshare", "-Ur", "test", "-w", limit], check=False).returncode:
        return ok("not tried: no user namespace has limits of its own")
    with Follower(f"file://{path}", program=("unshare", "-Ur", "sh", "-c", f'echo 1 >{limit} && exec "$0" "$@"', FOLLOW), wait=False) as f:
        until(lambda: "max_user_watches" in (f.last.get("why") or "") or f.last["loads"], lambda: f"{f.last}")
        check(not f.last["loads"], "it states to be as of now without a watch")
    ok("a limit of watches")


def other_prefixes():
    path = f"{work}/prefixes.tsv"
    publish(path, {"a": "1", "b": "2"})
    with Follower(f"file://{path}", "--prefix", "a") as f:
        has(f, {"a": "1"})
        before = f.as_of()
    with Follower(f"file://{path}", "--prefix", "b", table=f.path) as f:
        has(f, {"b": "2"})
        check(f.as_of().epoch != before.epoch, "other keys are followed in the same epoch")
    ok("other prefixes begin another epoch")


KEYS = 3000


class Publisher(threading.Thread):
    """Version after version of two files. A key has the number of the version as its value, and is there in most of them."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.ended, self.rng = path, False, random.Random(7)
        self.versions = []  # of [keys it has, ns after it was published]
        self.publish()
        self.start()

    def publish(self):
        number = len(self.versions)
        keys = {k for k in range(KEYS) if self.rng.randrange(8)}
        self.versions.append([keys, math.inf])
        for part in range(2):
            publish(f"{self.path}/{part}.tsv", {k: number for k in keys if k % 2 == part})
        self.versions[number][1] = time.time_ns()

    def run(self):
        while not self.ended:
            self.publish()
            time.sleep(self.rng.random() * 0.2)


def promise():
    path = f"{work}/promise"
    os.mkdir(path)
    publisher = Publisher(path)
    follower = Follower(f"file://{path}")
    rng = random.Random(8)
    asked = misses = 0
    for turn in range(60):
        if turn % 10 == 9:
            follower.end(signal.SIGKILL)
            follower = Follower(f"file://{path}", table=follower.path)
        for _ in range(50):
            key = rng.randrange(KEYS)
            answer = follower.ask(str(key).encode())
            if answer is None:
                continue
            as_of, value = answer
            asked += 1
            versions = publisher.versions[:]
            oldest = max((i for i, v in enumerate(versions) if v[1] <= as_of.host), default=0)
            if value is not None:
                check(int(value) >= oldest, f"{key} of version {int(value)}, though {oldest} was there as of {as_of}")
            elif as_of.complete:
                misses += 1
                check(any(key not in v[0] for v in versions[oldest:]), f"{key} is missing, though it is in each version since {oldest}")
    publisher.ended = True
    publisher.join()
    final = publisher.versions[-1][0]
    has(follower, {str(k): str(len(publisher.versions) - 1) for k in final})
    check(follower.end() == 0, "it does not end well")
    ok(f"{asked} answers of {len(publisher.versions)} versions, {misses} of them misses, none from before the moment that it states")


one_file()
folder()
mistakes()
in_place()
same_times()
elsewhere()
no_watch_left()
other_prefixes()
promise()
shutil.rmtree(work, ignore_errors=True)
