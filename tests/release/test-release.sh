#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What keeps a checkout from being released, and that nothing else does; that a tarball is the same each time; and that "./dev release" signs
# the tag, by a key that is made for this.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'gpgconf --homedir "$work/gnupg" --kill all 2>/dev/null || true; rm -rf "$work"' EXIT
git -C "$top" rev-parse 2>/dev/null || {
	echo "not a checkout of git"
	exit 77
}
[[ -x $(command -v gpg) ]] || {
	echo "gnupg is not installed"
	exit 77
}
export XZ_DEFAULTS=-0 # fast
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
git init -q "$work/tree"
cd "$work/tree"
# the files as they are, committed or not
(cd "$top" && git ls-files -z --cached --others --exclude-standard | while IFS= read -rd '' f; do [[ ! -e $f ]] || printf '%s\0' "$f"; done |
	tar --null -T - -cf -) | tar -xf -
sed -i "s/^  version: '.*'/  version: '7.1.0'/" meson.build
sed -i '0,/^[0-9].*/s//7.1 (2030-01-31)/' NEWS
sed -i '1s/(.*)/(7.1.0)/' debian/changelog

commit()
{
	git add -A && git commit -qm "$1"
}

check() # STATUS WORDS
{
	local rc=0
	tests/release/check >"$work/out" || rc=$?
	if [[ $rc -ne $1 ]] || ! grep -qF -- "$2" "$work/out"; then
		echo "FAIL not $1 with \"$2\", but $rc:"
		cat "$work/out"
		exit 1
	fi
	echo "ok   $2"
}

commit first
check 0 '7.1.0 can be released; there is no tag to compare with'
git tag v7.1.0
check 1 'there is a tag v7.1.0: raise the version'
sed -i "s/^  version: '.*'/  version: '7.2.0'/" meson.build
check 1 'NEWS begins with 7.1, not with 7.2.0'
check 1 'there are uncommitted changes'
sed -i '0,/^[0-9].*/s//7.2 (not released)\n\n  Names\n    Nothing is new.\n\n&/' NEWS
check 1 'write "7.2 (YYYY-MM-DD)"'
sed -i '0,/^[0-9].*/s//7.2 (2030-02-28)/' NEWS
sed -i '1s/(.*) unstable/(7.2.0) UNRELEASED/' debian/changelog
check 1 'debian/changelog begins with 7.2.0 in UNRELEASED'
sed -i '1s/UNRELEASED/unstable/' debian/changelog
commit second
check 0 '7.2.0 can be released; compared with v7.1.0'
sed -i '/reddn_errmsg;/d' libclient/libreddn.map
commit symbol
check 1 'not exported any more since v7.1.0: reddn_errmsg@LIBREDDN_0.1'
sed -i "s/soversion: '0'/soversion: '1'/" libclient/meson.build
commit soname
check 0 'compared with v7.1.0'
sed -i 's/uint32_t reply_max; /uint64_t reply_max; /' protocol/wire.h
commit wire
check 1 '"uint32_t reply_max;" of v7.1.0 is not there any more, and REDDN_WIRE_VERSION is the same'
sed -i 's/^#define REDDN_WIRE_VERSION .*/#define REDDN_WIRE_VERSION 77/' protocol/wire.h
commit version
check 1 'REDDN_WIRE_VERSION is another one since v7.1.0: say under the title "Wire protocol"'
sed -i '0,/Nothing is new./s//&\n\n  Wire protocol (wire.h)\n    Version 77./' NEWS
commit news
check 0 'compared with v7.1.0'
sed -i 's/^\tLEDGER_NAME = .*/\tLEDGER_NAME = 32,/' reddnd/ledger/format.h
commit ledger
check 1 '"LEDGER_NAME = 24," of v7.1.0 is not there any more, and LEDGER_VERSION is the same'
sed -i 's/^\tLEDGER_VERSION = .*/\tLEDGER_VERSION = 77,/' reddnd/ledger/format.h
commit version
check 1 'LEDGER_VERSION is another one since v7.1.0: say under the title "Upgrades"'
sed -i '0,/    Version 77./s//&\n\n  Upgrades\n    The ledger is another one./' NEWS
commit news
check 1 'say under "Upgrades" what becomes of sessions in an upgrade'
sed -i 's/^    The ledger is another one./&\n    All sessions end./' NEWS
commit news
check 0 'compared with v7.1.0'
mkdir "$work/one" "$work/two"
tests/release/tarball "$work/one" --only >/dev/null
tests/release/tarball "$work/two" --only >/dev/null
cmp "$work/one/reddnd-7.2.0.tar.xz" "$work/two/reddnd-7.2.0.tar.xz"
tar -tf "$work/one/reddnd-7.2.0.tar.xz" >"$work/files"
grep -qx 'reddnd-7.2.0/meson.build' "$work/files"
echo "ok   a tarball is the same each time"

# ---- the command, without the build of the tarball ---------------------------------------------

refused() # WORDS
{
	! ./dev release >"$work/out" 2>&1 || {
		echo "FAIL released, although: $1"
		exit 1
	}
	! git rev-parse --quiet --verify refs/tags/v7.2.0 >/dev/null || {
		echo "FAIL there is a tag, although: $1"
		exit 1
	}
	echo "ok   no tag: $1"
}

export GNUPGHOME=$work/gnupg GIT_CONFIG_GLOBAL=$work/gitconfig
mkdir -m 700 "$GNUPGHOME"
git config user.signingKey nobody@example.org
# shellcheck disable=SC2016 # of the script
printf '#!/bin/sh\ntouch "$1/reddnd-7.2.0.tar.xz"\n' >tests/release/tarball
refused 'there are uncommitted changes'
commit tarball
refused 'there is no key'
gpg --batch --quiet --passphrase '' --quick-generate-key 'Nobody <nobody@example.org>' ed25519 sign never 2>"$work/out"
./dev release --dry-run >"$work/out"
[[ -z $(git tag --list v7.2.0) ]]
./dev release >"$work/out"
[[ $(git rev-parse 'v7.2.0^{commit}') == $(git rev-parse HEAD) ]]
git verify-tag v7.2.0 2>"$work/out" || {
	cat "$work/out"
	echo "FAIL the tag is not signed"
	exit 1
}
git cat-file tag v7.2.0 | grep -qx 'reddnd 7.2.0'
echo "ok   ./dev release signs the tag"
refused_again=0
./dev release >"$work/out" 2>&1 || refused_again=1
[[ $refused_again -eq 1 ]] && grep -q 'there is a tag v7.2.0' "$work/out"
echo "ok   once"
