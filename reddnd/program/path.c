/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/path.h"

#include <string.h>

enum { IN_ORDER = 170, AFTER_WAIT = 190, FETCHED = 540, WRITE = 390, READ = 590 }; /* ns, see path.h */

struct moment {
	uint32_t at;
	unsigned of; /* step */
};

static void not_before(struct moment *m, uint32_t at, unsigned of)
{
	if (at >= m->at)
		*m = (struct moment){at, of};
}

static uint32_t own_part(const struct chain_step *st)
{
	const struct chain_verb_info *v = chain_verb_info(st->verb);

	if (st->verb == CHAIN_READ || v->atomic_bytes)
		return READ;
	return v->data ? WRITE : 0;
}

static unsigned find(const struct chain_desc *d, const char *label)
{
	unsigned s = 0;

	while (s < d->nsteps && (!d->steps[s].label || strcmp(d->steps[s].label, label) != 0))
		s++;
	return s;
}

/* Whether SEND_EN @e of an instance lets step @s of the same instance be fetched */
static bool enables(const struct chain_desc *d, unsigned e, unsigned s)
{
	const struct chain_step *st = &d->steps[e];
	unsigned through;

	if (st->verb != CHAIN_SEND_EN || st->target != d->steps[s].queue)
		return false;
	if (st->upto != CHAIN_UPTO_STEP)
		return true;
	through = find(d, st->through);
	return s <= through;
}

static bool in_head(const struct chain_desc *d, unsigned s)
{
	unsigned before = 0;

	for (unsigned i = 0; i < s; i++)
		before += d->steps[i].queue == d->steps[s].queue;
	return before < d->queues[d->steps[s].queue].head;
}

static struct moment enabled(const struct chain_desc *d, const struct path_time *t, unsigned s)
{
	struct moment first = {UINT32_MAX, PATH_REQUEST};

	if (in_head(d, s))
		return (struct moment){0, PATH_REQUEST};
	for (unsigned e = 0; e < d->nsteps; e++)
		if (enables(d, e, s) && t[e].start + FETCHED < first.at)
			first = (struct moment){t[e].start + FETCHED, e};
	return first.at == UINT32_MAX ? (struct moment){0, PATH_REQUEST} : first;
}

/* Step @s, from what is known of the others so far: true if that changed something */
static bool settle(const struct chain_desc *d, struct path_time *t, unsigned s)
{
	const struct chain_step *st = &d->steps[s];
	struct moment m = enabled(d, t, s);
	uint32_t done, queue_done = 0;
	bool changed;

	for (unsigned k = 0; k < s; k++) {
		if (d->steps[k].queue != st->queue)
			continue;
		queue_done = t[k].done;
		if (d->steps[k].verb == CHAIN_WAIT)
			not_before(&m, t[k].done, k);
		else
			not_before(&m, t[k].start + IN_ORDER, k);
		if (st->flags & CHAIN_FENCE && chain_verb_info(d->steps[k].verb)->scatters)
			not_before(&m, t[k].done, k);
	}
	done = m.at + own_part(st);
	if (st->verb == CHAIN_WAIT) {
		unsigned until = st->until ? find(d, st->until) : d->nsteps;
		uint32_t then = until < d->nsteps ? t[until].done : 0;

		if (then > m.at)
			m = (struct moment){m.at, until};
		done = (then > m.at ? then : m.at) + AFTER_WAIT;
	}
	if (done < queue_done) /* completions of a queue come in order */
		done = queue_done;
	changed = t[s].start != m.at || t[s].done != done;
	t[s].start = m.at;
	t[s].done = done;
	t[s].after = m.of;
	return changed;
}

static void mark_critical(const struct chain_desc *d, struct path_time *t)
{
	unsigned s = 0;

	for (unsigned i = 0; i < d->nsteps; i++)
		if (d->steps[i].queue == 0)
			s = i;
	while (s != PATH_REQUEST && !t[s].critical) {
		t[s].critical = true;
		s = t[s].after;
	}
}

uint32_t path_model(const struct chain_desc *d, struct path_time *t)
{
	uint32_t whole = 0;
	bool changed = true;

	for (unsigned s = 0; s < d->nsteps; s++)
		t[s] = (struct path_time){.after = PATH_REQUEST};
	/* Times only grow, and there is no circle in an ordered chain: as many rounds as steps are enough */
	for (unsigned round = 0; changed && round <= d->nsteps; round++) {
		changed = false;
		for (unsigned s = 0; s < d->nsteps; s++)
			changed |= settle(d, t, s);
	}
	for (unsigned s = 0; s < d->nsteps; s++)
		if (d->steps[s].queue == 0 && t[s].done > whole)
			whole = t[s].done;
	if (d->nsteps)
		mark_critical(d, t);
	return whole;
}
