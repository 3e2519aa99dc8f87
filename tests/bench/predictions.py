# SPDX-License-Identifier: BSD-2-Clause
"""How well a model predicts: rows that have a number of the paper beside ours, judged by one rule.

A prediction *holds* if it is within WITHIN percent of the paper. It is *understood* if it holds, or if its row names a mechanism and has
the number that we get with it ("with_mechanism", from costs that were measured elsewhere), and that number is within WITHIN percent.
Everything here is computed from the rows, so that nobody declares a difference explained."""

import statistics

WITHIN = 15  # percent
KINDS = ("prediction", "measured CPU")
TABLE = "Predictions"


def difference(ours, paper):
    """Percent, or None where there is nothing to compare."""
    return None if ours is None or not paper else round((ours / paper - 1) * 100, 1)


def within(percent):
    return percent is not None and abs(percent) <= WITHIN


def judge(row):
    """Adds to the row of a prediction: "difference_percent", "with_mechanism_percent" and "understood", None where nothing is compared."""
    row["difference_percent"] = difference(row["ours"], row["paper"])
    row["with_mechanism_percent"] = difference(row.get("with_mechanism"), row["paper"])
    compared = row["difference_percent"] is not None and row["kind"] in KINDS
    row["understood"] = within(row["difference_percent"]) or within(row["with_mechanism_percent"]) if compared else None


def compared(rows):
    return [r for r in rows if r["kind"] in KINDS and r.get("understood") is not None]


def name(row):
    """A row in words: table, what, and what distinguishes it from its neighbours."""
    more = ["%s %s" % (key, row[key]) for key in ("bytes", "clients", "n") if row.get(key) is not None]
    return ", ".join([row["table"].split(":")[0], row["what"], *more])


def summary(rows):
    """The head of an evaluation: rows of table TABLE, from all @rows."""
    found = compared(rows)
    if not found:
        return []
    worst = max(found, key=lambda r: abs(r["difference_percent"]))
    facts = [
        ("numbers of the paper that the model predicts", len(found), None),
        ("within %d %% of the paper" % WITHIN, sum(within(r["difference_percent"]) for r in found), None),
        ("further off, and within %d %% with a mechanism of known cost" % WITHIN, sum(r["understood"] and not within(r["difference_percent"]) for r in found), None),
        ("not understood", sum(not r["understood"] for r in found), None),
        ("median difference, percent, without its sign", round(statistics.median(abs(r["difference_percent"]) for r in found), 1), None),
        ("worst difference, percent", worst["difference_percent"], name(worst)),
    ]
    return [{"table": TABLE, "what": what, "value": value, "which": which} for what, value, which in facts]
