#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs find the device in sysfs by the kernel's names and links.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"

link=$(fact port.link) id=$(printf '0x%04x' "$(fact identity.pci)")
case $(fact port.speed) in
EDR) rate=100 slot="8.0 GT/s PCIe 16" ;;
HDR) rate=200 slot="16.0 GT/s PCIe 16" ;;
NDR) rate=400 slot="32.0 GT/s PCIe 16" ;;
esac

PATH=$PATH:/usr/sbin
two_hosts
start_nic

# The programs of infiniband-diags that need no subnet manager
on_nic ibstat ibstat || fail ibstat "$work/ibstat"
for line in "CA 'mlx5_0'" "CA 'mlx5_1'" 'State: Active' 'Physical state: LinkUp' "Rate: $rate" "Link layer: $link"; do
	grep -qF -- "$line" "$work/ibstat" || fail "no \"$line\" from ibstat" "$work/ibstat"
done
ok "ibstat"
on_nic ibstatus ibstatus || fail ibstatus "$work/ibstatus"
tr -s '\t ' ' ' <"$work/ibstatus" >"$work/ibstatus.flat"
for line in "Infiniband device 'mlx5_0' port 1 status:" ' state: 4: ACTIVE' " link_layer: $link"; do
	grep -qF -- "$line" "$work/ibstatus.flat" || fail "no \"$line\" from ibstatus" "$work/ibstatus"
done
grep -q unknown "$work/ibstatus" && fail "ibstatus does not know something" "$work/ibstatus"
ok "ibstatus"

# Verbs and sysfs report the same
on_nic devinfo ibv_devinfo -d mlx5_0 || fail ibv_devinfo "$work/devinfo"
version=$(awk '$1 == "fw_ver:" { print $2 }' "$work/devinfo")
grep -qF "Firmware version: $version" "$work/ibstat" || fail "two firmware versions" "$work/devinfo" "$work/ibstat"
ok "verbs and sysfs agree on the firmware"

# expect WHAT WORDS CMD...: prints WORDS and nothing else
expect()
{
	local what=$1 words=$2
	shift 2

	on_nic out "$@" || fail "$what: $* fails" "$work/out"
	[[ $(<"$work/out") == "$words" ]] || fail "$what: not \"$words\"" "$work/out"
	ok "$what"
}

function=/sys/devices/pci5c00:00/5c00:00:00.0/5c00:01:00.0
expect "the class has links" "../../devices/${function#/sys/devices/}/infiniband/mlx5_0" readlink /sys/class/infiniband/mlx5_0
expect "names without links are in /sys" "$function/infiniband/mlx5_0" realpath /sys/class/infiniband/mlx5_0
expect "the device of a device" "$function" realpath /sys/class/infiniband_verbs/uverbs0/device
expect "the second function" "${function%0}1" readlink -f /sys/class/infiniband/mlx5_1/device
expect "by its slot" "$function" readlink -f /sys/bus/pci/devices/5c00:01:00.0
expect "the driver" mlx5_core bash -c "basename \$(readlink $function/driver)"
expect "PCI ids" "0x15b3 $id" bash -c "echo \$(cat $function/vendor $function/device)"
expect "uevent" "PCI_SLOT_NAME=5c00:01:00.0" grep SLOT "$function/uevent"
expect "the link" "$slot" bash -c "echo \$(cat $function/current_link_*)"
! able "a network interface" port.link=Ethernet || expect "the interface" "lo" ls /sys/class/infiniband/mlx5_0/device/net
if able "GIDs of addresses" port.link=Ethernet; then
	types=/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types
	# shellcheck disable=SC2016 # for the other shell
	expect "each GID for both versions of RoCE" "IB/RoCE v1,RoCE v2,IB/RoCE v1,RoCE v2," bash -c "for i in {0..3}; do printf '%s,' \"\$(<$types/\$i)\"; done"
	on_nic out cat "$types/4" && fail "an index without a GID has a type" "$work/out"
	grep -q 'Invalid argument' "$work/out" || fail "the type of an index without a GID" "$work/out"
	ok "an index without a GID has no type"
fi
# shellcheck disable=SC2016 # for the other shell
expect "a folder to work in" "$function 4: ACTIVE" \
	bash -c 'cd /sys/class/infiniband/mlx5_0/device && echo "$(pwd -P) $(cat infiniband/mlx5_0/ports/1/state)"'
expect "names that match" "/sys/class/infiniband/mlx5_0 /sys/class/infiniband/mlx5_1" bash -c 'echo /sys/class/infiniband/*'
expect "rights" "yes" sh -c '[ -r /sys/class/infiniband/mlx5_0/fw_ver ] && echo yes'
on_nic out ls -l "$function/infiniband" || fail "ls -l, which asks for attributes" "$work/out"
grep -q '?' "$work/out" && fail "ls -l does not know something" "$work/out"
ok "attributes"
on_nic out ls /sys/class/infiniband/mlx5_7 && fail "there is a device too many" "$work/out"
ok "no other device"

done_testing
