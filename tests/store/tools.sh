#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A store as people use it: reddn put, get, delete and bench, and the Python package.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
needs has.devx has.cross_channel
: "${REDDN:?set REDDN to the path of the client tool}" "${REDDN_TABLE:?set REDDN_TABLE to the path of the table tool}"
store=$memory/users.store

# expect WHAT STATUS WORDS CMD ARG...: of reddn CMD, with $work/in as its input
expect()
{
	local what=$1 status=$2 words=$3 command=$4 rc=0
	shift 4

	"$SOFTCX" run "$REDDN" "$command" --port "$port" "$@" >"$work/out" 2>&1 <"$work/in" || rc=$?
	[[ $rc -eq $status ]] || fail "$what: exit status $rc, not $status" "$work/out" "$work/reddnd.log"
	[[ -z $words ]] || grep -qF -e "$words" "$work/out" || fail "$what: \"$words\" is missing" "$work/out"
	ok "$what"
}

: >"$work/in"
"$REDDN_TABLE" create --quiet --store --capacity 100 --max-key 32 --max-value 400 "$store" || fail "no store"
# gone KEY: it is not found
gone()
{
	! "$SOFTCX" run "$REDDN" get --port "$port" "$address" users "$1" >"$work/out" 2>&1 && grep -q "not found" "$work/out"
}

# expired N: the server has removed so many
expired()
{
	"$REDDNCTL" --socket "$work/control" --json regions >"$work/state" && grep -q "\"expired\":$1," "$work/state"
}

start_nic
start_reddnd "control = \"$work/control\"; regions = ( { name = \"users\"; kind = \"store\"; path = \"$store\"; } );
offloads = ( { name = \"users\"; region = \"users\"; depth_max = 256; put = { depth_max = 16; }; put_if = {}; exists = { keys = [2, 8]; }; },
  { name = \"reads\"; program = \"hash-get\"; region = \"users\"; }, { name = \"into\"; program = \"hash-into\"; region = \"users\"; } );"
expect "a put of a new key" 0 "" put "$address" users alice admin
expect "its value" 0 "admin" get "$address" users alice
expect "a put of a key that is there" 0 '{"key": "alice", "value": "guest"}' put --json "$address" users alice guest
expect "its value" 0 "guest" get "$address" users alice
printf 'from\nstandard input' >"$work/in"
expect "a put that expires, in an hour" 0 "" put --ttl 3600000 "$address" users alice "for an hour"
expect "its value" 0 "for an hour" get "$address" users alice
expect "a put that expires at once" 0 '{"key": "brief", "value": "x"}' put --json --ttl 1 "$address" users brief x
until_true gone brief || fail "it does not expire" "$work/out"
ok "a value that has expired is not found"
until_true expired 1 || fail "the server does not remove it" "$work/state" "$work/reddnd.log"
ok "the server removes it"
[[ -z ${PYTHON-} ]] || {
	"$SOFTCX" run "$PYTHON" - "$address:$port" >"$work/python" 2>&1 <<'END' || fail "into memory" "$work/python" "$work/reddnd.log"
import sys
import time

import reddn

memory = bytearray(10)
with reddn.connect(sys.argv[1], "users") as users, reddn.connect(sys.argv[1], "into", into=True) as into:
    into.register(memory)
    users.put("brief", bytes(300), ttl=0.01)
    while users.get("brief") is not None:
        time.sleep(0.001)
    assert into.get_into("brief", memory) is None
END
	ok "nor into memory where it would have no room"
}
expect "the one with more time" 0 "for an hour" get "$address" users alice
expect "a put without a time in its place" 0 "" put "$address" users alice guest
expect "a time beside a condition" 2 "takes no --ttl" put --ttl 5 --if-version 1 "$address" users alice x
expect "no time" 2 "" put --ttl 0 "$address" users alice x
expect "a value from standard input" 0 "" put "$address" users bob -
expect "the same without a dash" 0 "" put "$address" users carol
expect "it" 0 $'bob\tfrom\\nstandard input' get --escape "$address" users bob
expect "it, too" 0 $'carol\tfrom\\nstandard input' get --escape "$address" users carol
expect "a key that begins with a dash" 0 "" put "$address" users -- -k dash
expect "it" 0 "dash" get "$address" users -- -k
expect "its end" 0 '{"key": "-k", "deleted": true}' delete --json "$address" users -- -k
expect "an empty value" 0 "" put "$address" users dave ""
expect "it" 0 '{"key": "dave", "value": "", "version": ' get --json "$address" users dave
version=$(sed -n 's/.*"version": \([0-9]*\)}$/\1/p' "$work/out")
expect "a put of what is absent, if it is not" 1 "dave: nothing was done: its version is $version" put --if-version 0 "$address" users dave x
expect "it, as JSON" 1 "{\"key\": \"dave\", \"conflict\": true, \"version\": $version}" put --json -v 0 "$address" users dave x
expect "a put of a new key, if it is absent" 0 "" put --if-version 0 "$address" users frank 1
expect "a put, if it has that version" 0 '{"key": "dave", "value": "by version"}' put --json --if-version "$version" "$address" users dave "by version"
expect "it" 0 "by version" get "$address" users dave
expect "the same once more" 1 "dave: nothing was done: its version is " put --if-version "$version" "$address" users dave "lost update"
expect "a delete, if it had that version" 1 "dave: nothing was done: its version is " delete --if-version "$version" "$address" users dave
expect "what nobody has changed" 0 '{"key": "dave", "value": "by version", "version": ' get --json "$address" users dave
version=$(sed -n 's/.*"version": \([0-9]*\)}$/\1/p' "$work/out")
expect "a delete, if it has that version" 0 '{"key": "dave", "deleted": true}' delete --json --if-version "$version" "$address" users dave
expect "a delete of what is gone" 1 '{"key": "dave", "conflict": true, "version": 0}' delete --json --if-version "$version" "$address" users dave
expect "a put of what is gone" 1 "dave: nothing was done: it is absent" put --if-version "$version" "$address" users dave x
expect "a delete of several keys with one version" 2 "--if-version is for one key" delete --if-version 1 "$address" users alice carol
expect "a delete of what is absent" 2 "--if-version 0 is an absent key" delete --if-version 0 "$address" users alice
expect "a version that none is" 2 "" put --if-version 0x "$address" users alice x
expect "a condition where there is no part for it" 2 "no offload" put --if-version 1 "$address" reads alice x
expect "a delete" 0 '{"key": "bob", "deleted": true}' delete --json "$address" users bob
expect "what is gone" 1 "bob: not found" get "$address" users bob
expect "another delete" 1 "bob: not found" delete "$address" users bob
expect "a delete of what never was" 1 '{"key": "eve", "deleted": false}' delete --json "$address" users eve
expect "those that exist" 1 $'alice\ncarol\nalice' exists "$address" users alice bob carol eve alice "$(printf '%33s' long)"
grep -q 'bob: not found' "$work/out" || fail "bob is not missing" "$work/out"
expect "all that are asked for" 0 carol exists "$address" users alice carol
expect "up to the first that is missing" 1 "bob: not found" exists --first "$address" users alice bob carol
! grep -q carol "$work/out" || fail "one behind it is reported" "$work/out"
expect "the same as JSON" 1 '{"key": "bob", "exists": false}' exists --json "$address" users alice bob
expect "what an offload without parts does not tell" 2 "no part for questions which keys exist" exists "$address" reads alice
expect "what is offered" 0 "exists: " ping "$address" users.exists8
expect "a long value" 2 "the key or the record is too long" put "$address" users alice "$(printf '%401s' x)"
expect "an empty key" 2 "the key is empty" put "$address" users "" x
expect "a put where gets alone are offered" 2 "no offload" put "$address" reads alice x
expect "what is offered" 0 "store: " ping "$address" users
seq 50 | sed 's/.*/number &\tvalue &/' >"$work/keys.tsv"
expect "a benchmark of puts" 0 "puts        500 in" bench --put --count 500 --keys "$work/keys.tsv" "$address" users
expect "a benchmark of gets and puts" 0 "writes      " bench --put=30 --verify --count 500 --keys "$work/keys.tsv" "$address" users
expect "more than all" 2 "101" bench --put=101 --count 5 --keys "$work/keys.tsv" "$address" users
expect "gets of what it has put" 0 "wrong       0" bench --verify --count 500 --keys "$work/keys.tsv" "$address" users
printf '%33s\tx\n' long >"$work/long.tsv"
expect "a benchmark of puts that the store cannot take ends" 1 "errors" bench --put --seconds 0.1 --keys "$work/long.tsv" "$address" users
expect "gets of keys that it cannot have end, too" 1 "errors" bench --seconds 0.1 --keys "$work/long.tsv" "$address" users
expect "puts into what takes none" 1 "No such file" bench --put --count 5 --keys "$work/keys.tsv" "$address" reads
for ((i = 0; i < 3; i++)); do
	seq $((i * 200)) $((i * 200 + 199)) | sed 's/.*/more &\tvalue &/' >"$work/more.tsv"
	"$SOFTCX" run "$REDDN" bench --put --count 400 --port "$port" --keys "$work/more.tsv" "$address" users >"$work/out" 2>&1 && continue
	grep -q "No space left" "$work/out" || fail "a store that is full" "$work/out"
	break
done
((i < 3)) || fail "a store of 100 keys has taken 600" "$work/out"
ok "a store that is full"

[[ -z ${PYTHON-} ]] || {
	"$SOFTCX" run "$PYTHON" - "$address:$port" >"$work/python" 2>&1 <<'END' || fail "Python" "$work/python" "$work/reddnd.log"
import asyncio
import sys

import reddn

with reddn.connect(sys.argv[1], "users") as users:
    users.put("alice", "by Python")
    assert users.get("alice") == b"by Python"
    users.put(b"alice", bytes(300))
    assert users.get("alice") == bytes(300)
    pool = bytearray(range(200)) * 5
    for put in (bytearray(b"a buffer"), memoryview(pool)[::3]):
        users.put("alice", put)
        assert users.get("alice") == bytes(put)
    users.register(pool)
    users.put("alice", memoryview(pool)[100:500])
    pool[100:500] = bytes(400)
    assert users.get("alice") == (bytes(range(200)) * 5)[100:500]
    users.put("alice", pool[600:700], if_version=users.get_versioned("alice").version)
    assert users.get("alice") == pool[600:700]
    users.put("alice", memoryview(pool)[700:], ttl=3600)
    assert users.get("alice") == pool[700:]
    users.unregister(pool)
    assert users.delete("alice") is True and users.delete("alice") is False and users.get("alice") is None
    assert users.is_table
    for wrong in (lambda: users.put("alice", "x" * 401), lambda: users.delete("x" * 33)):
        try:
            wrong()
        except OSError as error:
            assert error.errno == 90, error
        else:
            sys.exit("what is too long is taken")


# The store is full from here on: what has an entry has room
with reddn.connect(sys.argv[1], "users", reconnect=False, depth=200) as once:
    once.put("number 7", "once")
    assert once.get("number 7") == b"once" and once.delete("alice") is False

async def main():
    async with await reddn.aio.connect(sys.argv[1], "users") as users:
        names = ["number %d" % n for n in range(1, 51)]
        await asyncio.gather(*(users.put(name, name.upper()) for name in names))
        assert await asyncio.gather(*map(users.get, names)) == [name.upper().encode() for name in names]
        assert await users.delete(names[0]) is True and await users.delete(names[0]) is False
        # each of those that count takes a number of its own
        await users.put(names[1], "0")
        async def count():
            while True:
                value, version = await users.get_versioned(names[1])
                try:
                    await users.put(names[1], b"%d" % (int(value) + 1), if_version=version)
                except reddn.Conflict:
                    continue
                return
        await asyncio.gather(*(count() for _ in range(8)))
        assert await users.get(names[1]) == b"8"
        try:
            await users.delete(names[1], if_version=1)
        except reddn.Conflict as conflict:
            assert await users.delete(names[1], if_version=conflict.version) is True


asyncio.run(main())

with reddn.connect(sys.argv[1], "users") as users:
    users.put("number 3", "1")
    value, version = users.get_versioned("number 3")
    assert value == b"1" and version
    users.put("number 3", "2", if_version=version)
    late = (lambda: users.put("number 3", "3", if_version=version), lambda: users.put("number 3", "3", if_version=0), lambda: users.delete("number 3", if_version=version))
    for change in late:
        try:
            change()
        except reddn.Conflict as conflict:
            assert conflict.version == users.get_versioned("number 3").version != version
        else:
            sys.exit("the version is not compared")
    assert users.get("number 3") == b"2"
    users.put("number 3", "3", ttl=3600)
    assert users.get("number 3") == b"3"
    users.put("number 3", "4", ttl=0.001)
    while users.get_versioned("number 3").value is not None:
        pass
    # what it had may be gone, too: then another key has taken the room, perhaps
    version = users.get_versioned("number 3").version
    try:
        users.put("number 3", "5", if_version=version)
        assert users.get("number 3") == b"5"
    except (OSError, reddn.Conflict) as error:
        assert isinstance(error, reddn.Conflict) or error.errno in (11, 28), error
    for ttl, if_version in ((0, None), (-1, None), (5, 1)):
        try:
            users.put("number 3", "6", ttl=ttl, if_version=if_version)
        except ValueError:
            continue
        sys.exit("a wrong ttl is taken")
    users.put("number 4", "2")
    assert users.delete("number 4", if_version=users.get_versioned("number 4").version) is True
    assert users.get_versioned("number 4") == (None, 0)
END
	ok "puts, gets and deletes of Python"
}
stop_reddnd

[[ -z ${PYTHON-} ]] || {
	start_reddnd "regions = ( { name = \"users\"; kind = \"store\"; path = \"$store\"; } );
offloads = ( { name = \"users\"; region = \"users\"; } ); tenants = ( { name = \"idle\"; idle_timeout = \"2s\"; } );"
	"$SOFTCX" run "$PYTHON" - "$address:$port" >"$work/python" 2>&1 <<'END' || fail "idle" "$work/python" "$work/reddnd.log"
import sys
import time

import reddn
from reddn._lib import lib

with reddn.connect(sys.argv[1], "users") as users:
    for n in range(3):
        users.put("carol", "number %d" % n)
        until = time.monotonic() + 60
        while True:
            assert users.get("carol") == b"number %d" % n
            lib.reddn_get_info(users._handle(), users._info)
            if users._info.put_session == 0:
                break
            assert time.monotonic() < until
        assert users._words() == ""
END
	ok "a session of puts is there when it is needed, and may end when nobody puts"
	stop_reddnd
	start_reddnd "regions = ( { name = \"users\"; kind = \"store\"; path = \"$store\"; } );
offloads = ( { name = \"users\"; region = \"users\"; } ); tenants = ( { name = \"reader\"; offloads = [ \"users\" ]; } );"
	"$SOFTCX" run "$PYTHON" - "$address:$port" >"$work/python" 2>&1 <<'END' || fail "gets alone" "$work/python" "$work/reddnd.log"
import asyncio
import errno
import sys

import reddn


def has(error, number, words):
    assert str(error).startswith(f"[Errno {number:d}] {words}"), error


async def refused(request, number, words):
    try:
        await request
    except OSError as error:
        has(error, number, words)
    else:
        sys.exit("it is not refused")


async def sync(answer):
    return answer()


async def main(reconnect):
    with reddn.connect(sys.argv[1], "users", reconnect=reconnect) as users:
        for _ in range(2):
            await refused(sync(lambda: users.put("carol", "x")), errno.EACCES, "refused by the server: tenant reader may not use")
            await refused(sync(lambda: users.get("x" * 33)), errno.EMSGSIZE, "Message too long")
            assert users.get("carol") == b"number 2"
    async with await reddn.aio.connect(sys.argv[1], "users", reconnect=reconnect) as users:
        for _ in range(2):
            await refused(users.put("carol", "x"), errno.EACCES, "refused by the server: tenant reader may not use")
            await refused(users.get("x" * 33), errno.EMSGSIZE, "Message too long")
            assert await users.get("carol") == b"number 2"


asyncio.run(main(True))
asyncio.run(main(False))
END
	ok "gets go on where puts are refused, and each error has its own words"
	stop_reddnd
}
done_testing
