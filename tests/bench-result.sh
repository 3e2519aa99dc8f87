#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Results of benchmarks: what rows leave behind, and that malformed ones leave nothing.

set -euo pipefail

here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
	printf '%s\n' "$*" >&2
	exit 1
}

result()
{
	python3 "$here/bench/result.py" "$@" --directory "$work"
}

printf '%s\n' '{"depth": 1, "p50_us": 5.25, "met": true}' '' '{"table": "other", "p50_us": null}' |
	result some --seed 7 --table first >"$work/out"
[[ $(grep -c . "$work/out") == 2 ]] || fail "rows are not passed on"
python3 - "$work/some.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert list(r) == ["bench", "commit", "date", "machine", "seed", "rows"], r
assert (r["bench"], r["seed"]) == ("some", 7), r
assert sorted(r["machine"]) == ["cores", "cpu", "kernel", "load"] and r["machine"]["cores"] > 0, r
assert r["rows"] == [{"table": "first", "depth": 1, "p50_us": 5.25, "met": True}, {"table": "other", "p50_us": None}], r
PY

# nothing of a run that failed replaces what an earlier one left
cp "$work/some.json" "$work/before"
for bad in '' 'depth 1' '[1]' '{}' '{"a": [1]}' '{"a": NaN}' $'{"a": 1}\n{"a":'; do
	if printf '%s\n' "$bad" | result some >/dev/null 2>"$work/why"; then
		fail "taken: $bad"
	fi
	grep -qE 'no rows|is no row' "$work/why" || fail "\"$bad\" is refused without a reason: $(<"$work/why")"
	cmp "$work/some.json" "$work/before"
done
rows=("$work"/*.json)
[[ ${#rows[@]} == 1 ]] || fail "left behind: ${rows[*]}"

# in Python, too, a measurement that ends early leaves nothing
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here/bench python3 - "$work" <<'PY'
import os, sys
from result import Result
with Result("whole", directory=sys.argv[1]) as r:
    r.row(a=1)
assert os.path.exists(r.path)
try:
    with Result("half", directory=sys.argv[1]) as r:
        r.row(a=1)
        raise KeyError
except KeyError:
    pass
assert not os.path.exists(r.path)
PY

# The page of results shows what is in the files, and says what is not
printf '%s\n' '{"what": "a < b", "p50_us": 5.254321, "none": null}' | result other --table '2 & 3' >/dev/null
"$here/bench/report" --directory "$work" >"$work/out" || fail "no page"
for words in '<h3>2 &amp; 3</h3>' '<td class="text">a &lt; b</td><td>5.254</td><td>–</td>' 'seed 7' 'Not measured: there is no' 'id="some"'; do
	grep -qF "$words" "$work/index.html" || fail "the page lacks $words"
done
grep -q 'not measured: .*turing' "$work/out" || fail "missing measurements are not named"
echo '{"rows": ' >"$work/half.json"
if "$here/bench/report" --directory "$work" >"$work/out" 2>&1; then
	fail "a page of half a file"
fi
