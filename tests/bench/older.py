# SPDX-License-Identifier: BSD-2-Clause
"""What the daemons of two builds execute for an unrolled get, of 16 at a time: by callgrind, which runs a build that knows nothing of it,
and counts by function. The difference of a long and a short run is that of the gets."""

import os
import re
import shutil
import subprocess
import sys

from served import Served

SHORT, LONG = 2000, 42000
WHAT = {"re-arming its chain": "session_rearm", "all of it": "main"}


def run(build, count, seed):
    """Instructions of the daemon by function, with those that it calls."""
    with Served(seed, build=build) as rig:
        rig.table(10000, 64, seed)
        conf = rig.write_config('regions = ( { name = "t"; kind = "table"; path = "%s"; } );\n'
                                'offloads = ( { name = "get"; program = "hash-get"; region = "t"; mode = "unrolled"; } );\n' % rig.table_file)
        counted = os.path.join(rig.dir, "callgrind")
        daemon = rig.start("reddnd", ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + counted, "reddnd", "--config", conf],
                           lambda _: os.path.exists(rig.control))
        rig.ask(["reddn", "bench", "--json", "--keys", rig.keys_file, "--depth", 16, "--count", count, "--seed", seed, rig.ADDRESS, "get"])
        daemon.popen.terminate()
        rig.expect(daemon.popen.wait(60) == 0, daemon, "it ends badly")
        lines = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", counted], capture_output=True, text=True, check=True).stdout
    # the object stands behind the function only in a line with all of it: other lines are of what was inlined from another file
    found = {}
    for number, function in re.findall(r"^\s*([\d,]+) \(.*?\)\s+\S+:(\w+) \[\S*/reddnd\]$", lines, re.MULTILINE):
        found[function] = max(found.get(function, 0), int(number.replace(",", "")))
    return found


def of_a_get(build, seed):
    short, long = run(build, SHORT, seed), run(build, LONG, seed)
    for function in WHAT.values():
        if function not in short or function not in long:
            sys.exit("client: %s: callgrind has no function %s(): build it without LTO" % (build or "this build", function))
    return {what: (long[function] - short[function]) / (LONG - SHORT) for what, function in WHAT.items()}


def rows(build, seed):
    if not shutil.which("valgrind"):
        sys.exit("client: --against counts by valgrind, which is not installed")
    this, older = of_a_get(None, seed), of_a_get(os.path.realpath(build), seed)
    for what in WHAT:
        yield {"table": "against", "what": what, "instructions": round(this[what], 1), "older_instructions": round(older[what], 1), "ratio": round(this[what] / older[what], 3)}
