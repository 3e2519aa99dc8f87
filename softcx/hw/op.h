/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * op.h - which opcodes a queue may have, and who executes each. Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_OP_H
#define SOFTCX_HW_OP_H

#include "softcx/hw/cq.h"
#include "softcx/hw/exec.h"

static inline bool hw_wait_is_sync(uint8_t opcode)
{
	return opcode == WQE_OP_WAIT || opcode == WQE_OP_SEND_EN || opcode == WQE_OP_RECV_EN;
}

/**
 * Executes @w, whose ctrl segment was checked; sets its peer, bytes and inl. HW_EXEC_* or a fault; only
 * HW_EXEC_OK and HW_EXEC_PART have had any effect, apart from RECVs that a fault consumed.
 */
int hw_op_exec(struct hw_wqe *w);

/** The processing units whose devices executing @w concerns besides its own, as hw_pu_claim() takes them. */
uint32_t hw_op_pus(const struct hw_wqe *w);

/** Opcodes that its profile lacks, by 1 << opcode: they end their queue. */
uint64_t hw_op_lacking(const struct hw_dev *dev);

#endif
