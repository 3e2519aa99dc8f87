#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# hostile.sh [brief]: reddnd against a hostile client (hostile.c) while another client, the bystander, sends gets all the time. Each
# client reads and changes only its own reply slots; in the end the daemon and the NIC hold the same objects as before.
# docs/man/reddnd-security.7 lists the attacks.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
offloads=(sequential parallel) small=(small small-parallel)
able "attacks on recycled offloads" "${recycling[@]}" && offloads+=(recycled) small+=(small-recycled)
# each attack on one offload, and fewer connections
[[ ${1-} != brief ]] || offloads=(sequential) small=(small) TEST_STORM=${TEST_STORM:-30}

limit=${TEST_LIMIT:-240}
storm=${TEST_STORM:-200}
seed=${TEST_SEED:-1}
: "${HOSTILE:?set HOSTILE to the path of the test client}"

page=$(dirname "${BASH_SOURCE[0]}")/../../docs/man/reddnd-security.7
for name in $("$HOSTILE" 2>&1 | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
	[[ $name == bystander ]] || grep -E '^\.Bq .*(hostile|fuzz-live)' "$page" | grep -qw -- "$name" ||
		fail "the attack \"$name\" is not in reddnd-security(7)"
done
ok "reddnd-security(7) lists every attack"

for t in table secret; do
	make_table "$work/$t" --capacity 100 --max-key 16 --max-value 200 < <(seq 100 | sed "s/.*/key &\t$t value & of many/")
done
# A small table of which every record was replaced: what it held first is still in its heap. Their sizes are of all kinds.
"$REDDN_TABLE" create --quiet --buckets 64 --seed 7 --max-key 16 --max-value 900 --heap 256K "$work/small" >/dev/null || fail "no table"
for word in deleted present; do
	load_table "$work/small" < <(seq 15 | awk -v word=$word '{ s = ""; for (i = 0; i < ($1 * 153) % 800; i++) s = s "x"; print "key " $1 "\t" word " " s }')
done
grep -q deleted "$work/small" || fail "nothing deleted is left in the heap"
(umask 077 && head -c 64 /dev/urandom | sha256sum >"$work/key")
nic_options=(--seed "$seed")
start_nic
start_reddnd "regions = (
  { name = \"t\"; kind = \"table\"; path = \"$work/table\"; },
  { name = \"s\"; kind = \"table\"; path = \"$work/secret\"; },
  { name = \"small\"; kind = \"table\"; path = \"$work/small\"; } );
offloads = (
  { name = \"sequential\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"t\"; },
  { name = \"parallel\"; mode = \"unrolled\"; program = \"hash-get-parallel\"; region = \"t\"; },
  { name = \"recycled\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; },
  { name = \"small\"; mode = \"unrolled\"; program = \"hash-get\"; region = \"small\"; },
  { name = \"small-parallel\"; mode = \"unrolled\"; program = \"hash-get-parallel\"; region = \"small\"; },
  { name = \"small-recycled\"; program = \"hash-get\"; region = \"small\"; mode = \"recycled\"; },
  { name = \"secret\"; program = \"hash-get\"; region = \"s\"; },
  { name = \"keyed\"; program = \"hash-get\"; region = \"s\"; } );
tenants = (
  { name = \"all\"; offloads = [ \"sequential\", \"parallel\", \"recycled\", \"secret\", \"small\", \"small-parallel\", \"small-recycled\" ]; },
  { name = \"one\"; key = \"$work/key\"; offloads = [ \"keyed\" ]; } );"
daemon=$(program_of "$reddnd") || exit
# that the daemon and two clients have at least: the CPU needs no windows on regions, and no queues of code
keys_min=8 queues_min=4
! by_cpu || keys_min=2 queues_min=2
files=$(sha256sum "$work/table" "$work/secret" "$work/small")

attack() # OFFLOAD CASE [ARGUMENT...]
{
	on_nic hostile.log "$HOSTILE" "$address" "$port" "$@" || fail "$*" "$work/hostile.log" "$work/reddnd.log"
	alive "$bystander" || fail "$*: wrong service for the bystander" "$work/reddnd.log" "$work/hostile.log" "$work/bystander.log"
	[[ $(sha256sum "$work/table" "$work/secret" "$work/small") == "$files" ]] || fail "$*: a region has changed" "$work/hostile.log"
	ok "$1: $(tail -n 1 "$work/hostile.log")"
}

fds()
{
	find "/proc/$daemon/fd" -mindepth 1 | wc -l
}

rss() # KiB
{
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$daemon/status"
}

# The first round makes the daemon allocate what it allocates once. For queue pairs of verbs libmlx5 makes up to 8 pages of doorbells
# and keeps them (MLX5_TOTAL_UUARS): these may grow in the first round, and not after it.
once='^$'
! by_cpu || once='[.]uars '
held()
{
	objects | grep -v "$once"
}

idle=$(held)
as_idle()
{
	[[ $(held) == "$idle" ]]
}

expect_idle()
{
	until_true as_idle || {
		diff <(printf '%s\n' "$idle") <(held) >"$work/leaked"
		fail "objects are left (< before, > now)" "$work/leaked" "$work/reddnd.log"
	}
}

start_bystander() # OFFLOAD
{
	background bystander.log "$HOSTILE" "$address" "$port" "$1" bystander "$work/$2"
	bystander=$child
	until_true grep -q 'bystander: slots' "$work/bystander.log" || fail "no bystander" "$work/bystander.log" "$work/reddnd.log"
}

stop_bystander()
{
	kill "$bystander"
	expect_exit "$bystander" "the bystander" bystander.log
	ok "the bystander: $(sed -n 's/^bystander: \(.* right answers\).*/\1/p' "$work/bystander.log")"
}

# prints key:address:length of each memory region of the processes NAME, as the NIC has them
keys_of() # NAME
{
	"$SOFTCX" status --objects | awk -v name="$1" '
		/^[a-z]/ { mine = $NF == name }
		mine && $1 == "mr" {
			gsub(",", ""); at = ""
			for (i = 1; i < NF; i++) {
				if ($i == "key") key = $(i + 1)
				if ($i == "address") at = $(i + 1)
				if ($i == "iova") at = $(i + 1)
				if ($i == "length") len = $(i + 1)
			}
			print key ":" at ":" len
		}'
}

queues_of() # NAME
{
	"$SOFTCX" status --objects | awk -v name="$1" '
		/^[a-z]/ { mine = $NF == name }
		mine && / qpn / { for (i = 1; i < NF; i++) if ($i == "qpn") { sub(",", "", $(i + 1)); print $(i + 1); break } }' | sort -u
}

half_open_or_over()
{
	grep -q completed "$work/held.log" || ! alive "$held"
}

round()
{
	start_bystander sequential table
	for offload in "${offloads[@]}"; do
		attack "$offload" arguments "$work/table"
		attack "$offload" bytes "$work/table" "$seed" 200
		attack "$offload" lengths "$work/table"
		attack "$offload" flood
		attack "$offload" qp-error
	done
	for offload in "${small[@]}"; do
		attack "$offload" offsets "$work/small" deleted
	done
	mapfile -t keys < <(keys_of reddnd; keys_of hostile)
	[[ ${#keys[@]} -ge $keys_min ]] || fail "the keys of the daemon are not found"
	attack sequential keys "${keys[@]}"
	attack sequential invalidate "${keys[@]}"
	attack sequential guesses 100
	attack sequential states "$work/table" "${keys[@]}"
	# keys work the same in every mode: two are enough
	[[ ${#offloads[@]} -eq 1 ]] || attack "${offloads[-1]}" states "$work/table" "${keys[@]:0:2}"
	attack sequential slots "$(sed -n 's/^bystander: slots //p' "$work/bystander.log")"
	mapfile -t queues < <(queues_of reddnd; queues_of hostile)
	[[ ${#queues[@]} -ge $queues_min ]] || fail "the queue pairs of the daemon are not found"
	attack sequential queues "${queues[@]}"
	attack keyed tokens "$work/key"
	attack sequential connects "$seed" $((storm / 2))
	attack sequential storm "$storm"
	attack "${offloads[-1]}" storm 20
	mkfifo "$work/held"
	"$SOFTCX" run "$HOSTILE" "$address" "$port" sequential middle 50 <"$work/held" >"$work/held.log" 2>&1 &
	held=$!
	pids+=("$held")
	exec 7>"$work/held"
	until_true half_open_or_over
	grep -q completed "$work/held.log" || fail "no half-open connections" "$work/reddnd.log" "$work/held.log"
	attack sequential flood
	attack sequential arguments "$work/table"
	exec 7>&-
	wait "$held" || fail "half-open connections" "$work/held.log" "$work/reddnd.log"
	rm "$work/held"
	ok "$(tail -n 1 "$work/held.log")"
	stop_bystander
	expect_idle
	ok "the NIC holds the same objects as before"
}

round
once='^$' idle=$(objects)
before_fds=$(fds) before_rss=$(rss)
start_bystander secret secret
attack sequential storm "$storm"
attack sequential bytes "$work/table" "$((seed + 1))" 200
stop_bystander
expect_idle
same_fds()
{
	[[ $(fds) -eq $before_fds ]]
}
until_true same_fds || fail "the daemon had $before_fds files, and has $(fds)"
# a leaked session would take a hundred times as much
[[ $(rss) -le $((before_rss + 256)) ]] || fail "the daemon had $before_rss KiB, and has $(rss)"
ok "the daemon has $(fds) files and $(rss) KiB, and had $before_fds and $before_rss"
stop_reddnd
done_testing
