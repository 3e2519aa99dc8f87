/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic.h - CAS, FETCH_ADD and their masked forms. Internal to softcx/hw.
 *
 * Operands are big-endian in the WQE, the memory word has the byte order of the host. The old value is
 * returned in host order when it has 8 bytes and the device has that mode (atomic endianness mode 1), else
 * big-endian (UCX, ib_mlx5dv_md.c). Layouts: struct mlx5_wqe_atomic_seg of linux/mlx5/qp.h; masked forms:
 * libmlx5 of MLNX_OFED 4, qp.c, ext_cmp_swp and ext_fetch_add.
 */
#ifndef SOFTCX_HW_ATOMIC_H
#define SOFTCX_HW_ATOMIC_H

#include "softcx/hw/exec.h"

/** Operand bytes of atomic @w (4, 8), and the DS at which its data segment stands. 0: not a valid atomic. */
unsigned hw_atomic_size(const struct hw_wqe *w, unsigned *data_ds);

/** Executes @w on @target; @old gets the old value as software will see it. False: the memory is unreachable.
 */
bool hw_atomic_exec(const struct hw_wqe *w, const struct hw_span *target, unsigned size, uint8_t old[8]);

#endif
