#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# engine.sh [recv-en-broken]: offloads that the CPU executes: beside others that the NIC runs, where the device lacks something, over reloads, with limits, and
# with files that are cut off.
[[ $# -eq 0 ]] || export SOFTCX_DEVICE=$1
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/control.sh"

: "${REDDN:?set REDDN to the path of the client tool}"

table() # NAME VALUE
{
	make_table "$work/$1" --max-value 1000 <<<$'alice\t'"$2"
}

get() # OFFLOAD VALUE
{
	on_nic get.log "$REDDN" get --port "$port" --timeout 100000 "$address" "$1" alice || fail "$1: no answer" "$work/get.log" "$work/reddnd.log"
	[[ $(cat "$work/get.log") == "$2" ]] || fail "$1: a wrong answer, not $2" "$work/get.log"
	on_nic miss.log "$REDDN" get --port "$port" --timeout 100000 "$address" "$1" bob && fail "$1: bob is there" "$work/miss.log"
	ok "$1: a hit and a miss"
}

engine() # OFFLOAD ENGINE MODE WHY
{
	ctl --json offloads
	[[ $(value "[(o['engine'], o['mode'], '$4' in o['why'] if '$4' else not o['why']) for o in d if o['offload'] == '$1']") == "[('$2', '$3', True)]" ]] ||
		fail "offload $1 is not executed by the $2, $3" "$work/ctl.out" "$work/reddnd.log"
	ok "$1 is executed by the $2, $3"
}

settings() # TABLE
{
	cat <<-END
		control = "$control";
		regions = ( { name = "t"; kind = "table"; path = "$work/$1"; } );
		offloads = (
		  { name = "cpu"; program = "hash-get"; region = "t"; engine = "cpu"; depth_max = 64; },
		  { name = "nic"; program = "hash-get"; region = "t"; engine = "nic"; },
		  { name = "auto"; program = "hash-get"; region = "t"; engine = "auto"; },
		  { name = "kept"; program = "hash-get"; region = "t"; engine = "cpu"; mode = "recycled"; },
		  { name = "limited"; program = "hash-get"; region = "t"; engine = "cpu"; },
		  { name = "asked"; program = "hash-get"; region = "t"; mode = "unrolled"; },
		  { name = "odd"; program = "hash-get"; region = "t"; depth_max = 48; } );
	END
}

if [[ $# -gt 0 ]]; then
	# What the device cannot run: nothing is chosen but there
	table third hill
	start_nic
	start_reddnd "control = \"$control\"; engine = \"auto\"; regions = ( { name = \"t\"; kind = \"table\"; path = \"$work/third\"; } );
	offloads = ( { name = \"recycled\"; program = \"hash-get\"; region = \"t\"; mode = \"recycled\"; },
	  { name = \"auto\"; program = \"hash-get\"; region = \"t\"; } );"
	get recycled hill
	get auto hill
	engine recycled cpu unrolled "RECV_EN does not work"
	engine auto nic unrolled "RECV_EN does not work"
	grep -q 'offload auto: it is unrolled: RECV_EN does not work' "$work/reddnd.log" || fail "the log does not say why" "$work/reddnd.log"
	stop_reddnd
	done_testing
	exit
fi

table first wonder
table second land
start_nic
start_reddnd "$(settings first)"
for offload in cpu nic auto kept limited; do
	get "$offload" wonder
done
engine cpu cpu unrolled "the configuration asks for it"
engine nic nic recycled ""
engine auto nic recycled ""
engine kept cpu unrolled "the configuration asks for it"
engine asked nic unrolled "the configuration asks for it"
engine odd nic unrolled "its depth_max is 48"
ctl metrics
for line in 'reddnd_mode{offload="auto",mode="recycled"} 1' 'reddnd_mode{offload="odd",mode="unrolled"} 1' 'reddnd_engine{offload="cpu",engine="cpu"} 1'; do
	grep -qxF "$line" "$work/ctl.out" || fail "no metric $line" "$work/ctl.out"
done
ok "metrics tell the mode and the engine"

# Many requests at a time, from several clients
printf 'alice\twonder\n' >"$work/users"
clients=()
for offload in cpu cpu nic kept; do
	background "bench${#clients[@]}.log" "$REDDN" bench --timeout 100000 --port "$port" --depth 16 --clients 2 --count 3000 --absent 20 --keys \
		"$work/users" --verify "$address" "$offload"
	clients+=("$child")
done
for client in "${clients[@]}"; do
	wait "$client" || fail "a client that shares the CPU with others gets no answer, or a wrong one" "$work"/bench*.log "$work/reddnd.log"
done
ok "clients of both engines at the same time"
ctl --json offloads
[[ $(value "all(o['hits'] + o['misses'] == o['requests'] and o['requests'] > 1 for o in d if o['engine'] == 'cpu')") == True ]] ||
	fail "outcomes are not counted" "$work/ctl.out"
ok "hits and misses of the CPU are counted"

# A session goes on with the data that it began with
background ping.log "$REDDN" ping --timeout 500000 --port "$port" --count 1000000 --interval 1000 "$address" cpu
until_true grep -q 'offload cpu, depth' "$work/reddnd.log" || fail "no client" "$work/ping.log"
last=$child
configure_reddnd "$(settings second)"
ctl reload
get cpu land
get nic land
alive "$last" || fail "a reload ends a session" "$work/ping.log" "$work/reddnd.log"
ok "a session outlives a reload"
ctl --json sessions
number=$(value "[s['session'] for s in d if s['offload'] == 'cpu'][-1]")
ctl kick "$number"
wait "$last" && fail "a client that was kicked goes on" "$work/ping.log"
ok "a session is kicked"

# Data that are cut off end those who use them, and not the daemon
background ping.log "$REDDN" ping --timeout 500000 --port "$port" --count 1000000 --interval 1000 "$address" cpu
last=$child
until_true sh -c "[ \$(grep -c 'offload cpu, depth' '$work/reddnd.log') -ge 7 ]" || fail "no client" "$work/ping.log" "$work/reddnd.log"
: >"$work/second"
wait "$last"
alive "$reddnd" || fail "the daemon has died of data that were cut off" "$work/reddnd.log"
until_true grep -q 'the data of the offload were cut off' "$work/reddnd.log" || fail "no word of it" "$work/reddnd.log"
ok "data that are cut off end the session"
stop_reddnd
done_testing
