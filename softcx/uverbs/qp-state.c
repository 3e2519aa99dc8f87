/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/qp-state.h"

#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/dc.h"
#include "util/array.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

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
		return uverbs_initiator_may(from, to, mask);
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

int uverbs_qp_check_values(const struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *a)
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
		return uverbs_target_modify(qp, req, dctn);
	to = req->attr_mask & IBV_QP_STATE ? (enum ibv_qp_state)req->qp_state : from;
	if (!transition_ok(qp->type, from, to, req->attr_mask))
		return -EINVAL;
	r = uverbs_qp_check_values(qp, req);
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
