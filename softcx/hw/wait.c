/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/wait.h"

#include "softcx/hw/clock.h"

enum { REFUSED = HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE) };

static bool allowed(const struct hw_wqe *w)
{
	return w->ds >= 2 && w->opmod == 0 && (w->qp->cd_master || w->qp->dev->cfg.lenient);
}

int hw_wait_exec(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	uint32_t index = wqe_get32(w->p + WQE_SYNC_INDEX);
	struct hw_cq *cq = hw_cq_find(qp->dev, wqe_get32(w->p + WQE_SYNC_OBJECT) & 0xffffff);

	if (!cq || !allowed(w))
		return REFUSED;
	if (hw_cq_reached(cq, index)) {
		if (qp->clock)
			hw_clock_waited(w, cq, index);
		return HW_EXEC_OK;
	}
	qp->wait_cq = cq;
	qp->wait_index = index;
	return HW_EXEC_STOP;
}

int hw_enable_exec(const struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	uint16_t index = (uint16_t)wqe_get32(w->p + WQE_SYNC_INDEX);
	struct hw_qp *target = hw_qp_find(qp->dev, wqe_get32(w->p + WQE_SYNC_OBJECT) & 0xffffff);
	bool send = w->opcode == WQE_OP_SEND_EN;

	if (!target || !allowed(w))
		return REFUSED;
	if (!(send ? target->cd_send : target->cd_recv))
		return qp->dev->cfg.lenient ? HW_EXEC_OK : REFUSED;
	if (target->pdn != qp->pdn && !qp->dev->cfg.lenient)
		return REFUSED;
	if (send)
		hw_qp_enable(target, index, w);
	else if (hw_fact(qp->dev, PROFILE_RECV_ENABLE))
		hw_qp_enable_recv(target, index);
	return HW_EXEC_OK;
}
