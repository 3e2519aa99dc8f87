/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/endless.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/layout.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	SECTIONS = 2,
	ITERATIONS = 16, /* a lap has at least so many, if there is room */
};

/* ---- form ---- */

struct loop_form {
	const struct chain_desc *d;
	struct chain_step *steps; /* of chain: */
	struct chain_desc chain;  /* the iteration as layout_loop() has it */
	struct layout l;
	unsigned renew; /* step before which the ring is renewed in the last iteration of a section */
	uint16_t through[CHAIN_MAX_STEPS]; /* the step that a SEND_EN enables through */
	struct chain_error *err;
};

/* Data segments of its WQE */
static unsigned loop_form_segments(const struct chain_step *st)
{
	unsigned n = 0;

	while (n < CHAIN_MAX_SGE && st->local[n].kind != CHAIN_AT_NONE)
		n++;
	return chain_verb_info(st->verb)->atomic_bytes && !n ? 1 : n;
}

/* One of the two steps by which a loop is called: the WAIT that starts it, and the SEND_EN that wakes the
 * caller */
static bool is_outward(const struct chain_step *st)
{
	return (st->verb == CHAIN_WAIT && !st->until) || (st->verb == CHAIN_SEND_EN && st->target);
}

/* The ring itself renews indices, but those of who calls */
static int check_place(struct loop_form *f, unsigned s, const struct chain_place *p)
{
	unsigned to = p->kind == CHAIN_AT_FIELD ? layout_step(&f->l, p->name) : LAYOUT_NONE;

	if (to == LAYOUT_NONE ||
		!(p->field == CHAIN_F_CTRL || (p->field == CHAIN_F_INDEX && !is_outward(&f->d->steps[to]))))
		return 0;
	return CHAIN_REFUSE(f->err, LOOP_FIELD, .at = layout_at(&f->l, s), .other = layout_at(&f->l, to),
		.name = chain_field_name(p->field));
}

/* The queue that the end of the loop wakes relies on all steps before that */
static int check_outward(struct loop_form *f, unsigned s)
{
	const struct chain_step *st = &f->d->steps[s];
	unsigned known = 0;

	if (!(st->flags & CHAIN_DORMANT))
		return CHAIN_REFUSE(f->err, LOOP_ALWAYS, .at = layout_at(&f->l, s));
	if (st->verb == CHAIN_WAIT)
		return s == 0 ? 0 : CHAIN_REFUSE(f->err, LOOP_CALL, .at = layout_at(&f->l, s));
	for (unsigned k = 0; k < s; k++)
		if (f->d->steps[k].verb == CHAIN_WAIT && f->l.step[k].until != LAYOUT_NONE &&
			f->l.step[k].until >= known)
			known = f->l.step[k].until + 1u;
	for (unsigned k = known; k < f->d->nsteps; k++)
		if (chain_verb_info(f->d->steps[k].verb)->data)
			return CHAIN_REFUSE(
				f->err, LOOP_LEFT, .at = layout_at(&f->l, s), .other = layout_at(&f->l, k));
	return 0;
}

static int check_step(struct loop_form *f, unsigned s)
{
	const struct chain_step *st = &f->d->steps[s];

	assert(!chain_verb_info(st->verb)->calc && "words of a ring are aligned to 8");
	if (is_outward(st))
		return check_outward(f, s);
	if (st->verb == CHAIN_WAIT && f->l.step[s].until >= s)
		return CHAIN_REFUSE(f->err, LOOP_WAIT, .at = layout_at(&f->l, s));
	f->through[s] = (uint16_t)layout_step(&f->l, st->through);
	if (st->verb == CHAIN_SEND_EN && st->upto != CHAIN_UPTO_STEP)
		return CHAIN_REFUSE(f->err, LOOP_ENABLE, .at = layout_at(&f->l, s));
	for (unsigned i = 0; i < f->l.step[s].nsge; i++)
		if (check_place(f, s, &st->local[i]))
			return CHAIN_REFUSED;
	return check_place(f, s, &st->remote);
}

/*
 * The READs that refresh the other half of the ring go in front of what the iteration waits for last, before
 * it enables the next: that CQE, or that fence, is theirs too.
 */
static int find_renewal(struct loop_form *f)
{
	unsigned last = LAYOUT_NONE;

	for (unsigned s = 0; s < f->d->nsteps; s++) {
		const struct chain_step *st = &f->d->steps[s];

		if (is_outward(st))
			continue;
		if (st->verb == CHAIN_WAIT)
			last = f->l.step[s].until;
		else if (st->verb == CHAIN_SEND_EN && st->flags & CHAIN_FENCE)
			last = s;
		if (st->verb == CHAIN_SEND_EN && f->through[s] <= s)
			f->renew = last;
	}
	return f->renew != LAYOUT_NONE ? 0 : CHAIN_REFUSE(f->err, LOOP_RENEWAL);
}

/* Whether @d is an endless loop as endless.h wants it. 0; CHAIN_REFUSED and the reason in @err; -ENOMEM. @d
 * and @err outlive the form, and the caller frees its steps in any case */
static int loop_form_read(struct loop_form *f, const struct chain_desc *d, struct chain_error *err)
{
	*f = (struct loop_form){.d = d, .renew = LAYOUT_NONE, .err = err, .l.err = err};
	f->steps = calloc(d->nsteps + 2, sizeof(*f->steps));
	if (!f->steps)
		return -ENOMEM;
	f->chain = layout_loop(d, f->steps);
	if (layout_make(&f->l, &f->chain))
		return CHAIN_REFUSED;
	for (unsigned s = 0; s < d->nsteps; s++)
		if (check_step(f, s))
			return CHAIN_REFUSED;
	return find_renewal(f);
}

/* ---- ring ---- */

struct loop {
	struct loop_form form;
	uint32_t ring; /* WQEBBs */
	unsigned shared;
	struct lap *lap;
	unsigned n, *ids;      /* iterations; WQE of step s in iteration i: ids[i * nsteps + s] */
	unsigned first_enable; /* step through which the ring is started: what is after it, that enables */
};

static unsigned id_of(const struct loop *o, unsigned iteration, unsigned step)
{
	return o->ids[iteration % o->n * o->form.d->nsteps + step];
}

/* A step that is not later than @from belongs to the next iteration */
static unsigned next_of(const struct loop *o, unsigned iteration, unsigned from, unsigned step)
{
	return id_of(o, step > from ? iteration : iteration + 1, step);
}

/* Step @s of iteration @i names @p in its WQE: @field at @at; CHAIN_AT_NONE: where old values go that nobody
 * wants */
static void name(struct loop *o, unsigned i, unsigned s, unsigned at, enum ring_field field,
	const struct chain_place *p)
{
	const struct layout *l = &o->form.l;
	const struct layout_range r = p->kind == CHAIN_AT_NONE
					      ? (struct layout_range){.sym = CHAIN_SYM_SCRATCH,
							.step = LAYOUT_NONE,
							.offset = l->discard_at}
					      : layout_place(l, p, 1);

	if (r.step != LAYOUT_NONE)
		lap_point(o->lap, id_of(o, i, s), at, field, next_of(o, i, s, r.step),
			(unsigned)r.offset - l->step[r.step].at * CHAIN_WQEBB);
	else
		lap_name(o->lap, id_of(o, i, s), at, field,
			ring_at(r.sym == CHAIN_SYM_REGION ? RING_REGION + r.index : RING_SCRATCH, r.offset));
}

static void fill(struct loop *o, unsigned i, unsigned s)
{
	const struct chain_step *st = &o->form.d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	unsigned id = id_of(o, i, s), at = v->sge_at, n = loop_form_segments(st);
	uint8_t *w = lap_bytes(o->lap, id);

	if (st->flags & CHAIN_DORMANT &&
		!(st->verb == CHAIN_WAIT && i == 0)) /* it begins with being called */
		w[WQE_OPCODE] = WQE_OP_NOP;
	if (is_outward(st))
		lap_name(o->lap, id, WQE_SYNC_OBJECT, st->verb == CHAIN_WAIT ? RING_CQN : RING_QPN,
			ring_at(CHAIN_LOOP_CALLER, 0));
	else if (st->verb == CHAIN_WAIT)
		lap_await(o->lap, id, id_of(o, i, o->form.l.step[s].until));
	else if (st->verb == CHAIN_SEND_EN)
		lap_enable(o->lap, id, next_of(o, i, s, o->form.through[s]));
	if (v->remote)
		name(o, i, s, WQE_RADDR, RING_REMOTE, &st->remote);
	if (v->atomic_bytes)
		chain_put_operands(w, st);
	for (unsigned k = 0; k < n; k++, at += WQE_DS) {
		wqe_put32(w + at + WQE_SGE_LEN, v->atomic_bytes ? 8 : st->local[k].len);
		name(o, i, s, at, RING_SEGMENT, &st->local[k]);
	}
}

static uint8_t flags_of(const struct chain_step *st)
{
	return (uint8_t)((st->flags & CHAIN_FENCE ? WQE_FENCE : 0) |
			 (st->flags & CHAIN_SIGNALLED ? WQE_SIGNALLED : 0));
}

/* A CQE for each half of a lap. It is waited for in front of what the iteration waits for last: all of the
 * iteration has started, and the next one has not been enabled. */
static void await_credit(struct loop *o, unsigned half)
{
	unsigned id = lap_add(o->lap, CHAIN_WAIT, 0, 0);

	lap_number(o->lap, id, WQE_SYNC_INDEX + 1, 3, half, SECTIONS);
	lap_name(o->lap, id, WQE_SYNC_OBJECT, RING_CQN, ring_at(RING_CREDITS, 0));
}

static void add_wqes(struct loop *o)
{
	unsigned half = o->n / 2;

	for (unsigned i = 0; i < o->n; i++) {
		bool renew = i == half - 1 || i == o->n - 1;

		if (i == half)
			lap_next_section(o->lap);
		for (unsigned s = 0; s < o->form.d->nsteps; s++) {
			const struct chain_step *st = &o->form.d->steps[s];

			if (renew && s == o->form.renew) {
				await_credit(o, i >= half);
				lap_count(o->lap, half);
				lap_renew(o->lap);
				if (i == o->n - 1)
					lap_advance(o->lap);
			}
			o->ids[i * o->form.d->nsteps + s] =
				lap_add(o->lap, st->verb, loop_form_segments(st), flags_of(st));
		}
	}
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned s = 0; s < o->form.d->nsteps; s++) {
			fill(o, i, s);
			if (s == o->first_enable || s == o->form.d->nsteps - 1)
				lap_fill_group(o->lap, id_of(o, i, s));
		}
}

static int prove(
	const struct loop *o, const struct lap_env *env, const struct ring_image *image, uint16_t start)
{
	uint8_t *verbs = calloc(o->ring, 1);
	const struct lap_proof proof = {.start = start,
		.verbs = verbs,
		.discard = o->form.l.scratch_size > o->form.l.discard_at
				   ? ring_at(RING_SCRATCH, o->form.l.discard_at)
				   : 0,
		.shared = o->shared};
	int r;

	if (!verbs)
		return -ENOMEM;
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned s = 0; s < o->form.d->nsteps; s++)
			verbs[lap_index_of(o->lap, id_of(o, i, s))] = (uint8_t)(1 + o->form.d->steps[s].verb);
	r = lap_prove(image, env, &proof, o->form.err);
	free(verbs);
	return r;
}

static uint32_t wqebbs_of(const struct chain_step *st)
{
	return (chain_wqe_ds(st->verb, loop_form_segments(st)) + 3) / 4;
}

static unsigned first_enable(const struct chain_desc *d)
{
	unsigned s = 0;

	while (d->steps[s].verb != CHAIN_SEND_EN)
		s++;
	return s;
}

/* The groups that a device fetches together end with what is enabled, and so do iterations, to be all alike
 */
static bool ends_group(const struct chain_desc *d, unsigned s)
{
	if (s == d->nsteps - 1 || s == first_enable(d))
		return true;
	for (unsigned e = 0; d->steps[s].label && e < d->nsteps; e++)
		if (d->steps[e].verb == CHAIN_SEND_EN && d->steps[e].through &&
			strcmp(d->steps[e].through, d->steps[s].label) == 0)
			return true;
	return false;
}

/* WQEBB @at of an iteration is the end of step @s: where the next one begins */
static uint32_t after_step(const struct chain_desc *d, unsigned s, uint32_t at)
{
	uint32_t group = d->fetch_group;

	return group > 1 && ends_group(d, s) ? (at + group - 1) & ~(group - 1) : at;
}

/* Where step @s of an iteration is that does not renew the ring */
static uint32_t offset_of(const struct chain_desc *d, unsigned step)
{
	uint32_t at = 0;

	for (unsigned s = 0; s < step; s++)
		at = after_step(d, s, at + wqebbs_of(&d->steps[s]));
	return at;
}

static void measure(const struct loop *o, struct chain_loop_info *info)
{
	info->second = lap_index_of(o->lap, id_of(o, o->n / 2, 0));
	info->renew = o->form.renew;
	info->wqebbs = offset_of(o->form.d, o->form.d->nsteps);
	for (unsigned half = 0; half < 2; half++) {
		unsigned i = (half + 1) * o->n / 2 - 1;

		info->renewal[half] = (uint32_t)(lap_index_of(o->lap, id_of(o, i, o->form.renew)) -
						 lap_index_of(o->lap, id_of(o, i, 0))) -
				      offset_of(o->form.d, o->form.renew);
	}
}

/* Tries @n iterations: 0, or -E2BIG when they do not fit. With @image they are proven, too */
static int try(struct loop *o, unsigned n, struct chain_loop_info *info, struct ring_image **image)
{
	const struct lap_env env = {
		.wqebbs = o->ring,
		.lanes_at = LAP_HEAD,
		.ignores_index = o->form.d->ignores_index,
		.group = o->form.d->fetch_group,
	};
	int r = lap_new(&o->lap, &env, SECTIONS);

	o->n = n;
	o->ids = calloc((size_t)n * o->form.d->nsteps, sizeof(*o->ids));
	if (r == 0 && o->ids) {
		add_wqes(o);
		r = lap_finish(o->lap, &info->lap, image);
	}
	if (r == 0 && !o->ids)
		r = -ENOMEM;
	if (r == 0) {
		info->start = lap_index_after(o->lap, id_of(o, 0, o->first_enable));
		info->iterations = n;
		if (image)
			r = prove(o, &env, *image, info->start);
		measure(o, info);
	}
	lap_free(o->lap);
	free(o->ids);
	o->lap = NULL;
	o->ids = NULL;
	return r;
}

unsigned chain_loop_step(
	const struct chain_desc *d, const struct chain_loop_info *info, uint32_t ring_wqebbs, uint16_t index)
{
	const uint32_t ring_at = index & (ring_wqebbs - 1);
	const unsigned n = info->iterations / 2, half = ring_at >= info->second;
	uint32_t in = ring_at - (half ? info->second : 0), last = (n - 1) * info->wqebbs, at = 0;
	const bool renews = in >= last;

	in = renews ? in - last : in % info->wqebbs;
	for (unsigned s = 0; s < d->nsteps; s++) {
		uint32_t wqebbs = wqebbs_of(&d->steps[s]);

		if (renews && s == info->renew)
			at += info->renewal[half];
		if (in < at + wqebbs)
			return in < at ? d->nsteps : s;
		at = after_step(d, s, at + wqebbs);
	}
	return d->nsteps;
}

static int begin(struct loop *o, const struct chain_desc *d, uint32_t ring, struct chain_loop_info *info,
	struct chain_error *err)
{
	int r;

	*o = (struct loop){.ring = ring};
	*info = (struct chain_loop_info){0};
	*err = (struct chain_error){0};
	r = loop_form_read(&o->form, d, err);
	if (r)
		return r;
	o->first_enable = first_enable(d);
	info->scratch = o->form.l.scratch_size;
	return 0;
}

/* ---- size ---- */

/* As many iterations as fit the ring */
static int fit(struct loop *o, struct chain_loop_info *info)
{
	unsigned low = 0, high = o->ring / o->form.d->nsteps / 2 * 2 + 2;
	const struct chain_loop_info begun = *info;

	while (high - low > 2) {
		unsigned mid = low + (high - low) / 4 * 2;
		struct chain_loop_info tried = begun;
		int r = try(o, mid, &tried, NULL);

		if (r < 0 && r != -E2BIG)
			return r;
		*(r ? &high : &low) = mid;
		if (r == 0)
			*info = tried;
	}
	info->lanes = info->lap.lanes + LAP_HEAD;
	return low ? 0 : -E2BIG;
}

static int size_of(
	const struct chain_desc *d, uint32_t wqebbs, struct chain_loop_info *info, struct chain_error *err)
{
	struct loop o;
	int r = begin(&o, d, wqebbs, info, err);

	if (r == 0)
		r = fit(&o, info);
	free(o.form.steps);
	return r;
}

int chain_loop_size(const struct chain_desc *d, uint32_t max_wqebbs, uint32_t *ring,
	struct chain_loop_info *info, struct chain_error *err)
{
	int r = -E2BIG;

	for (uint32_t wqebbs = LAP_MIN_RING; wqebbs <= max_wqebbs && wqebbs <= CHAIN_MAX_RING; wqebbs *= 2) {
		struct chain_loop_info tried;
		int t = size_of(d, wqebbs, &tried, err);

		if (t && t != -E2BIG)
			return t;
		if (t)
			continue;
		r = 0;
		*ring = wqebbs;
		*info = tried;
		if (tried.iterations >= ITERATIONS)
			break;
	}
	return r;
}

/* ---- image ---- */

int chain_loop_new(struct ring_image **image, const struct chain_desc *d, uint32_t ring, unsigned shared,
	const struct chain_loop_info *info, struct chain_error *err)
{
	struct ring_image *made = NULL;
	struct chain_loop_info same;
	struct loop o;
	int r = begin(&o, d, ring, &same, err);

	o.shared = shared;
	if (r == 0)
		r = try(&o, info->iterations, &same, &made);
	free(o.form.steps);
	if (r)
		ring_free(made);
	else
		*image = made;
	return r;
}

void chain_loop_write(const struct ring_image *image, const struct chain_desc *d,
	const struct chain_loop_info *info, const struct ring_values *v)
{
	uint8_t *word = v->of[RING_SCRATCH].mem;

	ring_fill(image, v);
	if (info->scratch)
		memset(word, 0, info->scratch);
	for (unsigned w = 0; w < d->nwords; w++) {
		if (d->words[w].init)
			memcpy(word, d->words[w].init, d->words[w].size);
		word += (d->words[w].size + 7u) & ~7u;
	}
}
