/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/dc.h"

#include "softcx/uverbs/cq.h"
#include "softcx/uverbs/pd.h"
#include "softcx/uverbs/qp-state.h"
#include "softcx/uverbs/srq.h"
#include "util/array.h"

#include <errno.h>

int uverbs_dc_type(const struct mlx5_ib_create_qp *drv, enum hw_qp_type *type)
{
	switch (drv->flags & (MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_TYPE_DCT)) {
	case MLX5_QP_FLAG_TYPE_DCI:
		*type = HW_DCI;
		return 0;
	case MLX5_QP_FLAG_TYPE_DCT:
		*type = HW_DCT;
		return 0;
	default:
		return -EINVAL;
	}
}

/* ---- targets ---------------------------------------------------------------------------- */

int uverbs_target_create(struct uverbs_file *file, const struct ib_uverbs_ex_create_qp *req,
	struct uverbs_channel *async, const struct mlx5_ib_create_qp *drv, struct uverbs_qp **out)
{
	struct uverbs_srq *srq;
	struct uverbs_pd *pd;
	struct uverbs_cq *cq;
	int r;

	if (!req->is_srq || req->create_flags || (drv->flags & ~(uint32_t)MLX5_QP_FLAG_TYPE_DCT) ||
		uverbs_pd_find(file, req->pd_handle, &pd) < 0 ||
		uverbs_cq_find(file, req->recv_cq_handle, &cq) < 0 ||
		uverbs_srq_find(file, req->srq_handle, &srq) < 0)
		return -EINVAL;

	struct uverbs_qp *qp = uverbs_obj_new(file, UVERBS_QP, sizeof(*qp));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)qp;
	if (!qp)
		return -ENOMEM;
	const struct hw_qp_attr attr = {
		.type = HW_DCT,
		.pdn = pd->pdn,
		.scq = cq->hw,
		.rcq = cq->hw,
		.srq = srq->hw,
		.user_index = drv->uidx,
		.dc_key = drv->access_key,
		.on_event = uverbs_qp_on_event,
		.arg = qp,
	};
	r = hw_qp_create(file->dev, &attr, &qp->hw);
	if (r < 0)
		return r;
	qp->obj.user_handle = req->user_handle;
	qp->type = HW_DCT;
	uverbs_obj_need(&qp->obj, &pd->obj);
	uverbs_obj_need(&qp->obj, &cq->obj);
	uverbs_obj_need(&qp->obj, &srq->obj);
	qp->async = uverbs_channel_get(async);
	uverbs_obj_commit(&pending, uverbs_qp_free);
	*out = qp;
	return 0;
}

int uverbs_target_modify(struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *dctn)
{
	const unsigned to_init = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	const unsigned to_rtr = IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU;
	enum hw_qp_state from = hw_qp_state(qp->hw);
	int r = uverbs_qp_check_values(qp, req);

	if (r < 0)
		return r;
	if (from == HW_RST && req->qp_state == IBV_QPS_INIT && req->attr_mask == to_init) {
		const struct hw_qp_mod mod = {.mask = HW_QP_ACCESS,
			.access =
				req->qp_access_flags & (HW_REMOTE_WRITE | HW_REMOTE_READ | HW_REMOTE_ATOMIC)};

		return hw_qp_modify(qp->obj.file->dev, qp->hw, HW_INIT, &mod);
	}
	if (from == HW_INIT && req->qp_state == IBV_QPS_RTR && req->attr_mask == to_rtr && dctn) {
		const struct hw_qp_mod mod = {.mask = HW_QP_RNR_TIMER | HW_QP_MTU,
			.min_rnr_timer = req->min_rnr_timer & 31,
			.mtu = (uint16_t)(128u << req->path_mtu)};

		*dctn = hw_qpn(qp->hw);
		return hw_qp_modify(qp->obj.file->dev, qp->hw, HW_RTR, &mod);
	}
	return -EINVAL;
}

/* ---- initiators ------------------------------------------------------------------------- */

bool uverbs_initiator_may(enum ibv_qp_state from, enum ibv_qp_state to, unsigned mask)
{
	static const struct {
		enum ibv_qp_state from, to;
		unsigned required, allowed;
	} transitions[] = {
		{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0},
		{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT},
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV},
		{IBV_QPS_RTR, IBV_QPS_RTS,
			IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
				IBV_QP_SQ_PSN,
			IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_MIN_RNR_TIMER},
	};

	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return mask == 0;
	for (size_t i = 0; i < COUNT(transitions); i++)
		if (transitions[i].from == from && transitions[i].to == to)
			return (mask & transitions[i].required) == transitions[i].required &&
			       (mask & ~(transitions[i].required | transitions[i].allowed)) == 0;
	return false;
}
