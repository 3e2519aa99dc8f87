#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A store that evicts takes far more keys than it has room for.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
needs has.devx has.cross_channel
: "${REDDN:?set REDDN to the path of the client tool}" "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
store=$memory/cache.store

start_nic
# 341 extents of 192 bytes
"$REDDN_TABLE" create --quiet --store --evict --buckets 1024 --max-key 32 --max-value 100 --heap 64K "$store" || fail "no store"
start_reddnd "regions = ( { name = \"cache\"; kind = \"store\"; path = \"$store\"; } );
offloads = ( { name = \"cache\"; region = \"cache\"; put = { depth_max = 8; }; } );"
seq 1000 | sed 's/.*/key &\tvalue of &/' >"$work/keys.tsv"
on_nic put.log "$REDDN" bench --put --count 5000 --depth 8 --keys "$work/keys.tsv" --port "$port" "$address" cache ||
	fail "puts" "$work/put.log" "$work/reddnd.log"
grep -q '^errors  *0$' "$work/put.log" || fail "puts end with errors" "$work/put.log"
ok "no put ends with an error"
on_nic put.log "$REDDN" put --port "$port" "$address" cache last one || fail "put" "$work/put.log"
on_nic get.log "$REDDN" get --port "$port" "$address" cache last || fail "the last key was evicted" "$work/get.log"
stop_reddnd
"$REDDN_TABLE" dump "$store" >"$work/dump.tsv" || fail "dump" "$work/dump.tsv"
entries=$(wc -l <"$work/dump.tsv")
[[ $entries -gt 100 && $entries -lt 341 ]] || fail "$entries entries"
awk -F'\t' '$1 != "last" && $2 != "value of " substr($1, 5)' "$work/dump.tsv" >"$work/wrong"
[[ ! -s $work/wrong ]] || fail "entries of other values" "$work/wrong"
ok "what is left has the values that were put"

# The heap is full of extents of 192 bytes, and has room for no other ones
start_reddnd "regions = ( { name = \"cache\"; kind = \"store\"; path = \"$store\"; } );
offloads = ( { name = \"brief\"; region = \"cache\"; put = { depth_max = 1; params = { most = 64; }; }; } );"
put_brief()
{
	on_nic put.log "$REDDN" put --port "$port" "$address" brief a b
}
until_true put_brief || fail "a put of another size" "$work/put.log" "$work/reddnd.log"
on_nic get.log "$REDDN" get --port "$port" "$address" brief a || fail "what was put is not there" "$work/get.log"
[[ $(cat "$work/get.log") == b ]] || fail "another value" "$work/get.log"
ok "puts of another size find room"
stop_reddnd
done_testing
