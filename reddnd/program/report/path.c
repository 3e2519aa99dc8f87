/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/report/path.h"

#include "protocol/wire.h"

#include <string.h>

static const struct costs cx5 = {
#include "costs/cx5-costs.inc"
};
static const struct costs *nic = &cx5;
enum { MTU = 4096 };

void path_use_costs(const struct costs *costs)
{
	nic = costs;
}

struct moment {
	uint64_t at;
	unsigned of; /* step */
};

static void not_before(struct moment *m, uint64_t at, unsigned of)
{
	if (at >= m->at)
		*m = (struct moment){at, of};
}

static uint32_t data_of(const struct chain_step *st)
{
	uint32_t len = 0;

	for (unsigned i = 0; i < CHAIN_MAX_SGE && st->local[i].kind != CHAIN_AT_NONE; i++)
		len += st->local[i].len;
	return len;
}

/* A short message, from memory to memory: through queue 0, which is the client's, over the link */
static uint64_t message(uint32_t len, bool over_link)
{
	return 2 * costs_on_bus(nic, len) + (over_link ? costs_on_port(nic, len, MTU) + nic->wire : 0);
}

/* When step @s that starts @at is done. A responder reads after it has placed what came before in that queue,
 * until @placed */
static uint64_t done_at(const struct chain_desc *d, unsigned s, uint64_t at, uint64_t placed)
{
	const struct chain_step *st = &d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);

	at += nic->issue;
	if (st->verb == CHAIN_READ || v->atomic_bytes) {
		if (placed > nic->write && at < placed - nic->write)
			at = placed - nic->write;
		return at + (v->atomic_bytes ? nic->atomic : nic->read) +
		       message(v->atomic_bytes ? v->atomic_bytes : data_of(st), false);
	}
	if (!v->data)
		return at;
	return at + (data_of(st) ? nic->gather : 0) +
	       message((uint32_t)chain_remote_bytes(v, data_of(st)), st->queue == 0) + nic->write;
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
	through = chain_step_named(d, st->through);
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
	struct moment first = {UINT64_MAX, PATH_REQUEST};

	if (in_head(d, s))
		return (struct moment){0, PATH_REQUEST};
	for (unsigned e = 0; e < d->nsteps; e++)
		if (enables(d, e, s) && t[e].start + nic->fetch < first.at)
			first = (struct moment){t[e].start + nic->fetch, e};
	return first.at == UINT64_MAX ? (struct moment){0, PATH_REQUEST} : first;
}

/* Step @s, from what is known of the others so far: true if that changed something */
static bool settle(const struct chain_desc *d, struct path_time *t, unsigned s)
{
	const struct chain_step *st = &d->steps[s];
	struct moment m = enabled(d, t, s);
	uint64_t done, queue_done = 0, placed = 0;
	bool changed;

	for (unsigned k = 0; k < s; k++) {
		if (d->steps[k].queue != st->queue)
			continue;
		if (queue_done < t[k].done)
			queue_done = t[k].done;
		if (d->steps[k].verb == CHAIN_WAIT)
			not_before(&m, t[k].done, k);
		else
			not_before(&m, t[k].start + nic->issue, k);
		if (chain_verb_info(d->steps[k].verb)->data && !chain_verb_info(d->steps[k].verb)->scatters)
			placed = t[k].done;
		if (st->flags & CHAIN_FENCE && chain_verb_info(d->steps[k].verb)->scatters)
			not_before(&m, t[k].done, k);
	}
	done = done_at(d, s, m.at, placed);
	if (st->verb == CHAIN_WAIT) {
		unsigned until = st->until ? chain_step_named(d, st->until) : d->nsteps;
		uint64_t then = until < d->nsteps ? t[until].done : 0;

		if (then > m.at)
			m = (struct moment){m.at, until};
		done = (then > m.at ? then : m.at) + nic->wait;
	}
	/* Completions of a queue come in order. What follows a WAIT does not wait for that. */
	if (done < queue_done && st->verb != CHAIN_WAIT)
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

uint64_t path_model(const struct chain_desc *d, struct path_time *t)
{
	uint64_t whole = 0;
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

uint64_t path_model_client(uint64_t whole, uint32_t bytes)
{
	uint64_t request = message(bytes, true);

	if (bytes <= REDDN_WIRE_INLINE)
		request -= costs_on_bus(nic, bytes);
	else
		request += nic->gather;
	return nic->doorbell + nic->fetch + nic->issue + request + nic->write + whole + nic->cqe;
}
