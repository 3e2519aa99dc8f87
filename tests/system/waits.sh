#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Clients whose address nobody answers for, tenants whose regions take long to register, and a configuration that takes long to
# read: only those wait for it. Others are served, and the control socket answers.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=tests/lib/reddnd.sh
. "$here/../lib/reddnd.sh"
# shellcheck source=tests/lib/table.sh
. "$here/../lib/table.sh"
# shellcheck source=tests/lib/control.sh
. "$here/../lib/control.sh"
# shellcheck source=tests/lib/slow.sh
. "$here/../lib/slow.sh"
: "${REDDN:?}"

sessions() # TENANT: prints the sessions that it is charged for
{
	ctl --json tenants || fail "the control socket does not answer" "$work/ctl.err" "$work/reddnd.log"
	python3 -c 'import json, sys
print([t for t in json.load(open(sys.argv[1])) if t["tenant"] == sys.argv[2]][0]["sessions"])' "$work/ctl.out" "$1"
}

has_sessions() # TENANT N
{
	[[ $(sessions "$1") == "$2" ]]
}

# Tenant far is known by its key, which host c has: an address means nothing on InfiniBand
ask_from() # HOST: sets $ask, the command of a client there
{
	ask=(--host "$1" "$REDDN" get --timeout 100000 --port "$port")
	[[ $1 != c ]] || ask+=(--token-file "$work/key")
	ask+=("$address" plain alice)
}

get() # LOG HOST
{
	ask_from "$2"
	on_nic "$1" "${ask[@]}"
}

served() # TEXT HOST
{
	get get.log "$2" || fail "$1" "$work/get.log" "$work/reddnd.log"
	grep -qx wonder "$work/get.log" || fail "$1: a wrong answer" "$work/get.log"
	ok "$1"
}

# later LOG HOST: a client that waits; sets $child
later()
{
	ask_from "$2"
	background "$1" "${ask[@]}"
}

is_refused() # PID LOG WORDS
{
	wait "$1" && fail "served, not refused: $3" "$work/$2"
	grep -qE "refused by the server: $3" "$work/$2" || fail "no reason \"$3\"" "$work/$2" "$work/reddnd.log"
	ok "refused: $3"
}

config() # CONNECT_TIMEOUT
{
	printf 'listen = "%s:%s"; control = "%s"; connect_timeout = "%s"; programs = "%s";
regions = ( { name = "t"; kind = "table"; path = "%s"; } );
offloads = ( { name = "plain"; program = "hash-get"; region = "t"; } );
tenants = ( { name = "near"; }, { name = "far"; key = "%s"; sessions = 2; } );\n' \
		"$address" "$port" "$control" "$1" "$programs" "$work/table" "$work/key" >"$work/reddnd.conf"
}

make_table "$work/table" --max-value 1000 <<<$'alice\twonder'
printf 'a key that nobody guesses\n' >"$work/key"
chmod 600 "$work/key"
nic_options=(--hosts "a,b,c,e,f,g")
start_nic
call address pass
call register pass
call close pass
config 600s
background reddnd.log --host a "${slowly[@]}" "$REDDND" --config "$work/reddnd.conf"
reddnd=$child
server_ready "$reddnd" reddnd reddnd.log reddnd_listens
served "a client near by" b

# the first tenant's regions are registered when the daemon starts, those of others with their first client
call register wait
later first.log c
first=$child
waits_for register "$work/reddnd.log"
served "others while regions are registered" b
has_sessions far 1 || fail "a client that waits is not charged"
later second.log c
second=$child
until_true has_sessions far 2 || fail "a second client is not charged"
later third.log c
is_refused "$child" third.log 'tenant far has used up its quota "sessions" of 2'
call register fail
is_refused "$first" first.log 'the server could not register the regions of the offload: Bad address'
is_refused "$second" second.log 'the server could not register the regions of the offload: Bad address'
has_sessions far 0 || fail "refused clients stay charged"
call register pass
served "the tenant, once its regions can be registered" c

# Where a client came from within the last second needs no answer
address_waits()
{
	sleep 1.2
	call address wait
}

fewer_files() # N: device files that programs have open
{
	[[ $(object files) -lt $1 ]]
}

resolving() # addresses that take long, or do not answer
{
	address_waits
	later first.log c
	first=$child
	waits_for address "$work/reddnd.log"
	served "others while an address is resolved" b
	later second.log c
	second=$child
	until_true has_sessions far 2 || fail "a second client is not charged"
	call address fail
	is_refused "$first" first.log 'the network does not know the address of the client: Connection timed out'
	is_refused "$second" second.log 'the network does not know the address of the client: it did not answer some seconds ago'
	call address pass
	until_true get get.log c || fail "an address that answers now is refused" "$work/get.log"
	has_sessions far 0 || fail "refused clients stay charged"
	ok "an address that answers at last is served"

	# as many clients of one tenant, whose addresses do not answer, as may be resolved at a time
	call address wait
	crowd=()
	for host in e f g; do
		later "$host.log" "$host"
		crowd+=("$child")
	done
	until_true has_sessions near 3 || fail "not all wait" "$work/reddnd.log"
	waits_for address "$work/reddnd.log"
	served "a client of the same tenant, whose address has answered before" b
	call address fail
	for i in 0 1 2; do
		hosts=(e f g)
		is_refused "${crowd[i]}" "${hosts[i]}.log" 'the network does not know the address of the client: Connection timed out'
	done
	call address pass

	# the client goes while it waits
	address_waits
	later first.log c
	waits_for address "$work/reddnd.log"
	files=$(object files)
	kill_hard "$child"
	until_true fewer_files "$files" || fail "the NIC does not see it go"
	call address pass
	until_true has_sessions far 0 || fail "a client that has gone stays charged" "$work/reddnd.log"
	! grep -q 'Invalid argument' "$work/reddnd.log" || fail "it is taken for a failure of the server" "$work/reddnd.log"
	ok "a client that goes while it waits is not charged any more, and that is no failure of the server"
	until_true get get.log c || fail "the next client is not served" "$work/get.log"

	config 1s
	ctl reload || fail "no reload" "$work/ctl.err"
	address_waits
	later first.log c
	is_refused "$child" first.log 'the address of the client was not resolved within 1000 ms'
	until_true has_sessions far 0 || fail "a client that waited too long stays charged"
	served "others" b
}
resolves=false
# of RoCE: InfiniBand has paths instead, which the connection manager knows
if able "MAC addresses that have to be resolved" port.link=Ethernet; then
	resolves=true
	resolving
fi

# a configuration from a pipe that nobody writes yet: the reload waits, clients do not
call address pass
mv "$work/reddnd.conf" "$work/right.conf"
mkfifo "$work/reddnd.conf"
exec {pipe}<>"$work/reddnd.conf"
timeout "$limit" "$REDDNCTL" --socket "$control" reload >"$work/reload.out" 2>&1 {pipe}>&- &
reload=$!
served "others while the configuration is read" b
ctl status || fail "no status while the configuration is read" "$work/ctl.err"
alive "$reload" || fail "the reload did not wait" "$work/reload.out"
cat "$work/right.conf" >"$work/reddnd.conf"
exec {pipe}>&-
wait "$reload" || fail "the reload failed" "$work/reload.out" "$work/reddnd.log"
ok "a reload waits for its configuration, clients do not"

# a region that cannot be registered, for instance a hole on a file system that is full: its offload is disabled, and tried again
call address pass
call register fail
rm "$work/reddnd.conf"
config 600s
ctl reload || fail "a reload is refused because of a region" "$work/ctl.err"
get get.log b && fail "an offload without its region is served"
grep -q 'refused by the server: offload plain is disabled' "$work/get.log" || fail "no reason" "$work/get.log"
grep -q 'its regions cannot be registered with the device: Bad address' "$work/reddnd.log" || fail "nothing in the log" "$work/reddnd.log"
call register pass
until_true get get.log b || fail "it is not tried again" "$work/get.log" "$work/reddnd.log"
ok "a region that cannot be registered disables its offload, and is tried again"

# a region that nobody uses any more: to give its memory back takes as long
call close wait
ctl reload || fail "no reload" "$work/ctl.err"
waits_for close
served "others while a region is closed" b
ctl status || fail "no status while a region is closed" "$work/ctl.err"
call close pass

# the daemon ends while clients wait
if $resolves; then
	address_waits
	later first.log c
	first=$child
	waits_for address "$work/reddnd.log"
	kill "$reddnd"
	until_true grep -q '^stopping' "$work/reddnd.log" || fail "it does not stop" "$work/reddnd.log"
	call address fail
	expect_exit "$reddnd" reddnd reddnd.log
	is_refused "$first" first.log 'the daemon stops'
else
	stop_reddnd
fi
done_testing
