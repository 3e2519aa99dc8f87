#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The result of a benchmark: build/bench/NAME.json, from which "./dev bench report" makes tables and pictures.

    {"bench": NAME, "commit": hash, with "+" if files of the tree were changed, "date": UTC,
     "machine": {"cpu": model, "cores": number it may use, "kernel": release, "load": of the minute before it began},
     "seed": N or null, "rows": [...]}

A row is an object of numbers, strings, booleans and nulls. The optional key "table" names the table of the benchmark that the
row belongs to; table "Targets" is added when the file is written (targets.py). Names carry their unit: "p50_us", "gets_per_s". A number that could not be measured is null; it is
never left out, and never 0.

In Python:

    result = Result("wall", seed=1)              # before measuring: it records the load
    result.row(table="latency", depth=1, p50_us=5.2)
    result.write()                               # or: with Result(...) as result, which writes unless an exception leaves the block

In a shell, with the rows on standard input, one JSON object to a line (programs in C print such lines):

    measure | python3 "$here/result.py" wall --seed 1 [--table latency]

A script that collects rows first passes the load before its begin: --load "$(cut -d ' ' -f 1 /proc/loadavg)".

It copies the lines to its standard output. Without rows, or with a malformed one, it exits with status 1 and keeps an older file. Run it with "set -o pipefail": a benchmark that fails must print no rows, or a malformed line."""

import argparse
import datetime
import json
import math
import os
import platform
import subprocess
import sys
import tempfile

import targets

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
DIRECTORY = os.path.join(TOP, "build", "bench")


def git(*words):
    try:
        done = subprocess.run(["git", "-C", TOP, *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None  # not a git checkout
    return done.stdout.strip()


def commit():
    name = git("rev-parse", "--short=12", "HEAD")
    if name is None:
        return None
    return name + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def machine():
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
    }


def as_text(content):
    """A result as its file has it: JSON, with a line for each row"""
    head = json.dumps({key: value for key, value in content.items() if key != "rows"}, indent=1)
    return head[: -len("\n}")] + ',\n "rows": [\n' + ",\n".join("  " + json.dumps(row) for row in content["rows"]) + "\n ]\n}\n"


def check_row(row):
    """Raises ValueError for a malformed row."""
    if not isinstance(row, dict) or not row:
        raise ValueError("a row is a JSON object with something in it")
    for key, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError('"%s" is %s; what could not be measured is null' % (key, value))
        if not (value is None or isinstance(value, (str, int, float, bool))):
            raise ValueError('"%s" is neither number, string, boolean nor null' % key)


class Result:
    def __init__(self, bench, seed=None, directory=DIRECTORY):
        if not bench or "/" in bench:
            raise ValueError("%r is no name of a benchmark" % bench)
        self.path = os.path.join(directory, bench + ".json")
        self.content = {
            "bench": bench,
            "commit": commit(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
            "seed": seed,
            "rows": [],
        }

    def row(self, **row):
        check_row(row)
        self.content["rows"].append(row)

    def write(self):
        """Replaces the file of an earlier run atomically. ValueError: no rows."""
        if not self.content["rows"]:
            raise ValueError("no rows")
        targets.renew(self.content)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(self.path), delete=False, encoding="utf-8") as f:
            f.write(as_text(self.content))
        os.chmod(f.name, 0o644)
        os.replace(f.name, self.path)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.write()


def main():
    parser = argparse.ArgumentParser(prog="result.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--load", type=float, help="of the minute before the benchmark began; default: of the last minute")
    parser.add_argument("--table", help="of rows that do not say theirs")
    parser.add_argument("--directory", default=DIRECTORY, help="default build/bench of the tree")
    args = parser.parse_args()
    result = Result(args.bench, args.seed, args.directory)
    if args.load is not None:
        result.content["machine"]["load"] = args.load
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            check_row(row)
        except ValueError as e:
            sys.exit("result.py: %s: line %d is no row: %s: %s" % (args.bench, number, e, line.strip()))
        result.row(**(row if args.table is None else {"table": args.table, **row}))
        print(line, end="", flush=True)
    try:
        result.write()
    except ValueError as e:
        sys.exit("result.py: %s: %s" % (args.bench, e))


if __name__ == "__main__":
    main()
