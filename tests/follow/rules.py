#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each rule of tools/reddn-follow/rules.h: a table that follows without it is wrong, beside one that follows with it."""
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


def both_have_marker(followers):
    client("SET", "marker", "x")
    for f in followers:
        until(lambda f=f: f.has(b"marker"), "what is set after it does not arrive")


def case(rule, words, followers, wrong):
    good, without = followers
    good.equals(source)
    check(good.last["complete"], f"{words}: it is not complete: {good.last}")
    check(wrong(without.table()), f"rule {rule}, {words}: a follower without it is right: {without.table()}")
    ok(f"rule {rule}: {words}")
    for f in followers:
        check(f.end() == 0, "it does not end well")
    client("FLUSHALL")


def once(act):
    """Acts at the first answer to GET."""
    done = []

    def on_answer(c, data):
        if b"\r\nGET\r\n" in c.asked and not done:
            done.append(1)
            act()

    return on_answer


def track_first():
    client("SET", "k", "old")
    proxies = Proxy(source), Proxy(source)
    proxies[0].on_answer = once(lambda: source.client()("SET", "k", "new"))
    proxies[1].on_answer = once(lambda: source.client()("SET", "k", "newer"))
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

        return once(act)

    # one after the other: what one does would be reported to both
    for i, proxy in enumerate(proxies):
        value = f"newer{i}"
        proxy.on_answer = overtake(proxy, value)
        client("SET", "k", "old")
        if i == 0:
            until(lambda: followers[0].has(b"k", b"newer0"), "the last value does not arrive")
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
    client("SWAPDB", 0, 1)
    followers[0].reaches("following", 2)
    both_have_marker(followers)
    case(8, "SWAPDB", followers, lambda t: b"k" in t and b"other" not in t)


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


for rule in (track_first, ask_again, errors_say_nothing, no_old_value, all_in_doubt, expiry, ping, info, one_server):
    rule()
