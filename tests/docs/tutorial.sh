#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The tutorial, on the device that it is about: a reader who types its commands into a shell, with the built programs on the path,
# sees what it shows.
export SOFTCX_DEVICE=cx5
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
# shellcheck source=tests/lib/lib.sh
source "$here/../lib/lib.sh"

for program in "$SOFTCX" "$REDDND" "$REDDN" "$REDDNC" "$REDDNCTL"; do
	PATH=${program%/*}:$PATH
done
export PATH
if [[ -n ${PYTHONPATH-} ]]; then
	mkdir "$work/bin" # the python3 that the package was built for
	ln -s "$PYTHON" "$work/bin/python3"
	PATH=$work/bin:$PATH
fi
PKG_CONFIG_PATH=${REDDN%/tools/*}/meson-uninstalled
export PKG_CONFIG_PATH

mkdir "$work/tutorial"
(cd "$work/tutorial" && PYTHONDONTWRITEBYTECODE=1 "$here/run-page" "$here/../../docs/tutorial.md") || fail "the tutorial"
ok "every command of the tutorial"
[[ ! -S $SOFTCX_DIR/softcx:control ]] || ! "$SOFTCX" status >/dev/null 2>&1 || fail "the tutorial leaves its NIC behind"
ok "and no NIC is left"
