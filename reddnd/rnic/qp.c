/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/qp.h"

#include "mlx5/prm.h"
#include "reddnd/rnic/devx.h"
#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"
#include "util/array.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

enum { UAR_DOORBELL = 0x800, DB_RECV = 0, DB_SEND = 1 };

/* Event types, Linux include/linux/mlx5/device.h */
enum { EVENT_QP_FATAL = 0x05, EVENT_QP_REQUEST = 0x10, EVENT_QP_ACCESS = 0x11 };

enum { RC_SERVICE = 0, PATH_MIGRATED = 3, RQ_NONE = 3, LOG_MSG_MAX = 30 };

/* Bits of opt_param_mask, Linux include/linux/mlx5/qp.h */
enum { OPT_RRE = 1 << 1, OPT_RAE = 1 << 2, OPT_RWE = 1 << 3 };

static unsigned log2_of(uint32_t v)
{
	assert(v && (v & (v - 1)) == 0);
	return (unsigned)__builtin_ctz(v);
}

static uint8_t log_at_most(unsigned wanted, unsigned log_max)
{
	uint8_t log = 0;

	while (log < log_max && 1u << log < wanted)
		log++;
	return log;
}

/* Error CQEs report nearly everything, so a device without these events suffices */
static void watch_qp(struct rnic_qp *qp, uint64_t cookie)
{
	const uint16_t events[] = {EVENT_QP_FATAL, EVENT_QP_REQUEST, EVENT_QP_ACCESS};
	int r = cookie ? rnic_queue_subscribe(qp->dev, 0, qp->handle, events, COUNT(events), cookie) : 0;

	if (r < 0)
		log_debug("queue pair %#x: no events: %s", qp->qpn, strerror(-r));
}

static struct rnic_qp place_qp(const struct rnic_block *block, const struct rnic_qp_attr *attr)
{
	size_t rq_bytes = (size_t)attr->rq_entries * attr->rq_stride;

	return (struct rnic_qp){
		.rq = rq_bytes ? block->mem + attr->wq_off : NULL,
		.sq = block->mem + attr->wq_off + rq_bytes,
		.sq_wqebbs = attr->sq_wqebbs,
		.db = (uint32_t *)(block->mem + attr->db_off),
		.log_max_message =
			attr->max_message ? log_at_most(attr->max_message, LOG_MSG_MAX) : LOG_MSG_MAX,
	};
}

uint16_t rnic_qp_posted_at(const uint8_t *db)
{
	return (uint16_t)be32toh(((const uint32_t *)db)[DB_SEND]);
}

static int adopt_qp(struct rnic_qp *qp, const struct rnic_block *block, const struct rnic_qp_attr *attr)
{
	const struct ledger_object *o = rnic_find_object(block->slot, LEDGER_QP, attr->wq_off);

	*qp = (struct rnic_qp){0};
	if (!o || o->entries != attr->sq_wqebbs || o->rq_entries != attr->rq_entries ||
		(o->rq_entries && o->rq_stride != attr->rq_stride) || o->db_off != attr->db_off ||
		o->cookie != attr->cookie)
		return -EBADMSG;
	*qp = place_qp(block, attr);
	qp->dev = block->dev;
	qp->slot = block->slot;
	qp->handle = o->handle;
	qp->qpn = o->number;
	qp->sq_posted = rnic_qp_posted_at((const uint8_t *)qp->db);
	watch_qp(qp, attr->cookie);
	return 0;
}

int rnic_qp_init(struct rnic_qp *qp, const struct rnic_block *block, const struct rnic_qp_attr *attr)
{
	uint8_t in[PRM_SIZE_create_qp_in] = {0}, *qpc = in + PRM_create_qp_in_qpc_byte;
	size_t rq_bytes = (size_t)attr->rq_entries * attr->rq_stride;
	struct rnic_device *dev = block->dev;
	int r;

	if (block->adopted)
		return adopt_qp(qp, block, attr);
	*qp = place_qp(block, attr);
	qp->db[DB_RECV] = qp->db[DB_SEND] = 0;
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_QP);
	prm_set(in, PRM_create_qp_in_wq_umem_offset, attr->wq_off);
	prm_set(in, PRM_create_qp_in_wq_umem_id, block->umem_id);
	prm_set(in, PRM_create_qp_in_wq_umem_valid, 1);
	prm_set(qpc, PRM_qpc_st, RC_SERVICE);
	prm_set(qpc, PRM_qpc_pm_state, PATH_MIGRATED);
	prm_set(qpc, PRM_qpc_pd, block->pd->pdn);
	prm_set(qpc, PRM_qpc_uar_page, dev->uar.page_id);
	prm_set(qpc, PRM_qpc_log_sq_size, log2_of(attr->sq_wqebbs));
	if (rq_bytes) {
		prm_set(qpc, PRM_qpc_log_rq_size, log2_of(attr->rq_entries));
		prm_set(qpc, PRM_qpc_log_rq_stride, log2_of(attr->rq_stride / 16));
	} else {
		prm_set(qpc, PRM_qpc_rq_type, RQ_NONE);
	}
	prm_set(qpc, PRM_qpc_cqn_snd, attr->send_cq->cqn);
	prm_set(qpc, PRM_qpc_cqn_rcv, (attr->recv_cq ? attr->recv_cq : attr->send_cq)->cqn);
	prm_set(qpc, PRM_qpc_dbr_umem_valid, 1);
	prm_set(qpc, PRM_qpc_dbr_umem_id, block->umem_id);
	prm_set(qpc, PRM_qpc_dbr_addr, attr->db_off);
	/* A device in real-time clock mode refuses free-running timestamps, which are 0. CQs have no such
	 * field
	 */
	prm_set(qpc, PRM_qpc_ts_format, dev->caps.ts_formats ? PRM_TS_DEFAULT : PRM_TS_FREE_RUNNING);
	/* WAIT and SEND_EN take a master; a managed SQ is the slave of a SEND_EN, and may be both */
	prm_set(qpc, PRM_qpc_cd_master, !attr->plain);
	prm_set(qpc, PRM_qpc_cd_slave_send, attr->managed);
	prm_set(qpc, PRM_qpc_cd_slave_receive, attr->managed_rq);
	/* Received and read bytes must go to the scatter list, never into the CQE */
	prm_set(qpc, PRM_qpc_cs_req, 0);
	prm_set(qpc, PRM_qpc_cs_res, 0);
	r = rnic_queue_create(dev, "queue pair", in, sizeof(in), &qp->handle, &qp->qpn);
	if (r < 0)
		return r;
	qp->dev = dev;
	qp->slot = block->slot;
	ledger_made(qp->slot, &(struct ledger_object){.type = LEDGER_QP,
				      .handle = qp->handle,
				      .number = qp->qpn,
				      .entries = attr->sq_wqebbs,
				      .offset = attr->wq_off,
				      .db_off = attr->db_off,
				      .cookie = attr->cookie,
				      .rq_entries = attr->rq_entries,
				      .rq_stride = attr->rq_stride});
	watch_qp(qp, attr->cookie);
	return 0;
}

/*
 * The split of Linux's mlx5_set_path(): some fields exist on one link layer only, and are reserved on the
 * other. There is no static rate: the rate that a path record or a REQ has is of another coding than
 * ads.stat_rate, and it is the client's choice; the congestion control of the network limits senders.
 */
static void set_address(uint8_t *ads, const struct rnic_path *path, bool infiniband)
{
	prm_set(ads, PRM_ads_vhca_port_num, path->port);
	prm_set(ads, PRM_ads_pkey_index, path->pkey_index);
	if (path->loopback) {
		prm_set(ads, PRM_ads_fl, 1);
		return;
	}
	if (infiniband) {
		prm_set(ads, PRM_ads_grh, path->grh);
		prm_set(ads, PRM_ads_rlid, path->dlid);
		prm_set(ads, PRM_ads_mlid, path->src_path_bits);
		prm_set(ads, PRM_ads_sl, path->sl);
	} else {
		memcpy(ads + PRM_ads_rmac_47_32_byte, path->dmac, sizeof(path->dmac));
		prm_set(ads, PRM_ads_eth_prio, path->sl & 7);
		prm_set(ads, PRM_ads_udp_sport, path->udp_sport);
		prm_set(ads, PRM_ads_dscp, path->traffic_class >> 2);
	}
	if (infiniband && !path->grh)
		return;
	prm_set(ads, PRM_ads_src_addr_index, path->sgid_index);
	prm_set(ads, PRM_ads_hop_limit, path->hop_limit);
	prm_set(ads, PRM_ads_tclass, path->traffic_class);
	prm_set(ads, PRM_ads_flow_label, path->flow_label);
	memcpy(ads + PRM_ads_rgid_rip_byte, path->dgid, sizeof(path->dgid));
}

static int modify(struct rnic_qp *qp, enum prm_opcode op, uint8_t *in, size_t in_size)
{
	uint8_t out[PRM_SIZE_modify_qp_out] = {0};
	int r;

	prm_set(in, PRM_in_opcode, op);
	prm_set(in, PRM_in_objn, qp->qpn);
	r = rnic_devx_modify(qp->dev->ctx->cmd_fd, qp->handle, in, in_size, out, sizeof(out));
	return r < 0 ? log_errno(r, "queue pair %#x: command %#x failed (firmware status %#x, syndrome %#x)",
			       qp->qpn, (unsigned)op, (unsigned)prm_get(out, PRM_out_status),
			       (unsigned)prm_get(out, PRM_out_syndrome))
		     : 0;
}

/* QPC.state, Linux include/linux/mlx5/qp.h (enum mlx5_qp_state) */
enum { STATE_SQ_ERROR = 4, STATE_ERROR = 6 };

int rnic_qp_is_broken(const struct rnic_qp *qp)
{
	uint8_t in[PRM_SIZE_query_qp_in] = {0}, out[PRM_SIZE_query_qp_out] = {0};
	unsigned state;
	int r;

	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_QP);
	prm_set(in, PRM_in_objn, qp->qpn);
	r = rnic_devx_query(qp->dev->ctx->cmd_fd, qp->handle, in, sizeof(in), out, sizeof(out));
	if (r < 0)
		return r;
	state = (unsigned)prm_get(out + PRM_query_qp_out_qpc_byte, PRM_qpc_state);
	return state == STATE_ERROR || state == STATE_SQ_ERROR;
}

static void set_access(uint8_t *qpc, const struct rnic_device *dev, bool remote)
{
	prm_set(qpc, PRM_qpc_rre, remote);
	prm_set(qpc, PRM_qpc_rwe, remote);
	prm_set(qpc, PRM_qpc_rae, remote);
	prm_set(qpc, PRM_qpc_atomic_mode, rnic_caps_atomic_mode(&dev->caps));
}

int rnic_qp_connect(struct rnic_qp *qp, const struct rnic_path *path)
{
	const size_t qpc_off = PRM_modify_qp_in_qpc_byte,
		     ads_off = qpc_off + PRM_qpc_primary_address_path_byte;
	uint8_t init[PRM_SIZE_modify_qp_in] = {0}, rtr[PRM_SIZE_modify_qp_in] = {0};
	uint8_t rts[PRM_SIZE_modify_qp_in] = {0};
	int r;

	prm_set(init + qpc_off, PRM_qpc_pm_state, PATH_MIGRATED);
	prm_set(init + ads_off, PRM_ads_vhca_port_num, path->port);
	prm_set(init + ads_off, PRM_ads_pkey_index, path->pkey_index);
	r = modify(qp, PRM_OP_RST2INIT_QP, init, sizeof(init));
	if (r < 0)
		return r;

	set_address(rtr + ads_off, path, qp->dev->caps.infiniband);
	/* Linux and UCX set the rights here, with their bits in the mask; before, the firmware may ignore
	 * them */
	prm_set(rtr, PRM_modify_qp_in_opt_param_mask, OPT_RRE | OPT_RAE | OPT_RWE);
	set_access(rtr + qpc_off, qp->dev, path->remote_access);
	prm_set(rtr + qpc_off, PRM_qpc_mtu, path->mtu);
	prm_set(rtr + qpc_off, PRM_qpc_log_msg_max, qp->log_max_message);
	prm_set(rtr + qpc_off, PRM_qpc_remote_qpn, path->dest_qpn);
	prm_set(rtr + qpc_off, PRM_qpc_next_rcv_psn, path->rq_psn);
	prm_set(rtr + qpc_off, PRM_qpc_log_rra_max, path->log_rd_dest);
	prm_set(rtr + qpc_off, PRM_qpc_min_rnr_nak, path->min_rnr_timer);
	r = modify(qp, PRM_OP_INIT2RTR_QP, rtr, sizeof(rtr));
	if (r < 0)
		return r;

	prm_set(rts + ads_off, PRM_ads_ack_timeout, path->timeout);
	prm_set(rts + qpc_off, PRM_qpc_log_ack_req_freq, path->log_ack_req_freq);
	prm_set(rts + qpc_off, PRM_qpc_log_sra_max, path->log_rd_atomic);
	prm_set(rts + qpc_off, PRM_qpc_retry_count, path->retry_cnt);
	prm_set(rts + qpc_off, PRM_qpc_rnr_retry, path->rnr_retry);
	prm_set(rts + qpc_off, PRM_qpc_next_send_psn, path->sq_psn);
	prm_set(rts + qpc_off, PRM_qpc_min_rnr_nak, path->min_rnr_timer);
	return modify(qp, PRM_OP_RTR2RTS_QP, rts, sizeof(rts));
}

/*
 * The first PSN of two queues of this process, the same for both. They grant all remote access, and only the
 * PSN distinguishes their packets from forged ones of another host.
 */
static uint32_t first_psn(const struct rnic_qp *qp, const struct rnic_device *other, uint32_t peer)
{
	uint64_t secret = (uint64_t)qp->dev->psn_secret + other->psn_secret,
		 x = (secret << 32) + qp->qpn + peer;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (uint32_t)(x >> 40);
}

static int connect_by(struct rnic_qp *qp, struct rnic_path path, const struct rnic_device *other,
	uint32_t peer, unsigned rd_atomic)
{
	const struct rnic_caps *caps = &qp->dev->caps;

	path.dest_qpn = peer;
	path.rq_psn = path.sq_psn = first_psn(qp, other, peer);
	path.remote_access = true;
	path.log_rd_atomic = log_at_most(rd_atomic, caps->log_rd_atomic);
	path.log_rd_dest = log_at_most(rd_atomic, caps->log_rd_dest);
	path.min_rnr_timer = 1;
	path.timeout = 14;
	path.retry_cnt = path.rnr_retry = 7;
	return rnic_qp_connect(qp, &path);
}

int rnic_qp_connect_local(struct rnic_qp *qp, uint32_t peer, unsigned rd_atomic)
{
	return connect_by(qp, qp->dev->own, qp->dev, peer, rd_atomic);
}

int rnic_qp_connect_by_address(struct rnic_qp *qp, const struct rnic_qp *peer, unsigned rd_atomic)
{
	struct rnic_path path;
	int r = rnic_path_to(qp->dev, peer->dev, &path);

	return r < 0 ? r : connect_by(qp, path, peer->dev, peer->qpn, rd_atomic);
}

int rnic_qp_connect_self(struct rnic_qp *qp, unsigned rd_atomic)
{
	return rnic_qp_connect_local(qp, qp->qpn, rd_atomic);
}

void rnic_qp_stop(struct rnic_qp *qp)
{
	uint8_t in[PRM_SIZE_qp_2err_in] = {0};

	if (qp->dev)
		modify(qp, PRM_OP_2ERR_QP, in, sizeof(in));
}

int rnic_qp_deinit(struct rnic_qp *qp)
{
	int r = qp->dev ? rnic_devx_destroy(qp->dev->ctx->cmd_fd, RNIC_DEVX_OBJ, qp->handle) : 0;

	if (r < 0)
		log_error("cannot destroy queue pair %#x: %s", qp->qpn, strerror(-r));
	else if (qp->dev)
		ledger_gone(qp->slot, LEDGER_QP, qp->handle);
	*qp = (struct rnic_qp){0};
	return r;
}

void rnic_qp_post_recvs(struct rnic_qp *qp, uint32_t count)
{
	rnic_queue_store_record(&qp->db[DB_RECV], count & 0xffff);
}

void rnic_qp_ring(struct rnic_qp *qp, uint16_t count)
{
	/* Of the control segment that a doorbell repeats, the device needs index and QPN (PCX qp_ctx::db) */
	uint64_t head = (uint64_t)(uint16_t)(count - 1) << 40 | (uint64_t)qp->qpn << 8;

	qp->sq_posted = count;
	rnic_queue_store_record(&qp->db[DB_SEND], count);
	rnic_queue_ring(qp->dev->uar_page + UAR_DOORBELL, htobe64(head));
}

void rnic_qp_post(struct rnic_qp *qp, const uint8_t wqe[static RNIC_WQEBB_BYTES])
{
	uint8_t *slot = qp->sq + (size_t)(qp->sq_posted & (qp->sq_wqebbs - 1)) * RNIC_WQEBB_BYTES;

	/* Control segment: opmod, index (BE16), opcode, QPN (BE24), DS count */
	memcpy(slot, wqe, RNIC_WQEBB_BYTES);
	slot[1] = (uint8_t)(qp->sq_posted >> 8);
	slot[2] = (uint8_t)qp->sq_posted;
	slot[4] = (uint8_t)(qp->qpn >> 16);
	slot[5] = (uint8_t)(qp->qpn >> 8);
	slot[6] = (uint8_t)qp->qpn;
	rnic_qp_ring(qp, (uint16_t)(qp->sq_posted + 1));
}
