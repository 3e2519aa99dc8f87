# SPDX-License-Identifier: BSD-2-Clause
"""dropin.py TABLE HOST:PORT OFFLOAD PID: reddn.redis.Redis beside redis.Redis, whose answers it must have, while the source
changes, the follower dies, and the daemon PID ends (dropin.sh)."""
import os
import random
import signal
import sys
import threading

os.environ.pop("LD_PRELOAD")  # for this process only
import redis  # noqa: E402
import reddn  # noqa: E402
import reddn.redis  # noqa: E402
from source import Follower, Redis, check, ok, until  # noqa: E402

TABLE, SERVER, OFFLOAD, PID = sys.argv[1:]
source = Redis()
SOCKET = source.path + "/socket"
plain = redis.Redis(unix_socket_path=SOCKET)
follower = Follower(source.url(), table=TABLE)
r = reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD)


def same(name, *words, of=r):
    """The answers of both, or their errors"""
    answers = []
    for client in (of, plain):
        try:
            answers.append(getattr(client, name)(*words))
        except redis.RedisError as e:
            answers.append((type(e), str(e)))
    check(answers[0] == answers[1], f"{name} {words}: {answers[0]}, not {answers[1]}")
    return answers[0]


def by_nic(name, *words, of=r):
    """The NIC answers once it knows what the client knows."""
    def answered():
        before = of.nic_answers
        getattr(of, name)(*words)
        return of.nic_answers > before
    until(answered, f"Redis answers {name} {words} all the time")


r.mset({f"k{i}": i for i in range(200)})
r.rpush("list", "a")
r.set("empty", "")
for name, words in (("get", ["k1"]), ("get", ["none"]), ("get", ["empty"]), ("mget", ["k1", "none", "k2"]), ("exists", ["k1", "k1"]),
                    ("strlen", ["k199"]), ("strlen", ["empty"])):
    same(name, *words)
    by_nic(name, *words)
    same(name, *words)
r.set("long", "x" * 1000)  # the table is not complete from now on
for name, words in (("exists", ["list"]), ("exists", ["k1", "list", "none"]), ("strlen", ["list"]), ("strlen", ["none"]), ("get", ["long"]),
                    ("get", [""]), ("mget", [["k1", "long"]]), ("get", [b"k3"]), ("get", [7])):
    for _ in range(3):
        same(name, *words)
text = reddn.redis.Redis.from_url(f"unix://{SOCKET}", decode_responses=True, reddn=SERVER, offload=OFFLOAD)
by_nic("get", "k5", of=text)
check(text.get("k5") == "5" and text.client().get("k5") == "5", "not decoded")
check(reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD, prefixes=("a",)).get("k5") == b"5", "another prefix")
r.delete("long")
by_nic("get", "none")
ok("answers are those of Redis: hits, misses, other types, what is too long")


def own(of, name, turns):
    """Each read has the last write of this client, by command, pipeline, script or transaction."""
    rng = random.Random(name)
    have = {}
    for turn in range(turns):
        key, value = f"{name}{rng.randrange(20)}", b"%d" % turn
        how = rng.randrange(12)
        if how == 0:
            of.set(key, value)
        elif how == 1:
            with of.pipeline(transaction=False) as p:
                p.set(key, value)
                p.execute()
        elif how == 2:
            of.eval("redis.call('SET', KEYS[1], ARGV[1])", 1, key, value)
        elif how == 3:
            of.transaction(lambda p: (p.get(key), p.multi(), p.set(key, value)), key)
        elif how == 4:
            of.delete(key)
        if how < 4:
            have[key] = value
        elif how == 4:
            have.pop(key, None)
        for _ in range(rng.randrange(20)):
            key = f"{name}{rng.randrange(20)}"
            check(of.get(key) == have.get(key), f"{key} in turn {turn}: {of.get(key)}, not {have.get(key)}")
            check(of.exists(key) == (key in have), f"{key} in turn {turn}")


failures = []


def run(function, *words):
    try:
        function(*words)
    except BaseException as e:
        failures.append(e)


def forward(of, ended):
    """A counter that others raise never goes back."""
    last = 0
    while not ended.is_set():
        now = int(of.get("count") or 0)
        check(now >= last, f"{now} after {last}")
        last = now


def count(ended):
    while not ended.is_set():
        plain.incr("count")


ended = threading.Event()
others = [threading.Thread(target=run, args=[forward, r, ended]) for _ in range(2)] + [threading.Thread(target=run, args=[count, ended])]
another = reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD)
writers = [threading.Thread(target=run, args=[own, of, name, 100]) for of, name in ((r, "a"), (r, "b"), (another, "c"))]
before = r.nic_answers
for t in others + writers:
    t.start()
follower.end(9)
follower = Follower(source.url(), table=TABLE)
for t in writers:
    t.join()
ended.set()
for t in others:
    t.join()
check(not failures, f"{failures}")
by_nic("get", "k1")
ok(f"own writes are read, and no key goes back: {r.nic_answers - before} answers by the NIC, {r.source_answers} by Redis")

asked = plain.info("commandstats").get("cmdstat_get", {}).get("calls", 0)
for i in range(500):
    check(r.get(f"k{i % 200}") == b"%d" % (i % 200), f"{i}")
check(plain.info("commandstats")["cmdstat_get"]["calls"] < asked + 250, "Redis was asked")
ok("nobody asks Redis while nobody writes")

pid = os.fork()
if not pid:
    os._exit(0 if r.get("k9") == b"9" else 1)
check(os.waitpid(pid, 0)[1] == 0, "a child of fork")
follower.end(9)
os.kill(int(PID), signal.SIGTERM)
for i in range(50):
    same("get", f"k{i}")
same("set", "k1", "new")
same("get", "k1")
ok("without reddnd Redis answers")
r.close()
