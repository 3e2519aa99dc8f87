/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-exec.h"

#include "hw-atomic.h"
#include "hw-grh.h"
#include "hw-inflight.h"
#include "hw-resp.h"
#include "hw-wait.h"

enum {
	BUDGET = 512, /* WQEs per hw_exec_run */
	BURST = 32,   /* most WQEs of one queue in a turn */
	MAX_RETRY_NS =
		100000000, /* the pause before a retry, however long the timeout: nobody is served by 4 s */
	RETRY_FOREVER = 7,
	BYTES = 4 << 20, /* per hw_exec_run, then doorbells are looked at again */
};

/* ---- local data ------------------------------------------------------------------------- */

/* Resolves the data segments from DS @ds on, inline ones included when @access is 0 (a source). */
static int local_data(const struct hw_wqe *w, unsigned ds, unsigned access, struct hw_sgl *sgl)
{
	uint64_t total = 0;

	sgl->n = 0;
	while (ds < w->ds) {
		const uint8_t *seg = w->p + ds * HW_DS;
		uint32_t n = hw_be32(seg);
		struct hw_span *span = &sgl->span[sgl->n++];

		if (n & HW_SEG_INLINE) {
			n &= ~HW_SEG_INLINE;
			if (access || n > (w->ds - ds) * HW_DS - 4u)
				return HW_FAULT(HW_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
			*span = (struct hw_span){.host = (uint8_t *)(uintptr_t)seg + 4, .len = n};
			ds += (n + 4 + HW_DS - 1) / HW_DS;
		} else {
			/* No library emits a length of 0, and mlx hardware reads it as 2^31 */
			if (!n && !w->qp->dev->cfg.lenient)
				return HW_FAULT(HW_SYND_LOCAL_PROT, HW_VENDOR_PROT);
			if (!hw_key_span(w->qp->dev, hw_be32(seg + 4), w->qp->pdn, access, hw_be64(seg + 8),
				    n, span))
				return HW_FAULT(HW_SYND_LOCAL_PROT, HW_VENDOR_PROT);
			ds++;
		}
		total += n;
	}
	if (total > HW_MAX_MSG)
		return HW_FAULT(HW_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	sgl->len = (uint32_t)total;
	return 0;
}

/* ---- operations ------------------------------------------------------------------------- */

static int find_peer(struct hw_wqe *w)
{
	w->peer = hw_resp_peer(w->qp);
	return w->peer ? 0 : HW_EXEC_LOST;
}

static int exec_send(struct hw_wqe *w)
{
	struct hw_msg msg = {.src_qpn = w->qp->qpn, .solicited = w->fm_ce_se & HW_SOLICITED};
	struct hw_sgl sgl;
	int ret;

	ret = local_data(w, 1, 0, &sgl);
	if (!ret)
		ret = find_peer(w);
	if (ret)
		return ret;
	msg.cqe_opcode = w->opcode == HW_OP_SEND       ? HW_CQE_RESP_SEND
			 : w->opcode == HW_OP_SEND_IMM ? HW_CQE_RESP_SEND_IMM
						       : HW_CQE_RESP_SEND_INV;
	if (w->opcode != HW_OP_SEND)
		msg.imm_be = hw_raw32(w->p + HW_CTRL_IMM);
	msg.len = w->bytes = sgl.len;
	msg.data = &sgl;
	hw_inflight_land_writes(w->qp);
	/* The key goes when the message arrives, so not before there is a RECV for it */
	if (w->opcode == HW_OP_SEND_INVAL && hw_qp_recvs(w->peer) &&
		!hw_key_invalidate(w->peer->dev, hw_be32(w->p + HW_CTRL_IMM), w->peer->pdn))
		return HW_FAULT(HW_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	return hw_resp_recv(w->peer, &msg);
}

static int exec_datagram(struct hw_wqe *w)
{
	struct hw_msg msg = {
		.src_qpn = w->qp->qpn, .solicited = w->fm_ce_se & HW_SOLICITED, .datagram = true};
	struct hw_qp *qp = w->qp;
	const uint8_t *rgid = w->p + HW_UD_RGID;
	struct hw_sgl sgl;
	int ret;

	if ((w->opcode != HW_OP_SEND && w->opcode != HW_OP_SEND_IMM) || w->ds < HW_UD_DATA_DS)
		return HW_FAULT(HW_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = local_data(w, HW_UD_DATA_DS, 0, &sgl);
	if (ret)
		return ret;
	w->bytes = sgl.len;
	w->peer = hw_resp_datagram_peer(
		qp, rgid, hw_be32(w->p + HW_UD_DQPN) & 0xffffff, hw_be32(w->p + HW_UD_KEY));
	if (!w->peer)
		return 0;
	msg.cqe_opcode = w->opcode == HW_OP_SEND ? HW_CQE_RESP_SEND : HW_CQE_RESP_SEND_IMM;
	if (w->opcode == HW_OP_SEND_IMM)
		msg.imm_be = hw_raw32(w->p + HW_CTRL_IMM);
	/* struct mlx5_wqe_av: the index of the source GID is in bits 27:20 of grh_gid_fl */
	hw_grh(msg.grh, qp->dev->gid[hw_be32(w->p + HW_UD_GRH) >> 20 & 15], rgid, w->p[HW_UD_TCLASS],
		w->p[HW_UD_HOP_LIMIT], sgl.len);
	msg.len = sgl.len + sizeof(msg.grh);
	msg.data = &sgl;
	return hw_resp_recv(w->peer, &msg);
}

/* A copy failed: on the side whose memory is in another process. */
static int unreachable(const struct hw_span *remote)
{
	return remote->host ? HW_FAULT(HW_SYND_LOCAL_PROT, HW_VENDOR_PROT)
			    : HW_FAULT(HW_SYND_REMOTE_OP, HW_VENDOR_REMOTE_OP);
}

static int exec_write(struct hw_wqe *w)
{
	bool imm = w->opcode == HW_OP_WRITE_IMM;
	struct hw_sgl sgl;
	struct hw_span to;
	int ret;

	if (w->ds < 2)
		return HW_FAULT(HW_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = local_data(w, 2, 0, &sgl);
	if (!ret)
		ret = find_peer(w);
	if (ret)
		return ret;
	w->bytes = sgl.len;
	if (sgl.len) {
		ret = hw_resp_span(w->peer, hw_be32(w->p + HW_RADDR_RKEY), hw_be64(w->p + HW_RADDR_VA),
			sgl.len, HW_REMOTE_WRITE, &to);
		if (ret)
			return ret;
	}
	if (imm) {
		uint16_t recvs = hw_qp_recvs(w->peer);

		if (!recvs || recvs >= 0x8000)
			return HW_EXEC_RNR;
	}
	if (sgl.len && (w->prompt || imm || !hw_inflight_write(w->qp, &to, sgl.span, sgl.n, sgl.len))) {
		hw_inflight_land_writes(w->qp);
		if (!hw_copy(&to, 1, sgl.span, sgl.n, sgl.len))
			return unreachable(&to);
	}
	if (imm) {
		struct hw_msg msg = {
			.cqe_opcode = HW_CQE_RESP_WRITE_IMM,
			.solicited = w->fm_ce_se & HW_SOLICITED,
			.imm_be = hw_raw32(w->p + HW_CTRL_IMM),
			.src_qpn = w->qp->qpn,
			.len = sgl.len,
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

static int exec_read(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	_Alignas(8) uint8_t buf[512];
	struct hw_sgl sgl;
	struct hw_span from;
	bool ok;
	int ret;

	if (w->ds < 2)
		return HW_FAULT(HW_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = local_data(w, 2, HW_LOCAL_WRITE, &sgl);
	if (!ret)
		ret = find_peer(w);
	if (ret)
		return ret;
	w->bytes = sgl.len;
	if (!sgl.len)
		return 0;
	ret = hw_resp_span(w->peer, hw_be32(w->p + HW_RADDR_RKEY), hw_be64(w->p + HW_RADDR_VA), sgl.len,
		HW_REMOTE_READ, &from);
	if (ret)
		return ret;
	if (too_many(w))
		return HW_FAULT(HW_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	hw_inflight_land_writes(qp);
	if (sgl.len <= cqe_room(w)) {
		w->inl = true;
		ok = hw_gather(w->inl_data, &from, 1, sgl.len);
	} else if (!w->prompt && sgl.len <= sizeof(buf)) {
		ok = hw_gather(buf, &from, 1, sgl.len) &&
		     (hw_inflight_read(qp, sgl.span, sgl.n, buf, sgl.len) ||
			     hw_scatter(sgl.span, sgl.n, buf, sgl.len));
	} else {
		hw_inflight_land_reads(qp);
		ok = hw_copy(sgl.span, sgl.n, &from, 1, sgl.len);
	}
	return ok ? 0 : unreachable(&from);
}

static int exec_atomic(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	unsigned data_ds, size = hw_atomic_size(w, &data_ds);
	uint64_t va = hw_be64(w->p + HW_RADDR_VA);
	struct hw_sgl sgl;
	struct hw_span target;
	uint8_t old[8];
	int ret;

	if (!size || w->ds < data_ds + 1)
		return HW_FAULT(HW_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = local_data(w, data_ds, HW_LOCAL_WRITE, &sgl);
	if (!ret && sgl.len < size)
		ret = HW_FAULT(HW_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	if (!ret)
		ret = find_peer(w);
	if (ret)
		return ret;
	w->bytes = size;
	ret = hw_resp_span(w->peer, hw_be32(w->p + HW_RADDR_RKEY), va, size, HW_REMOTE_ATOMIC, &target);
	if (ret)
		return ret;
	if (va & (size - 1) || (uintptr_t)target.host & (size - 1) || too_many(w))
		return HW_FAULT(HW_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	hw_inflight_land_writes(qp);
	if (!hw_atomic_exec(w, &target, size, old))
		return HW_FAULT(HW_SYND_REMOTE_OP, HW_VENDOR_REMOTE_OP);
	/* poll_cq of libmlx5 copies data out of the CQE for plain atomics only */
	if (cqe_room(w) && (w->opcode == HW_OP_CAS || w->opcode == HW_OP_FAA)) {
		w->inl = true;
		memcpy(w->inl_data, old, size);
		return 0;
	}
	if (!w->prompt && hw_inflight_read(qp, sgl.span, sgl.n, old, size))
		return 0;
	hw_inflight_land_reads(qp);
	return hw_scatter(sgl.span, sgl.n, old, size) ? 0 : HW_FAULT(HW_SYND_LOCAL_PROT, HW_VENDOR_PROT);
}

static int exec_op(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;

	switch (w->opcode) { /* what needs no peer */
	case HW_OP_NOP:
		return 0;
	case HW_OP_WAIT:
		return hw_wait_exec(w);
	case HW_OP_SEND_EN:
	case HW_OP_RECV_EN:
		return hw_enable_exec(w);
	case HW_OP_LOCAL_INVAL:
		return hw_key_invalidate(qp->dev, hw_be32(w->p + HW_CTRL_IMM), qp->pdn)
			       ? 0
			       : HW_FAULT(HW_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	}
	if (qp->type == HW_UD)
		return exec_datagram(w);
	switch (w->opcode) {
	case HW_OP_SEND:
	case HW_OP_SEND_IMM:
	case HW_OP_SEND_INVAL:
		return exec_send(w);
	case HW_OP_WRITE:
	case HW_OP_WRITE_IMM:
		return exec_write(w);
	case HW_OP_READ:
		if (qp->type == HW_RC)
			return exec_read(w);
		break;
	case HW_OP_CAS:
	case HW_OP_FAA:
	case HW_OP_MASKED_CAS:
	case HW_OP_MASKED_FAA:
		if (qp->type == HW_RC)
			return exec_atomic(w);
		break;
	}
	return HW_FAULT(HW_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
}

/* ---- outcome ---------------------------------------------------------------------------- */

static struct hw_cqe cqe_of(const struct hw_wqe *w)
{
	return (struct hw_cqe){
		.opcode = HW_CQE_REQ,
		.user_index = w->qp->user_index,
		.byte_cnt = w->bytes,
		.sop_qpn = (uint32_t)w->opcode << 24 | w->qp->qpn,
		.wqe_counter = w->idx,
	};
}

static void trace(const struct hw_wqe *w, uint8_t syndrome)
{
	struct hw_trace t = {
		.qpn = w->qp->qpn,
		.idx = w->idx,
		.opcode = w->opcode,
		.opmod = w->opmod,
		.syndrome = syndrome,
		.ds = w->ds,
		.wqe = w->p,
	};

	w->qp->dev->trace(w->qp->dev->trace_arg, &t);
}

static void succeed(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	struct hw_cqe cqe;

	qp->in_retry = false;
	qp->dev->total.wqes++;
	qp->dev->total.bytes += w->bytes;
	if (__builtin_expect(qp->dev->trace != NULL, 0))
		trace(w, 0);
	if (!w->cqe)
		return;
	cqe = cqe_of(w);
	if (w->inl) {
		cqe.inl = w->inl_data;
		cqe.inl_len = w->bytes;
	}
	hw_inflight_complete(qp, &cqe);
}

static void fail_peer(struct hw_wqe *w, int fault)
{
	if (fault & HW_FAULT_PEER)
		hw_qp_fail(w->peer, HW_ERR,
			fault & HW_FAULT_PEER_ACCESS ? HW_EV_QP_ACCESS_ERR
			: fault & HW_FAULT_PEER_REQ  ? HW_EV_QP_REQ_ERR
						     : 0);
}

static void fail(struct hw_wqe *w, int fault)
{
	struct hw_qp *qp = w->qp;
	struct hw_cqe cqe = cqe_of(w);

	qp->in_retry = false;
	hw_inflight_land(qp);
	if (qp->dev->trace)
		trace(w, fault & 0xff);
	cqe.opcode = HW_CQE_REQ_ERR;
	cqe.syndrome = fault & 0xff;
	cqe.vendor = fault >> 8 & 0xff;
	cqe.byte_cnt = 0;
	hw_qp_complete(qp, qp->scq, &cqe);
	/* IB 10.3.1: an unconnected or unreliable queue goes on receiving */
	hw_qp_fail(qp, qp->type == HW_RC ? HW_ERR : HW_SQER, 0);
	fail_peer(w, fault);
}

static void pause_sq(struct hw_qp *qp, uint64_t ns)
{
	qp->due = hw_clock() + ns;
	hw_qp_set_run(qp, HW_RUN_TIMED);
}

/* Nobody took the packet of an RC queue. false: the WQE has failed. */
static bool retry(struct hw_wqe *w, int why)
{
	struct hw_qp *qp = w->qp;
	uint64_t ns;

	if (!qp->in_retry) {
		qp->in_retry = true;
		qp->rnr_left = qp->mod.rnr_retry;
		qp->retry_left = qp->mod.retry_cnt;
	}
	if (why == HW_EXEC_RNR) {
		if (qp->mod.rnr_retry != RETRY_FOREVER && qp->rnr_left-- == 0) {
			fail(w, HW_FAULT(HW_SYND_RNR_RETRY, HW_VENDOR_RNR));
			return false;
		}
		pause_sq(qp, hw_resp_rnr_ns(w->peer->mod.min_rnr_timer));
		return true;
	}
	if (qp->mod.timeout && qp->retry_left-- == 0) { /* a timeout of 0 means to wait for ever */
		fail(w, HW_FAULT(HW_SYND_RETRY, HW_VENDOR_RETRY));
		return false;
	}
	ns = qp->mod.timeout ? 4096ull << (qp->mod.timeout & 31) : MAX_RETRY_NS;
	pause_sq(qp, ns < MAX_RETRY_NS ? ns : MAX_RETRY_NS);
	return true;
}

/* ---- one WQE ---------------------------------------------------------------------------- */

/* Makes sure that [sq_ci, to) is fetched; how much more comes along is the silicon's choice. */
static void fetch_for(struct hw_qp *qp, uint16_t to)
{
	struct hw_dev *dev = qp->dev;

	if ((int16_t)(to - qp->sq_fetched) <= 0)
		return;
	if (!dev->cfg.lenient && hw_pick(dev, 2))
		to = qp->sq_pi;
	hw_qp_fetch(qp, to);
}

/* What an unreliable requester does not hear of: lost packets and all that the responder objects to. */
static bool unnoticed(int result)
{
	return result < 0 || (result & 0xff) >= HW_SYND_REMOTE_INVAL;
}

static void step(struct hw_qp *qp)
{
	struct hw_wqe w;
	uint8_t linear[HW_MAX_WQE_BB * HW_WQEBB];
	uint32_t slot = qp->sq_ci & (qp->sq_wqebbs - 1), bbs;
	uint16_t left = (uint16_t)(qp->sq_pi - qp->sq_ci);
	const struct hw_config *cfg = &qp->dev->cfg;
	uint32_t op, qpn_ds;
	uint8_t fence;
	int ret;

	fetch_for(qp, (uint16_t)(qp->sq_ci + 1));
	w.qp = qp;
	w.p = qp->shadow + (size_t)slot * HW_WQEBB;
	w.idx = qp->sq_ci;
	w.peer = NULL;
	w.bytes = 0;
	w.inl = false;
	op = hw_be32(w.p + HW_CTRL_OP);
	qpn_ds = hw_be32(w.p + HW_CTRL_QPN_DS);
	w.opcode = (uint8_t)op;
	w.opmod = (uint8_t)(op >> 24);
	w.ds = qpn_ds & HW_MAX_DS;
	w.fm_ce_se = w.p[HW_CTRL_FM_CE_SE];
	w.cqe = (w.fm_ce_se >> HW_CE_SHIFT & 3) >= HW_CE_ALWAYS;
	bbs = w.ds ? (w.ds + 3u) / 4 : 1;
	if (!w.ds || bbs > left || bbs > qp->sq_wqebbs ||
		((op >> 8 & 0xffff) != w.idx && !cfg->no_index_check) ||
		(qpn_ds >> 8 != qp->qpn && !cfg->no_qpn_check)) {
		w.ds = w.ds > 4 ? 4 : w.ds; /* the rest was not fetched */
		qp->sq_ci++;
		fail(&w, HW_FAULT(HW_SYND_LOCAL_QP_OP, HW_VENDOR_WQE));
		return;
	}
	if (bbs > 1) {
		fetch_for(qp, (uint16_t)(qp->sq_ci + bbs));
		if (slot + bbs > qp->sq_wqebbs) {
			size_t head = (size_t)(qp->sq_wqebbs - slot) * HW_WQEBB;

			memcpy(linear, w.p, head);
			memcpy(linear + head, qp->shadow, bbs * HW_WQEBB - head);
			w.p = linear;
		}
	}
	w.prompt = w.cqe && bbs == left;
	fence = w.fm_ce_se >> HW_FM_SHIFT;
	if (fence == HW_FM_STRONG)
		hw_inflight_land(qp);
	else if (fence == HW_FM_FENCE || fence == HW_FM_SMALL_AND_FENCE)
		hw_inflight_land_reads(qp);

	ret = exec_op(&w);
	if (ret == HW_EXEC_STOP) {
		hw_qp_set_run(qp, HW_RUN_WAIT);
		return;
	}
	qp->sq_ci = (uint16_t)(qp->sq_ci + bbs);
	if (ret && qp->type != HW_RC && unnoticed(ret)) {
		if (ret > 0)
			fail_peer(&w, ret);
		ret = 0;
	}
	if (ret > 0)
		fail(&w, ret);
	else if (!ret)
		succeed(&w);
	else if (retry(&w, ret))
		qp->sq_ci = w.idx;
}

/* Executes up to @burst WQEs of @qp, which is ready; fewer when that makes the total of bytes reach @enough. */
static unsigned turn(struct hw_qp *qp, unsigned burst, uint64_t enough)
{
	unsigned done = 0;

	while (done < burst && qp->run_state == HW_RUN_READY && qp->sq_ci != qp->sq_pi &&
		qp->dev->total.bytes < enough) {
		step(qp);
		done++;
	}
	if (qp->run_state != HW_RUN_READY)
		return done;
	/* to the end of the line, or out of it */
	hw_qp_set_run(qp, qp->sq_ci != qp->sq_pi ? HW_RUN_READY : HW_RUN_IDLE);
	return done;
}

bool hw_exec_run(struct hw_dev *dev)
{
	uint64_t enough = dev->total.bytes + BYTES;
	unsigned done = 0;

	if (!dev->nready && TAILQ_EMPTY(&dev->inflight))
		return false;
	while (done++ < BUDGET && dev->total.bytes < enough) {
		struct hw_qp *qp = TAILQ_FIRST(&dev->ready);

		if (!qp) {
			if (!hw_inflight_tick(dev))
				break;
			continue;
		}
		if (dev->cfg.lenient) {
			done += turn(qp, BURST, enough);
			continue;
		}
		switch (hw_pick(dev, 8)) {
		case 0: /* someone else first */
			hw_qp_set_run(qp, HW_RUN_READY);
			continue;
		case 1:
		case 2:
		case 3:
			hw_inflight_tick(dev);
			break;
		}
		if (qp->run_state == HW_RUN_READY) /* the tick may have failed it */
			done += turn(qp, 1 + hw_pick(dev, BURST), enough);
	}
	return true;
}
