# SPDX-License-Identifier: BSD-2-Clause
"""Tables and pictures of the rows of result files. Computes nothing: all numbers of a page are in a file."""

import json
import os
import re
import subprocess

from figures import EVALUATION, FIGURES


def load(directory):
    """{name of a benchmark: its result} for the existing files."""
    results = {}
    if os.path.isdir(directory):
        for name in sorted(os.listdir(directory)):
            if name.endswith(".json"):
                with open(os.path.join(directory, name), encoding="utf-8") as f:
                    results[name[: -len(".json")]] = json.load(f)
    return results


def tables(result):
    """{name of a table or None: its rows} in the order of the file."""
    parts = {}
    for row in result["rows"]:
        parts.setdefault(row.get("table"), []).append(row)
    return parts


def columns(rows):
    """Keys of the rows in the order of their first use."""
    return [key for key in dict.fromkeys(key for row in rows for key in row) if key != "table"]


def cell(value):
    """A value as text, with four significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if abs(value) >= 1000:
            return str(round(value))
        return ("%.4g" % value) if value else "0"
    return str(value)


def origin(result):
    """The origin of a result as text."""
    m = result["machine"]
    return "commit %s, %s, %s, %d cores, Linux %s, load %s before it began, seed %s" % (
        result["commit"] or "unknown", result["date"], m["cpu"], m["cores"], m["kernel"], m["load"],
        "none" if result["seed"] is None else result["seed"])


def quoted(text):
    return '"%s"' % str(text).replace("\\", "\\\\").replace('"', '\\"')


def lines_of(figure, rows):
    """[(name, [(x, y)])] of a figure, without points that have no value."""
    found = {}
    for row in (r for r in rows if all(r.get(column) == value for column, value in figure.only.items())):
        for column, name in figure.ys.items():
            words = [str(row[figure.series])] if figure.series and row.get(figure.series) is not None else []
            if len(figure.ys) > 1 or not words:
                words.append(name)
            if row.get(figure.x) is not None and row.get(column) is not None:
                found.setdefault(", ".join(words), []).append((row[figure.x], row[column]))
    return list(found.items())


def draw(figure, rows, number):
    """SVG text of a figure, or None without a row for it. @number: different for each on a page."""
    lines = lines_of(figure, rows)
    if not lines:
        return None
    script = [
        'set terminal svg size 720,420 dynamic noenhanced background "white" font "sans-serif,13" name "f%d"' % number,
        "set title %s" % quoted(figure.title),
        "set xlabel %s" % quoted(figure.xlabel or figure.x),
        "set ylabel %s" % quoted(figure.ylabel),
        "set key outside below; set grid ytics; set border 3; set tics nomirror",
    ]
    plots = []
    if figure.bars:
        names = list(dict.fromkeys(x for _, points in lines for x, _ in points))
        script += ["set style data histograms; set style fill solid 0.8; set boxwidth 0.9", "set yrange [0:*]", "set xtics rotate by -25"]
        for i, (name, points) in enumerate(lines):
            of = dict(points)
            script += ["$d%d << EOD" % i] + ["%s %s" % (quoted(x), of.get(x, "NaN")) for x in names] + ["EOD"]
            plots.append("$d%d using 2:xtic(1) title %s" % (i, quoted(name)))
    else:
        script += ["set logscale x 2" if figure.logx == 2 else "set logscale x"] if figure.logx else []
        script += ["set logscale y"] if figure.logy else ["set yrange [0:*]"]
        for i, (name, points) in enumerate(lines):
            script += ["$d%d << EOD" % i] + ["%s %s" % p for p in sorted(points)] + ["EOD"]
            plots.append("$d%d using 1:2 with linespoints pt %d title %s" % (i, i % 13 + 4, quoted(name)))
    script.append("plot " + ", ".join(plots))
    done = subprocess.run(["gnuplot"], input="\n".join(script) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError("gnuplot: %s" % done.stderr.strip())
    return done.stdout


def keep_pictures(figures, result, directory):
    """Writes the pictures of a result that have a file."""
    parts = tables(result)
    for number, figure in enumerate(f for f in figures if f.bench == result["bench"] and f.file):
        svg = draw(figure, parts.get(figure.table, []), number)
        if svg is not None:
            with open(os.path.join(directory, figure.file), "w", encoding="utf-8") as f:
                f.write(svg)


# ---- pages in Markdown ----

MARK = re.compile(r"(<!-- from (\S+)\.json(?:: ([^|\n]*?))?(?: \| ([^\n]*?))? -->\n).*?(<!-- end -->)", re.S)


def named(path):
    """Results that the page @path has tables of, as paths from its directory without ".json"."""
    with open(path, encoding="utf-8") as f:
        return list(dict.fromkeys(m[2] for m in MARK.finditer(f.read())))


def lines_markdown(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(line) + " |" for line in lines])


def table_markdown(rows, wanted):
    """@wanted: None, names of columns "a, b", or "a / b = c": for each a a line, for each b a column, in which c stands. " where d" after
    them: only rows that have a d; " where d=1": that have this one."""
    where = re.fullmatch(r"(.*) where (\w+)(?:=(\w+))?", wanted or "")
    if where:
        wanted, rows = where[1], [row for row in rows if row.get(where[2]) is not None and where[3] in (None, str(row[where[2]]))]
    cross = re.fullmatch(r"(\w+) / (\w+) = (\w+)", wanted or "")
    if cross:
        down, across, what = cross.groups()
        columns_of = list(dict.fromkeys(row[across] for row in rows))
        found = {}
        for row in rows:
            found.setdefault(row[down], {})[row[across]] = cell(row[what])
        return lines_markdown(["%s, by %s" % (what, across)] + [str(c) for c in columns_of], [[str(name)] + [of.get(c, "") for c in columns_of] for name, of in found.items()])
    keys = [k.strip() for k in wanted.split(",")] if wanted else columns(rows)
    unknown = [k for k in keys if not any(k in row for row in rows)]
    if unknown:
        raise ValueError("no row has %s" % ", ".join(unknown))
    return lines_markdown(keys, [[cell(row[k]) if row.get(k) is not None else "" for k in keys] for row in rows])


def fill(path):
    """
    The text of @path, a page in Markdown, with what stands between "<!-- from PLACE/NAME.json: TABLE | COLUMNS -->" and "<!-- end -->" made
    anew from that file. Without TABLE: all its rows, which then have none; TABLE "?": where the result comes from; TABLE "picture FILE":
    a picture beside it (figures.py).
    """
    with open(path, encoding="utf-8") as f:
        text = f.read()

    def block(match):
        head, name, table, wanted, end = match.groups()
        bench, directory = os.path.basename(name), os.path.dirname(name)
        file = os.path.join(os.path.dirname(path), name + ".json")
        picture = os.path.join(directory, table[len("picture "):]) if (table or "").startswith("picture ") else None
        missing = "%s\nNot measured: `./dev bench %s`.\n\n%s" % (head, bench, end)
        if not os.path.exists(os.path.join(os.path.dirname(path), picture) if picture else file):
            return missing
        with open(file, encoding="utf-8") as f:
            result = json.load(f)
        if table == "?":
            body = "[%s.json](%s.json): %s." % (bench, name, origin(result))
        elif picture:
            body = "![%s](%s)" % (next(f.title for f in FIGURES if f.file == os.path.basename(picture)), picture)
        else:
            rows = tables(result).get(table)
            if rows is None and any(b.name == bench and table in b.tables for b in EVALUATION):
                return missing
            if rows is None:
                raise ValueError("%s has no table \"%s\"" % (file, table))
            body = table_markdown(rows, wanted)
        return "%s\n%s\n\n%s" % (head, body, end)

    return MARK.sub(block, text)
