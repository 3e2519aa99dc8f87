# SPDX-License-Identifier: BSD-2-Clause
"""dropin.py TABLE HOST:PORT OFFLOAD PID COMMANDS: reddn.redis.Redis, and the C library by the program COMMANDS, beside redis.Redis, whose
answers they must have, while the source changes, the follower dies, and the daemon PID ends (dropin.sh)."""
import os
import random
import signal
import sys
import threading

environment = dict(os.environ)
os.environ.pop("LD_PRELOAD")  # for this process only
import redis  # noqa: E402
import reddn  # noqa: E402
import reddn.redis  # noqa: E402
from source import Commands, Follower, Redis, check, ok, until  # noqa: E402

TABLE, SERVER, OFFLOAD, PID, COMMANDS = sys.argv[1:]
source = Redis(tcp=True)
SOCKET = source.path + "/socket"
plain = redis.Redis(unix_socket_path=SOCKET)
follower = Follower(source.url(), table=TABLE)
r = reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD)


class Hiredis(Commands):
    """As far as this needs a client of redis-py"""

    error = redis.ResponseError

    def __init__(self, *prefixes, socket=SOCKET, database=0):
        super().__init__(COMMANDS, socket, database, SERVER, OFFLOAD, *prefixes, env=environment)

    def __getattr__(self, name):
        return lambda *words: self({"delete": "DEL"}.get(name, name), *(w for word in words for w in (word if isinstance(word, list) else [word])))

    def execute_command(self, *words):
        return self(*words)

    def wrote(self):
        self("")

    def pipeline(self, transaction):
        return Beside(self)

    def transaction(self, function, key):
        self("MULTI")
        function(self)
        check(len(self("EXEC")) == 2, f"a read and a write of {key} in a transaction")

    def multi(self):
        pass


class Beside:
    """Changes that do not go through the handle"""

    def __init__(self, of):
        self._of = of

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def set(self, *words):
        plain.set(*words)

    def execute(self):
        self._of.wrote()


c = Hiredis()


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
for of in (r, c):
    for name, words in (("get", ["k1"]), ("get", ["none"]), ("get", ["empty"]), ("mget", ["k1", "none", "k2"]), ("exists", ["k1", "k1"]),
                        ("strlen", ["k199"]), ("strlen", ["empty"])):
        same(name, *words, of=of)
        by_nic(name, *words, of=of)
        same(name, *words, of=of)
r.set("long", "x" * 1000)  # the table is not complete from now on
c.wrote()
for of in (r, c):
    for name, words in (("exists", ["list"]), ("exists", ["k1", "list", "none"]), ("strlen", ["list"]), ("strlen", ["none"]), ("get", ["long"]),
                        ("get", [""]), ("mget", [["k1", "long"]]), ("get", [b"k3"]), ("get", [7])):
        for _ in range(3):
            same(name, *words, of=of)
text = reddn.redis.Redis.from_url(f"unix://{SOCKET}", decode_responses=True, reddn=SERVER, offload=OFFLOAD)
by_nic("get", "k5", of=text)
check(text.get("k5") == "5" and text.client().get("k5") == "5", "not decoded")
check(reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD, prefixes=("a",)).get("k5") == b"5", "another prefix")
other = Hiredis("a")
check(other.get("k5") == b"5" and other.get("k5") == b"5" and not other.nic_answers, "another prefix")
try:
    reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD, prefixes="a")
    raise AssertionError("a string is taken for prefixes")
except TypeError:
    pass
r.delete("long")
c.wrote()
for of in (r, c):
    by_nic("get", "none", of=of)
ok("answers are those of Redis: hits, misses, other types, what is too long")

for of in (r, c):
    by_nic("get", "none", of=of)
    by_nic("get", "k2", of=of)
c("MULTI")
source.client()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
check(c.get("k2") is None, "an answer of a connection that is lost")
for of in (r, c):
    by_nic("get", "k2", of=of)
for turn, of in enumerate((r, c)):
    plain.set(f"lock{turn}", "free")
    of.getrange(f"lock{turn}", 0, -1)
    plain.mset({f"lock{turn}": "held", f"type{turn}": "string"})
    until(lambda: of.get(f"lock{turn}") == b"held", "the table has not the later value")  # noqa: B023
    for key in ("lock", "type"):
        by_nic("get", f"{key}{turn}", of=of)
follower.send(signal.SIGSTOP)
for turn, of in enumerate((r, c)):
    plain.set(f"lock{turn}", "free")
    check(of.getrange(f"lock{turn}", 0, -1) == b"free" and of.get(f"lock{turn}") == b"free", "a key has gone back, after the same answer as one of long before")
    plain.delete(f"type{turn}")
    plain.rpush(f"type{turn}", "string")
    for name, words in (("getrange", [0, -1]), ("get", [])):
        try:
            check(False, f"{name}: {getattr(of, name)(f'type{turn}', *words)}, though it is a list")
        except redis.ResponseError:
            pass
    of.getrange("k5", 0, -1)
    of.get("k5")
    before = of.nic_answers
    check(of.get("k5") == b"5" and of.nic_answers > before, "the same answer as that of Redis needs no newer table")
    before = of.nic_answers
    check(of.get("k2") == b"2" and of.nic_answers > before, "a table whose follower is stopped")
    plain.set(f"new{turn}", 1)
    check(of.exists(f"new{turn}") == 1 and of.get(f"new{turn}") == b"1", "a key has gone back")
    plain.set("k4", f"seen {turn}")
    check(of.getrange("k4", 0, 3) == b"seen" and of.get("k4") == b"seen %d" % turn, "a key has gone back after GETRANGE")
    plain.set(f"newer{turn}", 1)
    check(of.keys(f"newer{turn}") and of.get(f"newer{turn}") == b"1", "a key has gone back after KEYS")
    of.set("k1", f"own {turn}")
    of.get("k2")
    check(of.get("k1") == b"own %d" % turn, "the own write is missing")
follower.send(signal.SIGCONT)
r.set("k1", 1)
r.set("k4", 4)
c.wrote()
ok("while the table stands still, too")


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
others = [threading.Thread(target=run, args=[forward, of, ended]) for of in (r, r, c)] + [threading.Thread(target=run, args=[count, ended])]
another = reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD)
writers = [threading.Thread(target=run, args=[own, of, name, 100]) for of, name in ((r, "a"), (r, "b"), (another, "c"), (Hiredis(), "d"))]
before = r.nic_answers + c.nic_answers
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
for of in (r, c):
    by_nic("get", "k1", of=of)
alone = reddn.redis.Redis(unix_socket_path=SOCKET, single_connection_client=True, reddn=SERVER, offload=OFFLOAD)
for of in (alone, Hiredis()):
    by_nic("get", "k1", of=of)
    of.execute_command("SELECT", 1)
    check(of.set("k1", "another") and of.get("k1") == b"another" and of.get("k2") is None, "another database has the keys of this one")
ok(f"own writes are read, and no key goes back: {r.nic_answers + c.nic_answers - before} answers by the NIC, {r.source_answers + c.source_answers} by Redis")

asked = plain.info("commandstats").get("cmdstat_get", {}).get("calls", 0)
for i in range(500):
    for of in (r, c):
        check(of.get(f"k{i % 200}") == b"%d" % (i % 200), f"{i}")
check(plain.info("commandstats")["cmdstat_get"]["calls"] < asked + 500, "Redis was asked")
ok("nobody asks Redis while nobody writes")

replica = Redis("--replicaof", "127.0.0.1", str(source.port))
elsewhere = Redis()
for what, other, database, prefixes in (("another database", source, 1, ()), ("a replica", replica, 0, ()), ("another Redis", elsewhere, 0, ()),
                                        ("other prefixes", source, 0, ("k",))):
    mine = reddn.redis.Redis(unix_socket_path=other.path + "/socket", db=database, reddn=SERVER, offload=OFFLOAD, prefixes=prefixes)
    here = redis.Redis(unix_socket_path=other.path + "/socket", db=database)
    if other is replica:
        until(lambda: here.exists("k1"), "the replica has no keys")
    elif other is not source or database:
        here.set("k1", what)
    for of in (mine, Hiredis(*prefixes, socket=other.path + "/socket", database=database)):
        for i in range(100):
            check(of.get("k1") == here.get("k1") and of.get("k1x") is None, f"{what}: another value")
        check(of.nic_answers == 0 and of.source_answers == 200, f"{what}: {of.nic_answers} answers of the NIC")
    until(lambda: mine.get("k1") and "does not follow" in mine.nic_error, lambda: f"{what}: no reason, but {mine.nic_error!r}")
for choose in (lambda of: of.pipeline(transaction=False).execute_command("SELECT", 1).execute(), lambda of: of.execute_command(b"select", 1),
               lambda of: of.execute_command("SELECT 1")):
    chosen = reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD)
    by_nic("get", "k2", of=chosen)
    choose(chosen)
    check(chosen.get("k2") is None, "another database has the keys of this one")
    # until the table is newer than that answer
    r.set("k3", 3)
    by_nic("get", "k3")
    for _ in range(3):
        check(chosen.get("k2") is None, "the NIC knows the keys of another database")
source.client()("ACL", "SETUSER", "default", "-info")
mute = reddn.redis.Redis(unix_socket_path=SOCKET, reddn=SERVER, offload=OFFLOAD)
for of in (mute, Hiredis()):
    for i in range(20):
        check(of.get("k1") == plain.get("k1"), "another value")
    check(of.nic_answers == 0, "the NIC is believed, and nothing is known of Redis")
check("INFO" in mute.nic_error, f"no reason, but {mute.nic_error!r}")
source.client()("ACL", "SETUSER", "default", "+info")
for of in (mute, r, c):
    by_nic("get", "k1", of=of)
ok("a table that follows another Redis, database or prefixes is not believed")

r._state.acquire()  # as another thread may at this moment, whom the child does not have
pid = os.fork()
if not pid:
    signal.alarm(60)
    os._exit(0 if r.get("k9") == b"9" else 1)
r._state.release()
check(os.waitpid(pid, 0)[1] == 0, "a child of fork")

by_nic("get", "k2", of=c)
follower.send(signal.SIGSTOP)
source.kill()
source.run()
check(c.ping() is None, "no connection is lost")
for _ in range(20):
    check(c.get("k2") is None, "a Redis that has been started again, without its keys, is answered for by a table of the one before")
follower.send(signal.SIGCONT)
for of in (r, c):
    check(of.set("k2", 22) and of.get("k2") == b"22", "another value")
    by_nic("get", "k2", of=of)
    check(of.get("k2") == b"22", "another value")
ok("a handle notices that its Redis is another process")

follower.end(9)
os.kill(int(PID), signal.SIGTERM)


def ended_daemon():
    try:
        with open(f"/proc/{PID}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# as long as it lives, its table answers, which nobody updates
until(ended_daemon, "the daemon does not end")
for of in (r, c):
    for i in range(50):
        same("get", f"k{i}", of=of)
    same("set", "k1", "new", of=of)
    same("get", "k1", of=of)
ok("without reddnd Redis answers")
r.close()
