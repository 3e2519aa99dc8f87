# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# reddnd.sh - sourced after lib.sh by tests of the whole system: runs a daemon on the NIC of the test.
# meson sets REDDND to the path of the daemon.

: "${REDDND:?set REDDND to the path of the daemon}"

# without direct commands the CPU executes offloads, and the NIC runs none
[[ ${ENGINE:-nic} != nic ]] || needs has.devx

port=7471
# the programs of the tree, not the installed ones
programs=$(realpath "${BASH_SOURCE[0]%/*}/../../conf/programs")

# True if every address and socket of $work/reddnd.conf can be reached.
reddnd_listens()
{
	local control metrics

	control=$(sed -n 's/.*control = "\([^"]*\)".*/\1/p' "$work/reddnd.conf")
	metrics=$(sed -n 's/.*metrics = "[^"]*:\([0-9]*\)".*/\1/p' "$work/reddnd.conf")
	cm_listens && { [[ -z $control ]] || unix_listens "$control"; } && { [[ -z $metrics ]] || tcp_listens "$metrics"; }
}

# with_engine CONFIG: prints this text with ENGINE as the engine unless it is empty.
with_engine()
{
	printf '%s\n%s' "$1" "${ENGINE:+engine = \"$ENGINE\";$'\n'}"
}

by_cpu() # the CPU executes all offloads
{
	[[ ${ENGINE-} == cpu ]]
}

# The settings of a daemon that listens at the address of the test: on all addresses of the device, if it is a link-local one.
listening()
{
	case $address in
	*%*) printf 'listen = "[::]:%s"; device = "mlx5_0";\n' "$port" ;;
	*:*) printf 'listen = "[%s]:%s";\n' "$address" "$port" ;;
	*) printf 'listen = "%s:%s";\n' "$address" "$port" ;;
	esac
}

# configure_reddnd [CONFIG]: writes the configuration of the daemon: this text, or else stdin, with ENGINE as the engine, the address
# of the test, and the programs of the tree.
configure_reddnd()
{
	printf '%s\n%s\nprograms = "%s";\n' "$(listening)" "$(with_engine "${1-$(cat)}")" "$programs" >"$work/reddnd.conf"
}

# start_reddnd CONFIG: starts a daemon with this text in its configuration, and with ENGINE as the engine. Sets $reddnd to the process
# id.
start_reddnd()
{
	configure_reddnd "$1"
	background reddnd.log "${server_on[@]}" "$REDDND" --config "$work/reddnd.conf"
	reddnd=$child
	server_ready "$reddnd" reddnd reddnd.log reddnd_listens
}

# idle_objects COMMAND...: sets $idle to the objects of the NIC while the daemon has no sessions. With ENGINE=cpu COMMAND makes
# one of the first offload before: without direct commands verbs make its queue pair, and libmlx5 takes a doorbell page for the first
# one, which it keeps.
idle_objects()
{
	local ids keys

	if by_cpu; then
		ids=$(object ids) keys=$(object mkeys)
		"$@" || fail "no answer" "$work/reddnd.log"
		until_true holds_of mkeys "$keys" && until_true holds_of ids "$ids" || fail "the first client stays" "$work/reddnd.log"
	fi
	# shellcheck disable=SC2034 # used by tests
	idle=$(objects)
}

holds_of() # KIND N
{
	[[ $(object "$1") -eq $2 ]]
}

# The daemon ends on SIGTERM with status 0.
stop_reddnd()
{
	kill "$reddnd"
	expect_exit "$reddnd" reddnd reddnd.log
	ok "reddnd ends on SIGTERM"
}
