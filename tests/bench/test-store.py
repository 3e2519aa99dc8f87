#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The benchmark of stores runs: its short form makes each table, and puts by the NIC take longer than those by one-sided verbs, as modelled. Prints what differs; exit status 1 then."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))


def main():
    if not shutil.which("memcached"):
        return 77
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([os.path.join(HERE, "store"), "--quick", "--rounds", "1", "--count", "300", "--directory", directory], capture_output=True, text=True)
        if not os.path.exists(os.path.join(directory, "store-wall.json")):
            sys.exit("%s%s" % (done.stdout, done.stderr))
        rows = {}
        for name in "store", "store-wall":
            with open(os.path.join(directory, name + ".json"), encoding="utf-8") as f:
                rows[name] = json.load(f)["rows"]
    bad = []
    us = {(row["what"], row["way"]): row["us"] for row in rows["store"] if row["table"] in ("one at a time", "words")}
    steps = [("put", "reddn"), ("compare-and-swap", "reddn"), ("fetch-and-add", "reddn"), ("try-lock", "reddn"), ("append", "reddn"), ("read of an entry", "reddn")] + [(what, "one-sided") for what in ("get", "put", "put if", "delete")]
    bad += ["%s: %s us" % (which, us.get(which)) for which in steps if not us.get(which)]
    if not all(us.get((what, "reddn"), 0) > us["put", "one-sided"] for what in ("put", "put if", "delete")):
        bad.append("puts by the NIC: %s" % us)
    if not [row for row in rows["store"] if row["table"] == "Targets"]:
        bad.append("no target is judged")
    mixes = [(row["workload"], row["connections"], row["way"]) for row in rows["store-wall"]]
    ways = ("reddn", "reddn, gets by the CPU", "one-sided", "two-sided polling", "memcached, Unix socket")
    if mixes != [(mix, n, way) for mix in ("D", "F") for n in (1, 16) for way in ways]:
        bad.append("in wall time: %s" % mixes)
    bad += ["in wall time: %s" % row for row in rows["store-wall"] if not row["per_s"] > 0]
    print("\n".join(map(str, bad)) or "ok")
    return int(bool(bad))


sys.exit(main())
