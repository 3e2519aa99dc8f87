/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/resp.h"

#include "mlx5/wqe.h"
#include "softcx/hw/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hw_gid_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (gid[11] == 0xff && gid[12] == 0xfe) { /* EUI-64: the MAC with ff:fe inside, U/L bit flipped */
		const uint8_t eui[6] = {gid[8] ^ 2, gid[9], gid[10], gid[13], gid[14], gid[15]};

		memcpy(mac, eui, 6);
		return;
	}
	mac[0] = 0x02;
	mac[1] = 0;
	memcpy(mac + 2, gid + 12, 4);
}

/*
 * struct mlx5_wqe_av: the index of the source GID is in bits 27:20 of grh_gid_fl; in rlid is the UDP port, on
 * InfiniBand the LID. Bit 30 is for InfiniBand, where a GRH is optional (rdma-core, mlx5_create_ah()).
 */
struct hw_av hw_datagram_av(const struct hw_dev *dev, const uint8_t *wqe)
{
	uint32_t grh = wqe_get32(wqe + WQE_UD_GRH);
	struct hw_av av = {
		.grh = hw_is_infiniband(dev) && grh >> 30 & 1,
		.dlid = wqe_get16(wqe + WQE_UD_SPORT),
		.sgid_index = grh >> 20 & (HW_GIDS - 1),
		.hop_limit = wqe[WQE_UD_HOP_LIMIT],
		.dscp = wqe[WQE_UD_TCLASS] >> 2,
		.udp_sport = wqe_get16(wqe + WQE_UD_SPORT),
	};

	memcpy(av.dgid, wqe + WQE_UD_RGID, sizeof(av.dgid));
	memcpy(av.dmac, wqe + WQE_UD_RMAC, sizeof(av.dmac));
	return av;
}

static enum hw_lost lost(const struct hw_av *av, const struct hw_dev *to)
{
	uint8_t mac[6];

	if (!to)
		return HW_LOST_GID;
	hw_gid_mac(av->dgid, mac);
	if (memcmp(mac, av->dmac, sizeof(mac)) != 0)
		return HW_LOST_MAC;
	return av->hop_limit ? HW_LOST_ELSEWHERE : HW_LOST_HOPS;
}

static enum hw_lost lost_in_subnet(const struct hw_av *av, const struct hw_dev *to)
{
	if (!to)
		return HW_LOST_LID;
	return !av->grh || hw_has_gid(to, av->dgid) ? HW_LOST_ELSEWHERE : HW_LOST_GRH;
}

struct hw_dev *hw_route(struct hw_dev *from, const struct hw_av *av, enum hw_lost *why)
{
	bool infiniband = hw_is_infiniband(from);
	struct hw_dev *to = av->loopback                 ? from
			    : infiniband                 ? hw_dev_by_lid(av->dlid)
			    : hw_has_gid(from, av->dgid) ? from
							 : hw_dev_by_gid(av->dgid);
	enum hw_lost reason = av->loopback ? HW_LOST_ELSEWHERE
			      : infiniband ? lost_in_subnet(av, to)
					   : lost(av, to);

	if (why)
		*why = reason;
	return reason == HW_LOST_ELSEWHERE ? to : NULL;
}

enum { NEXT_SEG = 16, NEXT_INDEX = 2 };

int hw_srq_create(struct hw_dev *dev, const struct hw_srq_attr *attr, struct hw_srq **out)
{
	struct hw_srq *srq;
	int err;

	if (!attr->wqes || attr->wqes > 65536 || attr->wqes & (attr->wqes - 1) || attr->stride < 32 ||
		attr->stride & (attr->stride - 1))
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->dev = dev;
	srq->pdn = attr->pdn;
	srq->wqes = attr->wqes;
	srq->stride = attr->stride;
	srq->cyclic = attr->cyclic;
	srq->on_event = attr->on_event;
	srq->arg = attr->arg;
	srq->ring = hw_mem_pin(dev, attr->buf, attr->buf_off, (uint64_t)attr->wqes * attr->stride, 16);
	srq->buf_mem = srq->ring ? attr->buf : NULL;
	srq->db = hw_mem_pin(dev, attr->db, attr->db_off, 4, 4);
	srq->db_mem = srq->db ? attr->db : NULL;
	err = srq->ring && srq->db ? hw_pd_ref(dev, attr->pdn) : -EINVAL;
	if (!err) {
		err = hw_table_add(&dev->srqs, srq, &srq->srqn);
		if (err)
			hw_pd_unref(dev, attr->pdn);
	}
	if (err) {
		hw_mem_unpin(dev, srq->buf_mem);
		hw_mem_unpin(dev, srq->db_mem);
		free(srq);
		return err;
	}
	*out = srq;
	return 0;
}

int hw_srq_destroy(struct hw_dev *dev, struct hw_srq *srq)
{
	if (srq->refs)
		return -EBUSY;
	hw_table_del(&dev->srqs, srq->srqn);
	hw_pd_unref(dev, srq->pdn);
	hw_mem_unpin(dev, srq->buf_mem);
	hw_mem_unpin(dev, srq->db_mem);
	free(srq);
	return 0;
}

int hw_srq_limit(struct hw_srq *srq, uint16_t limit)
{
	srq->limit = limit;
	return 0;
}

uint32_t hw_srqn(const struct hw_srq *srq)
{
	return srq->srqn;
}

uint16_t hw_srq_posted(const struct hw_srq *srq)
{
	return (uint16_t)(hw_db_read(srq->db) - srq->consumed);
}

/* Takes the next WQE: its scatter list, room for @max segments, and its index. Only if one is posted. */
static const uint8_t *srq_take(struct hw_srq *srq, unsigned *max, uint16_t *idx)
{
	const uint8_t *wqe = srq->ring + (size_t)(srq->head & (srq->wqes - 1)) * srq->stride;

	*idx = srq->cyclic ? srq->head : srq->head & (srq->wqes - 1);
	*max = srq->stride / WQE_DS - 1;
	srq->head = srq->cyclic ? srq->head + 1 : wqe_get16(wqe + NEXT_INDEX);
	srq->consumed++;
	if (srq->limit && hw_srq_posted(srq) < srq->limit) {
		srq->limit = 0;
		if (srq->on_event)
			srq->on_event(srq->arg, HW_EV_SRQ_LIMIT);
	}
	return wqe + NEXT_SEG;
}

struct hw_dev *hw_resp_dev(struct hw_qp *qp)
{
	if (!qp->peer_dev && qp->mod.mask & HW_QP_AV)
		qp->peer_dev = hw_route(qp->dev, &qp->mod.av, NULL);
	return qp->peer_dev;
}

static bool receives(const struct hw_qp *qp)
{
	return (1u << HW_RTR | 1u << HW_RTS | 1u << HW_SQD | 1u << HW_SQER) >> qp->state & 1;
}

static void note_arrival(struct hw_qp *peer)
{
	if (peer->state == HW_RTR && !peer->established) {
		peer->established = true;
		hw_qp_event(peer, HW_EV_COMP_EST);
	}
}

/* A packet on a loop-back address path does not pass the port. */
static bool carried(const struct hw_qp *qp, const struct hw_dev *to)
{
	return (!qp->dev->port_down && !to->port_down) || (qp->mod.av.loopback && to == qp->dev);
}

/* The packets of RoCE v1 and v2 differ (annexes A16, A17), and a connected queue has those of its own GID.
 * That it takes no others is assumed. */
static bool same_packets(const struct hw_qp *a, const struct hw_qp *b)
{
	return (a->mod.av.loopback && b->mod.av.loopback) ||
	       hw_gid_is_v1(a->dev, a->mod.av.sgid_index) == hw_gid_is_v1(b->dev, b->mod.av.sgid_index);
}

struct hw_qp *hw_resp_peer(struct hw_qp *qp)
{
	struct hw_dev *dev = hw_resp_dev(qp);
	struct hw_qp *peer = dev ? hw_qp_get(dev, qp->mod.dest_qpn) : NULL;

	if (!peer || peer->type != qp->type || !receives(peer) || !carried(qp, dev))
		return NULL;
	if (peer->mod.dest_qpn != qp->qpn || hw_resp_dev(peer) != qp->dev || !same_packets(qp, peer))
		return NULL;
	/* UC takes the first packet of a message with any number: IB 9.8 */
	if (qp->type == HW_RC && peer->mod.rq_psn != qp->mod.sq_psn && !qp->dev->cfg.lenient)
		return NULL;
	note_arrival(peer);
	return peer;
}

struct hw_qp *hw_resp_datagram_peer(struct hw_qp *qp, const struct hw_av *av, uint32_t qpn, uint32_t qkey)
{
	struct hw_dev *dev = hw_route(qp->dev, av, NULL);
	struct hw_qp *peer = dev ? hw_qp_find(dev, qpn) : NULL;

	if (qkey & 0x80000000) /* IB: a Q_Key with the top bit set means the sender's own */
		qkey = qp->mod.qkey;
	if (!peer || peer->type != HW_UD || !receives(peer) || !carried(qp, dev) || peer->mod.qkey != qkey)
		return NULL;
	note_arrival(peer);
	return peer;
}

struct hw_qp *hw_resp_target(struct hw_qp *qp, const struct hw_av *av, uint32_t dctn, uint64_t key)
{
	struct hw_dev *dev = hw_route(qp->dev, av, NULL);
	struct hw_qp *target = dev ? hw_qp_find(dev, dctn) : NULL;

	if (!target || target->type != HW_DCT || !receives(target) || !carried(qp, dev) ||
		target->dc_key != key)
		return NULL;
	return target;
}

/* It is no key of the PD: perhaps a window, or nothing at all. */
__attribute__((noinline)) static int span_of_window(
	struct hw_qp *peer, uint32_t rkey, uint64_t va, uint32_t len, unsigned right, struct hw_span *out)
{
	if ((peer->mod.access & right) &&
		(hw_key_span(peer->dev, rkey, hw_mw_owner_pd(peer->pdn), right, va, len, out) ||
			hw_key_span(peer->dev, rkey, hw_mw_owner_qp(peer->qpn), right, va, len, out)))
		return 0;
	return HW_FAULT(CQE_SYND_REMOTE_ACCESS, HW_VENDOR_ACCESS) | HW_FAULT_PEER | HW_FAULT_PEER_ACCESS;
}

int hw_resp_span(
	struct hw_qp *peer, uint32_t rkey, uint64_t va, uint32_t len, unsigned right, struct hw_span *out)
{
	if ((peer->mod.access & right) && hw_key_span(peer->dev, rkey, peer->pdn, right, va, len, out))
		return 0;
	return span_of_window(peer, rkey, va, len, right, out);
}

/* The scatter list of the next RECV. */
static const uint8_t *take(struct hw_qp *peer, unsigned *max, uint16_t *idx)
{
	if (peer->srq)
		return srq_take(peer->srq, max, idx);
	*idx = peer->rq_ci;
	*max = peer->rq_stride / WQE_DS;
	return hw_qp_take_recv(peer);
}

/* Resolves as much of a scatter list as @len bytes need. 0 or the syndrome for the receiver. */
static uint8_t resolve(struct hw_qp *peer, const uint8_t *seg, unsigned max, uint32_t len, struct hw_sgl *to)
{
	uint32_t pdn = peer->srq ? peer->srq->pdn : peer->pdn;

	to->n = 0;
	to->len = 0;
	for (unsigned i = 0; i < max && i < WQE_MAX_DS && to->len < len; i++, seg += WQE_DS) {
		uint32_t n = wqe_get32(seg) & ~WQE_INLINE, key = wqe_get32(seg + 4);

		if (!n && key == WQE_LKEY_NONE)
			break;
		if (!n)
			continue;
		if (n > len - to->len)
			n = len - to->len;
		if (!hw_key_span(
			    peer->dev, key, pdn, HW_LOCAL_WRITE, wqe_get64(seg + 8), n, &to->span[to->n]))
			return CQE_SYND_LOCAL_PROT;
		to->n++;
		to->len += n;
	}
	return to->len < len ? CQE_SYND_LOCAL_LENGTH : 0;
}

enum { ANY_ORDER_BYTES = 512 }; /* longer messages fill their scatter list from the front */

static bool put_data(struct hw_dev *dev, const struct hw_sgl *to, const struct hw_msg *m)
{
	struct hw_span all[WQE_MAX_DS + 1];
	uint8_t buf[ANY_ORDER_BYTES];

	if (to->n > 1 && m->len <= sizeof(buf) && !m->datagram && !dev->cfg.lenient && hw_pick(dev, 2))
		return hw_gather(buf, m->data->span, m->data->n, m->len) &&
		       hw_scatter_backwards(to->span, to->n, buf);
	if (!m->datagram)
		return hw_copy(to->span, to->n, m->data->span, m->data->n, m->len);
	all[0] = (struct hw_span){.host = (uint8_t *)(uintptr_t)m->grh, .len = sizeof(m->grh)};
	memcpy(&all[1], m->data->span, m->data->n * sizeof(all[0]));
	return hw_copy(to->span, to->n, all, m->data->n + 1, m->len);
}

static void trace_recv(const struct hw_qp *peer, const struct hw_msg *m, const struct hw_cqe *cqe,
	const uint8_t *seg, unsigned max)
{
	struct hw_trace t = {
		.kind = HW_TRACE_RECV,
		.qpn = peer->qpn,
		.idx = cqe->wqe_counter,
		.syndrome = cqe->syndrome,
		.type = (uint8_t)peer->type,
		.ds = (uint8_t)(max < WQE_MAX_DS ? max : WQE_MAX_DS),
		.cqn = peer->rcq->cqn,
		.number = m->len,
		.wqe = seg,
	};

	peer->dev->trace(peer->dev->trace_arg, &t);
}

int hw_resp_recv(struct hw_qp *peer, const struct hw_msg *m)
{
	uint16_t posted = hw_qp_recvs(peer);
	struct hw_cqe cqe = {
		.rqpn = m->src->qpn | (uint32_t)(m->has_grh ? 1 : 0) << 28 | (uint32_t)m->packet_type << 24,
		.slid = m->slid,
		.user_index = peer->user_index,
		.real_time = peer->real_time,
		.imm_be = m->imm_be,
		.byte_cnt = m->len,
		.sop_qpn = peer->qpn,
		.opcode = m->cqe_opcode,
		.solicited = m->solicited,
		.at = m->at,
	};
	struct hw_sgl to;
	uint8_t inl[64], synd = 0;
	const uint8_t *seg;
	unsigned max;

	/* A RECV index behind what was consumed is no RECV */
	if (!posted || posted >= 0x8000)
		return HW_EXEC_RNR;
	m->src->unanswered++;
	seg = take(peer, &max, &cqe.wqe_counter);
	if (m->data && m->len) {
		uint32_t room = !peer->cs_res || m->datagram ? 0 : peer->rcq->cqe_bytes == 128 ? 64 : 32;

		synd = resolve(peer, seg, max, m->len, &to);
		if (!synd && m->len <= room) {
			cqe.inl = inl;
			cqe.inl_len = m->len;
			if (!hw_gather(inl, m->data->span, m->data->n, m->len))
				return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
		} else if (!synd && !put_data(peer->dev, &to, m)) {
			synd = CQE_SYND_LOCAL_PROT;
		}
	}
	if (synd) {
		cqe.opcode = CQE_OP_RESP_ERR;
		cqe.syndrome = synd;
		cqe.vendor = synd == CQE_SYND_LOCAL_LENGTH ? HW_VENDOR_LENGTH : HW_VENDOR_PROT;
		cqe.solicited = false;
	}
	if (__builtin_expect(peer->dev->trace != NULL, 0))
		trace_recv(peer, m, &cqe, seg, max);
	hw_qp_complete(peer, peer->rcq, &cqe);
	if (!synd)
		return 0;
	return HW_FAULT_PEER |
	       (synd == CQE_SYND_LOCAL_LENGTH ? HW_FAULT(CQE_SYND_REMOTE_INVAL, HW_VENDOR_INVAL)
					      : HW_FAULT(CQE_SYND_REMOTE_OP, HW_VENDOR_REMOTE_OP));
}

/* IB table 45, in units of 10 us */
uint64_t hw_resp_rnr_ns(uint8_t min_rnr_timer)
{
	static const uint16_t tens_of_us[32] = {65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
		49152};

	return tens_of_us[min_rnr_timer & 31] * 10000ull;
}
