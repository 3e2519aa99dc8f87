#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Values that are received in memory of the client, while a writer or clients change them: each is one that was there, and nothing is
# written outside of its place, or after it was given back, also when the reply of a host comes after that of another one. By the NIC,
# unrolled and recycled, and by the CPU.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
# shellcheck source=tests/lib/control.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"
needs "${recycling[@]}" has.devx has.cross_channel
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}" "${INTO:?set INTO to the path of the test client}"
seed=${TEST_SEED:-1} gets=${TEST_GETS:-1500}

declare -A how=([unrolled]='mode = "unrolled"' [recycled]='mode = "recycled"' [cpu]='engine = "cpu"')
regions='' offloads='{ name = "few"; program = "hash-into"; region = "cpu"; params = { record = 64; }; }'
for way in "${!how[@]}"; do
	"$REDDN_TABLE" create --quiet --capacity 200 --heap 4M --max-key 32 --max-value 20000 "$memory/$way" || fail "no table"
	regions+="{ name = \"$way\"; kind = \"table\"; path = \"$memory/$way\"; }, "
	offloads+=", { name = \"table.$way\"; program = \"hash-into\"; region = \"$way\"; ${how[$way]}; }"
	offloads+=", { name = \"store.$way\"; program = \"hash-into\"; region = \"store\"; ${how[$way]}; }"
done
"$REDDN_TABLE" create --quiet --store --capacity 200 --heap 16M --max-key 32 --max-value 20000 "$memory/store" || fail "no store"

nic_options=(--seed "$seed" --hosts "host,a,b")
start_nic
start_reddnd "control = \"$control\";
regions = ( $regions { name = \"store\"; kind = \"store\"; path = \"$memory/store\"; } );
offloads = ( $offloads, { name = \"puts\"; region = \"store\"; } );"
becomes offloads "the longest answer has the longest record" \
	'[(o["state"], "see its param \"record\"" in o["why"]) for o in d if o["offload"] == "few"] == [("disabled", True)]'

for way in unrolled recycled cpu; do
	for of in table store; do
		with=puts
		[[ $of == store ]] || with=$memory/$way
		on_nic into.log "$INTO" "$of" "$address" "$port" "$of.$way" "$with" "$gets" "$seed" ||
			fail "$of.$way, seed $seed" "$work/into.log" "$work/reddnd.log"
		ok "$of, $way: $(tail -n 1 "$work/into.log")"
	done
done

# Answers that are sent count as replies. A burst is the longest of them, as a tenth of a second is less, and can be used twice
rate=200000 burst=21000
ctl limit everyone --bytes "$rate" || fail "no limit" "$work/ctl.err"
for way in unrolled recycled cpu; do
	begin=$(now_ms)
	on_nic into.log "$INTO" store "$address" "$port" "store.$way" puts 300 "$seed" || fail "$way, seed $seed" "$work/into.log" "$work/reddnd.log"
	took=$(($(now_ms) - begin))
	bytes=$(sed -n 's/.* hits of \([0-9]*\) bytes.*/\1/p' "$work/into.log")
	least=$(((bytes - 2 * burst) * 1000 / rate))
	[[ $least -gt 0 && $took -ge $least ]] || fail "$way: $bytes bytes in $took ms; at $rate per second they take $least at least" "$work/reddnd.log"
	ok "$way: $bytes bytes at $rate per second: $took ms, $least at least"
done
stop_reddnd

# Two hosts, and SENDs that are lost now and then: the NIC repeats each after 100 ms, and the client has asked the other host before
declare -A at=([a]=127.1.0.1 [b]=127.2.0.1)
hosts_listen()
{
	unix_listens "$work/a.control" && unix_listens "$work/b.control" && [[ $(object listeners) -ge 2 ]]
}
for host in a b; do
	make_table "$work/$host.table" <<<$'alice\tvalue'
	printf 'listen = "%s:%s"; control = "%s"; programs = "%s"; regions = ( { name = "t"; kind = "table"; path = "%s"; } );
		offloads = ( { name = "t"; program = "hash-into"; region = "t"; } );\n' "${at[$host]}" "$port" "$work/$host.control" "$programs" \
		"$work/$host.table" >"$work/$host.conf"
	background "$host.log" --host "$host" "$REDDND" --config "$work/$host.conf"
	hosts+=("$child")
done
server_ready "${hosts[1]}" reddnd b.log hosts_listen
for host in a b; do
	"$SOFTCX" fault add drop --device "$host/mlx5_0" --opcode send --probability 0.5 >"$work/fault.log" 2>&1 || fail "no fault" "$work/fault.log"
done
on_nic late.log "$INTO" late "${at[a]},${at[b]}" "$port" t "${TEST_LATE:-8}" || fail "late replies" "$work/late.log" "$work/a.log" "$work/b.log"
ok "what comes after the result of another host writes nowhere: $(tail -n 1 "$work/late.log") requests"
for i in 0 1; do
	kill "${hosts[$i]}"
	expect_exit "${hosts[$i]}" reddnd a.log
done
done_testing
