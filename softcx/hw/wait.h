/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait.h - WAIT, SEND_EN and RECV_EN. Internal to softcx/hw.
 *
 * Sources: the cross-channel patch to libmlx5 (linux-rdma, msg30739), libmlx5 of MLNX_OFED 4 (verbs.c, qp.c),
 * and how DPDK counts (mlx5_txpp.c, mlx5_tx.h).
 *
 * WAIT holds its queue until CQE number `index` of a CQ has been written: 24 bits, inclusive, compared in a
 * cyclic half window. Numbers before that of the first CQE are passed from the start (`wait_index` of OFED's
 * verbs.c starts "at value before 0"). SEND_EN and RECV_EN set the producer index of a managed queue: 16
 * bits, exclusive, absolute; an index that is not ahead has no effect. Where public sources are silent, the
 * strict device refuses and the lenient one allows: all three need cd_master on their own QP; SEND_EN and
 * RECV_EN need a managed queue of the same PD.
 */
#ifndef SOFTCX_HW_WAIT_H
#define SOFTCX_HW_WAIT_H

#include "softcx/hw/cq.h"
#include "softcx/hw/exec.h"

static inline bool hw_wait_is_sync(uint8_t opcode)
{
	return opcode == WQE_OP_WAIT || opcode == WQE_OP_SEND_EN || opcode == WQE_OP_RECV_EN;
}

int hw_wait_exec(struct hw_wqe *w);         /* WAIT: HW_EXEC_STOP with wait_cq and wait_index set */
int hw_enable_exec(const struct hw_wqe *w); /* SEND_EN, RECV_EN */

#endif
