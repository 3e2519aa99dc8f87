/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calc.h - CALC: a SEND or WRITE whose opmod names an operation. What is sent is not the operands, which its
 * data segments hold, but their result. Internal to softcx/hw.
 *
 * Opmod 1 to 6: operands of 16 bytes, a big-endian number of 8 bytes and an id, aligned to 16. The result is
 * big-endian, in the first 8 bytes. CALC of vectors, opmod 0xff, is refused.
 *
 * Sources: libmlx5 of MLNX_OFED 4.1 (qp.c, ec.c). Where it is silent, the strict choice is made, and
 * docs/softcx-conformance.md has "assumed": queues of RC only, no inline operands, syndromes. Whether the
 * result has 8 or 16 bytes is a fact of the profile. Bytes 8 to 15 are noise, or, if the device is lenient,
 * the id of the operand that is the result, of sums the first one's.
 */
#ifndef SOFTCX_HW_CALC_H
#define SOFTCX_HW_CALC_H

#include "softcx/hw/exec.h"

/** Whether a WQE with an opmod other than 0 is one of CALC that its device and queue can have. */
bool hw_calc_is_allowed(const struct hw_wqe *w);

/** Checks form and operands of @w, whose data segments are @sgl, and sets w->bytes to the length of the
 * result. 0 or a fault. */
int hw_calc_check(struct hw_wqe *w, unsigned ds, const struct hw_sgl *sgl);

/** Reads the operands in @sgl, and makes @sgl the w->bytes of the result, which are in @result. 0 or a fault.
 */
int hw_calc_exec(const struct hw_wqe *w, struct hw_sgl *sgl, uint8_t result[static WQE_CALC_OPERAND]);

#endif
