# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # variables of service.sh
#
# memcached.sh - a memcached of the distribution, as reddn-memcached(8) sets it up, is killed under load, and systemd starts it again.
# Sourced by inside. The load is tests/memcached/confirm: it knows the value of each key, and sets those again that
# memcached has lost.

mc_pid()
{
	systemctl show --value -p MainPID memcached
}

mc_requests() # that the NIC has answered
{
	reddnctl --json offloads | tr -d ' \n' | grep -oE '"offload":"memcached",.*' | grep -oE '"requests":[0-9]+' | head -n 1 | grep -oE '[0-9]+'
}

more_mc_requests() # N
{
	[[ $(mc_requests) -gt $1 ]]
}

mc_ask() # COMMAND PATTERN: of tests/memcached/mc-shell
{
	printf '%s\n' "$1" >&"${mc_shell[1]}"
	read -r -t 120 mc_answer <&"${mc_shell[0]}"
	[[ $mc_answer =~ ^$2$ ]]
}

# Another memcached runs, and takes a set
mc_takes() # PID VALUE
{
	[[ $(mc_pid) != "$1" && $(mc_pid) -gt 0 ]] && mc_ask "set visible 0 0 $2" SUCCESS
}

reddn-memcached setup >"$work/mc.log" 2>&1 || fail "reddn-memcached setup" "$work/mc.log"
systemctl daemon-reload
systemctl restart memcached || fail "memcached does not start with the library"
until_true reddn-memcached check || fail "reddn-memcached check: $(reddn-memcached check 2>&1)"
cp "$conf" "$work/right.conf"
sed -i 's/^regions = (/&\n  { name = "cache"; kind = "memcached"; path = "\/dev\/shm\/reddn\/memcached.cache"; server = "127.0.0.1:11211"; },/
	s/^offloads = (/&\n  { name = "memcached"; program = "memcached-get"; region = "cache"; },\n  { name = "memcached-pieces"; program = "memcached-piece"; region = "cache"; },/' "$conf"
forget
systemctl reload reddnd || fail "memcached is not served"
expect_said 'memcached [0-9.]*, process [0-9]*, is proved'
ok "memcached.service with its drop-in is served: $(reddn-memcached check | head -n 1)"
mc_pool='--SERVER=127.0.0.1:11211 --RETRY-TIMEOUT=1'
runuser -u client -- softcx run confirm "$mc_pool" 0 >"$work/mc.load" 2>&1 &
mc_load=$!
until_true more_mc_requests 1000 || fail "the load is not answered by the NIC" "$work/mc.load"
coproc mc_shell { exec runuser -u client -- softcx run mc-shell "$mc_pool" connect_ms=60000 reply_ms=60000 restart_ms=60000 2>"$work/mc.err"; }
for value in first second third; do
	pid=$(mc_pid)
	systemctl kill -s KILL memcached
	until_true mc_takes "$pid" "$value" || fail "memcached is not started again: $mc_answer" "$work/mc.err"
	set=$EPOCHREALTIME
	until_true mc_ask 'get visible' "hit nic .* $value" || fail "what was set after a restart is not got by the NIC: $mc_answer" "$work/mc.err"
	now=$EPOCHREALTIME
	ok "memcached is killed and started again; what was set is got by the NIC $(((${now/./} - ${set/./}) / 1000)) ms later"
	before=$(mc_requests)
	until_true more_mc_requests $((before + 1000)) || fail "the load is not answered any more" "$work/mc.load"
done
eval "exec ${mc_shell[1]}>&-"
for process in /proc/[0-9]*; do
	[[ $(<"$process/comm") != confirm ]] || kill "${process#/proc/}"
done 2>/dev/null
wait "$mc_load" || fail "the load fails" "$work/mc.load"
grep -qE '"false_misses": 0, "wrong": 0, "refused": [0-9]+, "errors": 0,' "$work/mc.load" || fail "an error or a wrong answer" "$work/mc.load"
ok "the load: $(tail -n 1 "$work/mc.load")"
cp "$work/right.conf" "$conf"
systemctl reload reddnd || fail "systemctl reload fails"
systemctl stop memcached
