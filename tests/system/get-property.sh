#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Gets through the whole system on random tables, with both forms of the lookup and at several depths: each answer
# equals the table's value. Daemon and clients are on different hosts.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"

: "${GET_PROPERTY:?set GET_PROPERTY to the path of the test program}"
seed=${TEST_SEED:-1}

kinds=(small sizes long-keys full tiny)
regions=
offloads=
for kind in "${kinds[@]}"; do
	"$GET_PROPERTY" make "$kind" "$seed" "$work/$kind" || fail "table $kind"
	regions+="  { name = \"$kind\"; kind = \"table\"; path = \"$work/$kind\"; },"$'\n'
	offloads+="  { name = \"$kind-sequential\"; program = \"hash-get\"; region = \"$kind\"; },"$'\n'
	offloads+="  { name = \"$kind-parallel\"; program = \"hash-get-parallel\"; region = \"$kind\"; },"$'\n'
	offloads+="  { name = \"$kind-several\"; program = \"hash-mget\"; region = \"$kind\"; },"$'\n'
	offloads+="  { name = \"$kind-many\"; program = \"hash-mget\"; region = \"$kind\"; params = { keys = 16; }; },"$'\n'
done

nic_options=(--seed "$seed")
two_hosts
start_nic
start_reddnd "regions = (
${regions%,*} );
offloads = (
${offloads%,*} );"

for kind in "${kinds[@]}"; do
	for mode in sequential parallel several many; do
		for depth in 1 2 16 64; do
			[[ $mode != several || $depth -le 2 ]] || continue
			[[ $mode != many || $depth -eq 2 ]] || continue
			gets=2000
			# at least 64 KB each
			[[ $kind != sizes && $kind != long-keys ]] || gets=500
			on_nic ask.log "${client_on[@]}" "$GET_PROPERTY" ask "$address" "$port" "$kind-$mode" "$work/$kind" "$depth" "$gets" "$seed" ||
				fail "$kind, $mode, depth $depth (seed $seed)" "$work/ask.log" "$work/reddnd.log"
			ok "$(tail -n 1 "$work/ask.log")"
		done
	done
done

stop_reddnd
done_testing
