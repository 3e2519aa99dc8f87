#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the time of a request on the modelled clock of the emulated NIC, which executes it, with that of "reddnc explain", which
only reads the program, for the default device: both use the same costs. A run repeats exactly. Prints both times; exit status 1 and a line for each failed
check."""

import json
import os
import subprocess
import sys

os.environ["SOFTCX_DEVICE"] = "cx5"
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
from rig import TOP, Rig  # noqa: E402

OFF = 0.03  # largest difference: explain ignores shared units, for instance two queues that share the unit for atomics
TICKS = 2  # ns between runs: times are rounded to the clock's
GET_NS = 5200  # upper limit for a get of 64 bytes, as in docs/evaluation.md
COUNT, WARMUP, VALUE, NODES = 40, 16, 64, 8
THINK = 20  # us between an answer and the next request: a chain that answers before its end finishes in this time
PUBLISHED = "if, asked as by the paper's published client"  # whose request begins with an ENABLE, and is not inline
LONGER = (500, 900)  # ns of that: a fetch and two reads of memory, of 350 and 320
PROGRAMS = os.path.join(TOP, "conf", "programs")

# name: program, its params, arguments of the client before and after the address, the requests (None: keys of the table), the number
# of the program's answer
CASES = {
    "hash-get": ("hash-get", {}, "get", None, 0),
    "hash-get-parallel": ("hash-get-parallel", {}, "get", None, 0),
    "if": ("if", {}, "call", "5,5", 0),
    "while-unrolled": ("while-unrolled", {"n": 4}, "call", "1003", 0),
    "list-walk, node 1": ("list-walk", {"n": NODES, "stop": 0, "most": VALUE}, "call", "0,1000", 0),
    "list-walk, node 4": ("list-walk", {"n": NODES, "stop": 0, "most": VALUE}, "call", "0,1003", 3),
    "list-walk, node 8": ("list-walk", {"n": NODES, "stop": 0, "most": VALUE}, "call", "0,%d" % (1000 + NODES - 1), NODES - 1),
    "list-walk, no node": ("list-walk", {"n": NODES, "stop": 0, "most": VALUE}, "call", "0,1", NODES),
    "list-walk, break": ("list-walk", {"n": NODES, "stop": 1, "most": VALUE}, "call", "0,%d" % (1000 + NODES - 1), NODES - 1),
}


def explained(program, params, answer):
    words = ["reddnc", "explain", "--json"] + [w for item in params.items() for w in ("--param", "%s=%d" % item)]
    explained = json.loads(subprocess.run(words + [os.path.join(PROGRAMS, program + ".rdn")], stdout=subprocess.PIPE, check=True).stdout)
    return explained["answers"][answer]["modelled_client_ns"]


def write(rig, name, data):
    path = os.path.join(rig.dir, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def executed():
    """{case: mean ns of a request}"""
    with Rig(["--lenient", "--clock", "cx5", "--hosts", "server,client"]) as rig:
        rig.table(keys=16, value_bytes=VALUE)
        nodes = b"".join((19 * (i + 1) % (19 * NODES)).to_bytes(5, "big") + (1000 + i).to_bytes(6, "little") + VALUE.to_bytes(3, "big") + (VALUE * i).to_bytes(5, "big") for i in range(NODES))
        raw = {"nodes": nodes.ljust(4096, b"\0"), "heap": bytes(4096), "array": b"".join((1000 + i).to_bytes(8, "little") for i in range(512))}
        regions = ['{ name = "%s"; kind = "raw"; path = "%s"; }' % (name, write(rig, name, data)) for name, data in raw.items()]
        regions.append('{ name = "t"; kind = "table"; path = "%s"; }' % rig.table_file)
        uses = {"hash-get": 'region = "t";', "hash-get-parallel": 'region = "t";', "while-unrolled": 'region = "array";', "list-walk": 'regions = { nodes = "nodes"; heap = "heap"; };'}
        offloads = ['{ name = "o%d"; program = "%s"; params = { %s }; %s mode = "unrolled"; instances = 128; depth_max = 16; }' % (
            number, program, " ".join("%s = %d;" % item for item in params.items()), uses.get(program, "")) for number, (program, params, *_) in enumerate(CASES.values())]
        rig.reddnd(*offloads, regions=", ".join(regions))
        took = {}
        for number, (case, (_, _, way, request, _)) in enumerate(CASES.items()):
            keys = rig.keys_file if request is None else write(rig, "calls", request.encode() + b"\n")
            r = rig.ask(["--think", THINK, "--host", "client", "baseline-client", "--nic-clock", "--json", "--in-order", "--warmup", WARMUP, "--count", COUNT, "--depth", 1, "--keys", keys,
                         way, rig.ADDRESS, rig.PORT, "o%d" % number])
            if r["hits"] != COUNT + WARMUP or r["errors"]:
                sys.exit("%s: %s" % (case, r))
            took[case] = r["seconds"] / r["gets"] * 1e9 - THINK * 1000
        number = list(CASES).index("if")
        r = rig.ask(["--host", "client", "paper-client", rig.ADDRESS, rig.PORT, "o%d" % number, COUNT, WARMUP, 5, 5])
        took[PUBLISHED] = r["seconds"] / r["gets"] * 1e9
        return took


def main():
    first, again = executed(), executed()
    bad = 0
    for case, (program, params, _, _, answer) in CASES.items():
        want, got = explained(program, params, answer), first[case]
        print("%-20s executed %6.0f ns, explained %6.0f ns" % (case, got, want))
        if abs(got / want - 1) > OFF:
            print("FAIL: %s: explain differs by %.1f %% from the execution" % (case, (want / got - 1) * 100))
            bad = 1
    for case, got in first.items():
        if abs(got - again[case]) > TICKS:
            print("FAIL: %s: %.0f ns, and %.0f in the second run" % (case, got, again[case]))
            bad = 1
    longer = first[PUBLISHED] - first["if"]
    if not LONGER[0] <= longer <= LONGER[1]:
        print("FAIL: %s takes %.0f ns longer" % (PUBLISHED, longer))
        bad = 1
    if first["hash-get"] > GET_NS:
        print("FAIL: a get takes more than %d ns" % GET_NS)
        bad = 1
    return bad


sys.exit(main())
