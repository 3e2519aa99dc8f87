/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/inflight.h"

#include <stdlib.h>
#include <string.h>

enum {                  /* all powers of two where they size a ring */
	MAX_READS = 16, /* max_qp_rd_atom of ConnectX-5 and -6 */
	MAX_READ_SPANS = 8,
	MAX_WRITES = 8,
	MAX_WRITE_BYTES = 128,
	MAX_CQES = 16,
};
enum { LOOKS = 8 }; /* for one queue among those with effects in flight */

struct late_read {
	uint32_t len, nspans;
	bool backwards;
	struct hw_span span[MAX_READ_SPANS];
	uint8_t data[HW_INFLIGHT_READ];
};

struct late_write {
	struct hw_span span;
	uint8_t data[MAX_WRITE_BYTES];
};

struct late_cqe {
	struct hw_cqe cqe;
	uint32_t reads, writes; /* that must have landed before it */
};

/* Rings with running counters: [out, in) is in flight. */
struct hw_inflight {
	uint32_t reads_in, reads_out, writes_in, writes_out, cqes_in, cqes_out;
	struct late_read read[MAX_READS];
	struct late_write write[MAX_WRITES];
	struct late_cqe cqe[MAX_CQES];
};

static struct hw_inflight *open_inflight(struct hw_qp *qp)
{
	if (!qp->inflight)
		qp->inflight = calloc(1, sizeof(*qp->inflight));
	return qp->inflight;
}

static void list(struct hw_qp *qp)
{
	if (qp->has_inflight)
		return;
	qp->has_inflight = true;
	TAILQ_INSERT_TAIL(&qp->dev->inflight, qp, landing);
}

static void unlist_if_empty(struct hw_qp *qp)
{
	const struct hw_inflight *f = qp->inflight;

	if (!qp->has_inflight || f->reads_in != f->reads_out || f->writes_in != f->writes_out ||
		f->cqes_in != f->cqes_out)
		return;
	qp->has_inflight = false;
	TAILQ_REMOVE(&qp->dev->inflight, qp, landing);
}

/* Memory of a process that has died cannot be written, and is not missed. */
static void land_read(struct hw_inflight *f)
{
	struct late_read *r = &f->read[f->reads_out++ % MAX_READS];

	if (r->backwards)
		hw_scatter_backwards(r->span, r->nspans, r->data);
	else
		hw_scatter(r->span, r->nspans, r->data, r->len);
}

static void land_write(struct hw_inflight *f)
{
	struct late_write *w = &f->write[f->writes_out++ % MAX_WRITES];

	hw_scatter(&w->span, 1, w->data, w->span.len);
}

static void land_cqe(struct hw_qp *qp)
{
	struct hw_inflight *f = qp->inflight;
	struct late_cqe c = f->cqe[f->cqes_out++ % MAX_CQES];

	while ((int32_t)(c.writes - f->writes_out) > 0)
		land_write(f);
	while ((int32_t)(c.reads - f->reads_out) > 0)
		land_read(f);
	hw_qp_complete(qp, qp->scq, &c.cqe);
}

uint8_t *hw_inflight_room(struct hw_qp *qp)
{
	struct hw_inflight *f = qp->dev->cfg.lenient ? NULL : open_inflight(qp);

	return f && f->reads_in - f->reads_out < MAX_READS ? f->read[f->reads_in % MAX_READS].data : NULL;
}

bool hw_inflight_read(
	struct hw_qp *qp, const struct hw_span *dst, unsigned ndst, const void *data, uint32_t len)
{
	unsigned most = qp->mod.max_rd_atomic;
	struct hw_inflight *f;
	struct late_read *r;

	if (qp->dev->cfg.lenient)
		return false;
	if (len > HW_INFLIGHT_READ || ndst > MAX_READ_SPANS || hw_pick(qp->dev, 4) == 0) {
		hw_inflight_land_reads(qp); /* responses arrive in order */
		return false;
	}
	f = open_inflight(qp);
	if (!f)
		return false;
	if (f->reads_in - f->reads_out >= (most && most < MAX_READS ? most : MAX_READS))
		land_read(f);
	r = &f->read[f->reads_in++ % MAX_READS];
	r->len = len;
	r->nspans = ndst;
	r->backwards = ndst > 1 && hw_pick(qp->dev, 2);
	for (unsigned i = 0; i < ndst; i++)
		r->span[i] = dst[i];
	if (data != r->data)
		memcpy(r->data, data, len);
	list(qp);
	return true;
}

bool hw_inflight_write(
	struct hw_qp *qp, const struct hw_span *dst, const struct hw_span *src, unsigned nsrc, uint32_t len)
{
	struct hw_inflight *f;
	struct late_write *w;

	if (qp->dev->cfg.lenient)
		return false;
	/* Without an address here it is reached by way of its device, whose lock may be another's then */
	if (len > MAX_WRITE_BYTES || (qp->dev->pu && !dst->host) || hw_pick(qp->dev, 2) == 0) {
		hw_inflight_land_writes(qp);
		return false;
	}
	f = open_inflight(qp);
	if (!f)
		return false;
	if (f->writes_in - f->writes_out == MAX_WRITES)
		land_write(f);
	w = &f->write[f->writes_in % MAX_WRITES];
	if (!hw_gather(w->data, src, nsrc, len))
		return false;
	f->writes_in++;
	w->span = *dst;
	w->span.len = len;
	list(qp);
	return true;
}

void hw_inflight_complete(struct hw_qp *qp, const struct hw_cqe *cqe)
{
	struct hw_inflight *f = qp->inflight;
	struct late_cqe *c;

	/* With no WQE behind it that could act before it, a late CQE is only slow */
	if (qp->dev->cfg.lenient || cqe->inl || qp->sq_ci == qp->sq_pi || hw_pick(qp->dev, 4) == 0 ||
		!(f = open_inflight(qp))) {
		hw_inflight_land(qp);
		hw_qp_complete(qp, qp->scq, cqe);
		return;
	}
	if (f->cqes_in - f->cqes_out == MAX_CQES)
		land_cqe(qp);
	c = &f->cqe[f->cqes_in++ % MAX_CQES];
	c->cqe = *cqe;
	c->reads = f->reads_in;
	c->writes = f->writes_in;
	list(qp);
}

unsigned hw_inflight_reads(const struct hw_qp *qp)
{
	return qp->inflight ? qp->inflight->reads_in - qp->inflight->reads_out : 0;
}

void hw_inflight_land_reads(struct hw_qp *qp)
{
	struct hw_inflight *f = qp->inflight;

	if (!qp->has_inflight)
		return;
	while (f->reads_in != f->reads_out)
		land_read(f);
	unlist_if_empty(qp);
}

void hw_inflight_land_writes(struct hw_qp *qp)
{
	struct hw_inflight *f = qp->inflight;

	if (!qp->has_inflight)
		return;
	while (f->writes_in != f->writes_out)
		land_write(f);
	unlist_if_empty(qp);
}

void hw_inflight_land(struct hw_qp *qp)
{
	struct hw_inflight *f = qp->inflight;

	if (!qp->has_inflight)
		return;
	while (f->cqes_in != f->cqes_out)
		land_cqe(qp);
	hw_inflight_land_writes(qp);
	hw_inflight_land_reads(qp);
	unlist_if_empty(qp);
}

void hw_inflight_land_everywhere(void)
{
	struct hw_dev *dev;

	LIST_FOREACH (dev, &hw_devs, all)
		while (!TAILQ_EMPTY(&dev->inflight))
			hw_inflight_land(TAILQ_FIRST(&dev->inflight));
}

void hw_inflight_free(struct hw_qp *qp)
{
	hw_inflight_land(qp);
	free(qp->inflight);
	qp->inflight = NULL;
}

/* Lets something of @qp land, or nothing. */
static void tick(struct hw_qp *qp)
{
	struct hw_inflight *f = qp->inflight;
	struct hw_dev *dev = qp->dev;

	switch (hw_pick(dev, 8)) {
	case 0:
	case 1:
	case 2:
		hw_inflight_land(qp);
		return;
	case 3:
	case 4:
		if (f->cqes_in != f->cqes_out)
			land_cqe(qp);
		break;
	case 5:
		if (f->writes_in != f->writes_out)
			land_write(f);
		break;
	case 6:
		if (f->reads_in != f->reads_out)
			land_read(f);
		break;
	}
	/* another queue's turn */
	if (qp->has_inflight) {
		TAILQ_REMOVE(&dev->inflight, qp, landing);
		TAILQ_INSERT_TAIL(&dev->inflight, qp, landing);
		unlist_if_empty(qp);
	}
}

bool hw_inflight_tick(struct hw_dev *dev)
{
	struct hw_qp *qp = TAILQ_FIRST(&dev->inflight);

	if (qp)
		tick(qp);
	return qp;
}

/* Whether a WAIT may be for a CQE of @qp that is in flight. */
static bool is_awaited(const struct hw_qp *qp)
{
	const struct hw_inflight *f = qp->inflight;

	return f->cqes_in != f->cqes_out && !TAILQ_EMPTY(&qp->scq->waiters);
}

bool hw_inflight_tick_at_rest(struct hw_dev *dev)
{
	struct hw_qp *qp = TAILQ_FIRST(&dev->inflight);

	for (unsigned i = 1; qp && (qp->run_state == HW_RUN_READY || !is_awaited(qp)); i++)
		qp = i < LOOKS ? TAILQ_NEXT(qp, landing) : NULL;
	if (qp)
		tick(qp);
	return qp;
}
