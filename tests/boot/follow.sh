# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # variables of service.sh
#
# follow.sh - reddn-follow@.service keeps a table equal to the distribution's redis-server: redis is started again, and the follower
# killed. Sourced by inside. /dev/shm/reddn and the unit are as they are installed.

followed=/dev/shm/reddn/cache.table

follower() # PROPERTY
{
	systemctl show --value -p "$1" reddn-follow@cache
}

# The table has what the source has, as redis-cli prints it, and states that it is complete.
is_equal()
{
	local keys key
	mapfile -t keys < <(redis-cli --scan --pattern 'user:*' | sort)
	[[ $(reddn-table dump "$followed" | sort) == "$(for key in "${keys[@]}"; do printf '%s\t%s\n' "$key" "$(redis-cli get "$key")"; done)" &&
		$(reddn-table stat --json "$followed") == *'"complete": true'* ]]
}

is_another() # PID
{
	[[ $(follower MainPID) -gt 0 && $(follower MainPID) != "$1" && $(follower ActiveState) == active ]]
}

served_by_nic() # KEY VALUE
{
	[[ $(client get --max-age 60000 --timeout 30000 127.0.0.1 cache "$1" 2>"$work/follow.err") == "$2" ]]
}

[[ $(redis-cli ping) == PONG ]] || fail "redis-server of the distribution does not run"
redis-cli mset user:alice wonder user:bob builder other:1 x >/dev/null
mkdir -p /etc/reddnd/follow
(umask 077 && printf 'SOURCE=redis://127.0.0.1\nOPTIONS=--prefix user: --max-value 1K\n' >/etc/reddnd/follow/cache.conf)
systemctl start reddn-follow@cache || fail "reddn-follow@cache.service does not start: $(journalctl -q -o cat -n 20 -u reddn-follow@cache)"
until_true is_equal || fail "the table is not equal: $(reddn-table dump "$followed" 2>&1)"
[[ $(stat -c %U "$followed") == reddn-follow ]] || fail "the table is that of $(stat -c %U "$followed")"
[[ $(follower StatusText) == 'redis://127.0.0.1:6379/0: following, 2 keys' || $(follower StatusText) == *'following, 2 keys' ]] ||
	fail "the status is \"$(follower StatusText)\""
ok "reddn-follow@cache.service is active when the table has been loaded; its status: $(follower StatusText)"
exposure=$(systemd-analyze security --no-pager --threshold=20 reddn-follow@cache.service 2>&1) ||
	fail "systemd-analyze security: $(tail -n 1 <<<"$exposure")"

cp "$conf" "$work/right.conf"
sed -i "s,^regions = (,&\n  { name = \"cache\"; kind = \"table\"; path = \"$followed\"; }\,,
	s,^offloads = (,&\n  { name = \"cache\"; program = \"hash-get\"; region = \"cache\"; }\,," "$conf"
systemctl reload reddnd || fail "the table that follows is not served"
until_true served_by_nic user:alice wonder || fail "no get of the table that follows" "$work/follow.err"
ok "the NIC answers gets of it, with an age"

pid=$(follower MainPID)
systemctl restart redis-server || fail "redis-server does not start again"
redis-cli set user:bob mason >/dev/null
redis-cli del user:alice >/dev/null
until_true is_equal || fail "the table is not equal: $(reddn-table dump "$followed" 2>&1)"
[[ $(follower MainPID) == "$pid" ]] || fail "the follower has ended with redis-server"
until_true served_by_nic user:bob mason || fail "no get after a restart of redis-server" "$work/follow.err"
ok "redis-server is started again, and the table follows"

systemctl kill -s KILL reddn-follow@cache
redis-cli set user:carol new >/dev/null
until_true is_another "$pid" || fail "the follower is not started again"
until_true is_equal || fail "the table is not equal: $(reddn-table dump "$followed" 2>&1)"
until_true served_by_nic user:carol new || fail "no get after a death of the follower" "$work/follow.err"
ok "the follower is killed and started again, and the table follows"

cp "$work/right.conf" "$conf"
systemctl reload reddnd || fail "systemctl reload fails"
systemctl stop reddn-follow@cache redis-server
[[ -e $followed ]] || fail "the table is gone with its follower"
