# SPDX-License-Identifier: BSD-2-Clause
"""The targets of the evaluation, and whether they are met: by the rows of a result, at the configuration that each names.

A target is judged by the worst of the rows that it is for, or by the mean over their calls, so "in all rows" needs no row of its own.
One without a row was not measured, and is not judged. Everything here is computed from the rows, so that nobody declares a target met."""

from dataclasses import dataclass, field

TABLE, MET = "Targets", "met"


@dataclass
class Target:
    bench: str
    what: str
    at: str  # the configuration, in words
    bound: float
    table: str  # None: of rows that have none
    column: str
    where: dict = field(default_factory=dict)  # what a row has; a set: one of these
    at_least: bool = False  # otherwise: at most
    mean: bool = False  # of all "calls" of the rows; otherwise the worst row counts


FIGURE_10, TABLE_4, ONE_CLIENT = "Figure 10: a hash get, mean latency", "Table 4: throughput of hash gets", "modelled, 64 bytes, one client with one queue pair"
FIGURE_14, OF_256, KILLED = "modelled, memcached-get with 2 items of a bucket, 256 bytes", "by the clock, 256 bytes, one get at a time", "memcached is killed, with 4 writers"
BY_NIC, IDLE = {"by the NIC", "by the NIC, recycled"}, "256 bytes, without what it takes when idle"
DEATHS = (", daemon killed", ", daemon restarted", ", owner of the data killed", ", all but the NIC stopped")
BOTH_MODES = {"reddn, unrolled", "reddn, recycled"}
AT_100K = "Redis, 100,000 in a second, 50 in a pipeline"
PUTS, ONE_PUT = "one at a time", "modelled, one at a time"
AT_16 = "64 bytes, 16 writers of 100 us each, the application polls"

TARGETS = [
    Target("paper", "a get of one bucket as in the paper, us", ONE_CLIENT, 5.7, FIGURE_10, "ours", {"what": "reddnd, one bucket as in the paper", "bytes": 64}),
    Target("paper", "the same, not worse than before there were connections, us", ONE_CLIENT, 4.65, FIGURE_10, "ours", {"what": "reddnd, one bucket as in the paper", "bytes": 64}),
    Target("paper", "a get of two buckets, not worse than before there were connections, us", ONE_CLIENT, 5.15, FIGURE_10, "ours", {"what": "reddnd, a table's two buckets", "bytes": 64}),
    Target("paper", "a get in the direct form, us", ONE_CLIENT, 5.0, FIGURE_10, "ours", {"what": "reddnd, one bucket, direct form", "bytes": 64}),
    Target("paper", "gets per second of a port", ONE_CLIENT, 500000, TABLE_4, "ours", {"what": "one port", "bytes": 64, "clients": 1}, at_least=True),
    Target("paper", "the same in the direct form", ONE_CLIENT, 700000, TABLE_4, "ours", {"what": "one port, one bucket, direct form", "bytes": 64, "clients": 1}, at_least=True),
    Target("handle", "gets per second of one handle", "modelled, 64 bytes, 16 connections, index checks, both modes", 3.6e6, "connections", "gets_per_s", {"connections": 16}, at_least=True),
    Target("handle", "gets per second of one connection", "modelled, 64 bytes, index checks, both modes", 7e5, "connections", "gets_per_s", {"connections": 1}, at_least=True),
    Target("handle", "keys per second of requests of 4 keys over those of single gets", "modelled, 64 bytes, one connection, both modes", 1.5, "mget", "ratio", {"what": "one request"}, at_least=True),
    Target("handle", "the same of 8 keys in two requests over 8 single gets", "modelled, 64 bytes, one connection, both modes, no more outstanding", 1.5, "mget of 8", "ratio",
           {"what": "two requests"}, at_least=True),
    Target("handle", "us of a request which of 16 keys exist", "modelled, alone, both modes", 10, "many", "us", {"what": "exists", "keys": 16, "way": BOTH_MODES}),
    Target("handle", "the same of 64 keys", "modelled, alone, both modes", 28, "many", "us", {"what": "exists", "keys": 64, "way": BOTH_MODES}),
    Target("handle", "us of a request for 16 keys", "modelled, 64 bytes, alone, both modes", 31, "many", "us", {"what": "mget", "keys": 16, "way": BOTH_MODES}),
    Target("handle", "keys per second of requests which of 16 exist", "modelled, 16 connections, recycled", 2e7, "many", "keys_per_s",
           {"what": "exists", "keys": 16, "connections": 16, "way": "reddn, recycled"}, at_least=True),
    Target("handle", "keys per second of requests for 16", "modelled, 64 bytes, 16 connections, recycled", 4e6, "many", "keys_per_s",
           {"what": "mget", "keys": 16, "connections": 16, "way": "reddn, recycled"}, at_least=True),
    *(Target("store", "us of a put of %s" % text, ONE_PUT, bound, PUTS, "us", {"what": "put", "bytes": size, "way": "reddn"})
      for text, size, bound in (("64 bytes", 64, 6.0), ("4 KB", 4096, 6.7), ("64 KB", 65536, 12.1), ("1 MB", (1 << 20) - 64, 99))),
    Target("store", "us of a delete", ONE_PUT + ", every size", 5.7, PUTS, "us", {"what": "delete", "way": "reddn"}),
    Target("store", "us of a get from a store: as from a table", ONE_PUT + ", 64 bytes", 5.15, PUTS, "us", {"what": "get", "bytes": 64, "way": "reddn"}),
    Target("store", "us of a compare-and-swap or fetch-and-add", ONE_PUT, 3.5, "words", "us", {"what": {"compare-and-swap", "fetch-and-add"}, "way": "reddn"}),
    Target("store", "us to try a lock", ONE_PUT, 7.2, "words", "us", {"what": "try-lock", "way": "reddn"}),
    Target("store", "us to append 200 bytes to a log", ONE_PUT, 8, "words", "us", {"what": "append", "way": "reddn"}),
    Target("store", "puts per second of one connection", "modelled, 64 bytes, 32 outstanding", 270000, "rates", "per_s", {"way": "reddn", "connections": 1}, at_least=True),
    Target("store", "puts per second of 16 connections", "modelled, 64 bytes, 32 outstanding on each", 2e6, "rates", "per_s", {"way": "reddn", "connections": 16}, at_least=True),
    Target("wall", "gets per second, end to end", "64 bytes, 64 outstanding", 500000, "ways", "gets_per_s", {"depth": 64, "way": "reddn"}, at_least=True),
    Target("wall", "us of the NIC's core for a get: it could do 500,000 in a second", "64 bytes, 64 outstanding", 2, "ways", "nic_us", {"depth": 64, "way": "reddn"}),
    Target("wall", "median of memcached over TCP over that of the NIC", "64 bytes, one get at a time", 4, "ways", "p50_us_ratio", {"depth": 1, "way": "memcached"}, at_least=True),
    Target("wall", "gets of a core of reddnd's CPU over those of a server that polls", "64 bytes, 64 outstanding", 1, "gets of a server's core", "gets_per_core_ratio",
           {"depth": 64, "way": "reddn, engine cpu"}, at_least=True),
    Target("isolation", "99th percentile of a get by the application over that by the NIC", AT_16, 35, None, "p99_us_ratio",
           {"server": "application", "work_us": 100, "writers": 16, "way": "two-sided polling"}, at_least=True),
    Target("isolation", "99th percentile of a recycled offload over that of an unrolled one", "every row", 2, None, "p99_us_ratio", {"way": "reddn recycled"}),
    Target("client", "instructions of reddn_get_submit", "keys of 16 bytes, values of 64", 450, "instructions", "instructions", {"call": "reddn_get_submit"}),
    Target("client", "instructions of reddn_poll for one result, receives included", "keys of 16 bytes, values of 64, the mean of 16 polls", 450, "instructions", "instructions",
           {"call": {"reddn_poll, one result", "reddn_poll, one result, and 16 receives are posted"}}, mean=True),
    Target("client", "instructions of the daemon to arm an unrolled chain again over those of the older build", "a get, 16 at a time", 0.5, "against", "ratio", {"what": "re-arming its chain"}),
    Target("scale", "pinned bytes of an unrolled session", "a depth of 16, every row", 65536, "scale", "pinned_per_session_bytes", {"mode": "unrolled"}),
    Target("scale", "us of the daemon's CPU for a connect and its end, unrolled", "every row", 450, "scale", "connect_daemon_cpu_us", {"mode": "unrolled"}),
    Target("scale", "the same, recycled", "every row", 650, "scale", "connect_daemon_cpu_us", {"mode": "recycled"}),
    Target("scale", "CPU of the daemon while all sessions are idle, percent", "every row", 0.05, "scale", "idle_cpu_percent"),
    Target("scale-against", "median of a connect over that of the older build", "every row", 0.5, "against", "connect_p50_ratio"),
    Target("scale-against", "us of the daemon's CPU for a connect and its end, unrolled", "every row of this build, in turns with the older one", 450, "scale", "connect_daemon_cpu_us",
           {"build": "this", "mode": "unrolled"}),
    Target("scale-against", "the same, recycled", "every row of this build, in turns with the older one", 650, "scale", "connect_daemon_cpu_us",
           {"build": "this", "mode": "recycled"}),
    Target("hostile", "99th percentile of a bystander over that of quiet times", "every row", 2, None, "p99_ratio"),
    Target("failover", "errors of clients of reddnd", "every case but memcached's", 0, "gaps", "errors",
           {"case": {m + c for m in ("unrolled", "recycled") for c in DEATHS}}),
    Target("failover", "bins of 50 ms without a value, of recycled offloads", "every case", 0, "gaps", "empty_bins", {"case": {"recycled" + c for c in DEATHS}}),
    Target("failover", "errors of clients that outlive their hosts", "one host or two, every case", 0, "hosts", "errors"),
    Target("failover", "their wrong or old answers", "one host or two, every case", 0, "hosts", "wrong"),
    Target("failover", "median of the longest gaps, ms", "two hosts, one killed", 20, "hosts", "longest_gap_ms", {"case": "two hosts, one killed"}),
    Target("failover", "the same", "two hosts, one stopped", 50, "hosts", "longest_gap_ms", {"case": "two hosts, one stopped"}),
    Target("failover", "ms by which it is longer than the outage", "one host, every case", 50, "hosts", "beyond_outage_ms"),
    Target("memcached", "a get by the NIC, us", FIGURE_14, 8, "modelled", "us", {"way": {"memcached-get, 2 of a bucket", "memcached-get, 2 of a bucket, recycled"}, "bytes": 256}),
    Target("memcached", "median of memcached over TCP, by a client that polls its socket, over that of the NIC", OF_256, 4, "latency", "p50_ratio", {"way": "a plain socket, TCP", "bytes": 256}, at_least=True),
    Target("memcached", "the same with libmemcached", OF_256, 4, "latency", "p50_ratio", {"way": "libmemcached, TCP", "bytes": 256}, at_least=True),
    Target("memcached", "99th percentile over TCP, by a client that polls its socket, over that of the NIC", "256 bytes, 16 writers in a closed loop", 35, "loaded", "p99_ratio",
           {"way": "a plain socket, TCP", "writers": 16}, at_least=True),
    Target("memcached", "the same with libmemcached", "256 bytes, 16 writers in a closed loop", 35, "loaded", "p99_ratio", {"way": "libmemcached, TCP", "writers": 16}, at_least=True),
    Target("memcached", "us of memcached's CPU for a get by the NIC", IDLE, 0.05, "server", "memcached_us", {"bytes": 256}),
    Target("memcached", "us of reddnd's CPU for a get by the NIC", IDLE + ", a recycled offload", 0.05, "server", "reddnd_us", {"bytes": 256, "mode": "recycled"}),
    Target("memcached", "errors of a client of the NIC", KILLED, 0, "gaps", "errors", {"case": BY_NIC}),
    Target("memcached", "its wrong answers", KILLED, 0, "gaps", "wrong", {"case": BY_NIC}),
    Target("memcached", "its bins of 50 ms without an answer", KILLED, 0, "gaps", "silent_bins", {"case": BY_NIC}),
    Target("memcached", "ms until it sees what is set after the restart", KILLED, 1000, "gaps", "visible_ms", {"case": BY_NIC}),
    Target("follow", "keys per second of a load", "Redis, 1,000,000 keys with values of 100 bytes, a new table", 200000, "load", "keys_per_s", {"what": "a new table"}, at_least=True),
    Target("follow", "median lag of a change, ms", AT_100K, 1, "changes", "p50_ms", {"offered_per_s": 100000}),
    Target("follow", "its 99th percentile", AT_100K, 10, "changes", "p99_ms", {"offered_per_s": 100000}),
    Target("follow", "us of the follower's CPU for a change", AT_100K, 3, "changes", "follower_us", {"offered_per_s": 100000}),
    Target("follow", "99th percentile of the age that the table states, ms", "Redis, each rate", 10, "changes", "as_of_p99_ms", {"driver": "paced"}),
    Target("follow", "seconds until equal again, beyond those of the source and of a load", "each failure", 1, "equal again", "beyond_s"),
]


def fits(target, row):
    if row.get("table") != target.table or row.get(target.column) is None:
        return False
    return all(row.get(key) in want if isinstance(want, set) else row.get(key) == want for key, want in target.where.items())


def ours(target, rows):
    """What is judged of the @rows that fit."""
    values = [row[target.column] for row in rows]
    if target.mean:
        return round(sum(row["calls"] * row[target.column] for row in rows) / sum(row["calls"] for row in rows), 1)
    return min(values) if target.at_least else max(values)


def judge(bench, rows):
    """Rows of table TABLE for the @rows of benchmark @bench."""
    judged = []
    for t in TARGETS:
        fitting = [row for row in rows if fits(t, row)] if t.bench == bench else []
        if fitting:
            value = ours(t, fitting)
            met = value >= t.bound if t.at_least else value <= t.bound
            judged.append({"table": TABLE, "what": t.what, "at": t.at, "bound": "%s %g" % ("at least" if t.at_least else "at most", t.bound), "ours": value, "met": MET if met else "missed"})
    return judged


def renew(result):
    """Puts the rows of table TABLE of a result (result.py) in the place of those that it has."""
    rows = [row for row in result["rows"] if row.get("table") != TABLE]
    result["rows"] = rows + judge(result["bench"], rows)


def show(result):
    """Prints them. True: all are met."""
    judged = [row for row in result["rows"] if row.get("table") == TABLE]
    for row in judged:
        print("%-6s %10.4g  %s: %s (%s)" % (row["met"], row["ours"], row["bound"], row["what"], row["at"]))
    return all(row["met"] == MET for row in judged)
