#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The head of docs/evaluation.md is true of its tables: what the results say of predictions and targets is computed again from their
rows. The rule is tried on rows made here, too."""

import json
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import predictions  # noqa: E402

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


def page():
    with open(os.path.join(DOCS, "evaluation", "paper.json"), encoding="utf-8") as f:
        rows = json.load(f)["rows"]
    found = [r for r in rows if "kind" in r]
    again = [dict(r) for r in found]
    for row in again:
        predictions.judge(row)
    check(again == found and found, "each row of paper.json states what its numbers are")
    check(predictions.summary(again) == [r for r in rows if r["table"] == predictions.TABLE], "so does its summary")
    targets = [r for r in rows if r["table"] == "Targets"]
    for r in targets:
        how, bound = r["bound"].rsplit(" ", 1)
        check(r["met"] is (r["ours"] >= float(bound) if how == "at least" else r["ours"] <= float(bound)), "target: %s, %s" % (r["what"], r["bound"]))
    check(len(targets) > 0, "there are targets")
    with open(os.path.join(DOCS, "evaluation.md"), encoding="utf-8") as f:
        tables = re.findall(r"<!-- from evaluation/paper.json: ([^|\n]*?)(?: \|.*)? -->", f.read())
    check(tables[:3] == ["?", predictions.TABLE, "Targets"], "the page begins with them")


rule()
page()
sys.exit(failed > 0)
