#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The next daemon goes on with the memory of regions that the one before it has registered, key and all, for new clients, too, unless
# other pages may be in the file by now.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
here=$(dirname "$(realpath "$0")")
table=$memory/table

load() # VALUE: of alice, by stores
{
	load_table "$table" <<<$'alice\t'"$1"
}
make_table "$table" <<<$'alice\twonder'
head -c 4096 /dev/zero >"$memory/words"
configure_reddnd <<END
arena = "16M";
regions = ( { name = "t"; kind = "table"; path = "$table"; },
  { name = "w"; kind = "raw"; path = "$memory/words"; writable = true; } );
offloads = ( { name = "users"; program = "hash-get"; region = "t"; mode = "recycled"; },
  { name = "count"; program = "counter"; region = "w"; } );
END

start_nic
serve_supervised

windows() # prints their keys
{
	"$here/ledger-read.py" "$(daemon)" windows
}

answers() # VALUE
{
	[[ $(on_nic get.log "$REDDN" get --timeout 100000 -p "$port" "$address" users alice && cat "$work/get.log") == "$1" ]]
}

overs=0
kill_daemon() # VALUE: the next daemon answers a new client with it
{
	kill -9 "$(daemon)"
	overs=$((overs + 1))
	until_true taken_over $overs || fail "nobody takes over" "$work/run.log"
	until_true answers "$1" || fail "a new client is not answered with $1" "$work/get.log" "$work/run.log"
}

background ping.log "$REDDN" ping --port "$port" --timeout 100000 --interval 20 --count 1000000 "$address" users
pinger=$child
replies()
{
	grep -c '^reply' "$work/ping.log"
}

more_replies() # N
{
	[[ $(replies) -gt $1 ]]
}
goes_on()
{
	until_true more_replies $(($(replies) + 3)) || fail "the client gets no answers" "$work/ping.log" "$work/run.log"
	alive "$pinger" || fail "the client has ended" "$work/ping.log" "$work/run.log"
}
goes_on

first=$(windows)
[[ $(wc -l <<<"$first") -eq 4 ]] || fail "a table has three windows, and words have one" <(windows)
kill_daemon wonder
[[ $(windows) == "$first" ]] || fail "windows have been registered once more" <(echo "$first") <(windows)
load marvel
kill_daemon marvel
[[ $(windows) == "$first" ]] || fail "stores into a table changed its windows" <(echo "$first") <(windows)
on_nic call.log "$REDDN" call --timeout 100000 --port "$port" "$address" count 0 1 || fail "a region is not changed" "$work/call.log"
goes_on
ok "two daemons more have the windows of the first, and nothing is registered twice"

# write(2) may have cut the file, or not: nobody sees the difference
head -c 1 "$table" | dd of="$table" conv=notrunc status=none
load miracle
kill_daemon miracle
goes_on
words=$(comm -12 <(sort <<<"$first") <(windows | sort) | wc -l)
[[ $words -eq 4 && $(windows | wc -l) -eq 7 ]] || fail "the table was written, and its windows are $(windows)" "$work/run.log"
ok "a table that was written by write(2) meanwhile is registered once more; the rest is not, and a session keeps what it began with"
kill "$pinger"
wait "$pinger"
kill_daemon miracle
[[ $(windows | wc -l) -eq 4 ]] || fail "windows that nobody has are left: $(windows)" "$work/run.log"
second=$(windows)
kill_daemon miracle
[[ $(windows) == "$second" ]] || fail "windows have been registered once more" <(windows)
ok "with the session its windows end, and the next daemon has those of the table as it is"

kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
