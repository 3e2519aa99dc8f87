/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-inflight.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_READS = 16, /* as many as a ConnectX has outstanding (facts, section 11) */
	MAX_READ_SPANS = 8,
	MAX_READ_BYTES = 512,
	MAX_WRITES = 8,
	MAX_WRITE_BYTES = 128,
};

struct late_read {
	uint32_t len, nspans;
	struct hw_span span[MAX_READ_SPANS];
	uint8_t data[MAX_READ_BYTES];
};

struct late_write {
	struct hw_span span;
	uint8_t data[MAX_WRITE_BYTES];
};

struct hw_inflight {
	unsigned first_read, reads, first_write, writes;
	struct late_read read[MAX_READS];
	struct late_write write[MAX_WRITES];
};

static struct hw_inflight *open_inflight(struct hw_qp *qp)
{
	if (!qp->inflight)
		qp->inflight = calloc(1, sizeof(*qp->inflight));
	return qp->inflight;
}

static void listed(struct hw_qp *qp)
{
	if (qp->has_inflight)
		return;
	qp->has_inflight = true;
	TAILQ_INSERT_TAIL(&qp->dev->inflight, qp, landing);
}

static void unlisted(struct hw_qp *qp)
{
	if (!qp->has_inflight || qp->inflight->reads || qp->inflight->writes)
		return;
	qp->has_inflight = false;
	TAILQ_REMOVE(&qp->dev->inflight, qp, landing);
}

/* Memory of a process that has died cannot be written: nobody is left to miss it. */
static void land_read(struct hw_inflight *f)
{
	struct late_read *r = &f->read[f->first_read];

	hw_scatter(r->span, r->nspans, r->data, r->len);
	f->first_read = (f->first_read + 1) % MAX_READS;
	f->reads--;
}

static void land_write(struct hw_inflight *f)
{
	struct late_write *w = &f->write[f->first_write];

	hw_scatter(&w->span, 1, w->data, w->span.len);
	f->first_write = (f->first_write + 1) % MAX_WRITES;
	f->writes--;
}

bool hw_inflight_read(
	struct hw_qp *qp, const struct hw_span *dst, unsigned ndst, const void *data, uint32_t len)
{
	unsigned most = qp->mod.max_rd_atomic && qp->mod.max_rd_atomic < MAX_READS ? qp->mod.max_rd_atomic
										   : MAX_READS;
	struct hw_inflight *f;
	struct late_read *r;

	if (qp->dev->cfg.lenient)
		return false;
	if (len > MAX_READ_BYTES || ndst > MAX_READ_SPANS || hw_pick(qp->dev, 4) == 0) {
		hw_inflight_land_reads(qp); /* responses arrive in order */
		return false;
	}
	f = open_inflight(qp);
	if (!f)
		return false;
	if (f->reads >= most)
		land_read(f);
	r = &f->read[(f->first_read + f->reads++) % MAX_READS];
	r->len = len;
	r->nspans = ndst;
	memcpy(r->span, dst, ndst * sizeof(*dst));
	memcpy(r->data, data, len);
	listed(qp);
	return true;
}

bool hw_inflight_write(
	struct hw_qp *qp, const struct hw_span *dst, const struct hw_span *src, unsigned nsrc, uint32_t len)
{
	struct hw_inflight *f;
	struct late_write *w;

	if (qp->dev->cfg.lenient)
		return false;
	if (len > MAX_WRITE_BYTES || hw_pick(qp->dev, 2) == 0) {
		hw_inflight_land_writes(qp);
		return false;
	}
	f = open_inflight(qp);
	if (!f)
		return false;
	if (f->writes == MAX_WRITES)
		land_write(f);
	w = &f->write[(f->first_write + f->writes) % MAX_WRITES];
	if (!hw_gather(w->data, src, nsrc, len))
		return false;
	f->writes++;
	w->span = *dst;
	w->span.len = len;
	listed(qp);
	return true;
}

unsigned hw_inflight_reads(const struct hw_qp *qp)
{
	return qp->inflight ? qp->inflight->reads : 0;
}

void hw_inflight_land_reads(struct hw_qp *qp)
{
	if (!qp->has_inflight)
		return;
	while (qp->inflight->reads)
		land_read(qp->inflight);
	unlisted(qp);
}

void hw_inflight_land_writes(struct hw_qp *qp)
{
	if (!qp->has_inflight)
		return;
	while (qp->inflight->writes)
		land_write(qp->inflight);
	unlisted(qp);
}

void hw_inflight_land(struct hw_qp *qp)
{
	hw_inflight_land_writes(qp);
	hw_inflight_land_reads(qp);
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

bool hw_inflight_tick(struct hw_dev *dev)
{
	struct hw_qp *qp = TAILQ_FIRST(&dev->inflight), *next;

	if (!qp)
		return false;
	for (; qp; qp = next) {
		uint32_t luck = hw_pick(dev, 16);

		next = TAILQ_NEXT(qp, landing);
		if (luck == 0)
			hw_inflight_land(qp);
		else if (luck < 3 && qp->inflight->writes)
			land_write(qp->inflight);
		else if (luck < 5 && qp->inflight->reads)
			land_read(qp->inflight);
		unlisted(qp);
	}
	return true;
}
