#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# probe-repeat.sh [COUNT [FIRST]]: runs reddn-probe COUNT times, each on a NIC with a seed of its own from FIRST on, more at once than
# there are processors. Each must say that everything holds, but for what depends on the machine.
set -uo pipefail
: "${SOFTCX:?set SOFTCX to the path of the softcx tool}" "${REDDN_PROBE:?set REDDN_PROBE to the path of the probe}"
count=${1:-5} first=${2:-1} jobs=$((2 * $(nproc) + 2))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2209
export SOFTCX_DEVICE=cx5

one() # SEED
{
	local dir=$work/$1

	mkdir "$dir"
	# the limit only ends what hangs
	timeout 3000 "$SOFTCX" run --dir "$dir" --seed "$1" "$REDDN_PROBE" --json >"$dir/json" 2>"$dir/log"
	"$SOFTCX" stop --dir "$dir" >>"$dir/log" 2>&1 || echo "seed $1: the NIC has died"
	python3 - "$1" "$dir/json" <<'END' && rm -rf "$dir"
import json, sys
seed, path = sys.argv[1:]
try:
    checks = json.load(open(path))["checks"]
except ValueError:
    sys.exit(print(f"seed {seed}: no JSON") or 1)
bad = [c for c in checks if c["verdict"] != "holds" and not (c["name"] in ("huge-file", "disk-file") and c["verdict"] == "not tried")]
for c in bad:
    print(f"seed {seed}: {c['name']}: {c['verdict']}: {c['words']} ({c['telling']} of {c['tried']})")
sys.exit(bool(bad))
END
}

failures()
{
	for ((i = first; i < first + count; i++)); do
		while [[ $(jobs -rp | wc -l) -ge $jobs ]]; do
			wait -n
		done
		one "$i" &
	done
	wait
}

failures | tee "$work/failures"
if [[ -s $work/failures ]]; then
	echo "$(cut -d: -f1 "$work/failures" | sort -u | wc -l) of $count runs said something else" >&2
	exit 1
fi
echo "$count runs: everything holds"
