/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/fault.h"

#include "softcx/hw/exec.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/resp.h"
#include "softcx/hw/split.h"
#include "util/clock.h"
#include "util/xorshift.h"

#include <errno.h>
#include <stdlib.h>

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
		hw_split_next(qp, f->delay_ns);
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
