#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon is killed when it has answered a client, and the NIC has not begun with the queues: the next daemon ends that session, and the
# client learns why. A further connection with whose queues the NIC does not begin is refused, and its session goes on; also if the daemon is
# killed meanwhile.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/reddnd.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/table.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/supervised.sh"
needs "${recycling[@]}"

: "${REDDN:?set REDDN to the path of the client tool}"
: "${FURTHER:?set FURTHER to the path of the client that joins}"

printf 'alice\twonder\n' >"$work/data.tsv"
make_table "$work/table" <"$work/data.tsv"
configure_reddnd <<END
control = "$work/control";
regions = ( { name = "t"; kind = "table"; path = "$work/table"; } );
offloads = (
  { name = "armed"; program = "hash-get"; region = "t"; mode = "unrolled"; },
  { name = "kept"; program = "hash-get"; region = "t"; mode = "recycled"; } );
END

start_nic
serve_supervised

has_struck()
{
	[[ $("$SOFTCX" fault list --json) == *'"struck":1'* ]]
}

answers()
{
	on_nic get.log "$REDDN" get -p "$port" -t 50000 "$address" "$1" alice && [[ $(cat "$work/get.log") == wonder ]]
}

ended() # times that a daemon ended such a session
{
	grep -c 'ends: the server was restarted while the session began' "$work/run.log"
}

# The daemon waits for a second for the NIC. Where all of this takes longer, once more.
kills=0
for offload in armed kept; do
	before=$(ended)
	for ((try = 1; ; try++)); do
		[[ $try -le 20 ]] || fail "$offload: the daemon is never killed in time" "$work/client.log" "$work/run.log"
		"$SOFTCX" fault add delay 60000000 --opcode send-enable --count 1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
		background client.log "$REDDN" get -p "$port" -t 50000 "$address" $offload alice
		client=$child
		until_true has_struck || fail "$offload: nothing is delayed" "$work/client.log" "$work/run.log"
		kill -9 "$(daemon)"
		"$SOFTCX" fault clear
		until_true taken_over $((++kills)) || fail "nobody takes over" "$work/run.log"
		rc=0
		wait "$client" || rc=$?
		[[ $(ended) -eq $before ]] || break
		if [[ $rc -ne 0 ]]; then
			grep -q 'the NIC did not begin with its queues' "$work/client.log" ||
				fail "$offload: the client does not learn that its session never begins" "$work/client.log" "$work/run.log"
		fi
	done
	if [[ $rc -eq 0 ]]; then # it has asked once more
		[[ $(cat "$work/client.log") == wonder ]] || fail "$offload: the client has another value" "$work/client.log"
	else
		grep -q 'the server was restarted while the session began' "$work/client.log" ||
			fail "$offload: the client does not learn why its session has ended" "$work/client.log" "$work/run.log"
	fi
	until_true answers $offload || fail "$offload: the next client is not answered" "$work/get.log" "$work/run.log"
done
ok "a session that the NIC has not begun with ends with its daemon, and its client learns why"

# asks PID: the client PID asks for a further connection
asks()
{
	lines=$(wc -l <"$work/further.log")
	kill -USR1 "$1"
}

has_answer()
{
	[[ $(wc -l <"$work/further.log") -gt $lines ]]
}

answered() # sets $answer
{
	until_true has_answer || fail "$offload: there is no answer" "$work/further.log" "$work/run.log"
	answer=$(tail -n 1 "$work/further.log")
}

for offload in armed kept; do
	background further.log "$FURTHER" "$address" "$port" $offload
	further=$child
	until_true grep -q ready "$work/further.log" || fail "$offload: no session" "$work/further.log" "$work/run.log"
	client=$(program_of "$further")

	"$SOFTCX" fault add error remote-access --opcode send-enable --count 1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
	asks "$client"
	answered
	[[ $answer == 'refused: the server could not make the queues'* ]] ||
		fail "$offload: a connection that does not begin is not refused" "$work/further.log" "$work/run.log"
	"$SOFTCX" fault clear

	# the next daemon refuses the connection, and goes on with the session if that is recycled
	for ((try = 1; ; try++)); do
		[[ $offload == kept ]] || break
		[[ $try -le 20 ]] || fail "$offload: the daemon is never killed in time" "$work/further.log" "$work/run.log"
		"$SOFTCX" fault add delay 60000000 --opcode send-enable --count 1 >"$work/fault.log" || fail "no fault" "$work/fault.log"
		asks "$client"
		until_true has_struck || fail "$offload: nothing is delayed" "$work/further.log" "$work/run.log"
		kill -9 "$(daemon)"
		"$SOFTCX" fault clear
		until_true taken_over $((++kills)) || fail "nobody takes over" "$work/run.log"
		answered
		[[ $answer != 'refused: the server was restarted before it had answered'* ]] || break
	done

	asks "$client"
	expect_exit "$further" "the client of several connections" further.log
	[[ $(tail -n 1 "$work/further.log") == joined ]] || fail "$offload: no further connection" "$work/further.log" "$work/run.log"
	ok "$offload: a connection that the NIC does not begin with is refused, and its session goes on"
done

kill "$run"
expect_exit "$run" reddnd-run run.log
done_testing
