/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/op.h"

#include "softcx/hw/calc.h"
#include "softcx/hw/grh.h"
#include "softcx/hw/indirect.h"
#include "softcx/hw/message.h"
#include "softcx/hw/pu.h"
#include "softcx/hw/resp.h"
#include "softcx/hw/route.h"
#include "softcx/hw/wait.h"
#include "util/array.h"

/* The opmod of these asks for CALC; atomics and WAIT look at theirs themselves. */
static bool calculates(const struct hw_wqe *w)
{
	return w->opmod && w->opcode <= WQE_OP_READ && w->opcode != WQE_OP_NOP && w->opcode != WQE_OP_WAIT;
}

static int exec(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;

	switch (w->opcode) {
	case WQE_OP_NOP:
		return 0;
	case WQE_OP_WAIT:
		return hw_wait_exec(w);
	case WQE_OP_SEND_EN:
	case WQE_OP_RECV_EN:
		return hw_enable_exec(w);
	case WQE_OP_UMR:
		if (qp->type != HW_UD) /* IB: windows are for RC and UC; of keys assumed */
			return hw_umr_exec(w);
		break;
	case WQE_OP_LOCAL_INVAL:
		return hw_key_invalidate(qp->dev, wqe_get32(w->p + WQE_IMM), qp->pdn, false)
			       ? 0
			       : HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	case WQE_OP_SEND_INVAL:
		if (hw_qp_is_reliable(qp)) /* IB 9.2: UC and UD have no such packet */
			return hw_message_send(w);
		break;
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return qp->type == HW_UD ? hw_message_datagram(w) : hw_message_send(w);
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
		if (qp->type != HW_UD)
			return hw_message_write(w);
		break;
	case WQE_OP_READ:
		if (hw_qp_is_reliable(qp))
			return hw_message_read(w);
		break;
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_CAS:
	case WQE_OP_MASKED_FETCH_ADD:
		if (hw_qp_is_reliable(qp))
			return hw_message_atomic(w);
		break;
	}
	return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
}

/* Packets for the peer of the queue, or, from an initiator, for a target. */
static bool is_message(uint8_t opcode)
{
	switch (opcode) {
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
	case WQE_OP_SEND_INVAL:
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
	case WQE_OP_READ:
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_CAS:
	case WQE_OP_MASKED_FETCH_ADD:
		return true;
	default:
		return false;
	}
}

/* The address of the target follows the control segment, and then comes what an RC WQE has (rdma-core
 * providers/mlx5/qp.c, mlx5_send_wr_set_dc_addr). */
static int exec_to_target(struct hw_wqe *w)
{
	enum { ADDRESS_DS = WQE_UD_SGE_DS - 1 };
	_Alignas(16) uint8_t rc[WQE_MAX_DS * WQE_DS];
	const uint8_t *all = w->p;
	struct hw_av av;
	uint32_t dctn;
	int ret;

	dctn = w->ds < WQE_UD_SGE_DS ? 0 : wqe_get32(all + WQE_UD_DQPN);
	if (!(dctn & WQE_UD_EXTENDED))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	av = hw_datagram_av(w->qp->dev, all);
	w->peer = hw_resp_target(w->qp, &av, dctn & 0xffffff, wqe_get64(all + WQE_DC_KEY));
	memcpy(rc, all, WQE_DS);
	memcpy(rc + WQE_DS, all + (ADDRESS_DS + 1) * WQE_DS, (w->ds - ADDRESS_DS - 1u) * WQE_DS);
	w->p = rc;
	w->ds -= ADDRESS_DS;
	ret = exec(w);
	w->p = all;
	w->ds += ADDRESS_DS;
	return ret;
}

/* Where the message goes, as far as the queue and the WQE say. */
static const struct hw_dev *destination(const struct hw_wqe *w)
{
	struct hw_av av;

	if (w->qp->type != HW_UD && w->qp->type != HW_DCI)
		return hw_resp_dev(w->qp);
	if (w->ds < WQE_UD_SGE_DS)
		return NULL;
	av = hw_datagram_av(w->qp->dev, w->p);
	return hw_route(w->qp->dev, &av, NULL);
}

uint32_t hw_op_pus(const struct hw_wqe *w)
{
	const struct hw_dev *to;

	if (w->qp->dev->faults_armed || w->opcode == WQE_OP_UMR)
		return HW_PU_EVERY;
	to = is_message(w->opcode) ? destination(w) : NULL;
	return to ? 1u << to->pu->index : 0;
}

uint64_t hw_op_lacking(const struct hw_dev *dev)
{
	static const struct {
		enum profile_fact fact;
		uint64_t opcodes;
	} needs[] = {
		{PROFILE_CROSS_CHANNEL,
			1ull << WQE_OP_WAIT | 1ull << WQE_OP_SEND_EN | 1ull << WQE_OP_RECV_EN},
		{PROFILE_IMMEDIATES, 1ull << WQE_OP_WRITE_IMM | 1ull << WQE_OP_SEND_IMM},
		{PROFILE_ATOMICS, 1ull << WQE_OP_CAS | 1ull << WQE_OP_FETCH_ADD | 1ull << WQE_OP_MASKED_CAS |
					  1ull << WQE_OP_MASKED_FETCH_ADD},
		{PROFILE_MASKED_ATOMICS, 1ull << WQE_OP_MASKED_CAS | 1ull << WQE_OP_MASKED_FETCH_ADD},
	};
	uint64_t lacking = 0;

	for (size_t i = 0; i < COUNT(needs); i++)
		if (!hw_fact(dev, needs[i].fact))
			lacking |= needs[i].opcodes;
	return lacking;
}

static bool is_lacking(const struct hw_wqe *w)
{
	return w->opcode < 64 && w->qp->dev->lacking >> w->opcode & 1;
}

int hw_op_exec(struct hw_wqe *w)
{
	if (__builtin_expect(is_lacking(w), 0))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	if (__builtin_expect(calculates(w), 0) && !hw_calc_is_allowed(w))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	return w->qp->type == HW_DCI && is_message(w->opcode) ? exec_to_target(w) : exec(w);
}
