#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""wrong.py: each program in wrong/*.cases is refused with exactly the text that is with it.

A case is "= NAME", the lines of the program behind a "|" (behind a "~" the last one, if no newline ends it), and what the compiler
prints, behind "> ". A line "# set PARAM=VALUE" in a program is what a catalog would say, "# set -M" a device without masked atomics, "# set -C" one without CALC.
With UPDATE=1 the texts are written anew, for a look at the difference. With --split DIR it only writes DIR/NAME.rdn of each case."""
import difflib
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "wrong")


class Case:
    def __init__(self, name):
        self.name, self.program, self.expected = name, b"", b""

    def settings(self):
        set_lines = (line[len(b"# set ") :] for line in self.program.split(b"\n") if line.startswith(b"# set "))
        return [word for line in set_lines for word in line.decode().split()]

    def text(self):
        whole = self.program.endswith(b"\n")
        lines = self.program.split(b"\n")[: -1 if whole else None]
        marks = [b"|"] * len(lines) if whole else [b"|"] * (len(lines) - 1) + [b"~"]
        said = self.expected.split(b"\n")[:-1]
        return b"".join([b"= " + self.name.encode() + b"\n"] + [m + line + b"\n" for m, line in zip(marks, lines)] + [b"> " + line + b"\n" for line in said])


def read_table(path):
    cases = []
    for number, line in enumerate(open(path, "rb").read().split(b"\n"), 1):
        mark, rest = line[:1], line[1:]
        if line.startswith(b"= "):
            cases.append(Case(rest.strip().decode()))
        elif mark in (b"|", b"~") and cases:
            cases[-1].program += rest + (b"\n" if mark == b"|" else b"")
        elif line.startswith(b"> ") and cases:
            cases[-1].expected += line[2:] + b"\n"
        elif line.strip():
            sys.exit(f"{path}:{number}: neither \"= NAME\" nor a line of a case")
    return cases


def split(cases, directory):
    for case in cases:
        with open(os.path.join(directory, case.name + ".rdn"), "xb") as file:
            file.write(case.program)


def compiled(case, directory):
    """What the compiler prints, or None: it did not refuse the program."""
    run = subprocess.run([os.environ["COMPILE"], *case.settings(), case.name + ".rdn"], stdout=subprocess.PIPE, cwd=directory)
    if run.returncode != 1:
        print(f"{case.name}: exit status {run.returncode}; a wrong program is refused with 1")
    return run.stdout if run.returncode == 1 else None


def main():
    tables = {path: read_table(path) for path in sorted(glob.glob(HERE + "/*.cases"))}
    cases = [case for table in tables.values() for case in table]
    if sys.argv[1:2] == ["--split"]:
        return split(cases, sys.argv[2])
    bad = 0
    with tempfile.TemporaryDirectory() as directory:
        split(cases, directory)
        for case in cases:
            got = compiled(case, directory)
            bad += got is None or (got != case.expected and "UPDATE" not in os.environ)
            if got is not None and got != case.expected:
                text = [t.decode(errors="replace").splitlines(keepends=True) for t in (case.expected, got)]
                sys.stdout.writelines(difflib.unified_diff(*text, case.name, "output of the compiler"))
                case.expected = got
    if "UPDATE" in os.environ:
        for path, table in tables.items():
            with open(path, "wb") as file:
                file.write(b"\n".join(case.text() for case in table))
    print(f"{len(cases)} programs, {bad} not as expected")
    return bad > 0 or len(cases) < 80


if __name__ == "__main__":
    sys.exit(main())
