#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One daemon on two devices: clients of both, what is configured for both, the daemon killed and reloaded, a port down, a device lost.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${MISUSE:?set MISUSE to the path of the test client}"
: "${NO_ADDRESS_LIB:?set NO_ADDRESS_LIB to the path of the library that hides an address}"

# The server's host has a third device, which it does not use; clients come from two other hosts
nic_options+=(--hosts "a:1,b:3,c:1")
first=127.1.0.1 second=127.1.0.2 third=127.1.0.3
background_limit=3000

many_records 1000 >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"

configure() # DEVICE LISTEN [OFFLOAD...]: more offloads
{
	cat <<END
listen = $2;
device = $1;
control = "$work/control";
metrics = "127.0.0.1:$metrics";
programs = "$programs";
arena = "16M";
connect_timeout = "300s";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
tenants = ( { name = "everyone"; sessions = 4; idle_timeout = "20s"; } );
offloads = (
  { name = "kept"; program = "hash-get"; region = "t"; mode = "recycled"; },
  { name = "armed"; program = "hash-get"; region = "t"; mode = "unrolled"; },
  { name = "cpu"; program = "hash-get"; region = "t"; engine = "cpu"; },
  { name = "strict"; program = "hash-get"; region = "t"; mode = "unrolled"; on_error = { request = "ban:600s"; }; }${*:3} );
END
}

free_port
metrics=$port
port=7471
both='[ "mlx5_0", "mlx5_1" ]'
addresses="[ \"$first:$port\", \"$second:$port\" ]"

start_nic

# ---- mistakes -----------------------------------------------------------------------------

refused() # WORDS DEVICE LISTEN
{
	configure "$2" "$3" >"$work/wrong.conf"
	on_nic wrong.log --host b "$REDDND" --config "$work/wrong.conf" && fail "the daemon starts" "$work/wrong.log"
	grep -qF -- "$1" "$work/wrong.log" || fail "no word of: $1" "$work/wrong.log"
	ok "$1"
}
refused "\"listen\": $third port $port belongs to mlx5_2, which is not in the list \"device\"; add it, or listen on an address of a device that is" \
	"$both" "[ \"$first:$port\", \"$second:$port\", \"$third:$port\" ]"
refused "no address of \"listen\" belongs to mlx5_1, which is in the list \"device\"; add one, or take it out" "$both" "\"$first:$port\""
refused "\"listen\": 0.0.0.0 port $port belongs to no device in particular; with several devices, give addresses of each" '"all"' "\"0.0.0.0:$port\""
refused 'there is no RDMA device "mlx5_9"' '"mlx5_9"' "\"0.0.0.0:$port\""
expect_no_leak

# ---- clients of both ----------------------------------------------------------------------

configure "$both" "$addresses" >"$work/reddnd.conf"
export NO_ADDRESS=$work/no-address
preloading "$NO_ADDRESS_LIB"
background run.log --host b "$REDDND_RUN" "${preloading[@]}" "$REDDND" --config "$work/reddnd.conf"
run=$child
server_ready "$run" reddnd run.log reddnd_listens

from=a
answers() # ADDRESS [OFFLOAD]: the client is on host $from
{
	[[ $(on_nic get.log --host $from timeout 100 "$REDDN" get -p "$port" -t 50000 "$1" "${2:-kept}" 'key 7' && cat "$work/get.log") == 'value 7 of many' ]]
}

# A client that does not use up a processor
bench() # LOG ADDRESS OFFLOAD [RATE]: for as long as it is there
{
	background "$1" --host a "$REDDN" bench --port "$port" --timeout 100000 --depth 16 --rate "${4:-50}" --verify --keys "$work/data.tsv" --seconds 3000 "$2" "$3"
}

ctl()
{
	"$REDDNCTL" --socket "$work/control" "$@" 2>"$work/ctl.err"
}

state_is() # COMMAND EXPRESSION VALUE
{
	[[ $(asked "$1" "$2") == "$3" ]]
}

requests() # DEVICE OFFLOAD: of its client, as the daemon has counted them
{
	asked sessions "max(o['requests'] for o in d if o['device'] == '$1' and o['offload'] == '$2')" || echo 0
}

more_requests() # DEVICE OFFLOAD N
{
	[[ $(requests "$1" "$2") -gt $3 ]]
}

for offload in kept armed cpu; do
	answers "$first" $offload || fail "$offload: no answer by the first device" "$work/get.log" "$work/run.log"
	answers "$second" $offload || fail "$offload: no answer by the second device" "$work/get.log" "$work/run.log"
done
ok "both devices answer, with offloads of the NIC and of the CPU"
expect_work b/mlx5_0 b/mlx5_1
[[ $(object b/mlx5_0.mkeys) -gt 0 && $(object b/mlx5_1.mkeys) -gt 0 ]] || fail "regions are not registered with both devices" <(objects)
[[ $(objects | awk '/^b.mlx5_2[.]/ { n += $2 } END { print n + 0 }') -eq 0 ]] || fail "the third device has something" <(objects)
ok "the region is registered with both, and the device that is not served has nothing"

until_true state_is sessions 'len(d)' 0 || fail "clients that have left are still there" "$work/run.log"
bench first.log "$first" kept
on_first=$child
until_true more_requests mlx5_0 kept 10 || fail "the client of the first device gets no answers" "$work/first.log" "$work/run.log"
bench second.log "$second" kept
on_second=$child
until_true more_requests mlx5_1 kept 10 || fail "the client of the second device gets no answers" "$work/second.log" "$work/run.log"
state_is status '[d["device"]] + [(o["device"], o["state"], o["sessions"]) for o in d["devices"]]' \
	"['mlx5_0, mlx5_1', ('mlx5_0', 'serving', 1), ('mlx5_1', 'serving', 1)]" || fail "the status is $(asked status d)"
state_is sessions '[(o["session"] > 6, o["device"]) for o in d]' "[(True, 'mlx5_0'), (True, 'mlx5_1')]" || fail "the clients are $(asked sessions d)"
ctl sessions >"$work/sessions"
grep -q '^DEVICE  *SESSION ' "$work/sessions" || fail "the list of sessions does not name the devices" "$work/sessions"
ctl status >"$work/status"
grep -q '^mlx5_1  *serving  *1  *[0-9.]* [KM]iB  *16.0 MiB' "$work/status" || fail "the status has no table of devices" "$work/status"
ctl metrics >"$work/metrics"
for line in 'reddnd_device_up{device="mlx5_1"} 1' 'reddnd_device_sessions{device="mlx5_0"} 1' 'reddnd_arena_bytes{device="mlx5_1",state="used"} '; do
	grep -qF "$line" "$work/metrics" || fail "no metric $line" "$work/metrics"
done
ok "status, clients and metrics name the devices"

# ---- what holds for both ------------------------------------------------------------------

bench third.log "$first" kept 300
on_third=$child
bench fourth.log "$second" kept 300
on_fourth=$child
until_true state_is tenants 'd[0]["sessions"]' 4 || fail "the tenant has not four sessions" "$work/third.log" "$work/fourth.log" "$work/run.log"
for address in "$first" "$second"; do
	answers "$address" && fail "the tenant has more sessions than its quota" "$work/run.log"
	grep -q 'has used up its quota "sessions" of 4' "$work/get.log" || fail "no word of the quota" "$work/get.log"
done
ok "the quota of a tenant holds for both devices together"

served() # N: the tenant's clients have got so many answers
{
	[[ $(asked tenants 'd[0]["requests"]') -ge $1 ]]
}

# Clients ask for more than the rate, whatever the machine does. What RECVs were posted without paying the rate for them is used
# before the first figure; the burst, and the instances of all sessions, may come on top of what accrues from there to the second.
rate=200 burst=20 instances=256
ctl limit everyone --rate $rate --burst $burst >/dev/null || fail "no limit" "$work/ctl.err"
until_true served $(($(asked tenants 'd[0]["requests"]') + 2 * instances)) || fail "the clients rest" "$work/run.log"
began=$(asked status 'd["uptime_us"]')
first_requests=$(asked tenants 'd[0]["requests"]')
until_true served $((first_requests + 1000)) || fail "the clients rest" "$work/run.log"
got=$(($(asked tenants 'd[0]["requests"]') - first_requests))
took=$(($(asked status 'd["uptime_us"]') - began))
((got <= rate * took / 1000000 + burst + instances)) || fail "$got requests in $took us are beyond the rate of the tenant" "$work/run.log"
# nobody reaches this one; it holds RECVs back until a reload ends it
ctl limit everyone --rate 1000000 >/dev/null || fail "no limit" "$work/ctl.err"
kill "$on_third" "$on_fourth"
wait "$on_third" "$on_fourth" 2>/dev/null
until_true state_is tenants 'd[0]["sessions"]' 2 || fail "clients that have left are still there" "$work/run.log"
ok "so does its rate"

from=c
on_nic misuse.log --host $from "$MISUSE" "$second" "$port" strict long-send || fail "long-send" "$work/misuse.log" "$work/run.log"
for address in "$first" "$second"; do
	answers "$address" && fail "a client that is banned is served" "$work/run.log"
	grep -q 'refused for' "$work/get.log" || fail "no word of the ban" "$work/get.log"
done
from=a
ok "who is banned by one device is refused by the other"

# ---- killed -------------------------------------------------------------------------------

first_goes_on() # [WHEN]: its client is answered, and counted
{
	local before

	before=$(requests mlx5_0 kept)
	alive "$on_first" || fail "${1-}the client of the first device was disturbed" "$work/first.log" "$work/run.log"
	until_true more_requests mlx5_0 kept "$before" || fail "${1-}requests of the first device are not counted on" "$work/run.log"
}

undisturbed() # WHEN: both clients go on
{
	local before

	first_goes_on "$1: "
	before=$(requests mlx5_1 kept)
	alive "$on_second" || fail "$1: the client of the second device was disturbed" "$work/second.log" "$work/run.log"
	until_true more_requests mlx5_1 kept "$before" || fail "$1: requests of the second device are not counted on" "$work/run.log"
}

serves() # N: the daemon has taken over so often, two devices each time, and listens
{
	taken_over $(($1 * 2)) && ctl status
}

for generation in {1..4}; do
	signal=USR2
	[[ $((generation % 2)) -eq 0 ]] || signal=KILL
	kill -"$signal" "$(daemon)"
	until_true serves "$generation" || fail "generation $generation does not take over" "$work/run.log"
	undisturbed "generation $generation"
	[[ $generation -ne 1 ]] || objects >"$work/objects.1"
done
as_in_first()
{
	[[ $(objects) == "$(cat "$work/objects.1")" ]]
}
until_true as_in_first || fail "objects grow with the generations" "$work/objects.1" <(objects)
from=c
answers "$first" && fail "the ban is forgotten" "$work/run.log"
from=a
grep -q 'refused for' "$work/get.log" || fail "no word of the ban" "$work/get.log"
ok "sessions of both devices go on through two kills and two restarts of the daemon, and nothing is left over"

arm() # N: a daemon that is started now dies before its n-th call
{
	"$SOFTCX" fault add kill-before --program reddnd --at "$1" >"$work/fault.log" || fail "no fault" "$work/fault.log"
}

struck() # true if it has died; the fault is forgotten
{
	local n

	n=$("$SOFTCX" fault list --json | python3 -c 'import json, sys; print(sum(f["struck"] for f in json.load(sys.stdin)))')
	"$SOFTCX" fault clear >"$work/fault.log"
	((n))
}

has_served_since() # LINES: of the log
{
	[[ $(tail -n "+$(($1 + 1))" "$work/run.log" | grep -c 'of the daemon before this one go on') -ge 2 ]] && ctl status
}

step=${TEST_STEP:-211} points=0
for ((n = 1; ; n += step)); do
	lines=$(wc -l <"$work/run.log")
	arm "$n"
	kill -9 "$(daemon)"
	until_true has_served_since "$lines" || fail "call $n: nobody takes over" "$work/run.log"
	undisturbed "call $n"
	struck || break
	points=$((points + 1))
done
[[ $points -gt 2 ]] || fail "the daemon takes over with fewer than $n calls" "$work/run.log"
until_true as_in_first || fail "objects are left over" "$work/objects.1" <(objects)
state_is tenants 'd[0]["rate"]' 1000000 || fail "the limit of the tenant is $(asked tenants 'd[0]["rate"]')"
ok "killed at $points of the $n calls of taking over both devices, and the next one takes over"

lines=$(wc -l <"$work/run.log")
: >"$NO_ADDRESS"
kill -9 "$(daemon)"
until_true has_served_since "$lines" || fail "nobody takes over without the address" "$work/run.log"
rm "$NO_ADDRESS"
undisturbed "an address gone"
answers "$second" || fail "no answer at the address that was gone" "$work/get.log" "$work/run.log"
ok "killed while the address of one device is gone, and the next one goes on with its listener"

# ---- reload -------------------------------------------------------------------------------

configure '"mlx5_0"' "\"$first:$port\"" >"$work/reddnd.conf"
ctl reload >/dev/null && fail "the devices have changed"
configure '"mlx5_0"' "$addresses" >"$work/reddnd.conf"
ctl reload >/dev/null && fail "the devices have changed"
grep -q '"device" cannot change while the daemon runs' "$work/ctl.err" || fail "no word of the device" "$work/ctl.err"
configure "$both" "$addresses" ', { name = "new"; program = "hash-get"; region = "t"; mode = "unrolled"; }' >"$work/reddnd.conf"
ctl reload >/dev/null || fail "no reload" "$work/ctl.err" "$work/run.log"
state_is offloads '[o["offload"] for o in d if o["state"] == "serving"]' "['kept', 'armed', 'cpu', 'strict', 'new']" || fail "the offloads are $(asked offloads d)"
state_is tenants 'd[0]["rate"]' 0 || fail "the limit of the tenant is $(asked tenants 'd[0]["rate"]')"
undisturbed "a reload"
bench third.log "$first" new
on_third=$child
bench fourth.log "$second" new
on_fourth=$child
until_true more_requests mlx5_0 new 10 || fail "a new client of the first device gets no answers" "$work/third.log" "$work/run.log"
until_true more_requests mlx5_1 new 10 || fail "a new client of the second device gets no answers" "$work/fourth.log" "$work/run.log"
ok "a reload disturbs no client, and no device comes or goes with it"

# ---- a port down --------------------------------------------------------------------------

only_first()
{
	[[ $(asked sessions 'sorted({o["device"] for o in d})') == "['mlx5_0']" ]]
}

before=$(requests mlx5_0 kept)
"$SOFTCX" fault add port-down --device b/mlx5_1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
until_true only_first || fail "sessions of the port that is down do not end" "$work/run.log"
alive "$on_first" || fail "the client of the first device was disturbed" "$work/first.log" "$work/run.log"
alive "$on_third" || fail "the other client of the first device was disturbed" "$work/third.log" "$work/run.log"
until_true more_requests mlx5_0 kept "$before" || fail "requests of the first device are not counted on" "$work/run.log"
answers "$first" || fail "no answer by the first device" "$work/get.log" "$work/run.log"
"$SOFTCX" fault add port-up --device b/mlx5_1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
"$SOFTCX" fault clear >"$work/fault.log"
answers "$second" || fail "no answer by the second device" "$work/get.log" "$work/run.log"
for client in "$on_second" "$on_fourth"; do
	wait "$client" && fail "a client of the port ends well" "$work/second.log" "$work/fourth.log"
done
ok "a port that goes down ends its sessions only, and serves when it is up again"

# ---- a device lost ------------------------------------------------------------------------

bench second.log "$second" armed
on_second=$child
until_true more_requests mlx5_1 armed 10 || fail "the client of the second device gets no answers" "$work/second.log" "$work/run.log"
"$SOFTCX" fault add device-fatal --device b/mlx5_1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
until_true state_is status 'd["device"]' 'mlx5_0, mlx5_1 (lost)' || fail "the loss is not reported" "$work/run.log"
"$SOFTCX" fault clear >"$work/fault.log"
until_true only_first || fail "sessions of the device that is lost do not end" "$work/run.log"
wait "$on_second" && fail "a client of the device ends well" "$work/second.log"
first_goes_on
answers "$first" || fail "no answer by the first device" "$work/get.log" "$work/run.log"
ctl metrics >"$work/metrics"
grep -qF 'reddnd_device_up{device="mlx5_1"} 0' "$work/metrics" || fail "the metrics do not have the loss" "$work/metrics"
ctl audit | grep -q 'mlx5_1.*lost\|lost.*mlx5_1' || fail "the loss is no event" <(ctl audit)
ctl reload >/dev/null || fail "no reload without the device" "$work/ctl.err" "$work/run.log"
state_is status 'd["disabled"]' 0 || fail "offloads are disabled" <(ctl offloads)
answers "$first" || fail "no answer by the first device" "$work/get.log" "$work/run.log"
ok "a device that is lost ends its sessions only, and a reload goes on without it"

: >"$NO_ADDRESS"
kill -9 "$(daemon)"
left_out()
{
	state_is status '[d["device"]] + [(o["state"], o["left_out"]) for o in d["devices"]]' \
		"['mlx5_0, mlx5_1 (left out)', ('serving', ''), ('left out', 'no address of \"listen\" belongs to it')]"
}
until_true left_out || fail "the next daemon reports $(asked status d)" "$work/run.log"
rm "$NO_ADDRESS"
ctl status >"$work/status"
grep -q '^mlx5_1  *left out .*no address of "listen" belongs to it$' "$work/status" || fail "the status has no reason" "$work/status"
ctl metrics >"$work/metrics"
grep -qF 'reddnd_device_up{device="mlx5_1"} 0' "$work/metrics" || fail "the metrics do not have the device" "$work/metrics"
first_goes_on
ok "a device whose address has gone is left out by the next daemon, which reports it with the reason"

lines=$(wc -l <"$work/run.log")
kill -9 "$(daemon)"
serves_both()
{
	[[ $(asked status '[o["state"] for o in d["devices"]]') == "['serving', 'serving']" ]]
}
until_true serves_both || fail "the next daemon does not serve both" "$work/run.log"
answers "$second" || fail "no answer by the second device" "$work/get.log" "$work/run.log"
first_goes_on
ok "the next daemon serves both again, and sessions of the other go on"

"$SOFTCX" fault add error local-protection --device b/mlx5_1 --probability 1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
goes_on_without_second() # WORDS: and sessions of the first device go on
{
	local lines

	lines=$(wc -l <"$work/run.log")
	kill -9 "$(daemon)"
	logged()
	{
		tail -n "+$((lines + 1))" "$work/run.log" | grep -qF "$1" && serves_both
	}
	until_true logged "$1" || fail "no word of: $1" "$work/run.log"
	first_goes_on
}
goes_on_without_second 'mlx5_1 runs no chains: it failed the self-test'
"$SOFTCX" fault clear >"$work/fault.log"
goes_on_without_second 'mlx5_1: self-test passed'
ok "a device without sessions that fails its self-test lets sessions of the other go on"

# its chains fail; its client asks for nothing
background second.log --host a "$REDDN" ping --port "$port" --timeout 100000 --interval 86400000 --count 2 "$second" kept
on_second=$child
until_true more_requests mlx5_1 kept 0 || fail "the client of the second device gets no answers" "$work/second.log" "$work/run.log"
"$SOFTCX" fault add error local-protection --opcode send-enable --device b/mlx5_1 --probability 1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
goes_on_without_second 'mlx5_1: 1 sessions of the daemon before this one end now: too many daemons failed to go on with it'
"$SOFTCX" fault clear >"$work/fault.log"
goes_on_without_second 'mlx5_1: self-test passed'
kill_hard "$on_second"
ok "one that fails it three times ends its own sessions only"

# ---- other devices ------------------------------------------------------------------------

bench second.log "$second" kept
on_second=$child
until_true more_requests mlx5_1 kept 10 || fail "the client of the second device gets no answers" "$work/second.log" "$work/run.log"
configure '"mlx5_0"' "\"$first:$port\"" >"$work/reddnd.conf"
kill -USR2 "$(daemon)"
until_true state_is status 'd["device"]' mlx5_0 || fail "the next daemon does not serve" "$work/run.log"
grep -q 'mlx5_1: 1 sessions of the daemon before this one end now: the device is not one of those that are configured now' "$work/run.log" ||
	fail "no word of the other device" "$work/run.log"
wait "$on_second" && fail "a client of the device ends well" "$work/second.log"
first_goes_on
[[ $(objects | awk '/^b.mlx5_1[.]/ { n += $2 } END { print n + 0 }') -eq 0 ]] || fail "the second device has something" <(objects)
ok "with one device in its configuration the next daemon goes on with that one, and leaves nothing in the other"

configure '"all"' "$addresses" >"$work/reddnd.conf"
kill -USR2 "$(daemon)"
until_true serves_both || fail "the next daemon does not serve both" "$work/run.log"
answers "$second" || fail "no answer by the second device" "$work/get.log" "$work/run.log"
alive "$on_first" || fail "the client of the first device was disturbed" "$work/first.log" "$work/run.log"
ok "\"all\" is the devices that addresses belong to"

# the offload of the other client is not configured any more
kill "$on_first"
wait "$on_first" "$on_third" 2>/dev/null
kill "$run"
expect_exit "$run" reddnd-run run.log
ok "reddnd-run ends on SIGTERM"
done_testing
