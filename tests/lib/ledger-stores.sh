# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# ledger-stores.sh - sourced after supervised.sh by tests whose daemon dies at a store into the ledger (tests/system/ledger-stores.c).
: "${LEDGER_STORES_LIB:?set LEDGER_STORES_LIB to the path of the library}"

# struct control of ledger-stores.c: at, after, stores
arm() # after|before N: a daemon dies at its n-th store from now on; 0: never
{
	python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("=QQQ", int(sys.argv[2]), sys.argv[1] == "after", 0))' \
		"$@" 1<>"$work/stores"
}

serve_until_stores() # a daemon below reddnd-run that dies where arm() said
{
	arm before 0
	preloading "$LEDGER_STORES_LIB"
	start_supervised env "LEDGER_STORES=$work/stores" "${preloading[@]}" "$REDDND" --config "$work/reddnd.conf"
	server_ready "$run" reddnd run.log reddnd_listens
}
