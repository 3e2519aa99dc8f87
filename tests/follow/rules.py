#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each rule of tools/reddn-follow/rules.h: a table that follows without it is wrong, beside one that follows with it."""
import re
import threading
import time

from source import FOLLOW, WITHOUT, Follower, Proxy, Redis, check, ok, until

source = Redis()
client = source.client()


def pair(rule, *options, proxies=(None, None), **more):
    """A follower with all rules, and one without this one"""
    paths = [p.path if p else None for p in proxies]
    user = more.pop("user", "")
    return (Follower(source.url(user=user, path=paths[0]), *options, program=FOLLOW),
            Follower(source.url(user=user, path=paths[1]), *options, program=WITHOUT, env={"REDDN_FOLLOW_WITHOUT": str(rule)}))


def both_have_marker(followers, marker="marker"):
    client("SET", marker, "x")
    for f in followers:
        until(lambda f=f: f.has(marker.encode()), "what is set after it does not arrive")


def case(rule, words, followers, wrong):
    good, without = followers
    good.equals(source)
    check(good.last["complete"], f"{words}: it is not complete: {good.last}")
    check(wrong(without.table()), f"rule {rule}, {words}: a follower without it is right: {without.table()}")
    ok(f"rule {rule}: {words}")
    for f in followers:
        check(f.end() == 0, "it does not end well")
    client("FLUSHALL")


def once(value, act):
    """Acts at the first answer that has this value. Others come on the same connection: to PING, INFO and TIME."""
    done = []

    def on_answer(c, data):
        if b"\r\n%b\r\n" % value in data and not done:
            done.append(1)
            act()

    return on_answer


def track_first():
    client("SET", "k", "old")
    proxies = Proxy(source), Proxy(source)
    proxies[0].on_answer = once(b"old", lambda: source.client()("SET", "k", "new"))
    proxies[1].on_answer = once(b"new", lambda: source.client()("SET", "k", "newer"))
    good, without = pair(1, proxies=proxies)
    case(1, "overwritten behind the cursor", (good, without), lambda t: t[b"k"] != b"newer")


def ask_again():
    proxies = Proxy(source), Proxy(source)
    followers = pair(2, proxies=proxies)

    def overtake(proxy, value):
        """A change that is reported before the answer that is older"""

        def act():
            before = len(proxy.passed)
            source.client()("SET", "k", value)
            until(lambda: b"$1\r\nk\r\n" in proxy.passed[before:], "no message")

        return once(b"old", act)

    # one after the other: what one does would be reported to both
    for i, proxy in enumerate(proxies):
        value = f"newer{i}"
        proxy.on_answer = overtake(proxy, value)
        client("SET", "k", "old")
        if i == 0:
            until(lambda: followers[0].has(b"k", b"newer0"), "the last value does not arrive")
            # the other one has no question left that the next round would answer
            both_have_marker(followers, "between")
    until(lambda: followers[1].has(b"k"), "no value arrives")
    both_have_marker(followers)
    case(2, "changed while its value is on the way", followers, lambda t: t[b"k"] == b"old")


def errors_say_nothing():
    client("ACL", "SETUSER", "f", "on", ">secret", "allkeys", "allchannels", "+@all")
    client("MSET", "k", "v", "other", "v")
    followers = pair(3, user="f:secret@")
    client("ACL", "SETUSER", "f", "-get")
    client("SET", "k", "w")
    followers[0].reaches("apart", 1)
    check("NOPERM" in followers[0].last["why"], f"{followers[0].last}")
    until(lambda: not followers[1].has(b"k"), "a follower without it keeps the key")
    check(followers[0].table() == {b"k": b"v", b"other": b"v"}, "something was removed")
    client("ACL", "SETUSER", "f", "+get")
    followers[0].reaches("following", 2)
    case(3, "errors are no answers", followers, lambda t: b"k" not in t)


def no_old_value():
    client("SET", "k", "v")
    good, without = pair(4, "--max-value", "100")
    client("SET", "k", "v" * 101)
    until(lambda: not good.has(b"k"), "it keeps the old value")
    both_have_marker((good, without))
    until(lambda: not good.last["complete"] and good.last["absent"] == 1, "it is complete")
    check(without.has(b"k", b"v"), "rule 4: a follower without it is right")
    client("DEL", "k")
    until(lambda: good.last["complete"], "it is not complete when the value has gone")
    case(4, "too long for the table", (good, without), lambda t: True)


def all_in_doubt():
    client.many([("SET", f"k{i}", "v") for i in range(1000)])
    followers = pair(5)
    client("FLUSHALL")
    followers[0].reaches("following", 2)
    both_have_marker(followers)
    case(5, "FLUSHALL", followers, lambda t: b"k1" in t)


def expiry():
    """One alone at a time: the GET of the other would make the source notice."""
    client("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    good = Follower(source.url())
    client("SET", "k", "v", "PX", 50)
    until(lambda: not good.has(b"k"), "it keeps what has expired")
    check(good.end() == 0, "it does not end well")
    without = Follower(source.url(), program=WITHOUT, env={"REDDN_FOLLOW_WITHOUT": "6"})
    client("SET", "k", "v", "PX", 500)
    until(lambda: without.has(b"k") or client("EXISTS", "k") == 0, "no key arrives")
    time.sleep(0.6)
    both_have_marker([without])
    check(without.has(b"k"), "rule 6: a follower without it is right")
    check(client("EXISTS", "k") == 0, "it has not expired")
    check(without.end() == 0, "it does not end well")
    client("DEBUG", "SET-ACTIVE-EXPIRE", "1")
    client("FLUSHALL")
    ok("rule 6: what the source does not notice to have expired")


def ping():
    proxies = Proxy(source), Proxy(source)
    client("SET", "k", "old")
    followers = pair(7, proxies=proxies)
    for p in proxies:
        p.cut_silently()
    until(lambda: client("PUBSUB", "NUMSUB", "__redis__:invalidate")[1] == 0, "the source has the invalidation connections")
    client("SET", "k", "new")
    followers[0].reaches("following", 2)
    case(7, "the invalidation connection dies silently", followers, lambda t: t[b"k"] == b"old")


def info():
    client("SET", "k", "v")
    source.client(1)("SET", "other", "v")
    followers = pair(8)
    until(lambda: all(f.as_of().source for f in followers), "it states nothing")
    client("SWAPDB", 0, 1)
    swapped = source.time()
    until(lambda: followers[1].as_of().source > swapped, "it states nothing more")
    until(lambda: followers[0].as_of().source > swapped, "it states nothing more")
    check(followers[0].has(b"other") and not followers[0].has(b"k"), "it states more than is there")
    followers[0].reaches("following", 2)
    both_have_marker(followers)
    case(8, "SWAPDB", followers, lambda t: b"k" in t and b"other" not in t)


def reset():
    client("CONFIG", "RESETSTAT")  # no SWAPDB is counted
    client("SET", "k", "v")
    source.client(1)("SET", "other", "v")
    followers = pair(17)
    until(lambda: all(f.as_of().source for f in followers), "it states nothing")
    client.many([("MULTI",), ("SWAPDB", 0, 1), ("CONFIG", "RESETSTAT"), ("EXEC",)])
    followers[0].reaches("following", 2)
    both_have_marker(followers)
    case(17, "SWAPDB and CONFIG RESETSTAT", followers, lambda t: b"k" in t and b"other" not in t)


def one_server():
    """The data are those of the second, which sends its messages to a client of its own that has the same number."""
    second = Redis()
    others = [second.client() for _ in range(200)]
    second.client()("SET", "k", "old")
    without = Follower(source.url(path=Proxy(source, second).path), program=WITHOUT, env={"REDDN_FOLLOW_WITHOUT": "9"})
    good = Follower(source.url(path=Proxy(source, second).path), wait=False)
    until(lambda: "several servers" in (good.last.get("why") or ""), lambda: f"{good.last}")
    second.client()("SET", "k", "new")
    until(lambda: without.last["complete"], "it is not complete")
    time.sleep(0.5)
    check(without.has(b"k", b"old"), "rule 9: a follower without it is right")
    for f in (good, without):
        check(f.end() == 0, "it does not end well")
    for c in others:
        c.socket.close()
    second.kill()
    ok("rule 9: a name of several servers")


# ---- what a table states of how new it is -----------------------------------------------------------------

HELD = 1.0  # seconds: what arrives late does not reach a follower with all rules before that
PONG = b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"


def as_of_case(rule, words, prepare, wrong, options=()):
    """One after the other, a follower without the rule and one with all have their own proxy. `prepare` arranges it, and returns when
    the change was made, in us of the source, or None: not yet. A table that is as of that time or later and `wrong` is found without it."""
    for number in (rule, 0):
        client("FLUSHALL")
        client.many([("SET", f"x{i}", "v") for i in range(20000)] + [("SET", "k", "old")])
        proxy, free = Proxy(source), threading.Event()
        f = Follower(source.url(path=proxy.path), *options, program=WITHOUT if number else FOLLOW, env={"REDDN_FOLLOW_WITHOUT": str(number)})
        until(lambda f=f: f.as_of().source, "it states nothing")
        changed = prepare(proxy, free)
        until(changed, "the change is not made")
        if number:
            until(lambda f=f: f.as_of().source >= changed(), lambda: f"rule {rule}: a follower without it does not state more: {f.as_of()} {f.last}")
            check(wrong(f), f"rule {rule}, {words}: a follower without it is right")
        else:
            end = time.monotonic() + HELD
            while time.monotonic() < end:
                check(f.as_of().source < changed() or not wrong(f), f"{words}: it states more than is there")
                time.sleep(0.005)  # what is wrong stays so until the change arrives
        free.set()
        until(lambda f=f: f.as_of().source >= changed(), "it does not go on")
        check(not wrong(f) or number, f"{words}: it states more than is there")
        f.equals(source)
        check(f.end() == 0, "it does not end well")
    client("FLUSHALL")
    ok(f"rule {rule}: {words}")


def before_time(proxy, *change):
    """Makes the change before a barrier's question of TIME arrives at the source. Returns functions: when; and whether it has begun."""
    begun, made = threading.Event(), []

    def on_question(c, data):
        if b"\r\nTIME\r\n" in data and not made:
            begun.set()
            source.client()(*change)
            made.append(source.time())

    proxy.on_question = on_question
    return lambda: made[0] if made else None, begun.is_set


def is_old(follower):
    return follower.has(b"k", b"old")


def pong():
    def prepare(proxy, free):
        changed, begun = before_time(proxy, "SET", "k", "new")
        proxy.on_answer = lambda c, data: c.invalidates and begun() and free.wait(1.9)
        return changed

    as_of_case(10, "a message that is late", prepare, is_old)


def second_pong():
    """As of a server whose loop takes both connections in one turn: the first PONG goes before the message."""

    def prepare(proxy, free):
        (changed, begun), late, pongs = before_time(proxy, "SET", "k", "new"), [], []

        def change(c, data):
            if not c.invalidates or not begun() or len(pongs) > 1:
                return data
            if PONG not in data:
                late.append(data)
                return b""
            pongs.append(data)
            if len(pongs) == 1:
                late.append(data.replace(PONG, b""))
                return PONG
            free.wait(1.9)
            return b"".join(late) + data

        proxy.change = change
        return changed

    as_of_case(11, "a message behind the first PONG", prepare, is_old)


def apply():
    def prepare(proxy, free):
        (changed, begun), seen = before_time(proxy, "SET", "k", "new"), threading.Event()

        def on_answer(c, data):
            if c.invalidates and begun():
                seen.wait(1.9)
            elif not c.invalidates and b"\r\nnew\r\n" in data:
                free.wait(1.9)
            elif not c.invalidates and begun() and b"\nloading:" in data:
                seen.set()

        proxy.on_answer = on_answer
        return changed

    as_of_case(12, "a value that is late", prepare, is_old)


def doubt():
    def prepare(proxy, free):
        (changed, _), nils = before_time(proxy, "FLUSHALL"), [0]

        def on_answer(c, data):
            nils[0] += not c.invalidates and data.count(b"$-1\r\n")
            if nils[0] > 10000:
                free.wait(1.9)

        proxy.on_answer = on_answer
        return changed

    as_of_case(13, "a load that goes on", prepare, lambda f: len(f.table()) > 0)


def clock():
    shift = 0

    def change(c, data):
        set_back = lambda m: b"*2\r\n$10\r\n%d\r\n" % (int(m[1]) + shift)  # noqa: E731
        return data if c.invalidates else re.sub(rb"\*2\r\n\$10\r\n(\d{10})\r\n", set_back, data)

    proxies = Proxy(source), Proxy(source)
    for p in proxies:
        p.change = change
    client("SET", "k", "v")
    followers = pair(14, proxies=proxies)
    for f in followers:
        until(lambda f=f: f.as_of().complete, "it is not complete")
    before = [f.as_of() for f in followers]
    shift = -10
    for f, b in zip(followers, before):
        until(lambda f=f, b=b: 0 < f.as_of().source < b.source and f.as_of().complete, lambda f=f: f"the clock has no effect: {f.as_of()}")
    check(followers[0].as_of().epoch != before[0].epoch, "the epoch is the same")
    check(followers[0].as_of().origin == before[0].origin != 0, "another origin")
    check(followers[0].last["loads"] == 2, "it does not ask again when keys expire")
    check(followers[1].as_of().epoch == before[1].epoch, "rule 14: a follower without it is right")
    for f in followers:
        check(f.end() == 0, "it does not end well")
    # nobody saw it
    shift = -20
    after = Follower(source.url(path=proxies[0].path), table=followers[0].path)
    until(lambda: after.as_of().source, "it states nothing")
    check(after.as_of().epoch not in (before[0].epoch, 0), "the epoch is the same")
    epoch = after.as_of().epoch
    check(after.end() == 0, "it does not end well")
    # another follower of the same source does not change it, and what was stated stays
    again = Follower(source.url(path=proxies[0].path), table=followers[0].path)
    until(lambda: again.as_of().epoch == epoch and again.as_of().source, lambda: f"{again.as_of()}")
    check(again.end() == 0, "it does not end well")
    again = Follower(source.url(path=proxies[0].path), "-p", "k", table=followers[0].path)
    other = again.as_of().epoch
    check(again.as_of().origin not in (before[0].origin, 0), "it follows other keys, and the origin is the same")
    check(other != epoch, "it follows other keys, and the epoch is the same")
    check(again.end() == 0, "it does not end well")
    # nor is it the same when it follows these keys once more: what was seen in that epoch has gone meanwhile
    back = Follower(source.url(path=proxies[0].path), table=followers[0].path)
    until(lambda: back.as_of().source, "it states nothing")
    check(back.as_of().epoch not in (epoch, other), "an epoch is there again")
    check(back.end() == 0, "it does not end well")
    client("FLUSHALL")
    ok("rule 14: the clock of the source is set back")


def due():
    """The answer that has the PTTL is late."""
    client("DEBUG", "SET-ACTIVE-EXPIRE", "0")

    def prepare(proxy, free):
        seen = []

        def on_answer(c, data):
            if b"\r\nshort\r\n" in data and not c.invalidates and not seen:
                seen.append(1)
                time.sleep(1)

        proxy.on_answer = on_answer
        end = source.time() + 1200000
        client("SET", "k", "short", "PXAT", end // 1000)
        until(lambda: seen, "nothing is asked for")
        return lambda: end + 2000

    as_of_case(15, "an answer that is late, of a key that expires", prepare, lambda f: f.has(b"k"))
    client("DEBUG", "SET-ACTIVE-EXPIRE", "1")


def incomplete_first():
    """No barrier is published meanwhile."""
    proxies = Proxy(source), Proxy(source)
    client("SET", "k", "v")
    followers = pair(16, "--max-value", "100", proxies=proxies)
    for f in followers:
        until(lambda f=f: f.as_of().complete, "it is not complete")
    stated = [f.as_of() for f in followers]
    for p in proxies:
        p.change = lambda c, data: data.replace(PONG, b"")
    time.sleep(0.2)
    client("SET", "k", "v" * 101)
    for f in followers:
        until(lambda f=f: not f.has(b"k"), "it keeps the old value")
    good, without = (f.as_of() for f in followers)
    check(not good.complete, "it states that it is complete")
    check(without.complete, "rule 16: a follower without it is right")
    check(stated[0].epoch == good.epoch, "another epoch")
    for p in proxies:
        p.change = lambda c, data: data
    client("DEL", "k")
    until(lambda: followers[0].as_of().complete, "it is not complete again")
    for f in followers:
        check(f.end() == 0, "it does not end well")
    client("FLUSHALL")
    ok("rule 16: too long for the table, which states that before")


for rule in (track_first, ask_again, errors_say_nothing, no_old_value, all_in_doubt, expiry, ping, info, one_server, pong, second_pong, apply, doubt, clock,
             due, incomplete_first, reset):
    rule()
