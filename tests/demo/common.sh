# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# common.sh - sourced by demos: their folders and processes, and the data. Uses $json, $keep and $data of the options.

: "${json:=no}" "${keep:=no}" "${data:=}"

say()
{
	if [[ $json == yes ]]; then
		printf '%s\n' "$*" >&2
	else
		printf '%s\n' "$*"
	fi
}

work=$(mktemp -d "${TMPDIR:-/tmp}/reddn-demo.XXXXXX")
shm=$(mktemp -d /dev/shm/reddn-demo.XXXXXX)
export SOFTCX_DIR=$shm/nic
pids=()

cleanup()
{
	local rc=$? i

	# newest first, each to its end: the NIC ends when no program uses it
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill "${pids[i]}" 2>/dev/null || true
		wait "${pids[i]}" 2>/dev/null || true
	done
	rm -rf "$shm"
	if [[ $keep == yes ]]; then
		say "kept: $work"
	else
		[[ $rc -eq 0 ]] || tail -n 20 "$work"/*.log >&2 || true
		rm -rf "$work"
	fi
}
trap cleanup EXIT

die()
{
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

# wait_for WHAT PID TEST...: waits until TEST succeeds, at most 100 seconds, while process PID lives.
wait_for()
{
	local what=$1 pid=$2 i
	shift 2

	for ((i = 0; i < 1000; i++)); do
		"$@" >/dev/null 2>&1 && return 0
		kill -0 "$pid" 2>/dev/null || die "$what ended before it was ready"
		sleep 0.1
	done
	die "$what is not ready after 100 seconds"
}

# ---- the data -----------------------------------------------------------------------------

records()
{
	grep -c '^Package: ' "$1" || true
}

get_data()
{
	if [[ -n $data ]]; then
		cp "$data" "$work/data"
		return
	fi
	apt-cache dumpavail >"$work/data" 2>/dev/null || true
	if [[ $(records "$work/data") -lt 1000 && $(id -u) -eq 0 ]]; then
		say "downloading the missing package lists: apt-get update"
		apt-get -q update >"$work/apt.log" 2>&1 </dev/null || true
		apt-cache dumpavail >"$work/data" 2>/dev/null || true
	fi
	if [[ $(records "$work/data") -lt 1000 ]]; then
		say "apt has no package lists (as root, apt-get update fetches them): using the installed packages instead"
		cp /var/lib/dpkg/status "$work/data"
	fi
}

# Turns stanzas into lines "key TAB value" with the escapes of reddn-table(1). The client does not use this: it reads the data itself.
to_tsv()
{
	sed 's/\\/\\\\/g; s/\t/\\t/g; s/\r/\\r/g' "$1" | awk 'BEGIN { RS = ""; FS = "\n"; OFS = "\\n" }
	{
		key = ""
		for (i = 1; i <= NF && key == ""; i++)
			if ($i ~ /^Package: ./)
				key = substr($i, 10)
		$1 = $1
		if (key != "")
			print key "\t" $0
	}'
}

# ---- measuring ----------------------------------------------------------------------------

# Prints the CPU seconds of all threads of process $1, with the precision of the kernel.
cpu_seconds()
{
	if [[ -r /proc/$1/schedstat ]]; then
		cat "/proc/$1/task"/*/schedstat | awk '{ ns += $1 } END { printf "%.6f", ns / 1e9 }'
	else
		awk -v hz="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); printf "%.6f", ($12 + $13) / hz }' "/proc/$1/stat"
	fi
}
