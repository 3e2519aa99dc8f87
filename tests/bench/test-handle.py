#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The benchmark of one handle runs, and its modelled latencies and ratios are what they should be. Prints what differs; exit status 1 then."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ONE_REQUEST_US = (8, 9.5)  # of four keys
MORE = 1.5  # times the rate: of two connections, and of four keys in a request
EXISTS_16_US = {"reddn, recycled": (8, 10), "reddn, unrolled": (8, 10), "one-sided READs": (5, 9), "a server that polls": (3, 5)}
RECYCLED = 0.8  # of the rate of an unrolled connection, at least: requests of both overlap


def main():
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([os.path.join(HERE, "handle"), "--quick", "--directory", directory], capture_output=True, text=True)
        if done.returncode:
            sys.exit("%s%s" % (done.stdout, done.stderr))
        with open(os.path.join(directory, "handle.json"), encoding="utf-8") as f:
            rows = json.load(f)["rows"]
    bad = [row for row in rows if row.get("what") == "one request" and not (ONE_REQUEST_US[0] < row["us"] < ONE_REQUEST_US[1] and row["ratio"] > MORE)]
    rates = {(row["mode"], row["connections"]): row["gets_per_s"] for row in rows if row["table"] == "connections"}
    if any(rates[mode, 2] < MORE * rates[mode, 1] for mode in ("unrolled", "recycled")) or rates["recycled", 1] < RECYCLED * rates["unrolled", 1]:
        bad.append(rates)
    many = {(row["way"], row["connections"]): row for row in rows if row["table"] == "many"}
    bad += [row for (way, _), row in many.items() if not EXISTS_16_US[way][0] < row["us"] < EXISTS_16_US[way][1]]
    if len(many) != 2 * len(EXISTS_16_US):
        bad.append("exists of 16 keys: %s" % list(many))
    print("\n".join(map(str, bad)) or "ok")
    return int(bool(bad))


sys.exit(main())
