/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/foreign.h"

#include "mlx5/wqe.h"
#include "reddnd/session/session.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

DEFINE_CLEANUP(struct foreign *, foreign_free)

/* ---- its queues, by the cookies of their events ---- */

static struct queue_layout_qp *queue_of(struct queue_layout *l, unsigned part)
{
	if (part < CHAIN_MAX_QUEUES)
		return &l->queue[part];
	if (part == SESSION_RECYCLER)
		return &l->recycler;
	return part == SESSION_REPLIES ? &l->replies : NULL;
}

static void place_qp(struct queue_layout_qp *q, const struct ledger_object *o)
{
	q->wq_off = o->offset;
	q->ring_off = o->offset + (uint64_t)o->rq_entries * o->rq_stride;
	q->qp_db_off = o->db_off;
	q->ring_wqebbs = o->entries;
}

static void place_cq(struct queue_layout_qp *q, const struct ledger_object *o)
{
	q->cqes_off = o->offset;
	q->cq_db_off = o->db_off;
	q->cq_log_size = (unsigned)__builtin_ctz(o->entries);
}

static int place(struct queue_layout *l, const struct ledger_slot *slot)
{
	const unsigned part_mask = (1u << SESSION_COOKIE_BITS) - 1;

	for (const struct ledger_object *o = slot->object; o < slot->object + LEDGER_OBJECTS; o++) {
		unsigned part = (unsigned)(o->cookie & part_mask);
		struct queue_layout_qp *q;

		if (o->type != LEDGER_QP && o->type != LEDGER_CQ)
			continue;
		if (!(part & SESSION_COOKIE_QP) != (o->type == LEDGER_CQ))
			return -EBADMSG;
		q = queue_of(l, part & ~(unsigned)SESSION_COOKIE_QP);
		if (!q || o->cookie >> SESSION_COOKIE_BITS != slot->session.number)
			return -EBADMSG;
		if (o->type == LEDGER_QP)
			place_qp(q, o);
		else
			place_cq(q, o);
	}
	return 0;
}

/* What has not been placed has a ring of 0 WQEBBs and a CQ of one CQE, which no session has */
static bool has_both(const struct queue_layout_qp *q)
{
	return q->ring_wqebbs && q->cq_log_size;
}

static bool has_neither(const struct queue_layout_qp *q)
{
	return !q->ring_wqebbs && !q->cq_log_size;
}

/* Number of queues of the chain; 0: something is missing */
static unsigned count_queues(const struct queue_layout *l)
{
	unsigned n = 0;

	while (n < CHAIN_MAX_QUEUES && has_both(&l->queue[n]))
		n++;
	for (unsigned q = n; q < CHAIN_MAX_QUEUES; q++)
		if (!has_neither(&l->queue[q]))
			return 0;
	return has_both(&l->recycler) && l->replies.cq_log_size ? n : 0;
}

/* The lanes are all of the block: where they begin, only the program shows */
static int place_lanes(struct queue_layout *l, const struct ledger_session *s)
{
	const struct ledger_recycler *r = &s->recycler;

	if (r->progress > UINT32_MAX || r->log > UINT32_MAX)
		return -EBADMSG;
	l->recycling.progress = (uint32_t)r->progress;
	l->recycling.log = (uint32_t)r->log;
	return 0;
}

static int fill_layout(struct foreign *f, const struct ledger_slot *slot)
{
	const struct ledger_session *s = &slot->session;
	struct queue_layout *l = &f->layout;
	int r;

	*l = (struct queue_layout){.slots = s->slots, .recycled = true, .size = slot->block.size};
	r = place(l, slot);
	if (r == 0)
		r = place_lanes(l, s);
	if (r < 0)
		return r;
	for (const struct ledger_object *o = slot->object; o < slot->object + LEDGER_OBJECTS; o++)
		if (o->type == LEDGER_QP && o->rq_entries)
			l->rq_stride = o->rq_stride;
	f->image.nqueues = count_queues(l);
	if (!f->image.nqueues || !l->rq_stride)
		return -EBADMSG;
	/* Any key will do: none is needed but that of the whole block */
	l->code_size = l->size;
	for (unsigned i = 0; i < chain_recycle_sections(l->slots); i++) {
		l->recycling.recv_en[i] = s->recycler.recv_en[i];
		if (l->recycling.recv_en[i] >= l->recycler.ring_wqebbs)
			return -EBADMSG;
	}
	return 0;
}

/* ---- its offload ---- */

/* The smallest image with so many queues: one WQE each, which is never armed */
static void fill_image(struct foreign *f, const struct ledger_session *s)
{
	f->start = 1;
	for (unsigned q = 0; q < f->image.nqueues; q++)
		f->image.queue[q] = (struct chain_queue){.wqebbs = 1, .starts = &f->start, .cqes = q == 0};
	f->image.arg_len = s->recycler.request_bytes;
	f->program.image = &f->image;
}

/* Where the lengths of replies are, in the ring and in the log. None: each is as long as the longest. */
static int fill_outcome(struct foreign *f, const struct ledger_recycler *r)
{
	struct outcome_plan *plan = &f->offload.outcome;
	uint64_t wqebbs = (uint64_t)f->layout.slots * r->reply_wqebbs;

	*plan = (struct outcome_plan){.wqes = r->wqes,
		.longest = r->reply_bytes,
		.reply_wqebbs = r->reply_wqebbs,
		.nmessages = r->nmessages};
	if (!r->reply_bytes)
		return -EBADMSG;
	if (!r->nmessages)
		return 0;
	if (r->nmessages > LEDGER_MESSAGES || wqebbs > f->layout.queue[0].ring_wqebbs ||
		r->log + wqebbs * RNIC_WQEBB_BYTES > f->layout.size)
		return -EBADMSG;
	for (unsigned i = 0; i < r->nmessages; i++) {
		const struct ledger_message *w = &r->messages[i];
		bool sends = r->sends >> i & 1;
		unsigned end = w->wqebb * RNIC_WQEBB_BYTES + (sends ? WQE_SEND_SGE : WQE_RDMA_SGE) +
			       w->segments * WQE_DS;

		if (w->conditional > 1 || end > r->reply_wqebbs * RNIC_WQEBB_BYTES)
			return -EBADMSG;
		plan->messages[i].wqebb = w->wqebb;
		plan->messages[i].nsge = w->segments;
		plan->messages[i].sends = sends;
		plan->messages[i].conditional = w->conditional;
		plan->conditional |= w->conditional;
	}
	return 0;
}

static void fill_conf(struct foreign *f, const struct ledger_session *s, const struct offload *now)
{
	f->conf = (struct catalog_offload){.path = f->conf.name};
	snprintf(f->conf.name, sizeof(f->conf.name), "%s", s->offload);
	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		f->conf.on_error[k] =
			now ? now->conf->on_error[k] : (struct verdict_policy){.action = VERDICT_TERMINATE};
	f->conf.time_budget = now ? now->conf->time_budget : 0;
}

int foreign_new(
	struct foreign **out, const struct ledger_slot *slot, const struct offload *now, const char *why)
{
	CLEANUP(foreign_freep) struct foreign *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->why = why;
	r = fill_layout(f, slot);
	if (r < 0)
		return r;
	fill_image(f, &slot->session);
	fill_conf(f, &slot->session, now);
	f->offload = (struct offload){.stats = &f->stats,
		.conf = &f->conf,
		.program = &f->program,
		.img = &f->image,
		.recycled = true};
	r = fill_outcome(f, &slot->session.recycler);
	if (r < 0)
		return r;
	*out = steal_ptr(&f);
	return 0;
}

void foreign_free(struct foreign *f)
{
	free(f);
}
