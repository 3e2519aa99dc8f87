/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calc.h - CALC: a SEND or WRITE whose opmod names an operation. What is sent is not the operands, which its
 * data segments hold, but their result. Internal to softcx/hw.
 *
 * Scalar CALC (opmod 1 to 6): operands of 16 bytes, a big-endian number of 8 bytes and an id, aligned to 16.
 * The result is big-endian, in the first 8 bytes. Vector CALC (opmod 0xff): a segment of 32 bytes before the
 * only data segment has operation, type, byte order, and how many vectors lie interleaved in chunks of which
 * size; the result is one vector.
 *
 * Sources: libmlx5 of MLNX_OFED 4.1 (qp.c, wqe.h, ec.c), Mellanox/pcx dv_mgr.cc, Linux mlx5_ifc.h
 * vector_calc_cap. Where these are silent, the strict choice is made, and docs/softcx-conformance.md has
 * "assumed": queues of RC only, no inline operands, results of at most 4096 bytes, one output of a vector,
 * syndromes. Whether the result of scalar CALC has 8 or 16 bytes is a fact of the profile. Bytes 8 to 15 are
 * noise, or, if the device is lenient, the id of the operand that is the result, of sums the first one's.
 */
#ifndef SOFTCX_HW_CALC_H
#define SOFTCX_HW_CALC_H

#include "softcx/hw/exec.h"

enum { HW_CALC_RESULT = 64 << HW_CALC_LOG_CHUNK }; /* bytes at most */

/** Whether a WQE with an opmod other than 0 is one of CALC that its device and queue can have. */
bool hw_calc_is_allowed(const struct hw_wqe *w);

/** Index of the first data segment, where @ds would be that of the WQE without CALC. */
unsigned hw_calc_data_ds(const struct hw_wqe *w, unsigned ds);

/** Checks form and operands of @w, whose data segments are @sgl, and sets w->bytes to the length of the
 * result. 0 or a fault. */
int hw_calc_check(struct hw_wqe *w, unsigned ds, const struct hw_sgl *sgl);

/** Reads the operands in @sgl, and makes @sgl the w->bytes of the result, which are in @result. 0 or a fault.
 */
int hw_calc_exec(const struct hw_wqe *w, struct hw_sgl *sgl, uint8_t result[static HW_CALC_RESULT]);

#endif
