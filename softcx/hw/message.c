/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/message.h"

#include "softcx/hw/atomic.h"
#include "softcx/hw/calc.h"
#include "softcx/hw/clock.h"
#include "softcx/hw/grh.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/mw.h"
#include "softcx/hw/resp.h"
#include "softcx/hw/segment.h"
#include "softcx/hw/split.h"

enum { LOG_MAX_MSG = 30 };

/* Immediate data goes from WQE to CQE as it is. */
static uint32_t raw32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Bytes of one message: QPC.log_msg_max */
static uint64_t max_msg(const struct hw_qp *qp)
{
	bool limited = qp->mod.log_max_msg && !qp->dev->cfg.no_msg_limit;

	return 1ull << (limited ? qp->mod.log_max_msg : LOG_MAX_MSG);
}

/* ---- local data ------------------------------------------------------------------------- */

/* Resolves the data segments from DS @ds on, inline ones included when @access is 0 (a source). */
static int local_data(const struct hw_wqe *w, unsigned ds, unsigned access, struct hw_sgl *sgl)
{
	uint64_t total = 0, is_inline = 0;

	sgl->n = 0;
	while (ds < w->ds) {
		const uint8_t *seg = w->p + ds * WQE_DS;
		uint32_t n = wqe_get32(seg);
		struct hw_span *span = &sgl->span[sgl->n++];

		if (n & WQE_INLINE) {
			n &= ~WQE_INLINE;
			if (access || n > (w->ds - ds) * WQE_DS - 4u)
				return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
			*span = (struct hw_span){.host = (uint8_t *)(uintptr_t)seg + 4, .len = n};
			ds += (n + 4 + WQE_DS - 1) / WQE_DS;
			is_inline += n;
		} else {
			/* No library emits a length of 0, and mlx hardware reads it as 2^31 */
			if (!n && !w->qp->dev->cfg.lenient)
				return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
			if (!hw_key_span(w->qp->dev, wqe_get32(seg + 4), w->qp->pdn, access,
				    wqe_get64(seg + 8), n, span))
				return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
			ds++;
		}
		total += n;
	}
	if (total > max_msg(w->qp))
		return HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	sgl->len = (uint32_t)total;
	sgl->gathered = (uint32_t)(total - is_inline);
	return 0;
}

/* Reads the data of a message if that takes two moments (split.h), or if they are operands: then @sgl becomes
 * the result. Else they are read when they are moved. */
static int read_early(struct hw_wqe *w, struct hw_sgl *sgl, uint8_t result[static WQE_CALC_OPERAND])
{
	int ret = hw_split_read(w, sgl->span, &sgl->n, sgl->len);

	return ret || __builtin_expect(!w->opmod, 1) ? ret : hw_calc_exec(w, sgl, result);
}

/* ---- operations ------------------------------------------------------------------------- */

static int find_peer(struct hw_wqe *w)
{
	if (w->qp->type != HW_DCI)
		w->peer = hw_resp_peer(w->qp);
	return w->peer ? 0 : HW_EXEC_LOST;
}

/* The local data of a message, which is paid for even if its peer is gone, and its peer. With CALC, the
 * message has w->bytes, and its data are still operands. */
static int begin(struct hw_wqe *w, unsigned ds, unsigned access, struct hw_sgl *sgl)
{
	int ret = local_data(w, ds, access, sgl);

	if (ret)
		return ret;
	w->bytes = sgl->len;
	if (__builtin_expect(w->opmod, 0))
		ret = hw_calc_check(w, ds, sgl);
	return ret ? ret : find_peer(w);
}

int hw_message_send(struct hw_wqe *w)
{
	struct hw_msg msg = {.src = w->qp, .solicited = w->fm_ce_se & WQE_SOLICITED};
	uint8_t result[WQE_CALC_OPERAND];
	struct hw_sgl sgl;
	int ret;

	ret = begin(w, 1, 0, &sgl);
	if (ret)
		return ret;
	msg.cqe_opcode = w->opcode == WQE_OP_SEND       ? CQE_OP_RESP_SEND
			 : w->opcode == WQE_OP_SEND_IMM ? CQE_OP_RESP_SEND_IMM
							: CQE_OP_RESP_SEND_INVAL;
	if (w->opcode != WQE_OP_SEND)
		msg.imm_be = raw32(w->p + WQE_IMM);
	if (!hw_segment_choose(w))
		return HW_EXEC_PART;
	ret = read_early(w, &sgl, result);
	if (ret)
		return ret;
	msg.len = sgl.len;
	msg.data = &sgl;
	if (w->qp->clock)
		msg.at = hw_clock_send(w, &sgl);
	hw_inflight_land_writes(w->qp);
	/* The key goes when the message arrives, so not before there is a RECV for it */
	if (w->opcode == WQE_OP_SEND_INVAL && hw_qp_recvs(w->peer) &&
		!hw_key_invalidate(w->peer->dev, wqe_get32(w->p + WQE_IMM), w->peer->pdn, true) &&
		!hw_key_invalidate(
			w->peer->dev, wqe_get32(w->p + WQE_IMM), hw_mw_owner_qp(w->peer->qpn), true))
		return HW_FAULT(CQE_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	return hw_resp_recv(w->peer, &msg);
}

int hw_message_datagram(struct hw_wqe *w)
{
	struct hw_msg msg = {.src = w->qp, .solicited = w->fm_ce_se & WQE_SOLICITED, .datagram = true};
	struct hw_qp *qp = w->qp;
	struct hw_av av;
	struct hw_sgl sgl;
	int ret;

	if (w->ds < WQE_UD_SGE_DS)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	av = hw_datagram_av(qp->dev, w->p);
	ret = local_data(w, WQE_UD_SGE_DS, 0, &sgl);
	if (!ret)
		ret = hw_split_read(w, sgl.span, &sgl.n, sgl.len);
	if (ret)
		return ret;
	w->bytes = sgl.len;
	w->peer = hw_resp_datagram_peer(
		qp, &av, wqe_get32(w->p + WQE_UD_DQPN) & 0xffffff, wqe_get32(w->p + WQE_UD_QKEY));
	if (qp->clock)
		msg.at = hw_clock_send(w, &sgl);
	if (!w->peer)
		return 0;
	msg.cqe_opcode = w->opcode == WQE_OP_SEND ? CQE_OP_RESP_SEND : CQE_OP_RESP_SEND_IMM;
	if (w->opcode == WQE_OP_SEND_IMM)
		msg.imm_be = raw32(w->p + WQE_IMM);
	msg.has_grh = av.grh || !hw_is_infiniband(qp->dev);
	msg.slid = hw_lid(qp->dev);
	if (msg.has_grh && (hw_is_infiniband(qp->dev) || hw_gid_is_v1(qp->dev, av.sgid_index)))
		hw_ib_grh(msg.grh, qp->dev->gid[av.sgid_index].raw, av.dgid, w->p[WQE_UD_TCLASS],
			av.hop_limit, sgl.len);
	else if (msg.has_grh)
		msg.packet_type = hw_grh(msg.grh, qp->dev->gid[av.sgid_index].raw, av.dgid,
			w->p[WQE_UD_TCLASS], av.hop_limit, sgl.len);
	msg.len = sgl.len + sizeof(msg.grh);
	msg.data = &sgl;
	return hw_resp_recv(w->peer, &msg);
}

/* A copy failed: on the side whose memory is in another process. */
static int unreachable(const struct hw_span *remote)
{
	return remote->host ? HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT)
			    : HW_FAULT(CQE_SYND_REMOTE_OP, HW_VENDOR_REMOTE_OP);
}

/* Its bytes, or those of this part */
static int move_write(struct hw_wqe *w, struct hw_sgl *sgl, struct hw_span *to, bool now)
{
	struct hw_qp *qp = w->qp;
	unsigned one = 1;

	hw_segment_skip(w, sgl->span, &sgl->n);
	hw_segment_skip(w, to, &one);
	if (!now && hw_inflight_write(qp, to, sgl->span, sgl->n, w->part))
		return 0;
	hw_inflight_land_writes(qp);
	return hw_copy(to, 1, sgl->span, sgl->n, w->part) ? 0 : unreachable(to);
}

int hw_message_write(struct hw_wqe *w)
{
	bool imm = w->opcode == WQE_OP_WRITE_IMM, last;
	uint8_t result[WQE_CALC_OPERAND];
	struct hw_sgl sgl;
	struct hw_span to;
	uint64_t at = 0;
	int ret;

	if (w->ds < 2)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = begin(w, 2, 0, &sgl);
	if (ret)
		return ret;
	if (sgl.len) {
		ret = hw_resp_span(w->peer, wqe_get32(w->p + WQE_RKEY), wqe_get64(w->p + WQE_RADDR), w->bytes,
			HW_REMOTE_WRITE, &to);
		if (ret)
			return ret;
	}
	if (imm) {
		uint16_t recvs = hw_qp_recvs(w->peer);

		if (!recvs || recvs >= 0x8000)
			return HW_EXEC_RNR;
	}
	last = hw_segment_choose(w);
	ret = read_early(w, &sgl, result);
	if (ret)
		return ret;
	if (w->qp->clock)
		at = hw_clock_send(w, &sgl);
	if (sgl.len)
		ret = move_write(w, &sgl, &to, w->prompt || imm);
	if (ret)
		return ret;
	if (!last)
		return HW_EXEC_PART;
	if (imm) {
		struct hw_msg msg = {
			.cqe_opcode = CQE_OP_RESP_WRITE_IMM,
			.solicited = w->fm_ce_se & WQE_SOLICITED,
			.imm_be = raw32(w->p + WQE_IMM),
			.src = w->qp,
			.len = sgl.len,
			.at = at,
		};

		hw_inflight_land_writes(w->qp);
		return hw_resp_recv(w->peer, &msg);
	}
	return 0;
}

/* More READs and atomics under way than the responder has resources for. */
static bool too_many(const struct hw_wqe *w)
{
	unsigned can = w->peer->mod.max_dest_rd_atomic, does = w->qp->mod.max_rd_atomic;

	return can && does > can && hw_inflight_reads(w->qp) >= can;
}

/* How many bytes of a response may be delivered in the CQE instead of memory. */
static uint32_t cqe_room(const struct hw_wqe *w)
{
	return !w->cqe || !w->qp->cs_req ? 0 : w->qp->scq->cqe_bytes == 128 ? 64 : 32;
}

int hw_message_read(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	_Alignas(8) uint8_t buf[HW_INFLIGHT_READ];
	struct hw_sgl sgl;
	struct hw_span from;
	unsigned one = 1;
	bool ok, last;
	int ret;

	if (w->ds < 2)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = begin(w, 2, HW_LOCAL_WRITE, &sgl);
	if (ret)
		return ret;
	if (qp->clock)
		hw_clock_fetch_data(w, sgl.len, false);
	if (!sgl.len)
		return 0;
	ret = hw_resp_span(w->peer, wqe_get32(w->p + WQE_RKEY), wqe_get64(w->p + WQE_RADDR), sgl.len,
		HW_REMOTE_READ, &from);
	if (ret)
		return ret;
	if (too_many(w))
		return HW_FAULT(CQE_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	hw_inflight_land_writes(qp);
	last = hw_segment_choose(w);
	ret = hw_split_read(w, &from, &one, sgl.len);
	if (ret)
		return ret == HW_EXEC_STOP ? ret : unreachable(&from);
	if (sgl.len <= cqe_room(w)) {
		w->inl = true;
		ok = hw_gather(w->inl_data, &from, 1, sgl.len);
	} else if (!w->prompt && sgl.len <= sizeof(buf)) {
		uint8_t *room = hw_inflight_room(qp), *data = room ? room : buf;

		ok = hw_gather(data, &from, 1, sgl.len) &&
		     (hw_inflight_read(qp, sgl.span, sgl.n, data, sgl.len) ||
			     hw_scatter(sgl.span, sgl.n, data, sgl.len));
	} else {
		hw_inflight_land_reads(qp);
		hw_segment_skip(w, sgl.span, &sgl.n);
		hw_segment_skip(w, &from, &one);
		ok = hw_copy(sgl.span, sgl.n, &from, 1, w->part);
	}
	return !ok ? unreachable(&from) : last ? 0 : HW_EXEC_PART;
}

int hw_message_atomic(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	unsigned data_ds, size = hw_atomic_size(w, &data_ds);
	uint64_t va = wqe_get64(w->p + WQE_RADDR);
	struct hw_sgl sgl;
	struct hw_span target;
	uint8_t old[8];
	int ret;

	if (!size || w->ds < data_ds + 1)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = local_data(w, data_ds, HW_LOCAL_WRITE, &sgl);
	if (!ret && sgl.len < size)
		ret = HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	if (!ret)
		ret = find_peer(w);
	if (ret)
		return ret;
	w->bytes = size;
	ret = hw_resp_span(w->peer, wqe_get32(w->p + WQE_RKEY), va, size, HW_REMOTE_ATOMIC, &target);
	if (ret)
		return ret;
	if (va & (size - 1) || (uintptr_t)target.host & (size - 1) || too_many(w))
		return HW_FAULT(CQE_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	if (qp->clock)
		hw_clock_fetch_data(w, size, true);
	hw_inflight_land_writes(qp);
	if (!hw_atomic_exec(w, &target, size, old))
		return HW_FAULT(CQE_SYND_REMOTE_OP, HW_VENDOR_REMOTE_OP);
	/* poll_cq of libmlx5 copies data out of the CQE for plain atomics only */
	if (cqe_room(w) && (w->opcode == WQE_OP_CAS || w->opcode == WQE_OP_FETCH_ADD)) {
		w->inl = true;
		memcpy(w->inl_data, old, size);
		return 0;
	}
	if (!w->prompt && hw_inflight_read(qp, sgl.span, sgl.n, old, size))
		return 0;
	hw_inflight_land_reads(qp);
	return hw_scatter(sgl.span, sgl.n, old, size) ? 0 : HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
}
