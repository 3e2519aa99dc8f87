/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/endless.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/endless-form.h"
#include "reddnd/chain/ring/lap-check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS = 2 };

struct loop {
	struct loop_form form;
	const struct chain_env *env;
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
		return (struct target){0, env->queue[o->form.queue].lkey, env->queue[o->form.queue].rkey};
	while (p->kind == CHAIN_AT_SCRATCH && strcmp(o->form.d->words[w].name, p->name) != 0)
		w++;
	return (struct target){env->scratch.iova + (p->kind == CHAIN_AT_SCRATCH ? o->form.word_at[w] + p->from
										: o->form.scratch - 8),
		env->scratch.lkey, env->scratch.rkey};
}

static void point(struct loop *o, unsigned i, unsigned s, unsigned at, const struct chain_place *p)
{
	unsigned to, size;
	int field;

	if (p->kind != CHAIN_AT_FIELD)
		return;
	to = loop_form_step(&o->form, p->name);
	field = chain_field_at(o->form.d->steps[to].verb, p->field, p->sge, &size);
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
	const struct chain_step *st = &o->form.d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	unsigned id = id_of(o, i, s), at = v->sge_at, n = loop_form_segments(st);
	uint8_t *w = lap_bytes(o->lap, id);
	struct target t;

	if (st->flags & CHAIN_DORMANT &&
		!(st->verb == CHAIN_WAIT && i == 0)) /* it begins with being called */
		w[WQE_OPCODE] = WQE_OP_NOP;
	if (loop_form_is_outward(&o->form, st))
		wqe_put32(w + WQE_SYNC_OBJECT,
			st->verb == CHAIN_WAIT ? o->env->call.gate_cqn : o->env->call.exit_qpn);
	else if (st->verb == CHAIN_WAIT)
		lap_await(o->lap, id, id_of(o, i, o->form.until[s]));
	else if (st->verb == CHAIN_SEND_EN)
		lap_enable(o->lap, id, next_of(o, i, s, o->form.through[s]));
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
		for (unsigned s = 0; s < o->form.d->nsteps; s++) {
			const struct chain_step *st = &o->form.d->steps[s];

			if (renew && s == o->form.renew) {
				if (o->env->call.credit_cqn)
					await_credit(o, i >= half);
				count(o, half);
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

/* What has been written is proven, whoever wrote it */
static int check_lap(struct loop *o, const struct lap_env *ring, const struct chain_loop_info *info)
{
	struct lap_env lap = *ring;
	uint8_t *verbs = calloc(ring->wqebbs, 1);
	int r;

	if (!verbs)
		return -ENOMEM;
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned s = 0; s < o->form.d->nsteps; s++)
			verbs[lap_index_of(o->lap, id_of(o, i, s))] = (uint8_t)(1 + o->form.d->steps[s].verb);
	lap.discard = o->form.discards ? o->env->scratch.iova + o->form.scratch - 8 : 0;
	lap.lanes_size = info->lap.lanes;
	lap.verbs = verbs;
	r = lap_check(&lap, info->start, o->form.err);
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

/* Tries @n iterations: 0, or -E2BIG when they do not fit */
static int try(struct loop *o, unsigned n, bool dry, struct chain_loop_info *info)
{
	const struct chain_env *env = o->env;
	const struct lap_env ring = {
		.qpn = env->queue[o->form.queue].qpn,
		.cqn = env->queue[o->form.queue].cqn,
		.wqebbs = env->queue[o->form.queue].ring_wqebbs,
		.ignores_index = o->form.d->ignores_index,
		.group = o->form.d->fetch_group,
		.lkey = env->queue[o->form.queue].lkey,
		.lanes_lkey = env->lanes.lkey,
		.lanes_rkey = env->lanes.rkey,
		.ring = dry ? NULL : env->queue[o->form.queue].ring,
		.iova = env->queue[o->form.queue].iova,
		.lanes = dry ? NULL : env->lanes.mem + 64,
		.lanes_iova = env->lanes.iova + 64,
		.lanes_size = env->lanes.size - 64,
	};
	int r = lap_new(&o->lap, &ring, SECTIONS);

	o->n = n;
	o->ids = calloc((size_t)n * o->form.d->nsteps, sizeof(*o->ids));
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
	struct loop o = {.env = env};
	unsigned low = info->iterations, high;
	bool known = low > 0;
	int r;

	*info = (struct chain_loop_info){0};
	*err = (struct chain_error){0};
	if (loop_form_read(&o.form, d, err))
		return CHAIN_REFUSED;
	o.first_enable = first_enable(d);
	info->queue = o.form.queue;
	info->scratch = o.form.scratch;
	high = env->queue[o.form.queue].ring_wqebbs / d->nsteps / 2 * 2 + 2;
	while (!known && high - low > 2) {
		unsigned mid = low + (high - low) / 4 * 2;

		r = try(&o, mid, true, info);
		if (r < 0 && r != -E2BIG)
			return r;
		*(r ? &high : &low) = mid;
	}
	if (!low)
		return -E2BIG;
	r = try(&o, low, env->queue[o.form.queue].ring == NULL, info);
	info->lanes = info->lap.lanes + 64;
	if (r == 0 && env->queue[o.form.queue].ring)
		memset(env->lanes.mem, 0, 64);
	if (r == 0 && env->queue[o.form.queue].ring && o.form.scratch) {
		memset(env->scratch.mem, 0, o.form.scratch);
		for (unsigned w = 0; w < d->nwords; w++)
			if (d->words[w].init)
				memcpy(env->scratch.mem + o.form.word_at[w], d->words[w].init,
					d->words[w].size);
	}
	return r;
}
