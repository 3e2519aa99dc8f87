#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The benchmark of tables that follow runs: each table has its rows, and the tables were equal to their sources. Prints what differs; exit status 1 then."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

HERE = os.path.dirname(os.path.realpath(__file__))
ROWS = {"load": 2, "changes": 4, "equal again": 4, "postgresql": 1}
COUNTED = {"keys_per_s", "changes", "changes_per_s", "rows_per_s", "seconds"}


def main():
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([os.path.join(HERE, "follow"), "--quick", "--directory", directory], capture_output=True, text=True)
        if done.returncode:
            sys.exit("%s%s" % (done.stdout, done.stderr))
        with open(os.path.join(directory, "follow.json"), encoding="utf-8") as f:
            rows = json.load(f)["rows"]
    bad = [row for row in rows if any(row[column] <= 0 for column in COUNTED & row.keys())]
    found = Counter(row["table"] for row in rows if row["table"] in ROWS)
    if found != ROWS:
        bad.append(dict(found))
    print("\n".join(map(str, bad)) or "ok")
    return int(bool(bad))


sys.exit(main())
