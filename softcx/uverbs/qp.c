/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/qp.h"

#include "mlx5/prm.h"
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/cq.h"
#include "softcx/uverbs/dc.h"
#include "softcx/uverbs/pd.h"
#include "softcx/uverbs/srq.h"
#include "softcx/uverbs/uar.h"
#include "util/array.h"

#include <errno.h>
#include <infiniband/verbs.h>

void uverbs_qp_on_event(void *arg, int event)
{
	struct uverbs_qp *qp = arg;

	uverbs_async_post(qp->async, qp->obj.user_handle, event, &qp->posted);
}

int uverbs_qp_free(struct uverbs_obj *obj)
{
	struct uverbs_qp *qp = (struct uverbs_qp *)obj;
	int r = hw_qp_destroy(obj->file->dev, qp->hw);

	if (r < 0)
		return r;
	uverbs_channel_put(qp->async);
	return 0;
}

static int qp_type(uint8_t ib_type, const struct mlx5_ib_create_qp *drv, enum hw_qp_type *type)
{
	switch (ib_type) {
	case IBV_QPT_RC:
		*type = HW_RC;
		return 0;
	case IBV_QPT_UC:
		*type = HW_UC;
		return 0;
	case IBV_QPT_UD:
		*type = HW_UD;
		return 0;
	case IBV_QPT_DRIVER:
		return uverbs_dc_type(drv, type);
	default:
		return -EOPNOTSUPP;
	}
}

static bool pow2_or_0(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

/* Geometry as the library laid it out: RQ first, then SQ, both powers of two. */
static int qp_check_geometry(const struct mlx5_ib_create_qp *drv, bool has_rq)
{
	uint32_t max = 1u << UVERBS_LOG_MAX_QP_SZ;

	if (drv->sq_wqe_count > max || !pow2_or_0(drv->sq_wqe_count))
		return -EINVAL;
	if (!has_rq)
		return drv->rq_wqe_count ? -EINVAL : 0;
	if (drv->rq_wqe_count == 0 || drv->rq_wqe_count > max || !pow2_or_0(drv->rq_wqe_count))
		return -EINVAL;
	return drv->rq_wqe_shift < 4 || drv->rq_wqe_shift > 9 ? -EINVAL : 0;
}

static int qp_check_flags(const struct ib_uverbs_ex_create_qp *req, const struct mlx5_ib_create_qp *drv)
{
	/* Blocking one's own multicast has no effect: there are no groups to join. What is not here is not in
	 * the device's capabilities either: Linux hw/mlx5/qp.c, process_create_flags. */
	if (req->create_flags &
		~(uint32_t)(IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | UVERBS_QP_CROSS_CHANNEL |
			    UVERBS_QP_MANAGED_SEND | UVERBS_QP_MANAGED_RECV))
		return -EOPNOTSUPP;
	if (drv->flags & ~(uint32_t)(MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
				     MLX5_QP_FLAG_UAR_PAGE_INDEX |
				     (req->qp_type == IBV_QPT_DRIVER ? MLX5_QP_FLAG_TYPE_DCI : 0)))
		return -EINVAL;
	/* without static doorbell registers the page must be named */
	return drv->flags & MLX5_QP_FLAG_UAR_PAGE_INDEX && drv->uidx <= 0xffffff ? 0 : -EINVAL;
}

/* Small data into the CQE: Linux mlx5_ib, configure_requester_scat_cqe and its neighbours. */
static void qp_scatter_to_cqe(struct hw_qp_attr *attr, const struct ib_uverbs_ex_create_qp *req,
	const struct mlx5_ib_create_qp *drv, const struct uverbs_cq *scq, const struct uverbs_cq *rcq)
{
	if (!(drv->flags & MLX5_QP_FLAG_SCATTER_CQE) || attr->type == HW_UD)
		return;
	attr->cs_res = rcq->cqe_bytes == 128 ? 2 : 1;
	if (attr->type == HW_RC && (req->sq_sig_all || (drv->flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE)))
		attr->cs_req = scq->cqe_bytes == 128 ? 0x22 : 0x11;
}

/* Linux get_qp_ts_format(): what the CQs ask for, or else free-running where the device has that. */
static int qp_timestamps(const struct hw_dev *dev, struct hw_qp_attr *attr, const struct uverbs_cq *scq,
	const struct uverbs_cq *rcq)
{
	unsigned format =
		uverbs_caps_ts_format(dev, PRM_TS_FREE_RUNNING) ? PRM_TS_FREE_RUNNING : PRM_TS_DEFAULT;
	const struct uverbs_cq *cqs[] = {scq, rcq};

	for (size_t i = 0; i < COUNT(cqs); i++) {
		if (cqs[i]->ts_format == UVERBS_TS_ANY)
			continue;
		if (!uverbs_caps_ts_format(dev, cqs[i]->ts_format) ||
			(i && scq->ts_format != UVERBS_TS_ANY && scq->ts_format != rcq->ts_format))
			return -EOPNOTSUPP;
		format = cqs[i]->ts_format;
	}
	attr->real_time = uverbs_caps_real_time(dev, format);
	return 0;
}

struct qp_parts {
	struct uverbs_pd *pd;
	struct uverbs_cq *scq, *rcq;
	struct uverbs_srq *srq;
	struct uverbs_uar *uar;
};

static int qp_find_parts(struct uverbs_file *file, const struct ib_uverbs_ex_create_qp *req,
	const struct mlx5_ib_create_qp *drv, struct qp_parts *p)
{
	p->srq = NULL;
	if (uverbs_pd_find(file, req->pd_handle, &p->pd) < 0 ||
		uverbs_cq_find(file, req->send_cq_handle, &p->scq) < 0 ||
		uverbs_cq_find(file, req->recv_cq_handle, &p->rcq) < 0)
		return -EINVAL;
	if (req->is_srq && uverbs_srq_find(file, req->srq_handle, &p->srq) < 0)
		return -EINVAL;
	return uverbs_uar_find(file, drv->bfreg_index, &p->uar);
}

/* The RQ stands first in the buffer, the SQ behind it. */
static void qp_place_queues(
	struct hw_qp_attr *attr, const struct mlx5_ib_create_qp *drv, struct hw_mem *buf, uint64_t rq_bytes)
{
	if (rq_bytes) {
		attr->rq = buf;
		attr->rq_off = drv->buf_addr - buf->va;
		attr->rq_wqes = drv->rq_wqe_count;
		attr->rq_stride = 1u << drv->rq_wqe_shift;
	}
	if (drv->sq_wqe_count) {
		attr->sq = buf;
		attr->sq_off = drv->buf_addr - buf->va + rq_bytes;
		attr->sq_wqebbs = drv->sq_wqe_count;
	}
}

static void qp_remember(struct uverbs_qp *qp, const struct ib_uverbs_ex_create_qp *req,
	const struct hw_qp_attr *attr, const struct qp_parts *p)
{
	qp->obj.user_handle = req->user_handle;
	qp->type = attr->type;
	qp->sig_all = req->sq_sig_all;
	qp->cap = (struct ib_uverbs_qp_cap){
		.max_send_wr = req->max_send_wr,
		.max_recv_wr = attr->rq_wqes,
		.max_send_sge = req->max_send_sge,
		.max_recv_sge = attr->rq_stride / 16,
		.max_inline_data = req->max_inline_data,
	};
	uverbs_obj_need(&qp->obj, &p->pd->obj);
	uverbs_obj_need(&qp->obj, &p->scq->obj);
	uverbs_obj_need(&qp->obj, &p->rcq->obj);
	uverbs_obj_need(&qp->obj, &p->uar->obj);
	uverbs_obj_need(&qp->obj, p->srq ? &p->srq->obj : NULL);
}

int uverbs_qp_create(struct uverbs_file *file, struct nic_call *call,
	const struct ib_uverbs_ex_create_qp *req, struct uverbs_channel *async,
	const struct mlx5_ib_create_qp *drv, struct uverbs_qp **out)
{
	CLEANUP(hw_mem_putp) struct hw_mem *buf = NULL;
	CLEANUP(hw_mem_putp) struct hw_mem *db = NULL;
	bool has_rq = req->max_recv_wr && !req->is_srq;
	struct qp_parts p;
	enum hw_qp_type type;
	uint64_t rq_bytes, bytes;
	int r;

	r = qp_type(req->qp_type, drv, &type);
	if (r == 0 && type == HW_DCT)
		return uverbs_target_create(file, req, async, drv, out);
	if (r == 0)
		r = qp_check_flags(req, drv);
	if (r == 0)
		r = qp_check_geometry(drv, has_rq);
	if (r == 0)
		r = qp_find_parts(file, req, drv, &p);
	if (r < 0)
		return r;
	rq_bytes = has_rq ? (uint64_t)drv->rq_wqe_count << drv->rq_wqe_shift : 0;
	bytes = rq_bytes + (uint64_t)drv->sq_wqe_count * 64;
	if (bytes)
		r = nic_call_mem(call, drv->buf_addr, bytes, true, true, &buf);
	if (r == 0)
		r = nic_call_mem(call, drv->db_addr, 8, true, true, &db);
	if (r)
		return r;

	struct uverbs_qp *qp = uverbs_obj_new(file, UVERBS_QP, sizeof(*qp));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)qp;
	if (!qp)
		return -ENOMEM;
	struct hw_qp_attr attr = {
		.type = type,
		.pdn = p.pd->pdn,
		.scq = p.scq->hw,
		.rcq = p.rcq->hw,
		.srq = p.srq ? p.srq->hw : NULL,
		.db = db,
		.db_off = drv->db_addr - db->va,
		.uar = drv->bfreg_index,
		.user_index = drv->uidx,
		.cd_master = req->create_flags & UVERBS_QP_CROSS_CHANNEL,
		.cd_slave_send = req->create_flags & UVERBS_QP_MANAGED_SEND,
		.cd_slave_recv = req->create_flags & UVERBS_QP_MANAGED_RECV,
		.on_event = uverbs_qp_on_event,
		.arg = qp,
	};
	qp_place_queues(&attr, drv, buf, rq_bytes);
	qp_scatter_to_cqe(&attr, req, drv, p.scq, p.rcq);
	r = qp_timestamps(file->dev, &attr, p.scq, p.rcq);
	if (r < 0)
		return r;
	r = hw_qp_create(file->dev, &attr, &qp->hw);
	if (r < 0)
		return r;
	qp_remember(qp, req, &attr, &p);
	qp->async = uverbs_channel_get(async);
	uverbs_obj_commit(&pending, uverbs_qp_free);
	*out = qp;
	return 0;
}

/* Linux knows the number of a target when firmware has made it. */
uint32_t uverbs_qp_number(const struct uverbs_qp *qp)
{
	return qp->type == HW_DCT && hw_qp_state(qp->hw) != HW_RTR ? 0 : hw_qpn(qp->hw);
}

int uverbs_qp_destroy(struct uverbs_qp *qp, uint32_t *events_reported)
{
	struct uverbs_channel *async = qp->async;
	uint32_t posted = qp->posted;
	uint64_t key = qp->obj.user_handle;
	int r = uverbs_obj_destroy(&qp->obj);

	if (r < 0)
		return r;
	*events_reported = posted - uverbs_channel_purge(async, key);
	return 0;
}

int uverbs_qp_find(struct uverbs_file *file, uint64_t handle, struct uverbs_qp **qp)
{
	return uverbs_obj_find(file, UVERBS_QP, handle, (struct uverbs_obj **)qp);
}
