#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The head of docs/evaluation.md is true of its tables: what the results say of predictions and targets is computed again from their
rows. The rules are tried on rows made here, too."""

import json
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import predictions  # noqa: E402
import targets  # noqa: E402

DOCS = os.path.join(HERE, "..", "..", "docs")
failed = 0


def check(good, what):
    global failed
    failed += not good
    print("%-4s %s" % ("ok" if good else "FAIL", what))


def judged(ours, paper, kind="prediction", with_mechanism=None):
    row = {"table": "T: words", "what": "w", "bytes": 64, "paper": paper, "ours": ours, "kind": kind, "with_mechanism": with_mechanism}
    predictions.judge(row)
    return row


def rule():
    check(judged(115, 100)["understood"] and judged(85, 100)["understood"], "15 % off holds")
    check(judged(116, 100)["understood"] is False, "16 % off without a mechanism is not understood")
    check(judged(50, 100, with_mechanism=90)["understood"], "50 % off, and 10 % with a mechanism, is understood")
    check(judged(50, 100, with_mechanism=80)["understood"] is False, "20 % off with its mechanism is not")
    check(judged(50, None)["understood"] is None and judged(None, 7)["understood"] is None and judged(1, 2, "calibration")["understood"] is None,
          "what is not compared, or was fitted, is no prediction")
    rows = [judged(*numbers) for numbers in ((100, 100), (110, 100), (50, 100), (30, 100, "calibration"))] + [judged(60, 100, with_mechanism=99)]
    check([r["value"] for r in predictions.summary(rows)] == [4, 2, 1, 1, 25.0, -50.0], "the summary counts")
    check(predictions.summary(rows)[-1]["which"] == "T, w, bytes 64", "it names the worst")
    check(predictions.summary([judged(1, None)]) == [], "there is none of nothing")


def rule_of_targets():
    def verdict(bench, *rows):
        return [(r["ours"], r["met"]) for r in targets.judge(bench, rows)]

    def recycled(ratio, **more):
        return {"way": "reddn recycled", "p99_us_ratio": ratio, **more}

    check(verdict("isolation", recycled(1.5), recycled(2.1), recycled(0.4)) == [(2.1, "missed")], "the worst of all rows is judged")
    check(verdict("isolation", recycled(2)) == [(2, "met")], "a bound is met at the bound")
    check(verdict("isolation", recycled(9, table="another"), {"way": "another", "p99_us_ratio": 9}) == [], "rows of other tables, or of another kind, are not")
    get = {"table": "ways", "way": "reddn", "depth": 64, "nic_us": None, "gets_per_s": 400000}
    check(verdict("wall", get, {**get, "depth": 1, "gets_per_s": 9e9}) == [(400000, "missed")], "what was not measured is not judged, nor at another configuration")
    poll = {"table": "instructions", "call": "reddn_poll, one result", "calls": 15, "instructions": 400}
    check(verdict("client", poll, {**poll, "call": poll["call"] + ", and 16 receives are posted", "calls": 1, "instructions": 1216}) == [(451, "missed")],
          "what one of several calls does for the others counts for each")
    result = {"bench": "wall", "rows": [get, {"table": targets.TABLE, "met": "met"}]}
    targets.renew(result)
    check([r.get("met") for r in result["rows"]] == [None, "missed"], "earlier judgements are replaced")
    check(len({(t.bench, t.what, t.at) for t in targets.TARGETS}) == len(targets.TARGETS), "each target has a name of its own")


def results():
    """Of the page: {name: rows}"""
    found = {}
    for name in sorted(os.listdir(os.path.join(DOCS, "evaluation"))):
        if name.endswith(".json"):
            with open(os.path.join(DOCS, "evaluation", name), encoding="utf-8") as f:
                found[name[: -len(".json")]] = json.load(f)["rows"]
    return found


def page():
    everything = results()
    rows = everything["paper"]
    found = [r for r in rows if "kind" in r]
    again = [dict(r) for r in found]
    for row in again:
        predictions.judge(row)
    check(again == found and found, "each row of paper.json states what its numbers are")
    check(predictions.summary(again) == [r for r in rows if r["table"] == predictions.TABLE], "so does its summary")
    for name, of in everything.items():
        check([r for r in of if r.get("table") == targets.TABLE] == targets.judge(name, of), "targets of %s.json: met or missed by its rows" % name)
    with open(os.path.join(DOCS, "evaluation.md"), encoding="utf-8") as f:
        shown = re.findall(r"<!-- from evaluation/([\w-]+).json(?:: ([^|\n]*?))?(?: \|.*)? -->", f.read())
    check(shown[:3] == [("paper", table) for table in ("?", predictions.TABLE, targets.TABLE)], "the page begins with them")
    judged = {name for name, of in everything.items() if targets.judge(name, of)}
    check(judged <= {name for name, table in shown if table == targets.TABLE}, "it shows the targets of each result")


def comparisons():
    """Requests of several keys: each way is measured for each number of keys and of connections, of what exists and of gets."""
    everything = results()
    for name, ways in (("handle", ("reddn, unrolled", "reddn, recycled", "one-sided READs", "a server that polls")),
                       ("wall-many", ("reddn recycled", "reddn, engine cpu", "one-sided", "two-sided polling", "two-sided events", "memcached", "redis"))):
        cells = sorted((r["what"], r["keys"], r["connections"], r["way"]) for r in everything[name] if r["table"] == "many")
        sizes = [("exists", keys) for keys in (1, 4, 16, 64)] + [("mget", keys) for keys in (1, 4, 16)]
        check(cells == sorted((*size, n, way) for size in sizes for n in (1, 16) for way in ways), "%s.json has all of its ways for all requests of several keys" % name)


# What README.md and docs/limitations.md state as ranges: the words, with the numbers as groups; the results that are to be between them
def modelled(*what):
    return (("paper", "ours", lambda r: r["table"] == "Figure 10: a hash get, mean latency" and r.get("bytes") == 64 and r["what"].startswith(what)),)


FIGURES = (
    (r"executes the requests, in ([\d.]+) to ([\d.]+) microseconds", (
        ("wall", "server_us", lambda r: r.get("way") == "reddn, engine cpu" and r["depth"] in (16, 64)),)),
    (r"([\d.]+) to ([\d.]+) of one get at a time", (
        ("wall", "server_us", lambda r: r.get("way") == "reddn, engine cpu" and r["depth"] == 1),)),
    (r"takes ([\d.]+) to ([\d.]+) microseconds of its CPU per get of up to 4 KiB", (
        ("wall", "server_us", lambda r: r.get("way") == "reddn"),
        ("memcached", "reddnd_us", lambda r: r["table"] == "server" and r["mode"] == "unrolled" and r["bytes"] <= 4096))),
    (r"up to ()([\d.]+) per get of 64 KiB", (
        ("memcached", "reddnd_us", lambda r: r["table"] == "server" and r["mode"] == "unrolled" and r["bytes"] <= 65536),)),
    (r"\| reddnd \| ([\d.]+) to ([\d.]+) us", modelled("reddnd")),
    (r"\| a server that polls \| ([\d.]+) to ([\d.]+) us", modelled("two-sided, polling")),
    (r"\| one-sided READs \| ([\d.]+) to ([\d.]+) us", modelled("one-sided, FaRM")),
    (r"\| a server that sleeps \(events, sockets\) \| ([\d.]+) to ([\d.]+) us", modelled("two-sided, events")),
    (r"([\d.]+) to ([\d.]+) us, off the path", (("wall", "server_us", lambda r: r.get("way") == "reddn recycled"),)),
    (r"unrolled: ([\d.]+) to ([\d.]+) \|", (("wall", "server_us", lambda r: r.get("way") == "reddn"),)),
    (r"([\d.]+) to ([\d.]+) us one at a time", (("wall", "server_us", lambda r: r.get("way") == "two-sided events" and r["depth"] == 1),)),
)


def readme(text, everything):
    """Each range of the text with the results that are outside of it; None: the text or the results lack it"""
    found = {}
    text = " ".join(text.split())
    for words, sources in FIGURES:
        stated = re.search(words, text)
        measured = [r[key] for name, key, which in sources for r in everything[name] if key in r and which(r)]
        found[words] = [m for m in measured if not float(stated[1] or 0) <= m <= float(stated[2])] if stated and measured else None
    return found


def rule_of_readme():
    text = "a thread executes the requests, in 0.3 to\n  0.4 microseconds (3 to 6 of one get at a time)"
    rows = [{"table": "ways", "way": "reddn, engine cpu", "depth": depth, "server_us": us} for depth, us in ((1, 5.0), (16, 0.496), (64, 0.3))]
    found = list(readme(text, {"wall": rows, "memcached": [], "paper": []}).values())
    check(found[:2] == [[0.496], []], "a result outside of what README.md states is found")
    check(found[2:] == [None] * (len(FIGURES) - 2), "so is what it does not state")


def readme_holds():
    text = "".join(open(os.path.join(DOCS, page), encoding="utf-8").read() for page in ("../README.md", "limitations.md"))
    for words, outside in readme(text, results()).items():
        check(outside == [], "README.md, docs/limitations.md: %s: %s" % (words, "not there" if outside is None else "but %s" % outside if outside else "holds"))


rule()
rule_of_targets()
rule_of_readme()
page()
comparisons()
readme_holds()
sys.exit(failed > 0)
