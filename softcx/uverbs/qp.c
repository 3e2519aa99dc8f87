/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/prm.h"
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

static void qp_on_event(void *arg, int event)
{
	struct uverbs_qp *qp = arg;

	uverbs_async_post(qp->async, qp->obj.user_handle, event, &qp->posted);
}

static int qp_free(struct uverbs_obj *obj)
{
	struct uverbs_qp *qp = (struct uverbs_qp *)obj;
	int r = hw_qp_destroy(obj->file->dev, qp->hw);

	if (r < 0)
		return r;
	uverbs_channel_put(qp->async);
	return 0;
}

/* @type: of a QP of type IBV_QPT_DRIVER. -EINVAL: the flags name neither an initiator nor a target. */
static int dc_type(const struct mlx5_ib_create_qp *drv, enum hw_qp_type *type)
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
		return dc_type(drv, type);
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

/* -EINVAL without a shared receive queue and a CQ. */
static int target_create(struct uverbs_file *file, const struct ib_uverbs_ex_create_qp *req,
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
		.on_event = qp_on_event,
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
	uverbs_obj_commit(&pending, qp_free);
	*out = qp;
	return 0;
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
		return target_create(file, req, async, drv, out);
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
		.on_event = qp_on_event,
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
	uverbs_obj_commit(&pending, qp_free);
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

/*
 * Queue pairs of the dynamically connected transport, as far as the kernel treats them unlike others:
 * initiators have transitions of their own, targets have neither queues nor a number before they are in RTR
 * (Linux hw/mlx5/qp.c: create_dct, mlx5_ib_modify_dct, modify_dci_qp_is_ok).
 */

/* ---- targets ---------------------------------------------------------------------------- */

/* The attributes of @a, whatever the transition, have values that the device takes. */
static int qp_check_values(const struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *a)
{
	const struct hw_dev *dev = qp->obj.file->dev;
	const uint32_t max_ra = 1u << hw_fact(dev, PROFILE_LOG_READS);
	uint8_t gid[16];

	if ((a->attr_mask & IBV_QP_PORT) && a->port_num != 1)
		return -EINVAL;
	if ((a->attr_mask & IBV_QP_PKEY_INDEX) && a->pkey_index != 0)
		return -EINVAL;
	if ((a->attr_mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
		return -EINVAL;
	if ((a->attr_mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > max_ra)
		return -EINVAL;
	if ((a->attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > max_ra)
		return -EINVAL;
	if (a->attr_mask & IBV_QP_ALT_PATH) /* no automatic path migration on RoCE */
		return -EINVAL;
	if (a->attr_mask & IBV_QP_AV) {
		if (!a->dest.is_global && !hw_is_infiniband(dev))
			return -EINVAL;
		if (a->dest.is_global && !hw_gid(dev, a->dest.sgid_index, gid))
			return -EINVAL;
		if (a->dest.port_num != 1)
			return -EINVAL;
		/* Linux ib_rate_to_mlx5() */
		if (a->dest.static_rate &&
			(a->dest.static_rate < IBV_RATE_2_5_GBPS || a->dest.static_rate > IBV_RATE_600_GBPS))
			return -EINVAL;
	}
	return 0;
}

/* @dctn: the number of the target, from RTR on. */
static int target_modify(struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *dctn)
{
	const unsigned to_init = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	const unsigned to_rtr = IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU;
	enum hw_qp_state from = hw_qp_state(qp->hw);
	int r = qp_check_values(qp, req);

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

/* @mask: of the attributes beside the state. */
static bool initiator_may(enum ibv_qp_state from, enum ibv_qp_state to, unsigned mask)
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

/* Attributes per transition and transport: InfiniBand architecture, table 91, as Linux checks it. */
enum {
	PATH = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS,
	LIVE = IBV_QP_CUR_STATE | PATH | IBV_QP_PATH_MIG_STATE,
	INIT_UCRC = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	INIT_UD = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	RTR_UC = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	RTR_RC = RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RTS_RC = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	SQD_UC = IBV_QP_AV | PATH | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE,
	SQD_RC = SQD_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
};

static const struct transition {
	enum ibv_qp_state from, to;
	unsigned required[3], allowed[3]; /* by enum hw_qp_type: RC, UC, UD */
} transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, {INIT_UCRC, INIT_UCRC, INIT_UD}, {0, 0, 0}},
	{IBV_QPS_INIT, IBV_QPS_INIT, {0, 0, 0}, {INIT_UCRC, INIT_UCRC, INIT_UD}},
	{IBV_QPS_INIT, IBV_QPS_RTR, {RTR_RC, RTR_UC, 0},
		{PATH | IBV_QP_PKEY_INDEX, PATH | IBV_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
	{IBV_QPS_RTR, IBV_QPS_RTS, {RTS_RC, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN},
		{LIVE | IBV_QP_MIN_RNR_TIMER, LIVE, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPS_RTS, IBV_QPS_RTS, {0, 0, 0},
		{LIVE | IBV_QP_MIN_RNR_TIMER, LIVE, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPS_RTS, IBV_QPS_SQD, {0, 0, 0},
		{IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_RTS, {0, 0, 0},
		{LIVE | IBV_QP_MIN_RNR_TIMER, LIVE, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPS_SQD, IBV_QPS_SQD, {0, 0, 0}, {SQD_RC, SQD_UC, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
	{IBV_QPS_SQE, IBV_QPS_RTS, {0, 0, 0},
		{0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
};

static bool transition_ok(enum hw_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, unsigned mask)
{
	mask &= ~(unsigned)IBV_QP_STATE;
	if (type == HW_DCI)
		return initiator_may(from, to, mask);
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask == 0 || mask == IBV_QP_CUR_STATE;
	for (size_t i = 0; i < COUNT(transitions); i++) {
		const struct transition *t = &transitions[i];

		if (t->from != from || t->to != to)
			continue;
		if (from == IBV_QPS_SQE && type == HW_RC)
			return false;
		return (mask & t->required[type]) == t->required[type] &&
		       (mask & ~(t->required[type] | t->allowed[type])) == 0;
	}
	return false;
}

static enum ibv_qp_state to_ib_state(enum hw_qp_state s)
{
	static const enum ibv_qp_state map[] = {
		[HW_RST] = IBV_QPS_RESET,
		[HW_INIT] = IBV_QPS_INIT,
		[HW_RTR] = IBV_QPS_RTR,
		[HW_RTS] = IBV_QPS_RTS,
		[HW_SQER] = IBV_QPS_SQE,
		[HW_SQD] = IBV_QPS_SQD,
		[HW_ERR] = IBV_QPS_ERR,
	};

	return map[s];
}

static enum hw_qp_state to_hw_state(enum ibv_qp_state s)
{
	static const enum hw_qp_state map[] = {
		[IBV_QPS_RESET] = HW_RST,
		[IBV_QPS_INIT] = HW_INIT,
		[IBV_QPS_RTR] = HW_RTR,
		[IBV_QPS_RTS] = HW_RTS,
		[IBV_QPS_SQD] = HW_SQD,
		[IBV_QPS_SQE] = HW_SQER,
		[IBV_QPS_ERR] = HW_ERR,
	};

	return map[s];
}

/* Linux mlx5_set_path_udp_sport(): from the flow label, or else one that is made of both numbers */
static uint16_t udp_sport(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn)
{
	uint64_t numbers = (uint64_t)local_qpn * remote_qpn;
	uint32_t label = flow_label & 0xfffff;

	numbers ^= numbers >> 20;
	numbers ^= numbers >> 40;
	if (!label)
		label = numbers & 0xfffff;
	return (uint16_t)(UVERBS_MIN_UDP_SPORT | ((label ^ label >> 14) & 0x3fff));
}

/*
 * Linux mlx5_set_path(). For RoCE v2 the core has looked up MAC address and hop limit by then
 * (ib_resolve_unicast_gid_dmac()). A static rate is lowered to one that the device has, and it has none.
 */
static void set_path(
	const struct hw_dev *dev, struct hw_av *av, const struct ib_uverbs_modify_qp *a, uint32_t local_qpn)
{
	enum { IP_HOP_LIMIT = 64 };

	if (hw_is_infiniband(dev)) {
		av->grh = a->dest.is_global;
		av->dlid = a->dest.dlid;
		av->sgid_index = a->dest.sgid_index;
		av->hop_limit = a->dest.hop_limit;
		memcpy(av->dgid, a->dest.dgid, sizeof(av->dgid));
		return;
	}
	memcpy(av->dgid, a->dest.dgid, sizeof(av->dgid));
	hw_gid_mac(av->dgid, av->dmac);
	av->sgid_index = a->dest.sgid_index;
	av->hop_limit = IP_HOP_LIMIT;
	if (hw_gid_is_v1(dev, av->sgid_index))
		return;
	av->dscp = a->dest.traffic_class >> 2;
	av->udp_sport = udp_sport(a->dest.flow_label, local_qpn, a->dest_qp_num & 0xffffff);
}

/* Where verbs and hardware name the same attribute. */
static const struct {
	unsigned ib, hw;
} attr_map[] = {
	{IBV_QP_AV, HW_QP_AV},
	{IBV_QP_DEST_QPN, HW_QP_DEST},
	{IBV_QP_ACCESS_FLAGS, HW_QP_ACCESS},
	{IBV_QP_MIN_RNR_TIMER, HW_QP_RNR_TIMER},
	{IBV_QP_RETRY_CNT, HW_QP_RETRY},
	{IBV_QP_RNR_RETRY, HW_QP_RNR_RETRY},
	{IBV_QP_TIMEOUT, HW_QP_TIMEOUT},
	{IBV_QP_SQ_PSN, HW_QP_SQ_PSN},
	{IBV_QP_RQ_PSN, HW_QP_RQ_PSN},
	{IBV_QP_MAX_QP_RD_ATOMIC, HW_QP_RD_ATOMIC},
	{IBV_QP_MAX_DEST_RD_ATOMIC, HW_QP_DEST_RD_ATOMIC},
	{IBV_QP_QKEY, HW_QP_QKEY},
	{IBV_QP_PATH_MTU, HW_QP_MTU},
};

static void to_hw_mod(const struct ib_uverbs_modify_qp *a, struct hw_qp_mod *mod)
{
	memset(mod, 0, sizeof(*mod));
	for (size_t i = 0; i < COUNT(attr_map); i++)
		if (a->attr_mask & attr_map[i].ib)
			mod->mask |= attr_map[i].hw;
	mod->dest_qpn = a->dest_qp_num & 0xffffff;
	mod->access = a->qp_access_flags & (HW_REMOTE_WRITE | HW_REMOTE_READ | HW_REMOTE_ATOMIC);
	mod->min_rnr_timer = a->min_rnr_timer & 31;
	mod->retry_cnt = a->retry_cnt & 7;
	mod->rnr_retry = a->rnr_retry & 7;
	mod->timeout = a->timeout & 31;
	mod->sq_psn = a->sq_psn & 0xffffff;
	mod->rq_psn = a->rq_psn & 0xffffff;
	mod->qkey = a->qkey;
	mod->max_rd_atomic = a->max_rd_atomic;
	mod->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (a->attr_mask & IBV_QP_PATH_MTU) /* checked */
		mod->mtu = (uint16_t)(128u << a->path_mtu);
}

int uverbs_qp_modify(struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *dctn)
{
	enum ibv_qp_state from = to_ib_state(hw_qp_state(qp->hw)), to;
	struct hw_qp_mod mod;
	int r;

	if ((req->attr_mask & IBV_QP_STATE) && req->qp_state > IBV_QPS_ERR)
		return -EINVAL;
	if ((req->attr_mask & IBV_QP_CUR_STATE) && req->cur_qp_state != from)
		return -EINVAL;
	if (qp->type == HW_DCT)
		return target_modify(qp, req, dctn);
	to = req->attr_mask & IBV_QP_STATE ? (enum ibv_qp_state)req->qp_state : from;
	if (!transition_ok(qp->type, from, to, req->attr_mask))
		return -EINVAL;
	r = qp_check_values(qp, req);
	if (r < 0)
		return r;
	to_hw_mod(req, &mod);
	set_path(qp->obj.file->dev, &mod.av, req, hw_qpn(qp->hw));
	r = hw_qp_modify(qp->obj.file->dev, qp->hw, to_hw_state(to), &mod);
	if (r < 0)
		return r;
	if (to == IBV_QPS_RESET)
		memset(&qp->dest, 0, sizeof(qp->dest));
	if (req->attr_mask & IBV_QP_AV)
		qp->dest = req->dest;
	if (req->attr_mask & IBV_QP_PORT)
		qp->port_num = req->port_num;
	return 0;
}

static uint8_t to_ib_mtu(uint16_t bytes)
{
	uint8_t mtu = 0;

	while (bytes > 128) {
		bytes >>= 1;
		mtu++;
	}
	return mtu;
}

int uverbs_qp_query(const struct uverbs_qp *qp, struct ib_uverbs_query_qp_resp *resp)
{
	struct hw_qp_mod mod;
	uint16_t sq, rq;

	/* Linux mlx5_ib_dct_query_qp() */
	if (qp->type == HW_DCT && hw_qp_state(qp->hw) != HW_RTR)
		return -EINVAL;

	hw_qp_query(qp->hw, &mod, &sq, &rq);
	memset(resp, 0, sizeof(*resp));
	resp->dest = qp->dest;
	resp->max_send_wr = qp->cap.max_send_wr;
	resp->max_recv_wr = qp->cap.max_recv_wr;
	resp->max_send_sge = qp->cap.max_send_sge;
	resp->max_recv_sge = qp->cap.max_recv_sge;
	resp->max_inline_data = qp->cap.max_inline_data;
	resp->qkey = mod.qkey;
	resp->rq_psn = mod.rq_psn;
	resp->sq_psn = mod.sq_psn;
	resp->dest_qp_num = mod.dest_qpn;
	resp->qp_access_flags = mod.access;
	resp->qp_state = (uint8_t)to_ib_state(hw_qp_state(qp->hw));
	resp->cur_qp_state = resp->qp_state;
	resp->path_mtu = to_ib_mtu(mod.mtu);
	resp->path_mig_state = IBV_MIG_MIGRATED;
	resp->max_rd_atomic = mod.max_rd_atomic;
	resp->max_dest_rd_atomic = mod.max_dest_rd_atomic;
	resp->min_rnr_timer = mod.min_rnr_timer;
	resp->port_num = qp->port_num;
	resp->timeout = mod.timeout;
	resp->retry_cnt = mod.retry_cnt;
	resp->rnr_retry = mod.rnr_retry;
	resp->sq_sig_all = qp->sig_all;
	return 0;
}
