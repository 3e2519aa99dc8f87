/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/endless.h"

#include "mlx5/wqe.h"

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

enum { LOOP_FORM_NONE = 0xffff };

struct loop_form {
	const struct chain_desc *d;
	unsigned queue;
	unsigned renew; /* step before which the ring is renewed in the last iteration of a section */
	/* the step that a WAIT is for, and that a SEND_EN enables through; or LOOP_FORM_NONE */
	uint16_t until[CHAIN_MAX_STEPS], through[CHAIN_MAX_STEPS];
	uint32_t word_at[CHAIN_MAX_WORDS], scratch;
	bool discards; /* the last 8 bytes of the scratch take old values that nobody wants */
	struct chain_error *err;
};

static struct chain_error_at at_fault(const struct loop_form *f, const struct chain_step *st)
{
	return chain_error_step(f->d, (unsigned)(st - f->d->steps));
}

/* The step with this label, or LOOP_FORM_NONE */
static unsigned loop_form_step(const struct loop_form *f, const char *label)
{
	for (unsigned s = 0; label && s < f->d->nsteps; s++)
		if (f->d->steps[s].label && strcmp(f->d->steps[s].label, label) == 0)
			return s;
	return LOOP_FORM_NONE;
}

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
static bool loop_form_is_outward(const struct loop_form *f, const struct chain_step *st)
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
	if (v->calc) /* words of a ring are aligned to 8 */
		return CHAIN_REFUSE(f->err, LOOP_CALC, .at = at_fault(f, st));
	for (unsigned i = 0; i < n && st->local[i].kind != CHAIN_AT_NONE; i++) {
		len += st->local[i].len;
		if (st->local[i].len == 0)
			return CHAIN_REFUSE(f->err, SEGMENT_EMPTY, .at = at_fault(f, st), .number = {i});
		if (check_place(f, st, &st->local[i], st->local[i].len))
			return CHAIN_REFUSED;
	}
	if (v->data && !v->atomic_bytes && n == 0)
		return CHAIN_REFUSE(f->err, LOOP_EMPTY, .at = at_fault(f, st));
	return v->remote ? check_place(f, st, &st->remote, (uint32_t)chain_remote_bytes(v, len)) : 0;
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

/* Whether @d is an endless loop as endless.h wants it, and what its steps name. 0; CHAIN_REFUSED and the
 * reason in
 * @err. @d and @err outlive the form */
static int loop_form_read(struct loop_form *f, const struct chain_desc *d, struct chain_error *err)
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

/* Step @s of iteration @i names @p in its WQE: @field at @at */
static void name(struct loop *o, unsigned i, unsigned s, unsigned at, enum ring_field field,
	const struct chain_place *p)
{
	const unsigned id = id_of(o, i, s);
	unsigned w = 0, to, size;

	switch ((enum chain_place_kind)p->kind) {
	case CHAIN_AT_REGION:
		lap_name(o->lap, id, at, field, ring_at(RING_REGION + p->index, p->from));
		return;
	case CHAIN_AT_FIELD:
		to = loop_form_step(&o->form, p->name);
		lap_point(o->lap, id, at, field, next_of(o, i, s, to),
			(unsigned)chain_field_at(o->form.d->steps[to].verb, p->field, p->sge, &size) +
				p->from);
		return;
	case CHAIN_AT_SCRATCH:
		while (strcmp(o->form.d->words[w].name, p->name) != 0)
			w++;
		lap_name(o->lap, id, at, field, ring_at(RING_SCRATCH, o->form.word_at[w] + p->from));
		return;
	default: /* an old value that nobody wants */
		lap_name(o->lap, id, at, field, ring_at(RING_SCRATCH, o->form.scratch - 8));
		return;
	}
}

static void fill_operands(uint8_t *seg, const struct chain_step *st)
{
	bool cas = st->verb == CHAIN_CAS || st->verb == CHAIN_MASKED_CAS;

	wqe_put64(seg, cas ? st->swap : st->add);
	if (cas)
		wqe_put64(seg + 8, st->compare);
	else if (st->verb == CHAIN_MASKED_FETCH_ADD)
		wqe_put64(seg + 8, st->boundary);
	if (st->verb == CHAIN_MASKED_CAS) {
		wqe_put64(seg + 16, st->swap_mask);
		wqe_put64(seg + 24, st->compare_mask);
	}
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
	if (loop_form_is_outward(&o->form, st))
		lap_name(o->lap, id, WQE_SYNC_OBJECT, st->verb == CHAIN_WAIT ? RING_CQN : RING_QPN,
			ring_at(CHAIN_LOOP_CALLER, 0));
	else if (st->verb == CHAIN_WAIT)
		lap_await(o->lap, id, id_of(o, i, o->form.until[s]));
	else if (st->verb == CHAIN_SEND_EN)
		lap_enable(o->lap, id, next_of(o, i, s, o->form.through[s]));
	if (v->remote)
		name(o, i, s, WQE_RADDR, RING_REMOTE, &st->remote);
	if (v->atomic_bytes)
		fill_operands(w + WQE_ATOMIC, st);
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
		.discard = o->form.discards ? ring_at(RING_SCRATCH, o->form.scratch - 8) : 0,
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
	*o = (struct loop){.ring = ring};
	*info = (struct chain_loop_info){0};
	*err = (struct chain_error){0};
	if (loop_form_read(&o->form, d, err))
		return CHAIN_REFUSED;
	o->first_enable = first_enable(d);
	info->scratch = o->form.scratch;
	return 0;
}

/* ---- size ---- */

/* As many iterations as fit a ring of @wqebbs */
static int size_of(
	const struct chain_desc *d, uint32_t wqebbs, struct chain_loop_info *info, struct chain_error *err)
{
	struct loop o;
	unsigned low = 0, high;
	int r = begin(&o, d, wqebbs, info, err);

	if (r)
		return r;
	high = wqebbs / d->nsteps / 2 * 2 + 2;
	while (high - low > 2) {
		unsigned mid = low + (high - low) / 4 * 2;

		r = try(&o, mid, info, NULL);
		if (r < 0 && r != -E2BIG)
			return r;
		*(r ? &high : &low) = mid;
	}
	if (!low)
		return -E2BIG;
	r = try(&o, low, info, NULL);
	info->lanes = info->lap.lanes + LAP_HEAD;
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
