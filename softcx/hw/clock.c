/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/clock.h"

#include "softcx/hw/turns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CQES_AT_LEAST = 256, /* a CQ may be smaller than what WAITs want to know of it, */
	CQES_AT_MOST = 65536,
	LONG_AGO = 128, /* CQEs consumed since: a post now has another cause */
	MTU = 4096,     /* of a queue that has none */
	PS_PER_NS = 1000,
};

/* The latest time that any software can know. A queue that is connected now starts no earlier. */
static uint64_t newest;

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- calendars -------------------------------------------------------------------------- */

static void forget_oldest(struct hw_calendar *c)
{
	enum { AT_ONCE = HW_CLOCK_FREE / 4 };

	c->n -= AT_ONCE;
	memmove(c->busy, c->busy + AT_ONCE, c->n * sizeof(c->busy[0]));
}

uint64_t hw_calendar_take(struct hw_calendar *c, uint64_t from, uint64_t work)
{
	unsigned first, after;
	uint64_t at = from;

	if (!work)
		return from;
	if (c->n == HW_CLOCK_FREE)
		forget_oldest(c);
	first = c->n;
	while (first && c->busy[first - 1].to >= from)
		first--;
	/* What is taken and all that is busy between its pieces become one */
	after = first;
	while (after < c->n && c->busy[after].from < at + work) {
		if (c->busy[after].from > at)
			work -= c->busy[after].from - at;
		at = later(at, c->busy[after].to);
		after++;
	}
	at += work;
	if (first < after && c->busy[first].from < from)
		from = c->busy[first].from;
	memmove(c->busy + first + 1, c->busy + after, (c->n - after) * sizeof(c->busy[0]));
	c->n = c->n - (after - first) + 1;
	c->busy[first] = (struct hw_busy){from, at};
	return at;
}

/* ---- life ------------------------------------------------------------------------------- */

int hw_clock_new(struct hw_dev *dev)
{
	const struct costs *costs = dev->cfg.costs;
	const struct hw_dev *beside = dev->cfg.port_of;

	dev->cfg.port_of = NULL; /* it may go first */
	if (!costs)
		return 0;
	if (LIST_EMPTY(&hw_devs)) /* time begins with the first device */
		newest = 0;
	dev->clock = calloc(1, sizeof(*dev->clock) + costs->pus * sizeof(dev->clock->pu[0]));
	if (!dev->clock)
		return -ENOMEM;
	dev->clock->costs = costs;
	dev->clock->bus = beside ? beside->clock->bus : calloc(1, sizeof(struct hw_bus));
	if (!dev->clock->bus) {
		free(dev->clock);
		return -ENOMEM;
	}
	dev->clock->bus->refs++;
	return 0;
}

void hw_clock_free(struct hw_dev *dev)
{
	if (!dev->clock)
		return;
	if (--dev->clock->bus->refs == 0)
		free(dev->clock->bus);
	free(dev->clock);
}

int hw_clock_add_qp(struct hw_qp *qp)
{
	struct hw_clock *clock = qp->dev->clock;

	if (!clock)
		return 0;
	qp->clock = calloc(1, sizeof(*qp->clock));
	if (!qp->clock)
		return -ENOMEM;
	qp->clock->pu = &clock->pu[clock->next_pu++ % clock->costs->pus];
	return 0;
}

int hw_clock_add_cq(struct hw_cq *cq, struct hw_software *software)
{
	uint32_t n = cq->size;

	if (!cq->dev->clock)
		return 0;
	if (n < CQES_AT_LEAST)
		n = CQES_AT_LEAST;
	if (n > CQES_AT_MOST)
		n = CQES_AT_MOST;
	cq->clock = calloc(1, sizeof(*cq->clock) + n * sizeof(cq->clock->cqe[0]));
	if (!cq->clock)
		return -ENOMEM;
	cq->clock->mask = n - 1;
	if (software) {
		cq->software = hw_software_get(software);
		TAILQ_INSERT_TAIL(&software->cqs, cq, of_software);
	}
	return 0;
}

void hw_clock_remove_cq(struct hw_cq *cq)
{
	free(cq->clock);
	if (cq->software)
		TAILQ_REMOVE(&cq->software->cqs, cq, of_software);
	hw_software_put(cq->software);
}

void hw_clock_reset_qp(struct hw_qp *qp)
{
	qp->clock->bells_out = qp->clock->bells_in;
}

void hw_clock_start_qp(struct hw_qp *qp)
{
	qp->clock->software = later(qp->clock->software, newest);
}

/* ---- software --------------------------------------------------------------------------- */

struct hw_software *hw_software_new(uint64_t think_ps, bool in_turn)
{
	struct hw_software *software = calloc(1, sizeof(*software));

	if (!software)
		return NULL;
	software->refs = 1;
	software->think_ps = think_ps;
	software->in_turn = in_turn;
	TAILQ_INIT(&software->cqs);
	return software;
}

struct hw_software *hw_software_get(struct hw_software *software)
{
	software->refs++;
	return software;
}

void hw_software_put(struct hw_software *software)
{
	if (software && --software->refs == 0)
		free(software);
}

/* Counts the CQEs up to the consumer index of the doorbell record as seen by software. */
static void consume(struct hw_cq *cq)
{
	struct hw_cq_clock *c = cq->clock;
	uint64_t to = c->consumed + ((hw_db_read(&cq->db[0]) - c->consumed) & 0xffffff);

	if (to > cq->producer) /* software's mistake */
		return;
	if (cq->producer - c->consumed > c->mask)
		c->consumed = later(c->consumed, cq->producer - c->mask - 1);
	for (; c->consumed < to; c->consumed++) {
		const struct hw_cqe_time *t = &c->cqe[c->consumed & c->mask];
		struct hw_qp *qp = hw_qp_get(cq->dev, t->qpn);

		if (qp)
			qp->clock->seen[t->message].consumed++;
		if (!cq->software)
			continue;
		cq->software->now = later(cq->software->now, t->software);
		cq->software->consumed++;
		if (qp)
			qp->clock->consumed_at = cq->software->consumed;
	}
}

static void ring(struct hw_qp_clock *c, uint16_t to, uint64_t at)
{
	struct hw_bell *last = &c->bell[(c->bells_in - 1) % HW_CLOCK_BELLS];

	if (c->bells_in != c->bells_out && (last->at == at || c->bells_in - c->bells_out == HW_CLOCK_BELLS))
		*last = (struct hw_bell){to, later(at, last->at)};
	else
		c->bell[c->bells_in++ % HW_CLOCK_BELLS] = (struct hw_bell){to, at};
}

/* Software posts the next WQE: whether for a CQE of the queue. Then that is the time. */
static bool caused(struct hw_qp_clock *c, const struct hw_software *software)
{
	const struct hw_seen *s = &c->seen[c->seen[1].written != 0];
	int64_t cause;

	c->posted++;
	if (c->depth < c->posted - s->written)
		c->depth = c->posted - s->written;
	cause = c->posted - c->depth;
	if (cause < s->consumed)
		cause = s->consumed;
	if (cause <= c->cause)
		return false;
	c->cause = cause;
	if (software && software->consumed - c->consumed_at > LONG_AGO)
		return false;
	c->software = later(c->software, s->at[(cause - 1) % HW_CLOCK_SEEN]);
	return true;
}

static uint64_t seen_anywhere(struct hw_software *software)
{
	struct hw_cq *cq;

	TAILQ_FOREACH (cq, &software->cqs, of_software)
		consume(cq);
	return software->now;
}

void hw_clock_rung(struct hw_qp *qp, uint16_t to)
{
	const struct costs *costs = qp->dev->clock->costs;
	struct hw_software *software = qp->scq->software;
	struct hw_qp_clock *c = qp->clock;
	uint16_t at = qp->sq_pi;
	bool any = false;

	consume(qp->scq);
	if (qp->rcq != qp->scq)
		consume(qp->rcq);
	while ((int16_t)(to - at) > 0) {
		uint8_t ds =
			qp->sq[(size_t)(at & (qp->sq_wqebbs - 1)) * WQE_BB + WQE_QPN_DS + 3] & WQE_MAX_DS;

		any |= caused(c, software);
		if (software && (!any || software->in_turn))
			c->software = later(c->software, seen_anywhere(software));
		any = true; /* those that are rung for together have one reason, or one each */
		at = (uint16_t)(at + (ds ? (ds + 3) / 4 : 1));
		ring(c, (int16_t)(to - at) > 0 ? at : to, c->software + costs->doorbell + costs->fetch);
	}
	if (software)
		software->now = later(software->now, c->software);
}

void hw_clock_enabled(struct hw_qp *qp, uint16_t to, const struct hw_wqe *by)
{
	ring(qp->clock, to, by->at + qp->dev->clock->costs->fetch);
}

/* ---- a WQE ------------------------------------------------------------------------------ */

static uint64_t fetched(const struct hw_qp_clock *c, uint16_t idx, unsigned bbs)
{
	uint16_t end = (uint16_t)(idx + bbs);
	uint64_t at = 0;

	for (uint32_t i = c->bells_out; i != c->bells_in; i++) {
		const struct hw_bell *b = &c->bell[i % HW_CLOCK_BELLS];

		if ((int16_t)(b->to - idx) <= 0)
			continue;
		at = later(at, b->at);
		if ((int16_t)(b->to - end) >= 0)
			break;
	}
	return at;
}

uint64_t hw_clock_due(const struct hw_qp *qp)
{
	return later(qp->clock->ready, fetched(qp->clock, qp->sq_ci, 1));
}

void hw_clock_start(struct hw_wqe *w)
{
	struct hw_qp_clock *c = w->qp->clock;
	uint8_t fence = w->fm_ce_se >> WQE_FM_SHIFT;

	while (c->bells_out != c->bells_in &&
		(int16_t)(c->bell[c->bells_out % HW_CLOCK_BELLS].to - w->idx) <= 0)
		c->bells_out++;
	w->at = later(c->ready, fetched(c, w->idx, w->bbs));
	if (fence == WQE_FM_STRONG)
		w->at = later(w->at, c->done);
	else if (fence == WQE_FM_FENCE || fence == WQE_FM_SMALL_AND_FENCE)
		w->at = later(w->at, c->read);
	if (w->qp->rate)
		w->at = later(w->at, hw_rate_due(w->qp->rate) * PS_PER_NS);
	c->begun = w->at;
}

static void occupy(struct hw_wqe *w, uint64_t work)
{
	w->at = later(w->at, hw_calendar_take(w->qp->clock->pu, w->at, work) - work);
}

void hw_clock_waited(struct hw_wqe *w, const struct hw_cq *cq, uint32_t index)
{
	const struct costs *costs = w->qp->dev->clock->costs;
	uint64_t since = (cq->producer - 1 - index) & 0xffffff; /* CQEs after that one */

	/* There is none before the first: to WAIT for CQE -1 is to wait for nothing (wait_exec()) */
	if (since < cq->producer && since <= cq->clock->mask)
		w->at = later(
			w->at, cq->clock->cqe[(cq->producer - 1 - since) & cq->clock->mask].at - costs->cqe);
	occupy(w, costs->wait);
	w->at += costs->wait;
	w->done = w->at;
}

void hw_clock_issue(struct hw_wqe *w)
{
	const struct costs *costs = w->qp->dev->clock->costs;
	struct hw_qp_clock *c = w->qp->clock;
	bool reads = w->opcode == WQE_OP_READ || w->opcode == WQE_OP_CAS || w->opcode == WQE_OP_FETCH_ADD ||
		     w->opcode == WQE_OP_MASKED_CAS || w->opcode == WQE_OP_MASKED_FETCH_ADD;
	unsigned most = w->qp->mod.max_rd_atomic;

	w->done = 0;
	if (w->opcode == WQE_OP_WAIT)
		return;
	if (reads) {
		if (!most || most > HW_CLOCK_READS)
			most = HW_CLOCK_READS;
		w->at = later(w->at, c->reads[(c->nreads - most) % HW_CLOCK_READS]);
	}
	occupy(w, w->opcode == WQE_OP_READ ? costs->pu_read : costs->pu);
}

void hw_clock_issued(struct hw_wqe *w)
{
	struct hw_qp_clock *c = w->qp->clock;
	uint64_t issue = w->qp->dev->clock->costs->issue;

	c->ready = later(c->ready, w->opcode == WQE_OP_WAIT ? w->at : w->at + issue);
	w->done = c->done = later(c->done, later(w->done, c->ready));
}

void hw_clock_pause(struct hw_qp *qp, uint64_t ns)
{
	qp->clock->ready = qp->clock->begun + ns * PS_PER_NS;
}

/* ---- on the way ------------------------------------------------------------------------- */

static uint32_t mtu_of(const struct hw_qp *qp)
{
	return qp->mod.mtu ? qp->mod.mtu : MTU;
}

static uint64_t on_port(const struct hw_qp *qp, uint32_t len)
{
	return costs_on_port(qp->dev->clock->costs, len, mtu_of(qp));
}

static uint64_t on_bus(const struct hw_dev *dev, uint32_t len)
{
	return costs_on_bus(dev->clock->costs, len);
}

static uint32_t first_packet(const struct hw_qp *qp, uint32_t len)
{
	return len < mtu_of(qp) ? len : mtu_of(qp);
}

static uint32_t last_packet(const struct hw_qp *qp, uint32_t len)
{
	return len ? (len - 1) % mtu_of(qp) + 1 : 0;
}

/* A message that begins to leave @from at @at: when its last byte is with @to. */
static uint64_t carry(
	struct hw_dev *from, struct hw_dev *to, const struct hw_qp *qp, uint32_t len, uint64_t at)
{
	uint64_t port = on_port(qp, len), arrived;

	if (from == to)
		return at;
	arrived = hw_calendar_take(&from->clock->tx, at, port) + from->clock->costs->wire;
	return later(arrived, hw_calendar_take(&to->clock->rx, arrived - port, port));
}

/*
 * When a message of @len bytes is in the memory of @to; reading @gathered bytes of it from that of @from
 * begins at @at. Each packet is whole before it goes on: it is sent when it has been read, and placed when
 * the check at its end has been seen.
 */
static uint64_t transfer(struct hw_dev *from, struct hw_dev *to, const struct hw_qp *qp, uint32_t len,
	uint32_t gathered, uint64_t at, uint64_t *arrived)
{
	uint64_t wire = from == to ? 0 : from->clock->costs->wire;
	uint64_t read = hw_calendar_take(&from->clock->bus->read, at, on_bus(from, gathered));
	uint64_t last = from == to ? 0 : on_port(qp, last_packet(qp, len)), time = on_bus(to, len);

	*arrived = carry(from, to, qp, len, at + on_bus(from, first_packet(qp, gathered)));
	*arrived = later(*arrived, read + last + wire);
	at = *arrived + on_bus(to, last_packet(qp, len));
	return later(at, hw_calendar_take(&to->clock->bus->write, at - (at < time ? at : time), time));
}

uint64_t hw_clock_send(struct hw_wqe *w, const struct hw_sgl *data)
{
	struct hw_dev *dev = w->qp->dev, *to = w->peer ? w->peer->dev : dev;
	const struct costs *costs = dev->clock->costs;
	uint64_t at = w->at + costs->issue + (data->gathered ? costs->gather : 0), arrived;
	uint64_t placed = transfer(dev, to, w->qp, data->len, data->gathered, at, &arrived) + costs->write;

	if (!hw_qp_is_reliable(w->qp))
		w->done = arrived - (to == dev ? 0 : costs->wire);
	placed = w->qp->clock->placed = later(w->qp->clock->placed, placed);
	if (hw_qp_is_reliable(w->qp))
		w->done = placed + (to == dev ? 0 : costs->wire);
	return placed;
}

void hw_clock_fetch_data(struct hw_wqe *w, uint32_t len, bool atomic)
{
	struct hw_qp_clock *c = w->qp->clock;
	struct hw_dev *dev = w->qp->dev, *of = w->peer->dev;
	const struct costs *costs = dev->clock->costs;
	uint64_t at = carry(dev, of, w->qp, atomic ? len : 0, w->at + costs->issue), arrived;

	if (atomic)
		at = later(at,
			hw_calendar_take(&of->clock->atomics, at, costs->atomic_unit) - costs->atomic_unit);
	at = later(at, c->placed - (c->placed < costs->write ? c->placed : costs->write));
	at += atomic ? costs->atomic : costs->read;
	w->done = transfer(of, dev, w->qp, len, len, at, &arrived);
	c->read = later(c->read, w->done);
	c->reads[c->nreads++ % HW_CLOCK_READS] = c->read;
}

/* ---- CQEs ------------------------------------------------------------------------------- */

uint64_t hw_clock_cqe(struct hw_cq *cq, const struct hw_cqe *cqe)
{
	const struct costs *costs = cq->dev->clock->costs;
	struct hw_cq_clock *c = cq->clock;

	bool message = cqe->opcode >= CQE_OP_RESP_WRITE_IMM && cqe->opcode <= CQE_OP_RESP_SEND_INVAL;
	uint32_t qpn = cqe->sop_qpn & 0xffffff;
	struct hw_qp *qp = hw_qp_get(cq->dev, qpn);

	c->last = later(c->last, cqe->at + costs->cqe);
	newest = later(newest, c->last);
	c->software = later(c->software, c->last) + (message && cq->software ? cq->software->think_ps : 0);
	c->cqe[cq->producer & c->mask] =
		(struct hw_cqe_time){.at = c->last, .software = c->software, .qpn = qpn, .message = message};
	if (qp) {
		struct hw_seen *s = &qp->clock->seen[message];

		s->at[s->written++ % HW_CLOCK_SEEN] = c->software;
	}
	/* of a kHz a picosecond is a 10^-9th tick */
	return (uint64_t)((unsigned __int128)c->last * costs->clock_khz / 1000000000);
}
