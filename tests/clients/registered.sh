#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Puts of values that the client's NIC sends from registered memory, unrolled and recycled: what is stored is what was there, and nothing
# that was changed meanwhile is taken for a value.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
needs has.devx has.cross_channel
: "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}" "${REGISTERED:?set REGISTERED to the path of the test client}"

"$REDDN_TABLE" create --quiet --store --buckets 64 --max-key 16 --max-value 1048520 --heap 256M "$memory/large" || fail "no store"
"$REDDN_TABLE" create --quiet --store --buckets 64 --max-key 16 --max-value 70000 --heap 512M "$memory/small" || fail "no store"
start_nic
start_reddnd "regions = ( { name = \"large\"; kind = \"store\"; path = \"$memory/large\"; }, { name = \"small\"; kind = \"store\"; path = \"$memory/small\"; } );
offloads = ( { name = \"large\"; region = \"large\"; depth_max = 8; put = { depth_max = 8; }; put_if = { depth_max = 8; }; },
  { name = \"large.into\"; program = \"hash-into\"; region = \"large\"; },
  { name = \"small\"; region = \"small\"; depth_max = 8; put = { depth_max = 8; }; put_if = { depth_max = 8; }; },
  { name = \"small.into\"; program = \"hash-into\"; region = \"small\"; } );"
for of in 'large 1048520 1' 'small 70000 2'; do
	read -r offload longest connections <<<"$of"
	on_nic client.log "$REGISTERED" "$address" "$port" "$offload" "$offload.into" "$longest" "$connections" ||
		fail "$of" "$work/client.log" "$work/reddnd.log"
	ok "values of up to $longest bytes"
done
stop_reddnd
done_testing
