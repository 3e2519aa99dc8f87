# SPDX-License-Identifier: BSD-2-Clause
"""The evaluation: its benchmarks in order, their arguments for "./dev bench all", and the pictures of their rows. Pages show only these
rows: see result.py."""

from dataclasses import dataclass, field


@dataclass
class Bench:
    name: str
    title: str
    arguments: list = field(default_factory=list)  # in "./dev bench all"
    tables: tuple = ()  # its tables, of which a run may have made some only: its arguments name them


@dataclass
class Figure:
    """One picture: for each value of @series and each column of @ys a line (or a row of bars), over @x."""

    bench: str
    table: str  # None: of rows that have no "table"
    title: str
    x: str
    ys: dict  # column: its name in the key
    ylabel: str
    xlabel: str = None  # default: x
    series: str = None
    only: dict = field(default_factory=dict)  # the values of columns that its rows have
    bars: bool = False  # clustered, over the values of x; otherwise lines, over numbers
    logx: bool = False
    logy: bool = False
    file: str = None  # name of an SVG file of it beside the result


EVALUATION = [
    Bench("wall", "Gets by the NIC against everything else, by the clock", tables=("ways", "gets of a server's core")),
    Bench("paper", "The RedN paper's tables and figures, by the modelled clock"),
    Bench("handle", "What one handle of libreddn does, by the modelled clock"),
    Bench("store", "Puts, deletes and words by the NIC, and YCSB"),
    Bench("isolation", "What a reader notices of writers that load the server's CPU"),
    Bench("client", "What a get costs its client and the daemon", tables=("instructions", "server", "system calls", "daemon")),
    Bench("rates", "How exactly rates are kept", ["10"]),
    Bench("scale", "What many clients cost"),
    Bench("turing", "A Turing machine: chains that nobody but the NIC keeps going", ["--json", "--seconds", "10"]),
    Bench("failover", "What clients notice when the server's software dies", tables=("gaps", "hosts", "bins")),
    Bench("memcached", "Gets from the memcached of the distribution", tables=("modelled", "latency", "server", "loaded", "gaps", "bins")),
    Bench("follow", "Tables that follow the distribution's Redis and PostgreSQL", tables=("load", "changes", "equal again", "postgresql")),
    Bench("hostile", "What a bystander notices of hostile clients", ["500"]),
    Bench("softcx", "How fast the emulated NIC is"),
]

FIGURES = [
    Figure("scale", "scale", "Memory of the daemon for each session", "sessions",
           {"rss_per_session_bytes": "resident", "pinned_per_session_bytes": "pinned"}, "bytes", series="mode", logx=True),
    Figure("scale", "scale", "Time to connect, and the daemon's part of it", "sessions",
           {"connect_p50_us": "median", "connect_daemon_cpu_us": "CPU time of the daemon"}, "us", series="mode", logx=True, logy=True),
    Figure("wall", "ways", "Gets per second", "depth", {"gets_per_s": ""}, "gets/s", "requests outstanding", series="way", logx=True, logy=True),
    Figure("wall", "ways", "Latency, median", "depth", {"p50_us": ""}, "us", "requests outstanding", series="way", logx=True, logy=True),
    Figure("paper", "Figure 8: a chain of n NOOPs", "A chain of NOOPs in three orders", "n", {"ours": ""}, "us", "NOOPs", series="what"),
    Figure("paper", "Figure 10: a hash get, mean latency", "A hash get (RedN, figure 10)", "bytes", {"ours": ""}, "us", "bytes of the value", series="what", logx=True, logy=True),
    Figure("paper", "Figure 10: a hash get, mean latency", "The same, where the paper gives numbers", "bytes", {"paper": "the paper", "ours": "ours"}, "us", "bytes of the value", series="what",
           logx=True),
    Figure("paper", "Figure 13: walking a list of 8 nodes, mean latency", "Walking a list (RedN, figure 13)", "range", {"ours": ""}, "us", "nodes among which the key is", series="what"),
    Figure("handle", "connections", "Gets of one handle, modelled", "connections", {"gets_per_s": ""}, "gets/s", "connections", series="mode"),
    Figure("handle", "many", "Requests of several keys, modelled, nothing else outstanding", "keys", {"us": ""}, "us", "keys of a request", series="series", only={"connections": 1}, logx=2, logy=True,
           file="handle-many.svg"),
    Figure("store", "one at a time", "Puts and deletes, modelled, nothing else outstanding", "bytes", {"us": ""}, "us", "bytes of the value", series="series", logx=2, logy=True, file="store.svg"),
    Figure("store-wall", "mixes", "YCSB by the clock, with 16 connections", "workload", {"per_s": ""}, "requests/s", series="way", only={"connections": 16}, bars=True, file="store-wall.svg"),
    Figure("isolation", None, "A get while writers load the server's CPU, 99th percentile", "writers", {"p99_us": ""}, "us", series="series", logy=True),
    Figure("isolation", None, "A get while writers load the server's CPU, average", "writers", {"avg_us": ""}, "us", series="series", logy=True),
    Figure("failover", "bins", "Gets while the server's software dies (RedN, figure 16)", "s", {"gets_per_s": ""}, "gets/s, in 50 ms", "seconds since the event",
           series="case", file="failover.svg"),
    Figure("memcached", "modelled", "A get from memcached (RedN, figure 14), modelled", "bytes", {"us": ""}, "us", "bytes of the value", series="way", logx=2, logy=True, file="memcached-modelled.svg"),
    Figure("memcached", "latency", "A get from memcached (RedN, figure 14), by the clock", "bytes", {"p50_us": ""}, "us", "bytes of the value", series="way", logx=2, logy=True,
           file="memcached-latency.svg"),
    Figure("memcached", "loaded", "A get from memcached while writers set keys (RedN, figure 15)", "writers", {"p50_us": "median", "p99_us": "99th percentile"}, "us", series="way", logy=True,
           file="memcached-loaded.svg"),
    Figure("memcached", "bins", "Gets while memcached is killed and started again (RedN, figure 16)", "s", {"gets_per_s": "values", "misses_per_s": "misses"}, "gets/s, in 50 ms",
           "seconds since it was killed", series="case", file="memcached-killed.svg"),
    Figure("client", "instructions", "Instructions of a call", "call", {"instructions": "instructions"}, "instructions", bars=True),
    Figure("rates", None, "Rates as configured and as measured", "configured", {"measured": "measured", "configured": "configured"},
           "gets/s", "configured, gets/s", series="mode", logx=True, logy=True),
]
