#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Results of benchmarks: rows become a file, malformed rows do not.

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
	python3 "$here/result.py" "$@" --directory "$work"
}

printf '%s\n' '{"depth": 1, "p50_us": 5.25, "met": true}' '' '{"table": "other", "p50_us": null}' |
	result some --seed 7 --table first >"$work/out"
[[ $(grep -c . "$work/out") == 2 ]] || fail "rows are not copied"
python3 - "$work/some.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert list(r) == ["bench", "commit", "date", "machine", "seed", "rows"], r
assert (r["bench"], r["seed"]) == ("some", 7), r
assert sorted(r["machine"]) == ["cores", "cpu", "kernel", "load"] and r["machine"]["cores"] > 0, r
assert r["rows"] == [{"table": "first", "depth": 1, "p50_us": 5.25, "met": True}, {"table": "other", "p50_us": None}], r
PY

# a failed run does not replace the file of an earlier one
cp "$work/some.json" "$work/before"
for bad in '' 'depth 1' '[1]' '{}' '{"a": [1]}' '{"a": NaN}' $'{"a": 1}\n{"a":'; do
	if printf '%s\n' "$bad" | result some >/dev/null 2>"$work/why"; then
		fail "accepted: $bad"
	fi
	grep -qE 'no rows|is no row' "$work/why" || fail "\"$bad\" is refused without a reason: $(<"$work/why")"
	cmp "$work/some.json" "$work/before"
done
rows=("$work"/*.json)
[[ ${#rows[@]} == 1 ]] || fail "files: ${rows[*]}"

# the tables of a page show the results that it names
mkdir "$work/docs" "$work/docs/of"
cat >"$work/docs/page.md" <<'MD'
Before.
<!-- from of/some.json: first | p50_us, depth -->
old
<!-- end -->
<!-- from of/some.json: first | depth / met = p50_us -->
<!-- end -->
<!-- from of/none.json: ? -->
<!-- end -->
MD
page()
{
	PYTHONDONTWRITEBYTECODE=1 python3 "$here/report" --directory "$work" --fill "$work/docs/page.md" "$@"
}
! page --check >/dev/null || fail "an empty table is accepted"
page || fail "a page is not filled"
page --check || fail "a filled page is not accepted"
cmp "$work/some.json" "$work/docs/of/some.json"
for line in '| p50_us | depth |' '| 5.25 | 1 |' '| p50_us, by met | True |' '| 1 | 5.25 |' "Not measured: \`./dev bench none\`."; do
	grep -qFx -- "$line" "$work/docs/page.md" || fail "no line $line in $(<"$work/docs/page.md")"
done
sed -i 's/5.25 | 1/5.26 | 1/' "$work/docs/page.md"
! page --check >/dev/null || fail "a number changed by hand is accepted"
sed -i 's/: first | p50_us/: second | p50_us/' "$work/docs/page.md"
! page 2>"$work/why" || fail "an unknown table is filled"
grep -q 'no table "second"' "$work/why" || fail "the unknown table is not named: $(<"$work/why")"

# in Python, too, a measurement that fails makes no file
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here python3 - "$work" <<'PY'
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

# The page of results shows the files and names the missing ones
printf '%s\n' '{"what": "a < b", "p50_us": 5.254321, "none": null}' | result other --table '2 & 3' >/dev/null
"$here/report" --directory "$work" >"$work/out" || fail "no page"
for words in '<h3>2 &amp; 3</h3>' '<td class="text">a &lt; b</td><td>5.254</td><td>–</td>' 'seed 7' 'Not measured: there is no' 'id="some"'; do
	grep -qF "$words" "$work/index.html" || fail "the page lacks $words"
done
grep -q 'not measured: .*turing' "$work/out" || fail "missing measurements are not named"
echo '{"rows": ' >"$work/half.json"
if "$here/report" --directory "$work" >"$work/out" 2>&1; then
	fail "a page of half a file"
fi
