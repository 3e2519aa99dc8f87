# SPDX-License-Identifier: BSD-2-Clause
"""What failover-client saw while something of the server ended and began again, as rows."""

import statistics

BIN_MS = 50


def per_second(answers):
    return answers * 1000 // BIN_MS


def bins_before(seen):
    """Bins that were over when it happened."""
    return int(seen["event_ms"] // BIN_MS)


def summary(case, runs):
    """One row of @runs: what the client printed, with the time of the event in its clock as "event_ms". Rates are of the first."""
    seen = runs[0]
    first = bins_before(seen)
    gaps, silent = ([r[name] / 1000 for r in runs] for name in ("gap_us", "silent_us"))
    beyond = [gap - r["outage_ms"] for gap, r in zip(gaps, runs) if r.get("outage_ms") is not None]
    return {
        "case": case,
        "runs": len(runs),
        "gets_per_s_before": per_second(statistics.median(seen["bins"][:first])),
        "gets_per_s_after": per_second(statistics.median(seen["bins"][-first:])),
        "empty_bins": max(sum(b == 0 for b in r["bins"]) for r in runs),
        "longest_gap_ms": statistics.median(gaps),
        "longest_gap_least_ms": min(gaps),
        "longest_gap_worst_ms": max(gaps),
        "silent_bins": max(sum(b + m == 0 for b, m in zip(r["bins"], r["misses"])) for r in runs),
        "longest_silence_ms": statistics.median(silent),
        "errors": sum(r["errors"] for r in runs),
        "wrong": sum(r["wrong"] for r in runs),
        **({"beyond_outage_ms": statistics.median(beyond), "beyond_outage_worst_ms": max(beyond)} if beyond else {}),
    }


def bins(case, seen):
    """A row for each bin."""
    for i, (values, by_nic, misses) in enumerate(zip(seen["bins"], seen["by_nic"], seen["misses"])):
        yield {"case": case, "s": round((i * BIN_MS - seen["event_ms"]) / 1000, 3), "gets_per_s": per_second(values), "by_nic_per_s": per_second(by_nic), "misses_per_s": per_second(misses)}
