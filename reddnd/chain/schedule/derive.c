/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/derive.h"

#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/ir/layout.h"
#include "reddnd/chain/schedule/derive-internal.h"
#include "reddnd/chain/verify/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

/*
 * For a device that fetches WQEBBs of a managed queue in groups, past the enabled index
 * (chain_desc.fetch_group): a WQE that is patched must not share a group with one that is enabled before the
 * patch has landed.
 *
 * What is enabled together is a *run*: the head of a queue, what a SEND_EN adds to that, and so on to the end
 * of the instance. NOPs make each run as long as whole groups. They come first in it, since the CQE of the
 * last step of the reply has to come last; in a head they come last, since that begins with the WAIT for the
 * request. A NOP is one work request and up to four WQEBBs.
 */

struct groups {
	struct layout l;
	bool last[CHAIN_MAX_STEPS];                              /* of a run */
	uint8_t before[CHAIN_MAX_STEPS], after[CHAIN_MAX_STEPS]; /* WQEBBs of NOPs there */
	struct chain_step steps[CHAIN_MAX_STEPS];
	unsigned nsteps;
};

static void free_groups(struct groups **g)
{
	free(*g);
}

/* A run ends with the head, with what a SEND_EN names, and with the queue */
static void find_runs(struct groups *g)
{
	const struct layout *l = &g->l;
	unsigned end[CHAIN_MAX_QUEUES];

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		unsigned q = l->d->steps[s].queue;

		end[q] = s;
		if (l->step[s].head && l->step[s].at + l->step[s].wqebbs == l->head[q])
			g->last[s] = true;
		for (unsigned e = 0; e < l->d->nsteps; e++)
			if (l->d->steps[e].verb == CHAIN_SEND_EN && l->d->steps[e].target == q &&
				l->step[e].enables == (uint32_t)l->step[s].at + l->step[s].wqebbs)
				g->last[s] = true;
	}
	for (unsigned q = 0; q < l->d->nqueues; q++)
		g->last[end[q]] = true;
}

static void measure_runs(struct groups *g)
{
	const struct layout *l = &g->l;
	unsigned first[CHAIN_MAX_QUEUES], len[CHAIN_MAX_QUEUES] = {0};

	for (unsigned s = 0; s < l->d->nsteps; s++) {
		unsigned q = l->d->steps[s].queue, pad;

		if (!len[q])
			first[q] = s;
		len[q] += l->step[s].wqebbs;
		if (!g->last[s])
			continue;
		pad = -len[q] & (l->d->fetch_group - 1u);
		*(l->step[s].head ? &g->after[s] : &g->before[first[q]]) = (uint8_t)pad;
		len[q] = 0;
	}
}

static unsigned put(struct groups *g, const struct chain_step *st)
{
	if (g->nsteps < CHAIN_MAX_STEPS)
		g->steps[g->nsteps] = *st;
	return g->nsteps++;
}

/* Returns how many NOPs these WQEBBs take */
static unsigned put_nops(struct groups *g, const struct chain_step *of, unsigned wqebbs)
{
	struct chain_step nop = {.queue = of->queue,
		.verb = CHAIN_NOP,
		.line = of->line,
		.why = "the device fetches groups of WQEs, and one that is enabled later must not be in "
		       "theirs"};
	unsigned n = 0;

	for (; wqebbs; wqebbs -= nop.pad, n++) {
		nop.pad = (uint8_t)(wqebbs < CHAIN_PAD_WQEBBS ? wqebbs : CHAIN_PAD_WQEBBS);
		put(g, &nop);
	}
	return n;
}

/* Pads the ordered chain @d. @steps and @queues are those that it points to, the first with room for
 * CHAIN_MAX_STEPS. 0; CHAIN_REFUSED with the reason in @err: too many steps; -ENOMEM. */
static int chain_fill_groups(struct chain_desc *d, struct chain_step *steps, struct chain_queue_desc *queues,
	struct chain_error *err)
{
	__attribute__((cleanup(free_groups))) struct groups *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->l.err = err;
	if (layout_make(&g->l, d))
		return CHAIN_REFUSED;
	find_runs(g);
	measure_runs(g);
	for (unsigned s = 0; s < d->nsteps; s++) {
		put_nops(g, &steps[s], g->before[s]);
		put(g, &steps[s]);
		queues[steps[s].queue].head += (uint8_t)put_nops(g, &steps[s], g->after[s]);
	}
	if (g->nsteps > CHAIN_MAX_STEPS)
		return CHAIN_REFUSE(err, GROUPS, .number = {d->nsteps, d->fetch_group, CHAIN_MAX_STEPS});
	memcpy(steps, g->steps, g->nsteps * sizeof(*steps));
	d->nsteps = g->nsteps;
	return 0;
}

/* Where one queue enables another, that one cannot miss its failures, and a fence may be too much */
static int spare_fences(struct derived *d)
{
	struct chain_error why;

	for (unsigned s = 0; s < d->d.nsteps; s++) {
		int r;

		if (!d->cautious[s])
			continue;
		d->order.steps[s].flags &= (uint8_t)~CHAIN_FENCE;
		r = chain_check_order(&d->d, &why);
		if (r < 0)
			return r;
		if (r)
			d->order.steps[s].flags |= CHAIN_FENCE;
	}
	return 0;
}

/* Step @s without its label, which becomes that of the step before it in its queue: what is enabled through
 * the one is enabled through the other. False: there is none before it */
static bool pass_label_on(struct derived *d, unsigned s)
{
	const struct chain_step *steps = d->order.steps;
	const char *label = steps[s].label;
	unsigned before = s;

	while (before-- > 0 && steps[before].queue != steps[s].queue)
		;
	if (before >= s)
		return false;
	for (unsigned e = 0; e < d->d.nsteps; e++)
		if (steps[e].through == label)
			d->order.steps[e].through = ordered_label(&d->order, before);
	return true;
}

static bool is_derived_wait(const struct derived *d, unsigned s)
{
	const struct chain_step *st = &d->order.steps[s];

	return st->verb == CHAIN_WAIT && st->until && st->why >= d->order.why[0] &&
	       st->why <= d->order.why[CHAIN_MAX_STEPS - 1];
}

/* What a WRITE does may be over behind a fence as well, because the responder executes requests in turn: a
 * way does not count on that, and some of its WAITs are too much */
static int spare_waits(struct derived *d)
{
	struct chain_error why;

	for (unsigned s = d->d.nsteps; s-- > 0;) {
		struct chain_step wait = d->order.steps[s];
		int r;

		if (!is_derived_wait(d, s))
			continue;
		d->order.steps[s] =
			(struct chain_step){.verb = CHAIN_NOP, .label = wait.label, .queue = wait.queue};
		r = chain_check_order(&d->d, &why);
		if (r < 0)
			return r;
		if (r || (wait.label && !pass_label_on(d, s))) {
			d->order.steps[s] = wait;
			continue;
		}
		d->d.nsteps--;
		memmove(&d->order.steps[s], &d->order.steps[s + 1],
			(d->d.nsteps - s) * sizeof(d->order.steps[0]));
	}
	return 0;
}

/* Work requests first, then fences, then CQEs */
static unsigned cost(const struct derived *d)
{
	unsigned cost = 0;

	for (unsigned s = 0; s < d->d.nsteps; s++)
		cost += 0x100000u + (d->order.steps[s].flags & CHAIN_FENCE ? 0x400u : 0) +
			(d->order.steps[s].flags & CHAIN_SIGNALLED ? 1 : 0);
	return cost;
}

static void free_text(struct text **t)
{
	free(*t);
}

static void free_derived(struct derived **d)
{
	free(*d);
}

/* The queues that could enable the reply. First the one with the last step among those that tell the end
 * nothing */
static unsigned list_candidates(const struct text *t, uint8_t q[CHAIN_MAX_QUEUES])
{
	bool listed[CHAIN_MAX_QUEUES] = {[0] = true}, informs[CHAIN_MAX_QUEUES] = {0};
	unsigned n = 0;

	for (unsigned s = 0; s < t->d.nsteps; s++)
		informs[t->steps[s].queue] |= t->wakes_end[s];
	for (unsigned informing = 0; informing < 2; informing++)
		for (unsigned s = t->d.nsteps; s-- > 0;) {
			unsigned by = t->steps[s].queue;

			if (listed[by] || informs[by] != informing)
				continue;
			listed[by] = true;
			q[n++] = (uint8_t)by;
		}
	return n;
}

static int fill_groups(struct derived *d, uint16_t group, struct chain_error *err)
{
	int r;

	if (group <= 1)
		return 0;
	d->d.fetch_group = group;
	r = chain_fill_groups(&d->d, d->order.steps, d->queues, err);
	return r ? r : chain_check_order(&d->d, err);
}

/* The best of the ways in which instances overlap, or in which they do not; NULL: none is right. Of the
 * errors the first one is kept */
static int find_best(struct text *t, bool overlap, struct derived **best)
{
	__attribute__((cleanup(free_derived))) struct derived *now = malloc(sizeof(*now));
	uint8_t by[CHAIN_MAX_QUEUES];
	unsigned n = list_candidates(t, by);
	int r;

	for (unsigned i = 0; now && i < 4 * n; i++) {
		struct chain_error why;
		struct derived *worse = *best;
		struct way way = {
			.reply_by = by[i % n], .fenced = i / n % 2, .eager = i < 2 * n, .overlap = overlap};

		/* who wants an answer early gets what is fastest, and others the fewest work requests */
		if ((way.fenced && !t->d.fenced_enables) ||
			(way.eager ? !t->any_early : *best && t->any_early))
			continue;

		r = way_order(t, way, now, &why);
		if (r > 0) {
			way.cautious = true;
			r = way_order(t, way, now, &why);
		}
		if (!r)
			r = spare_fences(now);
		if (r < 0)
			return r;
		if (r) {
			if (!t->err->code)
				*t->err = why;
			continue;
		}
		if (*best && cost(now) >= cost(*best))
			continue;
		*best = now;
		now = worse ? worse : malloc(sizeof(*now));
	}
	return now ? 0 : -ENOMEM;
}

int chain_derive(const struct chain_desc *d, struct chain_desc **out, struct chain_error *err)
{
	__attribute__((cleanup(free_text))) struct text *t = calloc(1, sizeof(*t));
	__attribute__((cleanup(free_derived))) struct derived *best = NULL;
	int r;

	if (!t)
		return -ENOMEM;
	t->err = err;
	*err = (struct chain_error){0};
	r = text_read(t, d);
	if (r)
		return r;
	t->d.fetch_group = 0; /* its groups are filled in the end */
	if (d->overlap)
		r = find_best(t, true, &best);
	if (r == 0 && !best) {
		*err = (struct chain_error){0};
		r = find_best(t, false, &best);
	}
	if (r < 0)
		return r;
	if (!best)
		return CHAIN_REFUSED;
	*err = (struct chain_error){0};
	r = spare_waits(best);
	if (r)
		return r;
	r = fill_groups(best, d->fetch_group, err);
	if (r)
		return r;
	*out = &best->d;
	best = NULL;
	return 0;
}

void chain_derive_free(struct chain_desc *d)
{
	free(d); /* the first member of struct derived */
}
