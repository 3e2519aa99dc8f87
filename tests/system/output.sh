#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What a command prints and cannot write is an error, with its reason and the exit status of the tool: each command of each tool, on a
# full disk.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
: "${REDDN:?}" "${REDDN_TABLE:?}" "${REDDNC:?}" "${REDDN_PROBE:?}" "${REDDND_RUN:?}" "${REDDN_MEMCACHED:?}"
table=$work/table

# reason_in FILE: once. The error number of a write in the middle of much output is gone when the program ends
reason_in()
{
	[[ $(grep -cE 'standard output: (No space left on device|not all of it could be written)' "$1") -eq 1 ]]
}

# full STATUS CMD...: it ends with STATUS, and gives the reason once
full()
{
	local status=$1 rc=0 name words
	shift

	timeout -k "$limit" "$limit" "$@" >/dev/full 2>"$work/err" </dev/null || rc=$?
	words=("${@##*/}")
	name=${words[*]}
	[[ $rc -eq $status ]] || fail "$name: exit status $rc, not $status" "$work/err"
	reason_in "$work/err" || fail "$name: not the reason, once" "$work/err"
	printf '%s\n' "$name" >>"$work/tried"
	ok "$name"
}

# verbs_of TOOL: the commands that its help lists
verbs_of()
{
	"$1" --help | sed '/^Examples:/,$d' | sed -nE "s/^(usage:|      ) ${1##*/} ([a-z][a-z-]*).*/\2/p; /^\$/,\$s/^  ([a-z][a-z-]*) .*/\1/p" | sort -u
}

# ---- help, of each command too

help_of() # STATUS TOOL: and of the commands that it lists
{
	local verb

	full "$1" "$2" --help
	full "$1" "$2" --version
	for verb in $(verbs_of "$2"); do
		# the NIC is a program of its own
		[[ $verb == nic ]] || full "$1" "$2" "$verb" --help
		printf '%s %s\n' "${2##*/}" "$verb" >>"$work/commands"
	done
}

for tool in "$REDDN" "$REDDN_TABLE" "$REDDN_MEMCACHED"; do
	help_of 2 "$tool"
done
for tool in "$REDDNCTL" "$REDDNC" "$REDDN_PROBE" "$REDDND" "$REDDND_RUN"; do
	help_of 74 "$tool"
done
help_of 125 "$SOFTCX"
full 2 "$SOFTCX" nic --help
full 2 "$REDDN" mc get --help
: >"$work/tried"

# ---- without a NIC

full 2 "$REDDN_TABLE" create -b 64 -H 64K "$table"
printf 'alice\twonder\n' >"$work/t.tsv"
full 2 "$REDDN_TABLE" load "$table" "$work/t.tsv"
"$REDDN_TABLE" dump "$table" | cmp -s - "$work/t.tsv" || fail "the record that could not be reported is not there"
for json in '' --json; do
	for verb in dump stat repair grow; do
		# shellcheck disable=SC2086 # no word if it is empty
		full 2 "$REDDN_TABLE" "$verb" $json "$table"
	done
	# shellcheck disable=SC2086
	full 74 "$REDDNC" check $json "$programs/counter.rdn"
	# shellcheck disable=SC2086
	full 74 "$REDDNC" explain $json "$programs/hash-get.rdn"
	# shellcheck disable=SC2086
	full 74 "$REDDN_PROBE" --list $json
	# shellcheck disable=SC2086
	full 125 "$SOFTCX" devices $json
done
full 74 "$REDDNC" dump "$programs/hash-get.rdn"
full 74 "$REDDNC" draw "$programs/hash-get.rdn"

# ---- with a NIC and a daemon

free_port
head -c 4096 /dev/zero >"$memory/words"
truncate -s 16777280 "$memory/log"
"$REDDN_TABLE" create --quiet --store --buckets 64 --heap 256K "$memory/store" || fail "no store"
configuration="control = \"$control\"; regions = ( { name = \"t\"; kind = \"table\"; path = \"$table\"; },
	{ name = \"words\"; kind = \"raw\"; path = \"$memory/words\"; writable = true; }, { name = \"log\"; kind = \"raw\"; path = \"$memory/log\"; writable = true; },
	{ name = \"s\"; kind = \"store\"; path = \"$memory/store\"; } );
offloads = ( { name = \"users\"; program = \"hash-get\"; region = \"t\"; }, { name = \"count\"; program = \"counter\"; region = \"words\"; },
	{ name = \"swap\"; program = \"compare-and-swap\"; region = \"words\"; }, { name = \"add\"; program = \"fetch-and-add\"; region = \"words\"; },
	{ name = \"append\"; program = \"log-append\"; region = \"log\"; }, { name = \"log\"; program = \"log-read\"; region = \"log\"; },
	{ name = \"exists\"; program = \"hash-exists\"; region = \"t\"; }, { name = \"put\"; program = \"store-put\"; region = \"s\"; },
	{ name = \"put_if\"; program = \"store-put-if\"; region = \"s\"; } );"
configure_reddnd "$configuration"
full 74 "$REDDND" --check-config --config "$work/reddnd.conf"
start_nic
start_reddnd "$configuration"
server=(--port "$port" "$address")
background follower.log "$REDDN" ping --count 100000 "${server[@]}" users
until_true reported sessions 'len(d) == 1' || fail "no session" "$work/follower.log" "$work/reddnd.log"
for json in '' --json; do
	for verb in status sessions offloads regions tenants metrics audit "top --count 1" reload "limit everyone --rate 1000000"; do
		# shellcheck disable=SC2086 # the words of each
		full 74 "$REDDNCTL" --socket "$control" $json $verb
	done
	# shellcheck disable=SC2086
	{
		full 2 "$SOFTCX" run "$REDDN" ping $json --count 2 "${server[@]}" users
		full 2 "$SOFTCX" run "$REDDN" get $json "${server[@]}" users alice
		full 2 "$SOFTCX" run "$REDDN" exists $json "${server[@]}" exists alice
		full 2 "$SOFTCX" run "$REDDN" call $json "${server[@]}" count 0 100
		full 2 "$SOFTCX" run "$REDDN" cas $json "${server[@]}" swap 1 0 0
		full 2 "$SOFTCX" run "$REDDN" faa $json "${server[@]}" add 1 0
		full 2 "$SOFTCX" run "$REDDN" append $json "${server[@]}" append one
		full 2 "$SOFTCX" run "$REDDN" log $json "${server[@]}" log
		full 2 "$SOFTCX" run "$REDDN" bench $json --count 10 --keys "$work/t.tsv" "${server[@]}" users
		full 2 "$SOFTCX" run "$REDDN" mc stats $json --tcp "127.0.0.1:$port"
		full 74 "$SOFTCX" run "$REDDNC" run $json --region "words=$memory/words" "$programs/counter.rdn" 8 100
		full 74 "$SOFTCX" run "$REDDN_PROBE" $json --check device
		full 125 "$SOFTCX" status $json
	}
done
full 2 "$SOFTCX" run "$REDDN" put --json "${server[@]}" put alice here
full 2 "$SOFTCX" run "$REDDN" delete --json "${server[@]}" put alice
full 2 "$SOFTCX" run "$REDDN" put --json --if-version 1 "${server[@]}" put_if alice here
full 125 "$SOFTCX" status --objects
full 74 "$REDDNCTL" --socket "$control" audit --follow
full 74 "$REDDNCTL" --socket "$control" kick "$(value 'd[0]["session"]')"
full 125 "$SOFTCX" fault add drop --count 1
full 125 "$SOFTCX" fault list
"$SOFTCX" fault clear >"$work/out" || fail "the fault stays" "$work/out"
full 125 "$SOFTCX" fuzz --seeds 1 true
timeout "$limit" "$SOFTCX" trace --count 1 >/dev/full 2>"$work/trace.err" &
trace=$!
pids+=("$trace")
traced()
{
	on_nic get.log "$REDDN" get "${server[@]}" users alice
	! kill -0 "$trace" 2>/dev/null
}
until_true traced || fail "the trace goes on" "$work/trace.err"
wait "$trace"
rc=$?
[[ $rc -eq 125 ]] || fail "softcx trace: exit status $rc" "$work/trace.err"
reason_in "$work/trace.err" || fail "softcx trace: not the reason, once" "$work/trace.err"
ok "softcx trace"

# Those that print nothing, and those that need a memcached
printf '%s\n' 'reddn lock' 'reddnctl hand-over' 'reddn-memcached check' 'reddn-memcached setup' 'softcx nic' 'softcx run' 'softcx stop' 'softcx trace' |
	grep -vxFf - "$work/commands" >"$work/expected"
[[ $(wc -l <"$work/expected") -gt 25 ]] || fail "the commands of the tools are not found" "$work/commands"
while read -r tool verb; do
	grep -qE "(^| )$tool ([^ ].* )?$verb( |\$)" "$work/tried" || fail "$tool $verb is not tried" "$work/tried"
done <"$work/expected"
ok "each command of each tool was tried"
stop_reddnd
done_testing
