/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/endless-form.h"

#include <string.h>

static struct chain_error_at at_fault(const struct loop_form *f, const struct chain_step *st)
{
	return chain_error_step(f->d, (unsigned)(st - f->d->steps));
}

unsigned loop_form_step(const struct loop_form *f, const char *label)
{
	for (unsigned s = 0; label && s < f->d->nsteps; s++)
		if (f->d->steps[s].label && strcmp(f->d->steps[s].label, label) == 0)
			return s;
	return LOOP_FORM_NONE;
}

unsigned loop_form_segments(const struct chain_step *st)
{
	unsigned n = 0;

	while (n < CHAIN_MAX_SGE && st->local[n].kind != CHAIN_AT_NONE)
		n++;
	return chain_verb_info(st->verb)->atomic_bytes && !n ? 1 : n;
}

bool loop_form_is_outward(const struct loop_form *f, const struct chain_step *st)
{
	return (st->verb == CHAIN_WAIT && !st->until) ||
	       (st->verb == CHAIN_SEND_EN && st->target != f->queue);
}

static int check_place(
	struct loop_form *f, const struct chain_step *st, const struct chain_place *p, uint32_t len)
{
	unsigned s, w = 0, size = 0;

	switch ((enum chain_place_kind)p->kind) {
	case CHAIN_AT_REGION:
		return p->index < f->d->nregions ? 0
						 : CHAIN_REFUSE(f->err, NO_REGION, .at = at_fault(f, st),
							   .number = {p->index, f->d->nregions});
	case CHAIN_AT_SCRATCH:
		while (w < f->d->nwords && strcmp(f->d->words[w].name, p->name) != 0)
			w++;
		if (w == f->d->nwords || f->word_at[w] + p->from + len > f->scratch)
			return CHAIN_REFUSE(f->err, WORD_END, .at = at_fault(f, st), .name = p->name,
				.number = {len, p->from});
		return 0;
	case CHAIN_AT_FIELD:
		s = loop_form_step(f, p->name);
		if (s == LOOP_FORM_NONE || p->field >= CHAIN_FIELDS ||
			chain_field_at(f->d->steps[s].verb, p->field, p->sge, &size) < 0 ||
			(p->field >= CHAIN_F_LOCAL_ADDR && p->field <= CHAIN_F_LOCAL_LEN &&
				p->sge >= loop_form_segments(&f->d->steps[s])) ||
			p->from + len > size)
			return CHAIN_REFUSE(f->err, LOOP_NO_FIELD, .at = at_fault(f, st), .name = p->name);
		if (p->field == CHAIN_F_REMOTE_KEY || p->field == CHAIN_F_LOCAL_KEY ||
			(p->field == CHAIN_F_INDEX && !loop_form_is_outward(f, &f->d->steps[s])) ||
			p->field == CHAIN_F_CTRL)
			return CHAIN_REFUSE(f->err, LOOP_FIELD, .at = at_fault(f, st),
				.other = chain_error_step(f->d, s), .name = chain_field_name(p->field));
		return 0;
	default:
		return CHAIN_REFUSE(f->err, LOOP_PLACE, .at = at_fault(f, st));
	}
}

/* The queue that the end of the loop wakes relies on all steps before that */
static int check_outward(struct loop_form *f, unsigned s)
{
	const struct chain_step *st = &f->d->steps[s];
	unsigned known = 0;

	if (!(st->flags & CHAIN_DORMANT))
		return CHAIN_REFUSE(f->err, LOOP_ALWAYS, .at = at_fault(f, st));
	if (st->verb == CHAIN_WAIT)
		return s == 0 ? 0 : CHAIN_REFUSE(f->err, LOOP_CALL, .at = at_fault(f, st));
	for (unsigned k = 0; k < s; k++)
		if (f->d->steps[k].verb == CHAIN_WAIT && f->until[k] != LOOP_FORM_NONE &&
			f->until[k] >= known)
			known = f->until[k] + 1u;
	for (unsigned k = known; k < f->d->nsteps; k++)
		if (chain_verb_info(f->d->steps[k].verb)->data)
			return CHAIN_REFUSE(
				f->err, LOOP_LEFT, .at = at_fault(f, st), .other = chain_error_step(f->d, k));
	return 0;
}

static int check_sync(struct loop_form *f, unsigned s)
{
	const struct chain_step *st = &f->d->steps[s];

	f->until[s] = f->through[s] = LOOP_FORM_NONE;
	if (loop_form_is_outward(f, st))
		return check_outward(f, s);
	if (st->verb == CHAIN_WAIT) {
		f->until[s] = (uint16_t)loop_form_step(f, st->until);
		if (f->until[s] >= s || !(f->d->steps[f->until[s]].flags & CHAIN_SIGNALLED))
			return CHAIN_REFUSE(f->err, LOOP_WAIT, .at = at_fault(f, st));
		return 0;
	}
	f->through[s] = (uint16_t)loop_form_step(f, st->through);
	if (st->verb != CHAIN_SEND_EN || st->target != f->queue || st->upto != CHAIN_UPTO_STEP ||
		f->through[s] == LOOP_FORM_NONE)
		return CHAIN_REFUSE(f->err, LOOP_ENABLE, .at = at_fault(f, st));
	return 0;
}

static int check_step(struct loop_form *f, unsigned s)
{
	const struct chain_step *st = &f->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	unsigned n = loop_form_segments(st);
	uint32_t len = 0;

	if (st->queue != f->queue)
		return CHAIN_REFUSE(f->err, LOOP_QUEUE, .at = at_fault(f, st));
	if (v->class == CHAIN_CLASS_SYNC)
		return check_sync(f, s);
	if (v->imm || st->verb == CHAIN_SEND)
		return CHAIN_REFUSE(f->err, LOOP_SENDS, .at = at_fault(f, st));
	for (unsigned i = 0; i < n && st->local[i].kind != CHAIN_AT_NONE; i++) {
		len += st->local[i].len;
		if (st->local[i].len == 0)
			return CHAIN_REFUSE(f->err, SEGMENT_EMPTY, .at = at_fault(f, st), .number = {i});
		if (check_place(f, st, &st->local[i], st->local[i].len))
			return CHAIN_REFUSED;
	}
	if (v->data && !v->atomic_bytes && n == 0)
		return CHAIN_REFUSE(f->err, LOOP_EMPTY, .at = at_fault(f, st));
	return v->remote ? check_place(f, st, &st->remote, v->atomic_bytes ? 8 : len) : 0;
}

/*
 * The READs that refresh the other half of the ring go in front of what the iteration waits for last, before
 * it enables the next: that CQE, or that fence, is theirs too.
 */
static int find_renewal(struct loop_form *f)
{
	unsigned last = LOOP_FORM_NONE;

	for (unsigned s = 0; s < f->d->nsteps; s++) {
		const struct chain_step *st = &f->d->steps[s];

		if (loop_form_is_outward(f, st))
			continue;
		if (st->verb == CHAIN_WAIT)
			last = f->until[s];
		else if (st->verb == CHAIN_SEND_EN && st->flags & CHAIN_FENCE)
			last = s;
		if (st->verb == CHAIN_SEND_EN && f->through[s] <= s)
			f->renew = last;
	}
	return f->renew != LOOP_FORM_NONE ? 0 : CHAIN_REFUSE(f->err, LOOP_RENEWAL);
}

int loop_form_read(struct loop_form *f, const struct chain_desc *d, struct chain_error *err)
{
	*f = (struct loop_form){.d = d, .renew = LOOP_FORM_NONE, .err = err};
	if (d->nsteps == 0 || d->nsteps > CHAIN_MAX_STEPS || d->nwords > CHAIN_MAX_WORDS ||
		d->nregions > CHAIN_MAX_WINDOWS || d->nqueues > CHAIN_MAX_QUEUES)
		return CHAIN_REFUSE(f->err, LOOP_LIMITS);
	f->queue = d->steps[0].queue;
	for (unsigned w = 0; w < d->nwords; w++) {
		f->word_at[w] = f->scratch;
		f->scratch += (d->words[w].size + 7u) & ~7u;
	}
	for (unsigned s = 0; s < d->nsteps; s++) {
		if (d->steps[s].verb >= CHAIN_VERBS)
			return CHAIN_REFUSE(
				f->err, NO_VERB, .at = chain_error_step(d, s), .number = {d->steps[s].verb});
		f->discards |= chain_verb_info(d->steps[s].verb)->atomic_bytes &&
			       loop_form_segments(&d->steps[s]) == 1 &&
			       d->steps[s].local[0].kind == CHAIN_AT_NONE;
	}
	f->scratch += f->discards ? 8 : 0; /* unwanted old values */
	if (f->scratch > CHAIN_MAX_SCRATCH)
		return CHAIN_REFUSE(f->err, SCRATCH_BYTES, .number = {f->scratch, CHAIN_MAX_SCRATCH});
	for (unsigned s = 0; s < d->nsteps; s++)
		if (check_step(f, s))
			return CHAIN_REFUSED;
	return find_renewal(f);
}
