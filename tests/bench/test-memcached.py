#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The benchmark of memcached runs: its short form makes each table, and what does not depend on the machine is right. Prints what differs; exit status 1 then."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TWO_ITEMS_US, LONG_US = 8.5, (20, 32)  # modelled: a get of 256 bytes; one of 64 KB, which takes three round trips


def main():
    if not shutil.which("memcached") or not shutil.which("memcaslap"):
        return 77
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([os.path.join(HERE, "memcached"), "--quick", "--directory", directory], capture_output=True, text=True)
        if not os.path.exists(os.path.join(directory, "memcached.json")):
            sys.exit("%s%s" % (done.stdout, done.stderr))
        with open(os.path.join(directory, "memcached.json"), encoding="utf-8") as f:
            rows = json.load(f)["rows"]
    tables = list(dict.fromkeys(row["table"] for row in rows))
    bad = []
    if tables != ["modelled", "latency", "server", "loaded", "gaps", "bins", "Targets"]:
        bad.append("tables: %s" % tables)
    us = {(row["way"], row["bytes"]): row["us"] for row in rows if row["table"] == "modelled"}
    for way in "memcached-get, 2 of a bucket", "memcached-get, 2 of a bucket, recycled":
        two, long = us[way, 256], us[way, 65536]
        if not two < TWO_ITEMS_US or not LONG_US[0] < long < LONG_US[1]:
            bad.append("modelled: %s: %s us, and %s for 64 KB" % (way, two, long))
    if [row["mode"] for row in rows if row["table"] == "server"] != ["unrolled", "recycled"]:
        bad.append("the CPU time of servers is not of both modes")
    if any(row["over_tcp"] for row in rows if row["table"] == "modelled"):
        bad.append("gets over TCP count as gets by the NIC")
    if not all(row["sets_per_s"] > 0 for row in rows if row["table"] == "loaded" and row["writers"]):
        bad.append("the writers set nothing")
    gaps = [row for row in rows if row["table"] == "gaps"]
    if [row["case"] for row in gaps] != ["by the NIC", "by the NIC, recycled"]:
        bad.append("killed: not of both modes")
    bad += ["killed: %s" % row for row in gaps if row["wrong"] or not row["gets_per_s_before"]]
    print("\n".join(bad or ["ok"]))
    return int(bool(bad))


sys.exit(main())
