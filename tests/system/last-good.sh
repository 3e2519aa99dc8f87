#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A restart with a wrong configuration: the daemon goes on with the one that was last in force, reports that, and serves new clients;
# those that it had notice nothing.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"

make_table "$work/table" <<<$'alice\twonder'
cp "$programs/hash-get.rdn" "$work/mine.rdn"
head -c 32 /dev/urandom | base64 >"$work/key"
chmod o= "$work/key"
cat >"$work/more.conf" <<END
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
END
cat >"$work/right.conf" <<END
listen = "$address:$port";
control = "$work/control";
programs = "$programs";
arena = "16M";
@include "more.conf"
offloads = ( { name = "users"; program = "$work/mine.rdn"; region = "t"; mode = "recycled"; } );
tenants = ( { name = "all"; key = "$work/key"; } );
END
cp "$work/right.conf" "$work/reddnd.conf"

start_nic
serve_supervised

cp "$work/key" "$work/client.key"
answers()
{
	[[ $(on_nic get.log "$REDDN" get --timeout 100000 -p "$port" -K "$work/client.key" "$address" users alice && cat "$work/get.log") == wonder ]]
}

status() # EXPRESSION: of python, of the status d
{
	[[ $(asked status "bool($1)") == True ]]
}

overs=0
restart() # SIGNAL: another daemon has taken over
{
	kill -"$1" "$(daemon)"
	overs=$((overs + 1))
	until_true taken_over $overs || fail "nobody takes over" "$work/run.log"
}

background ping.log "$REDDN" ping --port "$port" -K "$work/client.key" --timeout 100000 --interval 20 --count 1000000 "$address" users
pinger=$child
replies()
{
	grep -c '^reply' "$work/ping.log"
}

more_replies() # N
{
	[[ $(replies) -gt $1 ]]
}
until_true more_replies 3 || fail "the client is not served" "$work/ping.log" "$work/run.log"

serves() # WHAT EXPRESSION: the client that was there and a new one are served, and that is the status
{
	local before

	until_true status "$2" || fail "$1: the status is another one" "$work/ctl.err" "$work/run.log"
	until_true answers || fail "$1: a new client is not answered" "$work/get.log" "$work/run.log"
	before=$(replies)
	until_true more_replies "$before" || fail "$1: the client gets no answers" "$work/ping.log" "$work/run.log"
	alive "$pinger" || fail "$1: the client has ended" "$work/ping.log" "$work/run.log"
}

wrong() # WORDS WHY WHAT: goes on with the configuration that was last in force
{
	restart KILL
	serves "$3" "'$2' in d['configuration_refused'] and d['sessions'] == 1"
	grep -qE "$1" "$work/run.log" || fail "$3: the reason is not in the log" "$work/run.log"
	grep -q 'going on with the configuration that was last in force' "$work/run.log" || fail "$3: it is not said" "$work/run.log"
	"$REDDNCTL" --socket "$work/control" metrics | grep -qx 'reddnd_configuration_refused 1' || fail "$3: metric"
	"$REDDNCTL" --socket "$work/control" --json audit | grep -q '"event":"reload-failed"' || fail "$3: audit"
	ok "$3: sessions go on, and new clients are served"
}

right() # the file is in force again
{
	cp "$work/right.conf" "$work/reddnd.conf"
	"$REDDNCTL" --socket "$work/control" reload >"$work/ctl.log" 2>&1 || fail "no reload" "$work/ctl.log"
	serves "a reload" "d['configuration_refused'] == ''"
}

restart KILL
serves "nothing is wrong" "d['configuration_refused'] == ''"

# Of what it was read from, nothing is as it was
echo 'lisen = 1;' >>"$work/reddnd.conf"
rm "$work/more.conf" "$work/mine.rdn"
echo short >"$work/key"
wrong 'reddnd.conf:5: @include "more.conf" cannot be read: No such file' 'cannot be read: No such file' "the file, what it includes, its program and its key are wrong"
restart USR2
serves "once more" "d['configuration_refused'] != ''"
cp "$work/client.key" "$work/key"
cp "$programs/hash-get.rdn" "$work/mine.rdn"
printf 'regions = ( { name = "t"; kind = "table"; path = "%s"; } );\n' "$work/table" >"$work/more.conf"
right

# No mistakes: the first daemon that tries them fails
sed 's/^listen.*/listen = "192.0.2.1:7471";/' "$work/right.conf" >"$work/reddnd.conf"
wrong '192.0.2.1' 'could not be served' "an address that the machine does not have"
sed 's,^control.*,control = "/nowhere/control";,' "$work/right.conf" >"$work/reddnd.conf"
overs=$((overs + 1)) # it takes over, and then leaves all to the next one
wrong '/nowhere/control' 'could not be served' "a control socket that cannot be made"
cp "$work/right.conf" "$work/reddnd.conf"
echo 'device = "mlx5_77";' >>"$work/reddnd.conf"
wrong 'no device "mlx5_77"' 'could not be served' "a device that does not exist"
cp "$work/right.conf" "$work/reddnd.conf"
restart KILL
serves "a restart" "d['configuration_refused'] == ''"

echo 'lisen = 1;' >>"$work/reddnd.conf"
"$REDDNCTL" --socket "$work/control" reload >"$work/ctl.log" 2>&1 && fail "a wrong configuration is taken"
serves "a reload that fails" "'unknown setting' in d['configuration_refused']"
right
ok "a reload that fails is in the status until one succeeds"

kill "$run"
expect_exit "$run" reddnd-run run.log
wait "$pinger"
done_testing
