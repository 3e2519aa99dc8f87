#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reddn-follow and the distribution's PostgreSQL: values and keys of several types, what transactions do, what puts all in doubt, what
ends and comes back; and that an answer of the table is one that PostgreSQL had at the moment that the table states, or later."""
import os
import random
import signal
import subprocess
import threading
import time

from database import Postgres, Session
from source import FOLLOW, LIMIT, Follower, check, memory, ok, refuses, until, work


def equals(follower, session, table, where="true"):
    """When nobody writes. Bytes are compared."""
    def as_hex(column, kind):
        return f"encode({column if kind == 'bytea' else f'convert_to({column}::text, $$UTF8$$)'}, 'hex')"

    kinds = dict(line.split("|") for line in session(f"SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0"))
    lines = session(f"SELECT {as_hex('k', kinds['k'])}, {as_hex('v', kinds['v'])} FROM {table} WHERE v IS NOT NULL AND ({where})")
    follower.becomes({bytes.fromhex(k): bytes.fromhex(v) for k, v in (line.split("|") for line in lines)})


def values(server):
    s = server.client
    s("CREATE TABLE bytes (k text PRIMARY KEY, v bytea, other int)", "CREATE TABLE numbers (v double precision, k bigint PRIMARY KEY)",
      "CREATE TABLE \"odd \"\"name\"\"\" (k timestamptz PRIMARY KEY, v jsonb)", "CREATE PUBLICATION reddn FOR ALL TABLES",
      "ALTER TABLE bytes ALTER v SET STORAGE EXTERNAL",
      "INSERT INTO bytes SELECT 'k' || i, decode(md5(i::text), 'hex') FROM generate_series(1, 20000) i", "INSERT INTO numbers SELECT i / 3.0, i FROM generate_series(1, 100) i")
    with server.follow("bytes") as f, server.follow("numbers") as n, server.follow('"odd ""name"""') as odd:
        equals(f, s, "bytes")
        check(f.last["complete"] and f.last["loads"] == 1, f"{f.last}")
        s("INSERT INTO bytes VALUES ('\u00fc\t\\\\x', '\\x00ff0a5c'), ('empty', ''), ('null', NULL)", "UPDATE bytes SET v = '\\x01' WHERE k = 'k5'", "DELETE FROM bytes WHERE k = 'k6'",
          "UPDATE bytes SET k = 'moved' WHERE k = 'k7'", "UPDATE bytes SET v = NULL WHERE k = 'k8'", "UPDATE bytes SET v = 'x' WHERE k = 'null'")
        equals(f, s, "bytes")
        ok("inserts, updates, deletes, another key, NULL, bytes of any value")
        # what an update does not touch is not in the stream
        long = "(SELECT string_agg(decode(md5(i::text), 'hex'), '') FROM generate_series(1, 2000) i)"
        s(f"INSERT INTO bytes VALUES ('long', {long}), ('longer', {long} || {long})")
        s("UPDATE bytes SET other = 5 WHERE k = 'long'", "UPDATE bytes SET k = 'long, moved' WHERE k = 'longer'")
        equals(f, s, "bytes")
        check(f.last["loads"] == 1, f"it was loaded again: {f.last}")
        ok("long values that an update leaves as they are")
        s("BEGIN", "UPDATE bytes SET v = 'none'", "ROLLBACK", "BEGIN", "UPDATE bytes SET v = 'some' WHERE k < 'k2'", "SAVEPOINT s", "DELETE FROM bytes", "ROLLBACK TO s",
          "INSERT INTO bytes VALUES ('in it', 'y')", "COMMIT")
        equals(f, s, "bytes")
        ok("transactions that are rolled back, whole and in part")
        s("INSERT INTO numbers VALUES ('NaN', -1), (1e300, 101), (0.1::float8 + 0.2::float8, 102)", "SET datestyle = german", "INSERT INTO \"odd \"\"name\"\"\" VALUES ('2026-11-29 20:00:00+01', '{\"a\": 1}')",
          "SET datestyle = iso")
        equals(n, s, "numbers")
        check(n.has(b"102", b"0.30000000000000004"), "a number is not exact")
        equals(odd, s, '"odd ""name"""')
        s("UPDATE \"odd \"\"name\"\"\" SET v = '[1]'")
        equals(odd, s, '"odd ""name"""')
        ok("other types, and names that must be quoted")
    with server.follow("bytes", "--prefix", "k1", "--prefix", "mo") as f:
        equals(f, s, "bytes", "k LIKE 'k1%' OR k LIKE 'mo%'")
        s("INSERT INTO bytes VALUES ('k1new', 'x'), ('l', 'x')", "UPDATE bytes SET k = 'other' WHERE k = 'moved'")
        equals(f, s, "bytes", "k LIKE 'k1%' OR k LIKE 'mo%'")
    ok("prefixes")
    with server.follow("bytes", "--max-value", "64") as f:
        until(lambda: f.last["absent"] == 2 and not f.last["complete"], lambda: f"{f.last}")
        s("UPDATE bytes SET v = 'short' WHERE k = 'long'", "DELETE FROM bytes WHERE k = 'long, moved'")
        equals(f, s, "bytes")
        until(lambda: f.as_of().complete, "the table does not state that it is complete")
    ok("values that the table cannot hold")


def doubts(server):
    s = server.client
    with server.follow("bytes") as f:
        for what in ("TRUNCATE bytes", "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active", "ALTER TABLE bytes RENAME COLUMN v TO w"):
            loads = f.last["loads"]
            s(what, f"INSERT INTO bytes SELECT '{len(what)} ' || i, 'x' FROM generate_series(1, 100) i")
            if "RENAME" in what:
                until(lambda: "has no column v" in (f.last.get("why") or "") or "lacks the column" in (f.last.get("why") or ""), lambda: f"{f.last}")
                s("ALTER TABLE bytes RENAME COLUMN w TO v")
            f.reaches("following", loads + 1)
            equals(f, s, "bytes")
        ok("TRUNCATE, a connection that is ended, a column that is renamed")
        loads = f.last["loads"]
        server.stop()
        f.reaches("apart")
        server.run()
        server.client = s = Session(server.path)
        f.reaches("following", loads + 1)
        s("INSERT INTO bytes VALUES ('after it', 'x')")
        equals(f, s, "bytes")
        check(s("SELECT count(*) FROM pg_replication_slots") == ["1"], "there is more than its slot")
        f.end(signal.SIGKILL)
    until(lambda: s("SELECT count(*) FROM pg_replication_slots") == ["0"], "a dead follower's slot stays")
    ok("a server that dies and recovers; a follower that dies leaves no slot")


def changed_tables(server):
    """What the WAL has nothing of: the table is read again, or is not followed any more; it is never stated to be complete and is not."""
    s = server.client
    long = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 80) i)"
    s("CREATE TABLE t (k text PRIMARY KEY, v text)", "ALTER TABLE t ALTER k SET STORAGE EXTERNAL", f"INSERT INTO t VALUES ('a', '1'), ({long}, 'of a long key')")
    with server.follow("t") as f:
        equals(f, s, "t")
        s("UPDATE t SET v = v || ', again'")
        equals(f, s, "t")
        for what in ("ALTER TABLE t RENAME TO old; CREATE TABLE t (k text PRIMARY KEY, v text); INSERT INTO t VALUES ('b', '2'); DROP TABLE old",
                     "ALTER TABLE t ALTER v TYPE text USING upper(v || 'x')", "ALTER TABLE t ALTER v TYPE bytea USING convert_to(v, 'UTF8'); INSERT INTO t VALUES ('c', 'A')",
                     "ALTER PUBLICATION reddn SET (publish = 'insert'); DELETE FROM t WHERE k = 'c'; ALTER PUBLICATION reddn SET (publish = 'insert, update, delete, truncate')"):
            loads = f.last["loads"]
            s(what)
            f.reaches("following", loads + 1)
            equals(f, s, "t")
        s("CREATE TABLE child () INHERITS (t)", "INSERT INTO child VALUES ('of a child', 'x')")
        check(server.follow("t").end() == 0, "a table with a child cannot be followed")
        s("DROP TABLE child")
        loads = f.last["loads"]
        s("DROP TABLE t")
        until(lambda: "there is no table t" in (f.last.get("why") or ""), lambda: f"{f.last}")
    s("CREATE TABLE secret (k text PRIMARY KEY, v text)", "INSERT INTO secret VALUES ('a', '1')", "ALTER TABLE secret ENABLE ROW LEVEL SECURITY",
      "CREATE ROLE limited LOGIN REPLICATION", "GRANT SELECT ON secret TO limited", "CREATE POLICY none ON secret USING (false)")
    refuses(["--once", server.url("secret").replace("postgres@", "limited@"), f"{memory}/limited"], 2, "row-level security")
    ok("a table that another one replaces, that is rewritten, or is gone; another type; a publication that changes; row-level security")


def printed(server):
    """Each value is as psql prints it in UTC, whether it was copied or changed later; what else changes how it is printed."""
    s = server.client

    def prints(follower, table, key="k", value="v"):
        follower.becomes({k.encode(): v.encode() for k, v in (line.split("|") for line in s(f"SELECT {key}, {value} FROM {table} WHERE {value} IS DISTINCT FROM NULL"))})

    s("SET timezone = UTC", "CREATE TYPE state AS ENUM ('open', 'shut')", "CREATE TYPE pair AS (first int, second state[])",
      "CREATE TABLE padded (k char(8) PRIMARY KEY, v boolean)", "INSERT INTO padded VALUES ('a', true), ('b', false)",
      "CREATE TABLE hosts (k inet PRIMARY KEY, v timestamptz)", "INSERT INTO hosts VALUES ('10.0.0.1', '2026-07-01 12:00:00+02'), ('10.0.0.2', 'epoch')",
      "CREATE TABLE pairs (k state PRIMARY KEY, v pair)", "INSERT INTO pairs VALUES ('open', (1, '{open}')), ('shut', (NULL, NULL))",
      "CREATE TABLE names (k text PRIMARY KEY)", "INSERT INTO names VALUES ('one')")
    with server.follow("padded") as padded, server.follow("hosts") as hosts, server.follow("pairs") as pairs, server.follow("names", value="k") as names:
        for follower, table, value in ((padded, "padded", "v"), (hosts, "hosts", "v"), (pairs, "pairs", "v"), (names, "names", "k")):
            prints(follower, table, value=value)
        s("UPDATE padded SET v = NOT v WHERE k = 'a'", "DELETE FROM padded WHERE k = 'b'", "UPDATE hosts SET v = v + '1 h' WHERE k = '10.0.0.1'", "DELETE FROM hosts WHERE k = '10.0.0.2'",
          "UPDATE pairs SET v.second = '{shut,open}' WHERE k = 'open'", "INSERT INTO names VALUES ('two')", "UPDATE names SET k = 'first' WHERE k = 'one'")
        for follower, table, value in ((padded, "padded", "v"), (hosts, "hosts", "v"), (pairs, "pairs", "v"), (names, "names", "k")):
            prints(follower, table, value=value)
            check(follower.last["loads"] == 1, f"it was loaded again: {follower.last}")
        ok("types of which the text is another one when it is cast; a key that is its own value")
        s("ALTER TYPE state RENAME VALUE 'open' TO 'free'")
        pairs.reaches("following", 2)
        prints(pairs, "pairs")
        ok("a value of an enum that is renamed, in an array of a composite type")
    s("CREATE TABLE classes (k regclass PRIMARY KEY, v text)")
    refuses(["--once", server.url("classes"), f"{memory}/classes"], 2, "classes has names of objects as keys or values")
    ok("types that print names of others")


def published(server):
    """A table that is in no publication for a moment: what was changed meanwhile is not in the WAL that is sent."""
    s = server.client
    s("CREATE TABLE parent (k text PRIMARY KEY, v text) PARTITION BY LIST (k)", "CREATE TABLE part PARTITION OF parent DEFAULT", "INSERT INTO part VALUES ('a', '1')",
      "CREATE SCHEMA apart", "CREATE TABLE apart.t (k text PRIMARY KEY, v text)", "INSERT INTO apart.t VALUES ('a', '1')", "CREATE PUBLICATION partial_ones FOR TABLE parent")
    ways = [("part", "ALTER PUBLICATION partial_ones DROP TABLE parent", "ALTER PUBLICATION partial_ones ADD TABLE parent"),
            ("part", "ALTER TABLE parent DETACH PARTITION part", "ALTER TABLE parent ATTACH PARTITION part DEFAULT")]
    if int(s("SHOW server_version_num")[0]) >= 150000:
        s("ALTER PUBLICATION partial_ones ADD TABLES IN SCHEMA apart")
        ways.append(("apart.t", "ALTER PUBLICATION partial_ones DROP TABLES IN SCHEMA apart", "ALTER PUBLICATION partial_ones ADD TABLES IN SCHEMA apart"))
    for table, away, back in ways:
        with server.follow(table, more="&publication=partial_ones") as f:
            equals(f, s, table)
            s("BEGIN", away, f"UPDATE {table} SET v = v || '2'", back, "COMMIT")
            f.reaches("following", 2)
            equals(f, s, table)
    ok("a publication that loses a parent, a partition or a schema, and gets it again")


def command_line(server):
    s = server.client
    s("CREATE TABLE unnamed (k int, v int)", "CREATE VIEW seen AS SELECT * FROM bytes", "CREATE PUBLICATION half FOR TABLE bytes WITH (publish = 'insert')",
      "CREATE PUBLICATION none")
    for words, status, args in (
        ("?table=TABLE&key=COLUMN&value=COLUMN", os.EX_USAGE, ["postgresql://h/db", "t"]), ("libpq does not", os.EX_USAGE, [server.url("t", more="&hots=x"), "t"]),
        ("bytes is in no publication none", 2, ["--once", server.url("bytes", more="&publication=none"), f"{memory}/pg"]),
        ("publication half does not publish", 2, ["--once", server.url("bytes", more="&publication=half"), f"{memory}/pg"]),
        ("there is no table gone", 2, ["--once", server.url("gone"), f"{memory}/pg"]), ("bytes has no column x", 2, ["--once", server.url("bytes", key="x"), f"{memory}/pg"]),
        ("k is neither the primary key of unnamed", 2, ["--once", server.url("unnamed"), f"{memory}/pg"]),
        ("seen is no ordinary table", 2, ["--once", server.url("seen"), f"{memory}/pg"]),
        ("", 2, ["--once", f"postgresql://user:topsecret@/db?host={work}/none&table=t&key=k&value=v", f"{memory}/pg"]),
    ):
        refuses(args, status, words, "topsecret")
    done = subprocess.run([FOLLOW, "--once", server.url("numbers"), f"{memory}/once"], timeout=LIMIT, check=False)
    check(done.returncode == 0, f"--once: {done}")
    rights = subprocess.run([FOLLOW, "--acl", server.url("bytes")], capture_output=True, text=True, timeout=LIMIT, check=True).stdout
    s("DROP PUBLICATION reddn", rights)
    done = subprocess.run([FOLLOW, "--once", server.url("bytes").replace("postgres@", "follower@"), f"{memory}/acl"], capture_output=True, text=True, timeout=LIMIT, check=False)
    check(done.returncode == 0, f"the rights that --acl prints: {done}")
    server.stop(signal.SIGINT)
    server.run(level="replica")
    refuses(["--once", server.url("bytes"), f"{memory}/pg"], 2, "wal_level is replica; set it to logical")
    server.stop(signal.SIGINT)
    server.run()
    server.client = Session(server.path)
    ok("the command line, and what a server lacks")


KEYS = 200


class Writer(threading.Thread):
    """Counts up; each count is a transaction of its own that has a few keys."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.ended, self.rng = server, False, random.Random(7)
        self.acknowledged = [[] for _ in range(KEYS)]  # of a key: (ns when it was, count)
        self.count = 0

    def write(self, session):
        keys = self.rng.sample(range(KEYS), 3)
        self.count += 1
        if session(f"UPDATE counts SET v = {self.count} WHERE k IN ({', '.join(map(str, keys))})"):
            return  # an error
        for k in keys:
            self.acknowledged[k].append((time.time_ns(), self.count))

    def run(self):
        session = Session(self.server.path)
        while not self.ended:
            try:
                self.write(session)
            except OSError:
                time.sleep(0.05)
                session = Session(self.server.path)
        session.close()


def promise(server):
    s = server.client
    s("CREATE TABLE counts (k int PRIMARY KEY, v int NOT NULL)", f"INSERT INTO counts SELECT i, 0 FROM generate_series(0, {KEYS - 1}) i",
      "ALTER PUBLICATION reddn ADD TABLE counts")
    follower, writer, rng, asked = server.follow("counts"), Writer(server), random.Random(8), 0
    writer.start()
    for turn in range(40):
        if turn % 10 == 4:
            follower.end(signal.SIGKILL)
            follower = Follower(server.url("counts"), table=follower.path)
        if turn % 20 == 9:
            server.stop()
            server.run()
        for _ in range(50):
            key = rng.randrange(KEYS)
            answer = follower.ask(str(key).encode())
            if answer is None:
                continue
            as_of, value = answer
            asked += 1
            check(value is not None or not as_of.complete, f"{key} is missing")
            before = [count for ns, count in writer.acknowledged[key][:] if ns <= as_of.host]
            check(value is None or not before or int(value) >= before[-1], f"{key} is {value}, though {before[-1:]} was there as of {as_of}")
    writer.ended = True
    writer.join()
    server.client = s = Session(server.path)
    equals(follower, s, "counts")
    check(follower.end() == 0, "it does not end well")
    ok(f"{asked} answers while {writer.count} transactions went on: none from before the moment that it states")


def main():
    server = Postgres()
    try:
        server.client = Session(server.path)
        for case in (values, doubts, changed_tables, printed, published, command_line, promise):
            case(server)
    finally:
        server.end()


main()
