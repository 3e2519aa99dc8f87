/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/fw.h"
#include "softcx/uverbs/prm.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

/*
 * Address paths of queue pairs. Firmware refuses what it cannot send; an address that is wrong is refused by
 * nobody, and its packets are lost (softcx/hw/resp.h).
 */

enum { PORT = 1 };

static int read_port(const struct uverbs_mbox *m, const uint8_t *ads)
{
	return prm_get(ads, PRM_ads_vhca_port_num) == PORT ? 0
							   : uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PORT);
}

/* Linux mlx5_set_path() writes these on RoCE only. */
static bool is_roce(const uint8_t *ads)
{
	static const uint8_t none[6];

	return memcmp(ads + PRM_ads_rmac_47_32_byte, none, sizeof(none)) != 0 ||
	       prm_get(ads, PRM_ads_udp_sport) || prm_get(ads, PRM_ads_dscp) ||
	       prm_get(ads, PRM_ads_eth_prio);
}

/* The address path of a connected queue pair, port included. */
static int read_path(
	struct uverbs_file *file, const struct uverbs_mbox *m, const uint8_t *ads, struct hw_av *av)
{
	unsigned rate = (unsigned)prm_get(ads, PRM_ads_stat_rate);
	uint8_t gid[16];

	*av = (struct hw_av){
		.loopback = prm_get(ads, PRM_ads_fl),
		.grh = prm_get(ads, PRM_ads_grh),
		.dlid = (uint16_t)prm_get(ads, PRM_ads_rlid),
		.sgid_index = (uint8_t)prm_get(ads, PRM_ads_src_addr_index),
		.hop_limit = (uint8_t)prm_get(ads, PRM_ads_hop_limit),
		.dscp = (uint8_t)prm_get(ads, PRM_ads_dscp),
		.udp_sport = (uint16_t)prm_get(ads, PRM_ads_udp_sport),
	};
	memcpy(av->dgid, ads + PRM_ads_rgid_rip_byte, sizeof(av->dgid));
	memcpy(av->dmac, ads + PRM_ads_rmac_47_32_byte, sizeof(av->dmac));
	if (!hw_gid(file->dev, av->sgid_index, gid))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_GID);
	if (rate && !(UVERBS_STAT_RATES >> rate & 1))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_STAT_RATE);
	if (read_port(m, ads) < 0)
		return -EREMOTEIO;
	if (av->loopback)
		return hw_fact(file->dev, PROFILE_FORCED_LOOPBACK)
			       ? 0
			       : uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_LOOPBACK);
	if (hw_is_infiniband(file->dev))
		return is_roce(ads) ? uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PATH) : 0;
	/* Linux mlx5_set_path() writes these on InfiniBand only; rdma-core mlx5_create_ah(): every RoCE
	 * packet has a GRH, so the bit is reserved and should not be set */
	if (prm_get(ads, PRM_ads_grh) || prm_get(ads, PRM_ads_rlid) || prm_get(ads, PRM_ads_mlid))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PATH);
	/* and these for RoCE v2 only; rdma-core tests/mlx5_base.py: "UDP sport must be reserved for roce v1"
	 */
	if (hw_gid_is_v1(file->dev, av->sgid_index))
		return av->udp_sport || av->dscp ? uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PATH) : 0;
	return av->udp_sport < UVERBS_MIN_UDP_SPORT ? uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SPORT) : 0;
}

static void write_path(uint8_t *ads, const struct hw_av *av)
{
	prm_set(ads, PRM_ads_fl, av->loopback);
	prm_set(ads, PRM_ads_grh, av->grh);
	prm_set(ads, PRM_ads_rlid, av->dlid);
	prm_set(ads, PRM_ads_src_addr_index, av->sgid_index);
	prm_set(ads, PRM_ads_hop_limit, av->hop_limit);
	prm_set(ads, PRM_ads_dscp, av->dscp);
	prm_set(ads, PRM_ads_udp_sport, av->udp_sport);
	memcpy(ads + PRM_ads_rgid_rip_byte, av->dgid, sizeof(av->dgid));
	memcpy(ads + PRM_ads_rmac_47_32_byte, av->dmac, sizeof(av->dmac));
}

/*
 * Receive memory pools: shared receive queues made by a firmware command. UCX takes it for granted
 * that a device with DEVX has them (uct_rc_mlx5_devx_init_rx).
 */

enum { WQ_LIST = 0, WQ_CYCLIC = 1 };

int uverbs_fw_create_rmp(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *wq = m->in + PRM_create_rmp_in_wq_byte;
	struct hw_srq_attr attr = {.on_event = uverbs_fw_on_event};
	struct uverbs_fw_ring ring;
	struct uverbs_pd *pd;
	unsigned type, size;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_rmp_in, PRM_SIZE_create_rmp_out) < 0)
		return -EREMOTEIO;
	type = (unsigned)prm_get(wq, PRM_wq_type);
	size = (unsigned)prm_get(wq, PRM_wq_log_size);
	if ((type != WQ_LIST && type != WQ_CYCLIC) || prm_get(wq, PRM_wq_signature))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	attr.cyclic = type == WQ_CYCLIC;
	attr.wqes = 1u << size;
	attr.stride = 1u << prm_get(wq, PRM_wq_log_stride);
	if (size > 15 || attr.stride < 32 || attr.stride > hw_fact(file->dev, PROFILE_RECV_WQE))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SIZE);
	pd = uverbs_fw_pd(file, (uint32_t)prm_get(wq, PRM_wq_pd));
	if (!pd)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_PD);
	const struct uverbs_fw_place place = {
		.umem = (uint32_t)prm_get(wq, PRM_wq_umem_id),
		.db_umem = (uint32_t)prm_get(wq, PRM_wq_dbr_umem_id),
		.off = prm_get(wq, PRM_wq_umem_offset),
		.db_off = prm_get(wq, PRM_wq_dbr_addr),
		.bytes = (uint64_t)attr.wqes * attr.stride,
	};
	r = uverbs_fw_ring(file, m, &place, &ring);
	if (r < 0)
		return r;

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	attr.pdn = pd->pdn;
	attr.buf = ring.buf->mem;
	attr.buf_off = uverbs_fw_mem_off(ring.buf, ring.off);
	attr.db = ring.db->mem;
	attr.db_off = uverbs_fw_mem_off(ring.db, ring.db_off);
	attr.arg = devx;
	r = hw_srq_create(file->dev, &attr, &devx->srq);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	hw_srq_limit(devx->srq, (uint16_t)prm_get(wq, PRM_wq_lwm));
	uverbs_obj_need(&devx->obj, &pd->obj);
	uverbs_fw_need_ring(devx, &ring);
	prm_set(m->out, PRM_create_rmp_out_rmpn, hw_srqn(devx->srq));
	pending = NULL;
	*out = devx;
	return 0;
}

/*
 * CREATE_DCT: a target of the dynamically connected transport, ready at once. UCX makes its own so
 * (uct_dc_mlx5_iface_devx_create_dct).
 */

static int make_ready(struct hw_dev *dev, struct hw_qp *target, const uint8_t *dctc)
{
	const unsigned atomic =
		prm_get(dctc, PRM_dctc_rae) && prm_get(dctc, PRM_dctc_atomic_mode) ? HW_REMOTE_ATOMIC : 0;
	const struct hw_qp_mod mod = {
		.mask = HW_QP_ACCESS | HW_QP_RNR_TIMER | HW_QP_MTU,
		.access = (prm_get(dctc, PRM_dctc_rre) ? HW_REMOTE_READ : 0) |
			  (prm_get(dctc, PRM_dctc_rwe) ? HW_REMOTE_WRITE : 0) | atomic,
		.min_rnr_timer = (uint8_t)prm_get(dctc, PRM_dctc_min_rnr_nak),
		.mtu = (uint16_t)(128u << prm_get(dctc, PRM_dctc_mtu)),
	};
	int r = hw_qp_modify(dev, target, HW_INIT, &mod);

	return r < 0 ? r : hw_qp_modify(dev, target, HW_RTR, NULL);
}

int uverbs_fw_create_dct(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *dctc = m->in + PRM_create_dct_in_dctc_byte;
	struct hw_qp_attr attr = {.type = HW_DCT, .on_event = uverbs_fw_on_event};
	struct uverbs_obj *cq, *srq;
	struct uverbs_pd *pd;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_dct_in, PRM_SIZE_create_dct_out) < 0)
		return -EREMOTEIO;
	if (prm_get(dctc, PRM_dctc_mtu) < 1 || prm_get(dctc, PRM_dctc_mtu) > 5)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_MTU);
	pd = uverbs_fw_pd(file, (uint32_t)prm_get(dctc, PRM_dctc_pd));
	if (!pd)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_PD);
	cq = uverbs_fw_cq(file, (uint32_t)prm_get(dctc, PRM_dctc_cqn), &attr.rcq);
	if (!cq)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_CQN);
	srq = uverbs_fw_srq(file, (uint32_t)prm_get(dctc, PRM_dctc_srqn_xrqn), &attr.srq);
	if (!srq)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_SRQN);

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	attr.pdn = pd->pdn;
	attr.scq = attr.rcq;
	attr.user_index = (uint32_t)prm_get(dctc, PRM_dctc_user_index);
	attr.cs_res = (uint8_t)prm_get(dctc, PRM_dctc_cs_res);
	attr.dc_key = prm_get(dctc, PRM_dctc_dc_access_key);
	attr.arg = devx;
	r = hw_qp_create(file->dev, &attr, &devx->qp);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	r = make_ready(file->dev, devx->qp, dctc);
	if (r < 0) {
		hw_qp_destroy(file->dev, devx->qp);
		return uverbs_fw_device_refuses(m, r);
	}
	uverbs_obj_need(&devx->obj, &pd->obj);
	uverbs_obj_need(&devx->obj, cq);
	uverbs_obj_need(&devx->obj, srq);
	prm_set(m->out, PRM_create_dct_out_dctn, hw_qpn(devx->qp));
	pending = NULL;
	*out = devx;
	return 0;
}

/* ---- CREATE_QP -------------------------------------------------------------------------- */

enum { ST_RC = 0, ST_UC = 1, ST_UD = 2, ST_DCI = 5 };
enum { RQ_REGULAR = 0, RQ_SRQ = 1, RQ_ZERO = 3 };

static int qp_service(unsigned st, enum hw_qp_type *type)
{
	switch (st) {
	case ST_RC:
		*type = HW_RC;
		return 0;
	case ST_UC:
		*type = HW_UC;
		return 0;
	case ST_UD:
		*type = HW_UD;
		return 0;
	case ST_DCI:
		*type = HW_DCI;
		return 0;
	default:
		return -EINVAL;
	}
}

/* The queues' shape: RQ first, then SQ (rdma-core mlx5dv.h, struct mlx5dv_qp). */
static int qp_shape(
	struct uverbs_file *file, const struct uverbs_mbox *m, const uint8_t *qpc, struct hw_qp_attr *attr)
{
	unsigned rq_type = (unsigned)prm_get(qpc, PRM_qpc_rq_type);

	if (qp_service((unsigned)prm_get(qpc, PRM_qpc_st), &attr->type) < 0)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (rq_type != RQ_REGULAR && rq_type != RQ_SRQ && rq_type != RQ_ZERO)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (rq_type == RQ_REGULAR) {
		attr->rq_wqes = 1u << prm_get(qpc, PRM_qpc_log_rq_size);
		attr->rq_stride = 16u << prm_get(qpc, PRM_qpc_log_rq_stride);
		if (attr->rq_stride > hw_fact(file->dev, PROFILE_RECV_WQE))
			return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SIZE);
	}
	if (!prm_get(qpc, PRM_qpc_no_sq))
		attr->sq_wqebbs = 1u << prm_get(qpc, PRM_qpc_log_sq_size);
	return 0;
}

/* The objects that a CREATE_QP refers to. */
struct qp_parts {
	struct uverbs_pd *pd;
	struct uverbs_uar *uar;
	struct uverbs_obj *scq, *rcq;
	struct uverbs_obj *srq;   /* or NULL */
	struct uverbs_fw_ring wq; /* no buffer without an SQ and an RQ */
};

static int qp_find_objects(struct uverbs_file *file, const struct uverbs_mbox *m, const uint8_t *qpc,
	struct qp_parts *p, struct hw_qp_attr *attr)
{
	p->pd = uverbs_fw_pd(file, (uint32_t)prm_get(qpc, PRM_qpc_pd));
	if (!p->pd)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_PD);
	attr->pdn = p->pd->pdn;
	p->scq = uverbs_fw_cq(file, (uint32_t)prm_get(qpc, PRM_qpc_cqn_snd), &attr->scq);
	p->rcq = uverbs_fw_cq(file, (uint32_t)prm_get(qpc, PRM_qpc_cqn_rcv), &attr->rcq);
	if (!p->scq || !p->rcq)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_CQN);
	if (prm_get(qpc, PRM_qpc_rq_type) == RQ_SRQ) {
		p->srq = uverbs_fw_srq(file, (uint32_t)prm_get(qpc, PRM_qpc_srqn_rmpn_xrqn), &attr->srq);
		if (!p->srq)
			return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_SRQN);
	}
	if (uverbs_uar_find(file, (uint32_t)prm_get(qpc, PRM_qpc_uar_page), &p->uar) < 0)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_UAR);
	attr->uar = hw_uar_index(p->uar->hw);
	return 0;
}

/* The memory of the queues, whose shape @attr has, and of the doorbell record. */
static int qp_find_memory(struct uverbs_file *file, const struct uverbs_mbox *m, const uint8_t *qpc,
	struct qp_parts *p, struct hw_qp_attr *attr)
{
	uint64_t rq_bytes = (uint64_t)attr->rq_wqes * attr->rq_stride;
	const struct uverbs_fw_place place = {
		.umem = (uint32_t)prm_get(m->in, PRM_create_qp_in_wq_umem_id),
		.db_umem = (uint32_t)prm_get(qpc, PRM_qpc_dbr_umem_id),
		.off = prm_get(m->in, PRM_create_qp_in_wq_umem_offset),
		.db_off = prm_get(qpc, PRM_qpc_dbr_addr),
		.bytes = rq_bytes + (uint64_t)attr->sq_wqebbs * 64,
	};
	int r = uverbs_fw_ring(file, m, &place, &p->wq);

	if (r < 0)
		return r;
	if (attr->rq_wqes) {
		attr->rq = p->wq.buf->mem;
		attr->rq_off = uverbs_fw_mem_off(p->wq.buf, p->wq.off);
	}
	if (attr->sq_wqebbs) {
		attr->sq = p->wq.buf->mem;
		attr->sq_off = uverbs_fw_mem_off(p->wq.buf, p->wq.off) + rq_bytes;
	}
	attr->db = p->wq.db->mem;
	attr->db_off = uverbs_fw_mem_off(p->wq.db, p->wq.db_off);
	return 0;
}

static void qp_properties(const struct hw_dev *dev, const uint8_t *qpc, struct hw_qp_attr *attr)
{
	attr->real_time = uverbs_caps_real_time(dev, (unsigned)prm_get(qpc, PRM_qpc_ts_format));
	attr->user_index = (uint32_t)prm_get(qpc, PRM_qpc_user_index);
	attr->cd_master = prm_get(qpc, PRM_qpc_cd_master);
	attr->cd_slave_send = prm_get(qpc, PRM_qpc_cd_slave_send);
	attr->cd_slave_recv = prm_get(qpc, PRM_qpc_cd_slave_receive);
	attr->reserved_lkey = prm_get(qpc, PRM_qpc_rlky);
	attr->cs_req = (uint8_t)prm_get(qpc, PRM_qpc_cs_req);
	attr->cs_res = (uint8_t)prm_get(qpc, PRM_qpc_cs_res);
}

static void qp_need_parts(struct uverbs_devx *devx, const struct qp_parts *p)
{
	uverbs_obj_need(&devx->obj, &p->pd->obj);
	uverbs_obj_need(&devx->obj, p->scq);
	uverbs_obj_need(&devx->obj, p->rcq);
	uverbs_obj_need(&devx->obj, &p->uar->obj);
	uverbs_fw_need_ring(devx, &p->wq);
	uverbs_obj_need(&devx->obj, p->srq);
}

int uverbs_fw_create_qp(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *qpc = m->in + PRM_create_qp_in_qpc_byte;
	struct hw_qp_attr attr = {0};
	struct qp_parts parts = {0};
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_qp_in, PRM_SIZE_create_qp_out) < 0 ||
		qp_shape(file, m, qpc, &attr) < 0)
		return -EREMOTEIO;
	if (!uverbs_caps_ts_format(file->dev, (unsigned)prm_get(qpc, PRM_qpc_ts_format)))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TS_FORMAT);
	r = qp_find_objects(file, m, qpc, &parts, &attr);
	if (r == 0)
		r = qp_find_memory(file, m, qpc, &parts, &attr);
	if (r < 0)
		return r;
	qp_properties(file->dev, qpc, &attr);

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	attr.on_event = uverbs_fw_on_event;
	attr.arg = devx;
	r = hw_qp_create(file->dev, &attr, &devx->qp);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	memcpy(devx->qpc, qpc, sizeof(devx->qpc));
	devx->db = parts.wq.db;
	devx->db_off = parts.wq.db_off;
	qp_need_parts(devx, &parts);
	prm_set(m->out, PRM_create_qp_out_qpn, hw_qpn(devx->qp));
	pending = NULL;
	*out = devx;
	return 0;
}
/* ---- QP transitions --------------------------------------------------------------------- */

enum { /* opt_param_mask: Linux include/linux/mlx5/qp.h */
	OPT_RRE = 1 << 1,
	OPT_RAE = 1 << 2,
	OPT_RWE = 1 << 3,
	OPT_RNR_TIMEOUT = 1 << 6,
	OPT_PRIMARY_PATH = 1 << 7,
	OPT_SRA_MAX = 1 << 8,
	OPT_RRA_MAX = 1 << 9,
	OPT_RETRY_COUNT = 1 << 12,
	OPT_RNR_RETRY = 1 << 13,
	OPT_ACK_TIMEOUT = 1 << 14,
	OPT_ACCESS = OPT_RRE | OPT_RAE | OPT_RWE,
	OPT_IGNORED =
		1 << 4 | 1 << 10 | 1 << 15 | 1 << 16 | 1 << 25, /* pkey, path state, LAG, port, counter set */
};

/*
 * The rights of a queue that had @old. RST2INIT takes rwe and rre: Linux gives them to UC queues there only,
 * UCX and DPDK to RC queues. Everything else takes what opt_param_mask names. rae and atomic_mode are never
 * taken without it: Linux (set_qpc_atomic_flags) and UCX repeat them in INIT2RTR with their bits.
 */
static unsigned qpc_access(const uint8_t *qpc, unsigned old, uint16_t command, unsigned opt)
{
	unsigned access = old;

	if (command == PRM_OP_RST2INIT_QP)
		opt = OPT_RRE | OPT_RWE;
	if (opt & OPT_RRE)
		access = (access & ~HW_REMOTE_READ) | (prm_get(qpc, PRM_qpc_rre) ? HW_REMOTE_READ : 0);
	if (opt & OPT_RWE)
		access = (access & ~HW_REMOTE_WRITE) | (prm_get(qpc, PRM_qpc_rwe) ? HW_REMOTE_WRITE : 0);
	/* rae alone allows nothing: the mode selects the atomics (Linux hw/mlx5/qp.c, get_atomic_mode) */
	if (opt & OPT_RAE)
		access = (access & ~HW_REMOTE_ATOMIC) |
			 (prm_get(qpc, PRM_qpc_rae) && prm_get(qpc, PRM_qpc_atomic_mode) ? HW_REMOTE_ATOMIC
											 : 0);
	return access;
}

static const struct qp_command {
	uint16_t opcode;
	uint16_t from; /* bit set of enum hw_qp_state */
	enum hw_qp_state to;
	unsigned sets; /* HW_QP_*, always taken from the QPC */
	unsigned may;  /* opt_param_mask bits that mean something */
} qp_commands[] = {
	{PRM_OP_RST2INIT_QP, 1 << HW_RST, HW_INIT, HW_QP_ACCESS, 0},
	{PRM_OP_INIT2INIT_QP, 1 << HW_INIT, HW_INIT, 0, OPT_ACCESS},
	{PRM_OP_INIT2RTR_QP, 1 << HW_INIT, HW_RTR,
		HW_QP_AV | HW_QP_DEST | HW_QP_RQ_PSN | HW_QP_DEST_RD_ATOMIC | HW_QP_RNR_TIMER | HW_QP_MTU |
			HW_QP_MAX_MSG,
		OPT_ACCESS},
	{PRM_OP_RTR2RTS_QP, 1 << HW_RTR, HW_RTS,
		HW_QP_SQ_PSN | HW_QP_RD_ATOMIC | HW_QP_RETRY | HW_QP_RNR_RETRY | HW_QP_TIMEOUT |
			HW_QP_ACK_FREQ,
		OPT_ACCESS | OPT_RNR_TIMEOUT},
	{PRM_OP_RTS2RTS_QP, 1 << HW_RTS, HW_RTS, 0,
		OPT_ACCESS | OPT_RNR_TIMEOUT | OPT_SRA_MAX | OPT_RRA_MAX | OPT_RETRY_COUNT | OPT_RNR_RETRY |
			OPT_ACK_TIMEOUT},
	{PRM_OP_2ERR_QP, 0xffff, HW_ERR, 0, 0},
	{PRM_OP_2RST_QP, 0xffff, HW_RST, 0, 0},
};

static unsigned optional_to_hw(unsigned opt)
{
	static const struct {
		unsigned opt, hw;
	} map[] = {
		{OPT_ACCESS, HW_QP_ACCESS},
		{OPT_RNR_TIMEOUT, HW_QP_RNR_TIMER},
		{OPT_SRA_MAX, HW_QP_RD_ATOMIC},
		{OPT_RRA_MAX, HW_QP_DEST_RD_ATOMIC},
		{OPT_RETRY_COUNT, HW_QP_RETRY},
		{OPT_RNR_RETRY, HW_QP_RNR_RETRY},
		{OPT_ACK_TIMEOUT, HW_QP_TIMEOUT},
	};
	unsigned hw = 0;

	for (size_t i = 0; i < COUNT(map); i++)
		if (opt & map[i].opt)
			hw |= map[i].hw;
	return hw;
}

static int read_qpc(
	struct uverbs_file *file, const struct uverbs_mbox *m, const uint8_t *qpc, struct hw_qp_mod *mod)
{
	const uint8_t *ads = qpc + PRM_qpc_primary_address_path_byte;
	unsigned mtu = (unsigned)prm_get(qpc, PRM_qpc_mtu),
		 max_reads = 1u << hw_fact(file->dev, PROFILE_LOG_READS);

	mod->dest_qpn = (uint32_t)prm_get(qpc, PRM_qpc_remote_qpn);
	mod->min_rnr_timer = (uint8_t)prm_get(qpc, PRM_qpc_min_rnr_nak);
	mod->retry_cnt = (uint8_t)prm_get(qpc, PRM_qpc_retry_count);
	mod->rnr_retry = (uint8_t)prm_get(qpc, PRM_qpc_rnr_retry);
	mod->timeout = (uint8_t)prm_get(ads, PRM_ads_ack_timeout);
	mod->sq_psn = (uint32_t)prm_get(qpc, PRM_qpc_next_send_psn);
	mod->rq_psn = (uint32_t)prm_get(qpc, PRM_qpc_next_rcv_psn);
	mod->max_rd_atomic = (uint8_t)(1u << prm_get(qpc, PRM_qpc_log_sra_max));
	mod->max_dest_rd_atomic = (uint8_t)(1u << prm_get(qpc, PRM_qpc_log_rra_max));
	mod->mtu = (uint16_t)(128u << mtu);
	mod->log_max_msg = (uint8_t)prm_get(qpc, PRM_qpc_log_msg_max);
	mod->log_ack_freq = (uint8_t)prm_get(qpc, PRM_qpc_log_ack_req_freq);
	if ((mod->mask & HW_QP_MTU) && (mtu < 1 || mtu > 5))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_MTU);
	if ((mod->mask & HW_QP_RD_ATOMIC) && mod->max_rd_atomic > max_reads)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_RD_ATOMIC);
	if ((mod->mask & HW_QP_DEST_RD_ATOMIC) && mod->max_dest_rd_atomic > max_reads)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_RD_ATOMIC);
	if ((mod->mask & HW_QP_MAX_MSG) && mod->log_max_msg > UVERBS_LOG_MAX_MSG)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_MAX_MSG);
	return mod->mask & HW_QP_AV ? read_path(file, m, ads, &mod->av) : 0;
}

static int modify_qp(struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m,
	const struct qp_command *c)
{
	bool bare = c->opcode == PRM_OP_2ERR_QP || c->opcode == PRM_OP_2RST_QP;
	struct hw_qp_mod mod = {0}, now;
	uint16_t sq, rq;
	unsigned opt;
	int r;

	if (uverbs_fw_lengths(m, bare ? PRM_SIZE_qp_2err_in : PRM_SIZE_modify_qp_in, PRM_SIZE_modify_qp_out) <
		0)
		return -EREMOTEIO;
	if (!(c->from >> hw_qp_state(t->qp) & 1))
		return uverbs_fw_refuse(m, FW_BAD_STATE, FW_SYN_STATE);
	if (!bare) {
		opt = (unsigned)prm_get(m->in, PRM_modify_qp_in_opt_param_mask);
		if (opt & ~(c->may | OPT_IGNORED))
			return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_FIELD);
		mod.mask = c->sets | optional_to_hw(opt);
		/* The peer of an initiator is in its WQEs */
		if (t->devx && prm_get(t->devx->qpc, PRM_qpc_st) == ST_DCI)
			mod.mask &= ~(unsigned)(HW_QP_AV | HW_QP_DEST | HW_QP_RQ_PSN | HW_QP_DEST_RD_ATOMIC |
						HW_QP_RNR_TIMER);
		hw_qp_query(t->qp, &now, &sq, &rq);
		mod.access = qpc_access(m->in + PRM_modify_qp_in_qpc_byte, now.access, c->opcode, opt);
		r = read_qpc(file, m, m->in + PRM_modify_qp_in_qpc_byte, &mod);
		if (r == 0 && c->opcode == PRM_OP_RST2INIT_QP)
			r = read_port(
				m, m->in + PRM_modify_qp_in_qpc_byte + PRM_qpc_primary_address_path_byte);
		if (r < 0)
			return r;
	}
	if (c->opcode == PRM_OP_INIT2INIT_QP || c->opcode == PRM_OP_RTS2RTS_QP) {
		r = uverbs_fw_modify_queue_group(file, t->qp, m);
		if (r < 0)
			return r;
	}
	r = hw_qp_modify(file->dev, t->qp, c->to, &mod);
	return r < 0 ? uverbs_fw_device_refuses(m, r) : 0;
}

int uverbs_fw_modify_qp(
	struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	for (size_t i = 0; i < COUNT(qp_commands); i++)
		if (qp_commands[i].opcode == uverbs_fw_opcode(m))
			return modify_qp(file, t, m, &qp_commands[i]);
	return -EINVAL;
}

/* ---- query ------------------------------------------------------------------------------ */

int uverbs_fw_query_qp(const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	uint8_t *qpc = m->out + PRM_query_qp_out_qpc_byte, *ads = qpc + PRM_qpc_primary_address_path_byte;
	struct hw_qp_mod mod;
	uint16_t sq, rq;

	if (uverbs_fw_lengths(m, PRM_SIZE_query_qp_in, PRM_query_qp_out_qpc_byte + PRM_SIZE_qpc) < 0)
		return -EREMOTEIO;
	hw_qp_query(t->qp, &mod, &sq, &rq);
	if (t->devx) {
		memcpy(qpc, t->devx->qpc, PRM_SIZE_qpc);
		prm_set(qpc, PRM_qpc_sw_sq_wqebb_counter, uverbs_fw_doorbell(t->devx, 1));
	}
	prm_set(qpc, PRM_qpc_state, hw_qp_state(t->qp));
	prm_set(qpc, PRM_qpc_mtu, mod.mtu ? (unsigned)__builtin_ctz(mod.mtu) - 7 : 0);
	prm_set(qpc, PRM_qpc_remote_qpn, mod.dest_qpn);
	prm_set(qpc, PRM_qpc_retry_count, mod.retry_cnt);
	prm_set(qpc, PRM_qpc_rnr_retry, mod.rnr_retry);
	prm_set(qpc, PRM_qpc_next_send_psn, mod.sq_psn);
	prm_set(qpc, PRM_qpc_next_rcv_psn, mod.rq_psn);
	prm_set(qpc, PRM_qpc_min_rnr_nak, mod.min_rnr_timer);
	prm_set(qpc, PRM_qpc_rre, !!(mod.access & HW_REMOTE_READ));
	prm_set(qpc, PRM_qpc_rwe, !!(mod.access & HW_REMOTE_WRITE));
	prm_set(qpc, PRM_qpc_rae, !!(mod.access & HW_REMOTE_ATOMIC));
	prm_set(qpc, PRM_qpc_log_sra_max, mod.max_rd_atomic ? (unsigned)__builtin_ctz(mod.max_rd_atomic) : 0);
	prm_set(qpc, PRM_qpc_log_rra_max,
		mod.max_dest_rd_atomic ? (unsigned)__builtin_ctz(mod.max_dest_rd_atomic) : 0);
	prm_set(qpc, PRM_qpc_log_ack_req_freq, mod.log_ack_freq);
	prm_set(qpc, PRM_qpc_hw_sq_wqebb_counter, sq);
	prm_set(qpc, PRM_qpc_hw_rq_counter, rq);
	write_path(ads, &mod.av);
	prm_set(ads, PRM_ads_ack_timeout, mod.timeout);
	return 0;
}
