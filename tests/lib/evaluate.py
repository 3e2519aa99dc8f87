# SPDX-License-Identifier: BSD-2-Clause
"""evaluate.py QUESTIONS ANSWERS: two FIFOs, for tests/lib/evaluate.sh. A question is the name of a file and an expression of Python, an
answer its status, 0 or 1, and what it is, or why there is none. A text of JSON, or the events of an audit, are d."""
import json
import sys


def answer(name: str, expression: str) -> str:
    try:
        with open(name, encoding="utf-8") as f:
            text = f.read()
        lines = text.startswith('{"number"')
        d = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
        return f"0{eval(f'({expression})', {'d': d})}"
    except Exception as e:
        return f"1{type(e).__name__}: {e}"


while True:
    with open(sys.argv[1], encoding="utf-8") as questions:
        question = questions.read().split("\0")
    with open(sys.argv[2], "w", encoding="utf-8") as answers:
        answers.write(answer(*question))
