#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The barriers compile for every architecture that they name, to the instructions of rdma-core's util/udma_barrier.h. clang has all
# targets, and the header needs no C library.
root=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
command -v clang >/dev/null || exit 77

has() # TARGET INSTRUCTION...
{
	local out target=$1 instruction
	shift

	out=$(clang "--target=$target" -ffreestanding -Wall -Werror -O2 -I "$root" -S -o - "$root/mlx5/test-barrier.c") || exit 1
	for instruction; do
		grep -qE "^[[:space:]]+${instruction// /[[:space:]]+}\$" <<<"$out" || {
			printf '%s: no %s\n' "$target" "$instruction" >&2
			exit 1
		}
	done
}

has x86_64-linux-gnu lfence sfence
has aarch64-linux-gnu 'dmb oshst' 'dmb oshld' 'dsb st'
# and no other architecture is taken for one of them
! clang --target=riscv64-linux-gnu -ffreestanding -I "$root" -S -o /dev/null "$root/mlx5/test-barrier.c" 2>/dev/null
