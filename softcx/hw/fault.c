/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/fault.h"

#include "softcx/hw/dev.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/resp.h"
#include "softcx/hw/turns.h"
#include "util/clock.h"
#include "util/xorshift.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HW_SPLIT_MOST = 1 << 20 }; /* bytes; longer messages are read at once */

enum { WORD = 8, LINE = 64 };

struct hw_split {
	enum { IDLE, NEXT, HALF } state;
	uint64_t pause_ns;
	uint8_t *bytes; /* 2 * len: as they were at the first moment, and at the second */
};

/* The next message of @qp is to be read at two moments, @pause_ns apart. False: out of memory. */
static bool split_next(struct hw_qp *qp, uint64_t pause_ns)
{
	if (!qp->split)
		qp->split = calloc(1, sizeof(*qp->split));
	if (!qp->split)
		return false;
	qp->split->state = NEXT;
	qp->split->pause_ns = pause_ns;
	return true;
}

bool hw_split_is_due(const struct hw_qp *qp)
{
	return qp->split && qp->split->state != IDLE;
}

void hw_split_free(struct hw_qp *qp)
{
	if (qp->split)
		free(qp->split->bytes);
	free(qp->split);
	qp->split = NULL;
}

/* Takes a word of @first for the one in @second, or a part of it at either end of the message */
static void split_mix(struct hw_dev *dev, const struct hw_span *span, uint8_t *first, const uint8_t *second)
{
	uint64_t at = span->host ? (uintptr_t)span->host : span->va;
	uint32_t how = hw_pick(dev, 3), n;

	for (uint32_t done = 0; done < span->len; done += n) {
		n = WORD - (uint32_t)((at + done) % WORD);
		if (n > span->len - done)
			n = span->len - done;
		if (done && (at + done) % LINE == 0)
			how = hw_pick(dev, 3);
		if (how == 2 ? hw_pick(dev, 2) : how)
			memcpy(first + done, second + done, n);
	}
}

static int split_begin(struct hw_wqe *w, const struct hw_span *spans, unsigned n, uint32_t len)
{
	struct hw_split *s = w->qp->split;
	uint8_t *bytes = realloc(s->bytes, 2 * (size_t)len);

	s->state = IDLE;
	if (!bytes)
		return 0;
	s->bytes = bytes;
	if (!hw_gather(bytes, spans, n, len))
		return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	s->state = HALF;
	w->qp->delayed = true;
	hw_qp_pause(w->qp, s->pause_ns);
	return HW_EXEC_STOP;
}

static int split_end(struct hw_wqe *w, struct hw_span *spans, unsigned *n, uint32_t len)
{
	struct hw_split *s = w->qp->split;
	uint32_t done = 0;

	s->state = IDLE;
	if (!hw_gather(s->bytes + len, spans, *n, len))
		return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	for (unsigned i = 0; i < *n && done < len; done += spans[i++].len)
		split_mix(w->qp->dev, &spans[i], s->bytes + done, s->bytes + len + done);
	spans[0] = (struct hw_span){.host = s->bytes, .len = len};
	*n = 1;
	return 0;
}

int hw_split_read_due(struct hw_wqe *w, struct hw_span *spans, unsigned *nspans, uint32_t len)
{
	struct hw_split *s = w->qp->split;

	if (s->state == IDLE)
		return 0;
	if (!len || len > HW_SPLIT_MOST) {
		s->state = IDLE;
		return 0;
	}
	return s->state == NEXT ? split_begin(w, spans, *nspans, len) : split_end(w, spans, nspans, len);
}

struct hw_fault_rule {
	struct hw_fault f; /* first */
	uint64_t rng;
	bool spent;
	TAILQ_ENTRY(hw_fault_rule) link;
};

/* ---- what faults apply to --------------------------------------------------------------- */

static bool consumes_recv(unsigned opcode)
{
	return opcode == WQE_OP_SEND || opcode == WQE_OP_SEND_IMM || opcode == WQE_OP_SEND_INVAL ||
	       opcode == WQE_OP_WRITE_IMM;
}

static bool sends_packets(unsigned opcode)
{
	return consumes_recv(opcode) || opcode == WQE_OP_WRITE || opcode == WQE_OP_READ ||
	       opcode == WQE_OP_CAS || opcode == WQE_OP_FETCH_ADD || opcode == WQE_OP_MASKED_CAS ||
	       opcode == WQE_OP_MASKED_FETCH_ADD;
}

static bool applies(enum hw_fault_kind kind, unsigned opcode)
{
	if (opcode == WQE_OP_WAIT)
		return false;
	if (kind == HW_FAULT_DROP)
		return sends_packets(opcode);
	if (kind == HW_FAULT_SPLIT)
		return consumes_recv(opcode) || opcode == WQE_OP_WRITE || opcode == WQE_OP_READ;
	return kind != HW_FAULT_RNR || consumes_recv(opcode);
}

static struct hw_mkey *find_key(struct hw_dev *dev, uint32_t key)
{
	struct hw_mkey *k = hw_table_get(&dev->mkeys, key >> 8);

	return k && k->key == key ? k : NULL;
}

/* ---- to the device ---------------------------------------------------------------------- */

static void set_port(struct hw_dev *dev, bool up)
{
	if (dev->port_down == !up)
		return;
	dev->port_down = !up;
	hw_dev_event(dev, up ? HW_EV_PORT_UP : HW_EV_PORT_DOWN);
}

static void fail_qp(struct hw_dev *dev, void *obj)
{
	struct hw_qp *qp = obj;

	(void)dev;
	if (qp->state != HW_RST)
		hw_qp_fail(qp, HW_ERR, 0);
}

static void revoke(struct hw_dev *dev, uint32_t key)
{
	struct hw_mkey *k = find_key(dev, key);

	if (!k)
		return;
	hw_inflight_land_everywhere(); /* as before a key is destroyed */
	k->invalid = true;
}

static void act(struct hw_dev *dev, const struct hw_fault *f, struct hw_qp *qp)
{
	switch (f->kind) {
	case HW_FAULT_QP_ERROR:
		hw_qp_fail(qp, HW_ERR, HW_EV_QP_FATAL);
		break;
	case HW_FAULT_PORT_DOWN:
	case HW_FAULT_PORT_UP:
		set_port(dev, f->kind == HW_FAULT_PORT_UP);
		break;
	case HW_FAULT_MKEY_REVOKE:
		revoke(dev, f->key);
		break;
	case HW_FAULT_DEVICE_FATAL:
		hw_dev_event(dev, HW_EV_DEVICE_FATAL);
		hw_table_each(&dev->qps, dev, fail_qp);
		break;
	default:
		break;
	}
}

/* ---- to a WQE --------------------------------------------------------------------------- */

/* The result that hw_op_exec() would return for such an error; the peer's own errors end the peer's queue as
 * well. */
static int error(struct hw_wqe *w, uint8_t syndrome)
{
	int fault = HW_FAULT(syndrome, HW_VENDOR_WQE);

	if (w->qp->type != HW_RC ||
		(syndrome != CQE_SYND_REMOTE_INVAL && syndrome != CQE_SYND_REMOTE_ACCESS &&
			syndrome != CQE_SYND_REMOTE_OP))
		return fault;
	w->peer = hw_resp_peer(w->qp);
	if (!w->peer)
		return fault;
	return fault | HW_FAULT_PEER |
	       (syndrome == CQE_SYND_REMOTE_ACCESS         ? HW_FAULT_PEER_ACCESS
		       : syndrome == CQE_SYND_REMOTE_INVAL ? HW_FAULT_PEER_REQ
							   : 0);
}

static int rnr(struct hw_wqe *w)
{
	if (w->qp->type == HW_RC)
		w->peer = hw_resp_peer(w->qp);
	return w->peer ? HW_EXEC_RNR : HW_EXEC_LOST;
}

static int strike(struct hw_wqe *w, const struct hw_fault *f)
{
	struct hw_qp *qp = w->qp;

	switch (f->kind) {
	case HW_FAULT_DROP:
		return HW_EXEC_LOST;
	case HW_FAULT_DELAY:
		qp->delayed = true;
		hw_qp_pause(qp, f->delay_ns);
		return 0;
	case HW_FAULT_SPLIT:
		split_next(qp, f->delay_ns);
		return 0;
	case HW_FAULT_RNR:
		return rnr(w);
	case HW_FAULT_ERROR:
		return error(w, f->syndrome);
	default:
		act(qp->dev, f, qp);
		return 0;
	}
}

/* 53 bits: as many as a double holds. */
static double chance(struct hw_fault_rule *r)
{
	return (double)(xorshift(&r->rng) >> 11) / (double)(1ull << 53);
}

static bool strikes(struct hw_dev *dev, struct hw_fault_rule *r, const struct hw_wqe *w)
{
	struct hw_fault *f = &r->f;

	if (r->spent || (f->qpn && f->qpn != w->qp->qpn) || (f->opcode >= 0 && f->opcode != w->opcode) ||
		!applies(f->kind, w->opcode))
		return false;
	f->seen++;
	if (f->at ? f->seen < f->at : chance(r) >= f->probability)
		return false;
	if (++f->struck == f->count) {
		r->spent = true;
		dev->faults_armed--;
	}
	return true;
}

int hw_fault_meet(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	struct hw_fault_rule *r;
	int ret = 0;

	if (qp->delayed) { /* this WQE was looked at before its pause */
		qp->delayed = false;
		return 0;
	}
	TAILQ_FOREACH (r, &qp->dev->faults, link) {
		if (strikes(qp->dev, r, w))
			ret = strike(w, &r->f);
		/* one is enough for a WQE */
		if (ret || qp->run_state != HW_RUN_READY)
			return ret;
	}
	return 0;
}

/* ---- the list --------------------------------------------------------------------------- */

static bool needs_wqe(enum hw_fault_kind kind)
{
	return kind <= HW_FAULT_ERROR;
}

static int check(struct hw_dev *dev, const struct hw_fault *f)
{
	bool at_once = !f->at && f->probability == 0;

	if (at_once && (needs_wqe(f->kind) || f->opcode >= 0))
		return -EINVAL;
	if (at_once && f->qpn && f->kind != HW_FAULT_QP_ERROR)
		return -EINVAL;
	if (at_once && f->kind == HW_FAULT_QP_ERROR && !f->qpn)
		return -EINVAL;
	if (!(f->probability >= 0 && f->probability <= 1))
		return -EINVAL;
	if (f->opcode >= 0 && !applies(f->kind, (unsigned)f->opcode))
		return -EINVAL;
	if (f->kind == HW_FAULT_ERROR && !f->syndrome)
		return -EINVAL;
	if (f->qpn && !hw_qp_find(dev, f->qpn))
		return -ENOENT;
	if (f->kind == HW_FAULT_MKEY_REVOKE && !find_key(dev, f->key))
		return -ENOENT;
	return 0;
}

int hw_fault_add(struct hw_dev *dev, const struct hw_fault *fault)
{
	int err = check(dev, fault);
	unsigned n = 0;
	struct hw_fault_rule *r;

	if (err)
		return err;
	dev->now = clock_ns();
	if (!fault->at && fault->probability == 0) {
		act(dev, fault, fault->qpn ? hw_qp_find(dev, fault->qpn) : NULL);
		return 0;
	}
	TAILQ_FOREACH (r, &dev->faults, link)
		n++;
	if (n >= HW_FAULT_MAX)
		return -ENOSPC;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->f = *fault;
	r->f.seen = r->f.struck = 0;
	r->rng = (dev->cfg.seed + 1) * 0x9e3779b97f4a7c15u ^ (fault->id + 1) * 0xbf58476d1ce4e5b9u;
	if (!r->rng)
		r->rng = 1;
	for (int i = 0; i < 8; i++) /* the first values after a seed with few bits set are small */
		chance(r);
	TAILQ_INSERT_TAIL(&dev->faults, r, link);
	dev->faults_armed++;
	return 0;
}

unsigned hw_fault_clear(struct hw_dev *dev, uint32_t id)
{
	struct hw_fault_rule *r = TAILQ_FIRST(&dev->faults), *next;
	unsigned n = 0;

	for (; r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (id && r->f.id != id)
			continue;
		TAILQ_REMOVE(&dev->faults, r, link);
		dev->faults_armed -= !r->spent;
		free(r);
		n++;
	}
	return n;
}

const struct hw_fault *hw_fault_next(const struct hw_dev *dev, const struct hw_fault *prev)
{
	const struct hw_fault_rule *r =
		prev ? TAILQ_NEXT((const struct hw_fault_rule *)prev, link) : TAILQ_FIRST(&dev->faults);

	return r ? &r->f : NULL;
}
