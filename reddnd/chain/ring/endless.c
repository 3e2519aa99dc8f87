/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/endless.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/lap-check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS = 2, NONE = 0xffff };

struct loop {
	const struct chain_desc *d;
	const struct chain_env *env;
	struct lap *lap;
	unsigned queue, n, *ids; /* iterations; WQE of step s in iteration i: ids[i * nsteps + s] */
	unsigned renew;        /* step before which the ring is renewed in the last iteration of a section */
	unsigned first_enable; /* step through which the ring is started: what is after it, that enables */
	uint16_t until[CHAIN_MAX_STEPS], through[CHAIN_MAX_STEPS];
	uint32_t word_at[CHAIN_MAX_WORDS], scratch;
	bool discards; /* its last 8 bytes take old values that nobody wants */
	struct chain_error *err;
};

static struct chain_error_at at_fault(const struct loop *o, const struct chain_step *st)
{
	return chain_error_step(o->d, (unsigned)(st - o->d->steps));
}

static unsigned find_step(const struct loop *o, const char *label)
{
	for (unsigned s = 0; label && s < o->d->nsteps; s++)
		if (o->d->steps[s].label && strcmp(o->d->steps[s].label, label) == 0)
			return s;
	return NONE;
}

static unsigned segments(const struct chain_step *st)
{
	unsigned n = 0;

	while (n < CHAIN_MAX_SGE && st->local[n].kind != CHAIN_AT_NONE)
		n++;
	return chain_verb_info(st->verb)->atomic_bytes && !n ? 1 : n;
}

/* ---- is it a loop? ---------------------------------------------------------------------------- */

/* The two steps by which a loop is called: the WAIT that starts it, and the SEND_EN that wakes the caller */
static bool is_outward(const struct loop *o, const struct chain_step *st)
{
	return (st->verb == CHAIN_WAIT && !st->until) ||
	       (st->verb == CHAIN_SEND_EN && st->target != o->queue);
}

static int check_place(struct loop *o, const struct chain_step *st, const struct chain_place *p, uint32_t len)
{
	unsigned s, w = 0, size = 0;

	switch ((enum chain_place_kind)p->kind) {
	case CHAIN_AT_REGION:
		return p->index < o->d->nregions ? 0
						 : CHAIN_REFUSE(o->err, NO_REGION, .at = at_fault(o, st),
							   .number = {p->index, o->d->nregions});
	case CHAIN_AT_SCRATCH:
		while (w < o->d->nwords && strcmp(o->d->words[w].name, p->name) != 0)
			w++;
		if (w == o->d->nwords || o->word_at[w] + p->from + len > o->scratch)
			return CHAIN_REFUSE(o->err, WORD_END, .at = at_fault(o, st), .name = p->name,
				.number = {len, p->from});
		return 0;
	case CHAIN_AT_FIELD:
		s = find_step(o, p->name);
		if (s == NONE || p->field >= CHAIN_FIELDS ||
			chain_field_at(o->d->steps[s].verb, p->field, p->sge, &size) < 0 ||
			(p->field >= CHAIN_F_LOCAL_ADDR && p->field <= CHAIN_F_LOCAL_LEN &&
				p->sge >= segments(&o->d->steps[s])) ||
			p->from + len > size)
			return CHAIN_REFUSE(o->err, LOOP_NO_FIELD, .at = at_fault(o, st), .name = p->name);
		if (p->field == CHAIN_F_REMOTE_KEY || p->field == CHAIN_F_LOCAL_KEY ||
			(p->field == CHAIN_F_INDEX && !is_outward(o, &o->d->steps[s])) ||
			p->field == CHAIN_F_CTRL)
			return CHAIN_REFUSE(o->err, LOOP_FIELD, .at = at_fault(o, st),
				.other = chain_error_step(o->d, s), .name = chain_field_name(p->field));
		return 0;
	default:
		return CHAIN_REFUSE(o->err, LOOP_PLACE, .at = at_fault(o, st));
	}
}

/* The queue that the end of the loop wakes relies on all steps before that */
static int check_outward(struct loop *o, unsigned s)
{
	const struct chain_step *st = &o->d->steps[s];
	unsigned known = 0;

	if (!(st->flags & CHAIN_DORMANT))
		return CHAIN_REFUSE(o->err, LOOP_ALWAYS, .at = at_fault(o, st));
	if (st->verb == CHAIN_WAIT)
		return s == 0 ? 0 : CHAIN_REFUSE(o->err, LOOP_CALL, .at = at_fault(o, st));
	for (unsigned k = 0; k < s; k++)
		if (o->d->steps[k].verb == CHAIN_WAIT && o->until[k] != NONE && o->until[k] >= known)
			known = o->until[k] + 1u;
	for (unsigned k = known; k < o->d->nsteps; k++)
		if (chain_verb_info(o->d->steps[k].verb)->data)
			return CHAIN_REFUSE(
				o->err, LOOP_LEFT, .at = at_fault(o, st), .other = chain_error_step(o->d, k));
	return 0;
}

static int check_sync(struct loop *o, unsigned s)
{
	const struct chain_step *st = &o->d->steps[s];

	o->until[s] = o->through[s] = NONE;
	if (is_outward(o, st))
		return check_outward(o, s);
	if (st->verb == CHAIN_WAIT) {
		o->until[s] = (uint16_t)find_step(o, st->until);
		if (o->until[s] >= s || !(o->d->steps[o->until[s]].flags & CHAIN_SIGNALLED))
			return CHAIN_REFUSE(o->err, LOOP_WAIT, .at = at_fault(o, st));
		return 0;
	}
	o->through[s] = (uint16_t)find_step(o, st->through);
	if (st->verb != CHAIN_SEND_EN || st->target != o->queue || st->upto != CHAIN_UPTO_STEP ||
		o->through[s] == NONE)
		return CHAIN_REFUSE(o->err, LOOP_ENABLE, .at = at_fault(o, st));
	return 0;
}

static int check_step(struct loop *o, unsigned s)
{
	const struct chain_step *st = &o->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	unsigned n = segments(st);
	uint32_t len = 0;

	if (st->queue != o->queue)
		return CHAIN_REFUSE(o->err, LOOP_QUEUE, .at = at_fault(o, st));
	if (v->class == CHAIN_CLASS_SYNC)
		return check_sync(o, s);
	if (v->imm || st->verb == CHAIN_SEND)
		return CHAIN_REFUSE(o->err, LOOP_SENDS, .at = at_fault(o, st));
	for (unsigned i = 0; i < n && st->local[i].kind != CHAIN_AT_NONE; i++) {
		len += st->local[i].len;
		if (st->local[i].len == 0)
			return CHAIN_REFUSE(o->err, SEGMENT_EMPTY, .at = at_fault(o, st), .number = {i});
		if (check_place(o, st, &st->local[i], st->local[i].len))
			return CHAIN_REFUSED;
	}
	if (v->data && !v->atomic_bytes && n == 0)
		return CHAIN_REFUSE(o->err, LOOP_EMPTY, .at = at_fault(o, st));
	return v->remote ? check_place(o, st, &st->remote, v->atomic_bytes ? 8 : len) : 0;
}

/*
 * The READs that refresh the other half of the ring go in front of what the iteration waits for last, before
 * it enables the next: that CQE, or that fence, is theirs too.
 */
static int find_renewal(struct loop *o)
{
	unsigned last = NONE;

	for (unsigned s = 0; s < o->d->nsteps; s++) {
		const struct chain_step *st = &o->d->steps[s];

		if (is_outward(o, st))
			continue;
		if (st->verb == CHAIN_WAIT)
			last = o->until[s];
		else if (st->verb == CHAIN_SEND_EN && st->flags & CHAIN_FENCE)
			last = s;
		if (st->verb == CHAIN_SEND_EN && o->through[s] <= s)
			o->renew = last;
	}
	return o->renew != NONE ? 0 : CHAIN_REFUSE(o->err, LOOP_RENEWAL);
}

static int check(struct loop *o)
{
	const struct chain_desc *d = o->d;

	if (d->nsteps == 0 || d->nsteps > CHAIN_MAX_STEPS || d->nwords > CHAIN_MAX_WORDS ||
		d->nregions > CHAIN_MAX_WINDOWS || d->nqueues > CHAIN_MAX_QUEUES)
		return CHAIN_REFUSE(o->err, LOOP_LIMITS);
	o->queue = d->steps[0].queue;
	for (unsigned w = 0; w < d->nwords; w++) {
		o->word_at[w] = o->scratch;
		o->scratch += (d->words[w].size + 7u) & ~7u;
	}
	for (unsigned s = 0; s < d->nsteps; s++) {
		if (d->steps[s].verb >= CHAIN_VERBS)
			return CHAIN_REFUSE(
				o->err, NO_VERB, .at = chain_error_step(d, s), .number = {d->steps[s].verb});
		o->discards |= chain_verb_info(d->steps[s].verb)->atomic_bytes &&
			       segments(&d->steps[s]) == 1 && d->steps[s].local[0].kind == CHAIN_AT_NONE;
	}
	o->scratch += o->discards ? 8 : 0; /* unwanted old values */
	if (o->scratch > CHAIN_MAX_SCRATCH)
		return CHAIN_REFUSE(o->err, SCRATCH_BYTES, .number = {o->scratch, CHAIN_MAX_SCRATCH});
	for (unsigned s = 0; s < d->nsteps; s++)
		if (check_step(o, s))
			return CHAIN_REFUSED;
	return find_renewal(o);
}

/* ---- WQEs -------------------------------------------------------------------------------------- */

static unsigned id_of(const struct loop *o, unsigned iteration, unsigned step)
{
	return o->ids[iteration % o->n * o->d->nsteps + step];
}

/* A step that is not later than @from belongs to the next iteration */
static unsigned next_of(const struct loop *o, unsigned iteration, unsigned from, unsigned step)
{
	return id_of(o, step > from ? iteration : iteration + 1, step);
}

struct target {
	uint64_t addr;
	uint32_t lkey, rkey;
};

static struct target resolve(const struct loop *o, const struct chain_place *p)
{
	const struct chain_env *env = o->env;
	unsigned w = 0;

	if (p->kind == CHAIN_AT_REGION)
		return (struct target){env->region[p->index].iova + p->from, env->region[p->index].lkey,
			env->region[p->index].rkey};
	if (p->kind == CHAIN_AT_FIELD) /* the address follows when the ring is laid out */
		return (struct target){0, env->queue[o->queue].lkey, env->queue[o->queue].rkey};
	while (p->kind == CHAIN_AT_SCRATCH && strcmp(o->d->words[w].name, p->name) != 0)
		w++;
	return (struct target){
		env->scratch.iova + (p->kind == CHAIN_AT_SCRATCH ? o->word_at[w] + p->from : o->scratch - 8),
		env->scratch.lkey, env->scratch.rkey};
}

static void point(struct loop *o, unsigned i, unsigned s, unsigned at, const struct chain_place *p)
{
	unsigned to, size;
	int field;

	if (p->kind != CHAIN_AT_FIELD)
		return;
	to = find_step(o, p->name);
	field = chain_field_at(o->d->steps[to].verb, p->field, p->sge, &size);
	lap_point(o->lap, id_of(o, i, s), at, next_of(o, i, s, to), (unsigned)field + p->from);
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
	const struct chain_step *st = &o->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	unsigned id = id_of(o, i, s), at = v->sge_at, n = segments(st);
	uint8_t *w = lap_bytes(o->lap, id);
	struct target t;

	if (st->flags & CHAIN_DORMANT &&
		!(st->verb == CHAIN_WAIT && i == 0)) /* it begins with being called */
		w[WQE_OPCODE] = WQE_OP_NOP;
	if (is_outward(o, st))
		wqe_put32(w + WQE_SYNC_OBJECT,
			st->verb == CHAIN_WAIT ? o->env->call.gate_cqn : o->env->call.exit_qpn);
	else if (st->verb == CHAIN_WAIT)
		lap_await(o->lap, id, id_of(o, i, o->until[s]));
	else if (st->verb == CHAIN_SEND_EN)
		lap_enable(o->lap, id, next_of(o, i, s, o->through[s]));
	if (v->remote) {
		t = resolve(o, &st->remote);
		wqe_put64(w + WQE_RADDR, t.addr);
		wqe_put32(w + WQE_RKEY, t.rkey);
		point(o, i, s, WQE_RADDR, &st->remote);
	}
	if (v->atomic_bytes)
		fill_operands(w + WQE_ATOMIC, st);
	for (unsigned k = 0; k < n; k++, at += WQE_DS) {
		t = resolve(o, &st->local[k]);
		wqe_put32(w + at + WQE_SGE_LEN, v->atomic_bytes ? 8 : st->local[k].len);
		wqe_put32(w + at + WQE_SGE_LKEY, t.lkey);
		wqe_put64(w + at + WQE_SGE_ADDR, t.addr);
		point(o, i, s, at + WQE_SGE_ADDR, &st->local[k]);
	}
}

static uint8_t flags_of(const struct chain_step *st)
{
	return (uint8_t)((st->flags & CHAIN_FENCE ? WQE_FENCE : 0) |
			 (st->flags & CHAIN_SIGNALLED ? WQE_SIGNALLED : 0));
}

static void count(struct loop *o, unsigned iterations)
{
	uint8_t *w = lap_bytes(o->lap, lap_add(o->lap, CHAIN_FETCH_ADD, 1, 0)), *old = w + WQE_ATOMIC + 16;

	wqe_put64(w + WQE_RADDR, o->env->lanes.iova);
	wqe_put32(w + WQE_RKEY, o->env->lanes.rkey);
	wqe_put64(w + WQE_ATOMIC, iterations);
	wqe_put32(old + WQE_SGE_LEN, 8);
	wqe_put32(old + WQE_SGE_LKEY, o->env->lanes.lkey);
	wqe_put64(old + WQE_SGE_ADDR, o->env->lanes.iova + 8);
}

/* A CQE for each half of a lap. It is waited for in front of what the iteration waits for last: all of the
 * iteration has started, and the next one has not been enabled. */
static void await_credit(struct loop *o, unsigned half)
{
	unsigned id = lap_add(o->lap, CHAIN_WAIT, 0, 0);

	lap_number(o->lap, id, WQE_SYNC_INDEX + 1, 3, half, SECTIONS);
	wqe_put32(lap_bytes(o->lap, id) + WQE_SYNC_OBJECT, o->env->call.credit_cqn);
}

static void add_wqes(struct loop *o)
{
	unsigned half = o->n / 2;

	for (unsigned i = 0; i < o->n; i++) {
		bool renew = i == half - 1 || i == o->n - 1;

		if (i == half)
			lap_next_section(o->lap);
		for (unsigned s = 0; s < o->d->nsteps; s++) {
			const struct chain_step *st = &o->d->steps[s];

			if (renew && s == o->renew) {
				if (o->env->call.credit_cqn)
					await_credit(o, i >= half);
				count(o, half);
				lap_renew(o->lap);
				if (i == o->n - 1)
					lap_advance(o->lap);
			}
			o->ids[i * o->d->nsteps + s] = lap_add(o->lap, st->verb, segments(st), flags_of(st));
		}
	}
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned s = 0; s < o->d->nsteps; s++) {
			fill(o, i, s);
			if (s == o->first_enable || s == o->d->nsteps - 1)
				lap_fill_group(o->lap, id_of(o, i, s));
		}
}

/* What has been written is proven, whoever wrote it */
static int check_lap(struct loop *o, const struct lap_env *ring, const struct chain_loop_info *info)
{
	struct lap_env lap = *ring;
	uint8_t *verbs = calloc(ring->wqebbs, 1);
	int r;

	if (!verbs)
		return -ENOMEM;
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned s = 0; s < o->d->nsteps; s++)
			verbs[lap_index_of(o->lap, id_of(o, i, s))] = (uint8_t)(1 + o->d->steps[s].verb);
	lap.discard = o->discards ? o->env->scratch.iova + o->scratch - 8 : 0;
	lap.lanes_size = info->lap.lanes;
	lap.verbs = verbs;
	r = lap_check(&lap, info->start, o->err);
	free(verbs);
	return r;
}

static uint32_t wqebbs_of(const struct chain_step *st)
{
	return (chain_wqe_ds(st->verb, segments(st)) + 3) / 4;
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
	info->renew = o->renew;
	info->wqebbs = offset_of(o->d, o->d->nsteps);
	for (unsigned half = 0; half < 2; half++) {
		unsigned i = (half + 1) * o->n / 2 - 1;

		info->renewal[half] = (uint32_t)(lap_index_of(o->lap, id_of(o, i, o->renew)) -
						 lap_index_of(o->lap, id_of(o, i, 0))) -
				      offset_of(o->d, o->renew);
	}
}

/* Tries @n iterations: 0, or -E2BIG when they do not fit */
static int try(struct loop *o, unsigned n, bool dry, struct chain_loop_info *info)
{
	const struct chain_env *env = o->env;
	const struct lap_env ring = {
		.qpn = env->queue[o->queue].qpn,
		.cqn = env->queue[o->queue].cqn,
		.wqebbs = env->queue[o->queue].ring_wqebbs,
		.ignores_index = o->d->ignores_index,
		.group = o->d->fetch_group,
		.lkey = env->queue[o->queue].lkey,
		.lanes_lkey = env->lanes.lkey,
		.lanes_rkey = env->lanes.rkey,
		.ring = dry ? NULL : env->queue[o->queue].ring,
		.iova = env->queue[o->queue].iova,
		.lanes = dry ? NULL : env->lanes.mem + 64,
		.lanes_iova = env->lanes.iova + 64,
		.lanes_size = env->lanes.size - 64,
	};
	int r = lap_new(&o->lap, &ring, SECTIONS);

	o->n = n;
	o->ids = calloc((size_t)n * o->d->nsteps, sizeof(*o->ids));
	if (r == 0 && o->ids) {
		add_wqes(o);
		r = lap_finish(o->lap, &info->lap);
	}
	if (r == 0 && !o->ids)
		r = -ENOMEM;
	if (r == 0) {
		info->start = lap_index_after(o->lap, id_of(o, 0, o->first_enable));
		info->iterations = n;
		if (!dry)
			r = check_lap(o, &ring, info);
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

int chain_loop(const struct chain_desc *d, const struct chain_env *env, struct chain_loop_info *info,
	struct chain_error *err)
{
	struct loop o = {.d = d, .env = env, .renew = NONE, .err = err};
	unsigned low = info->iterations, high;
	bool known = low > 0;
	int r;

	*info = (struct chain_loop_info){0};
	*err = (struct chain_error){0};
	if (check(&o))
		return CHAIN_REFUSED;
	o.first_enable = first_enable(d);
	info->queue = o.queue;
	info->scratch = o.scratch;
	high = env->queue[o.queue].ring_wqebbs / d->nsteps / 2 * 2 + 2;
	while (!known && high - low > 2) {
		unsigned mid = low + (high - low) / 4 * 2;

		r = try(&o, mid, true, info);
		if (r < 0 && r != -E2BIG)
			return r;
		*(r ? &high : &low) = mid;
	}
	if (!low)
		return -E2BIG;
	r = try(&o, low, env->queue[o.queue].ring == NULL, info);
	info->lanes = info->lap.lanes + 64;
	if (r == 0 && env->queue[o.queue].ring)
		memset(env->lanes.mem, 0, 64);
	if (r == 0 && env->queue[o.queue].ring && o.scratch) {
		memset(env->scratch.mem, 0, o.scratch);
		for (unsigned w = 0; w < d->nwords; w++)
			if (d->words[w].init)
				memcpy(env->scratch.mem + o.word_at[w], d->words[w].init, d->words[w].size);
	}
	return r;
}
