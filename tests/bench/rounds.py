# SPDX-License-Identifier: BSD-2-Clause
"""Ways to the same data, measured in wall time and in turns: each round measures all of them, so that other work on the machine affects
all alike. A ratio is the median over the rounds of the ratio within a round."""

import statistics
import sys

from rig import interval


class Way:
    """A way to get. @server: the process whose CPU answers or prepares. Options go between @program and @where; @several is that for connections."""

    def __init__(self, name, program, where, server, on_nic=True, several="--clients"):
        self.name, self.program, self.where, self.server, self.on_nic, self.several = name, program, where, server, on_nic, several


def measure(rig, way, options, seed):
    words = [*way.program, "--json", "--keys", rig.keys_file, *options, "--seed", seed, *way.where]
    server, nic = way.server.cpu_s(), rig.nic.cpu_s()
    r = rig.ask(words, on_nic=way.on_nic)
    gets = r["gets"]
    if r["misses"] or r["errors"] or not gets:
        sys.exit("%s: %s" % (way.name, r))
    r["server_us"] = (way.server.cpu_s() - server) / gets * 1e6
    r["nic_us"] = (rig.nic.cpu_s() - nic) / gets * 1e6 if way.on_nic else None
    r["client_us"] = r["client_cpu_s"] / gets * 1e6
    return r


COLUMNS = ("gets_per_s", "p50_us", "p90_us", "p99_us", "server_us", "nic_us", "client_us")
RATIOS = (("gets_per_s", True), ("p50_us", False), ("p99_us", False))  # and whether ours is above the line


def summary(of, ours, columns=COLUMNS, compared=RATIOS):
    """Medians of the rounds, and ratios to @ours: how many times faster, how many times shorter we are."""
    row = {}
    for column in columns:
        values = [r[column] for r in of]
        row[column] = None if None in values else round(statistics.median(values), 3)
    for column, mine_first in compared:
        ratios = [(m[column] / r[column]) if mine_first else (r[column] / m[column]) for r, m in zip(of, ours)]
        for name, value in zip(("", "_low", "_high"), interval(ratios)):
            row[column + "_ratio" + name] = round(value, 3)
    return row


def in_rounds(args, cells, measured):
    """{cell: results of measured(cell, seed), of each round}; all cells are measured in each round"""
    runs = {cell: [] for cell in cells}
    for n in range(args.rounds):
        for cell, of in runs.items():
            if sys.stderr.isatty():
                print("\r\033[Kround %d of %d: %s" % (n + 1, args.rounds, " ".join(map(str, cell))), end="", file=sys.stderr, flush=True)
            of.append(measured(cell, args.seed + n))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return runs
