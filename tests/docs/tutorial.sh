#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The tutorial: a reader who types its commands into a shell, with the built programs on the path, sees what it shows.
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
# shellcheck source=tests/lib/lib.sh
source "$here/../lib/lib.sh"
needs port.link=Ethernet
needs has.masked_atomics has.recv_enable managed.fetch=64

for program in "$SOFTCX" "$REDDND" "$REDDN" "$REDDNC" "$REDDNCTL"; do
	PATH=${program%/*}:$PATH
done
export PATH

mkdir "$work/tutorial"
(cd "$work/tutorial" && PYTHONDONTWRITEBYTECODE=1 "$here/run-page" "$here/../../docs/tutorial.md") || fail "the tutorial"
ok "every command of the tutorial"
[[ ! -S $SOFTCX_DIR/softcx:control ]] || ! "$SOFTCX" status >/dev/null 2>&1 || fail "the tutorial leaves its NIC behind"
ok "and no NIC is left"
