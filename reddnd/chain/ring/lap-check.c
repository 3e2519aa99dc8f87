/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lap-check.h"

#include "mlx5/wqe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WQEBB = 64, LAPS = 3, NEVER = 0x7fffffff };

struct touch {
	int wqe; /* in the lap */
	uint32_t key;
	unsigned at; /* of its address and length in the WQE */
	uint64_t from, until;
	bool write, atomic, remote;
	bool everywhere; /* its address is written into: all of the key */
};

struct wqe {
	uint32_t at, wqebbs;
	const uint8_t *bytes;
	const struct chain_verb_info *v; /* what it is, or may become */
	bool fence;
	int cqe;     /* number in the lap, -1: unsignalled */
	int waits;   /* WAIT: in the lap, the WQE whose CQE it is for; -1 */
	int64_t end; /* SEND_EN of this ring, or what allows a doorbell: WQEBBs from the start of the lap; -1
		      */
};

struct check {
	const struct lap_made *env;
	struct wqe *w;
	int n, cqes;
	int *at;     /* WQE by WQEBB */
	int *landed; /* first WQE, in the line from lap 0 on, that starts when WQE i of lap 0 has landed; or
			NEVER */
	int *fetch;  /* the SEND_EN, in that line, from which on WQE i of lap 1 may be fetched */
	struct touch *touches;
	int ntouches, room;
	uint8_t *patched; /* bytes of the ring that are written into */
	struct chain_error *err;
};

/* ---- the ring ---------------------------------------------------------------------------------- */

/* A dormant WQE has the segments of what it may become */
static const struct chain_verb_info *verb_of(const uint8_t *w)
{
	enum chain_verb v = chain_verb_of(w[WQE_OPCODE], w[WQE_OPMOD]);

	return v == CHAIN_VERBS ? NULL : chain_verb_info(v);
}

static int parse(struct check *c)
{
	for (uint32_t at = 0; at < c->env->wqebbs;) {
		struct wqe *w = &c->w[c->n];

		*w = (struct wqe){
			.at = at, .bytes = c->env->ring + (size_t)at * WQEBB, .waits = -1, .end = -1};
		w->v = verb_of(w->bytes);
		if (w->v && c->env->verbs && c->env->verbs[at])
			w->v = chain_verb_info(c->env->verbs[at] - 1);
		w->wqebbs = (w->bytes[WQE_DSCOUNT] + 3u) / 4;
		if (!w->v || w->wqebbs == 0 || at + w->wqebbs > c->env->wqebbs)
			return CHAIN_REFUSE(c->err, LAP_NO_WQE, .number = {at});
		if (wqe_get(w->bytes + WQE_INDEX, 2) != at ||
			wqe_get(w->bytes + WQE_QPN_DS, 3) != c->env->qpn)
			return CHAIN_REFUSE(c->err, LAP_FOREIGN_WQE, .number = {at});
		w->fence = w->bytes[WQE_FLAGS] & WQE_FENCE;
		w->cqe = w->bytes[WQE_FLAGS] & WQE_SIGNALLED ? c->cqes++ : -1;
		for (uint32_t i = 0; i < w->wqebbs; i++)
			c->at[at + i] = c->n;
		at += w->wqebbs;
		c->n++;
	}
	return 0;
}

static int resolve_sync(struct check *c)
{
	for (int i = 0; i < c->n; i++) {
		struct wqe *w = &c->w[i];
		uint32_t object, number, cqe;

		if (w->v->class != CHAIN_CLASS_SYNC)
			continue;
		object = wqe_get32(w->bytes + WQE_SYNC_OBJECT);
		number = wqe_get32(w->bytes + WQE_SYNC_INDEX);
		if (w->v->opcode == WQE_OP_SEND_EN && object == c->env->qpn) {
			uint16_t ahead = (uint16_t)(number - w->at);

			if (c->env->doorbell || ahead == 0 || ahead > c->env->wqebbs)
				return CHAIN_REFUSE(c->err, LAP_ENABLE_FAR, .number = {w->at, number});
			w->end = w->at + ahead;
		}
		if (w->v->opcode != WQE_OP_WAIT || object != c->env->cqn)
			continue;
		cqe = (number - c->env->first_cqe) & 0xffffff;
		for (int k = 0; k < i && w->waits < 0; k++)
			if (c->w[k].cqe >= 0 && (uint32_t)c->w[k].cqe == cqe)
				w->waits = k;
		if (w->waits < 0)
			return CHAIN_REFUSE(c->err, LAP_WAIT, .number = {w->at, number});
	}
	return 0;
}

static bool counts(const struct check *c, const struct wqe *w)
{
	return w->v == chain_verb_info(CHAIN_FETCH_ADD) &&
	       wqe_get32(w->bytes + WQE_RKEY) == c->env->lanes_key &&
	       wqe_get64(w->bytes + WQE_RADDR) == c->env->count_iova;
}

/* Software sees the word as soon as the WQE starts that adds to it */
static int resolve_doorbells(struct check *c)
{
	const struct lap_doorbell *d = c->env->doorbell;
	unsigned section = 0;

	for (int i = 0; i < c->n; i++) {
		const unsigned to = section + d->sections / 2; /* it allows, from this lap on */
		struct wqe *w = &c->w[i];

		if (!counts(c, w))
			continue;
		if (section == d->sections || (section && w->at < d->end[section - 1]) ||
			w->at >= d->end[section] || wqe_get64(w->bytes + WQE_ATOMIC) != d->count)
			return CHAIN_REFUSE(c->err, LAP_COUNT, .number = {w->at});
		w->end = d->end[to % d->sections] + (int64_t)(to / d->sections) * c->env->wqebbs;
		if (w->end <= w->at || w->end - w->at > c->env->wqebbs)
			return CHAIN_REFUSE(c->err, LAP_ENABLE_FAR, .number = {w->at, (uint64_t)w->end});
		section++;
	}
	return section == d->sections ? 0 : CHAIN_REFUSE(c->err, LAP_COUNT, .number = {c->env->wqebbs});
}

/* ---- when ------------------------------------------------------------------------------------------ */

static const struct wqe *line(const struct check *c, int t)
{
	return &c->w[t % c->n];
}

static void find_landings(struct check *c)
{
	for (int i = 0; i < c->n; i++) {
		c->landed[i] = NEVER;
		for (int t = i + 1; t < LAPS * c->n && c->landed[i] == NEVER; t++) {
			const struct wqe *w = line(c, t);

			if (w->fence && c->w[i].v->scatters)
				c->landed[i] = t;
			else if (w->waits >= 0 && t - t % c->n + w->waits >= i)
				c->landed[i] = t + 1;
		}
	}
}

/* In the line, the WQEBB from which on WQE t is */
static int64_t position(const struct check *c, int t)
{
	return (int64_t)(t / c->n) * c->env->wqebbs + line(c, t)->at;
}

/* Through which WQEBB, from the start of lap 0 on, it is enabled when WQE t starts: never more than a lap
 * ahead. A WQE may be fetched as soon as anything of the group that it begins in is enabled */
static int find_fetches(struct check *c, uint16_t start)
{
	const int64_t group = c->env->group ? c->env->group : 1;
	int64_t enabled = start;
	int next = 0,
	    fetched = 0; /* the first WQE in the line that is not enabled; whose fetch is not known */

	for (int t = -1; t < LAPS * c->n; t++) {
		if (t >= 0 && line(c, t)->end >= 0) {
			int64_t end = (int64_t)(t / c->n) * c->env->wqebbs + line(c, t)->end;

			if (end < enabled)
				return CHAIN_REFUSE(c->err, LAP_ENABLE_BACK, .number = {line(c, t)->at});
			enabled = end;
		}
		while (next < LAPS * c->n && position(c, next) + line(c, next)->wqebbs <= enabled)
			next++;
		for (; fetched < LAPS * c->n && position(c, fetched) / group * group < enabled; fetched++)
			if (fetched >= c->n && fetched < 2 * c->n)
				c->fetch[fetched - c->n] = t;
		if (t + 1 >= next && t + 1 < LAPS * c->n)
			return CHAIN_REFUSE(c->err, LAP_NEVER_ENABLED, .number = {line(c, t + 1)->at});
	}
	return 0;
}

/* ---- what ------------------------------------------------------------------------------------------- */

static int add(struct check *c, struct touch t)
{
	uint64_t lost = c->env->lanes_iova + c->env->lanes_size - LAP_NOWHERE;

	if (t.write && t.key == c->env->lanes_key && t.from >= lost)
		return 0;
	if (t.write && !t.remote && c->env->discard && t.from == c->env->discard)
		return 0;
	if (c->ntouches == c->room) {
		struct touch *more;

		c->room = c->room ? 2 * c->room : 1024;
		more = realloc(c->touches, (size_t)c->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->touches = more;
	}
	c->touches[c->ntouches++] = t;
	return 0;
}

static bool in_ring(const struct check *c, const struct touch *t)
{
	return t->write && t->key == c->env->lkey && t->from >= c->env->iova &&
	       t->until <= c->env->iova + (uint64_t)c->env->wqebbs * WQEBB;
}

static int collect(struct check *c)
{
	for (int i = 0; i < c->n; i++) {
		const struct wqe *w = &c->w[i];
		unsigned at = w->v->sge_at;
		uint64_t total = 0;
		struct touch t = {.wqe = i, .write = w->v->scatters};

		for (; w->v->data && at < w->bytes[WQE_DSCOUNT] * WQE_DS; at += WQE_DS) {
			uint64_t len = wqe_get32(w->bytes + at + WQE_SGE_LEN);

			t.at = at;
			t.key = wqe_get32(w->bytes + at + WQE_SGE_LKEY);
			t.from = wqe_get64(w->bytes + at + WQE_SGE_ADDR);
			t.until = t.from + len;
			total += len;
			if (add(c, t))
				return -ENOMEM;
		}
		if (!w->v->remote)
			continue;
		t.write = w->v->opcode != WQE_OP_READ;
		t.atomic = w->v->atomic_bytes;
		t.remote = true;
		t.at = WQE_RADDR;
		t.key = wqe_get32(w->bytes + WQE_RKEY);
		t.from = wqe_get64(w->bytes + WQE_RADDR);
		t.until = t.from + chain_remote_bytes(w->v, total);
		if (add(c, t))
			return -ENOMEM;
	}
	for (int k = 0; k < c->ntouches; k++)
		if (in_ring(c, &c->touches[k]))
			memset(c->patched + (c->touches[k].from - c->env->iova), 1,
				c->touches[k].until - c->touches[k].from);
	return 0;
}

/* A place whose address is written into may be anywhere under its key, one whose length is may have any end
 */
static void find_wanderers(struct check *c)
{
	int stretched = -1; /* the last WQE of which a length is written into */

	for (int k = 0; k < c->ntouches; k++) {
		struct touch *t = &c->touches[k];
		const uint8_t *p = c->patched + (size_t)c->w[t->wqe].at * WQEBB + t->at;

		t->everywhere = memchr(t->remote ? p : p + WQE_SGE_ADDR, 1, 8);
		if (!t->remote && memchr(p + WQE_SGE_LEN, 1, 4)) {
			stretched = t->wqe;
			t->until = UINT64_MAX;
		}
		if (t->remote && stretched == t->wqe && !t->atomic)
			t->until = UINT64_MAX;
	}
}

static int check_patch(struct check *c, const struct touch *t)
{
	uint32_t first = (uint32_t)((t->from - c->env->iova) / WQEBB);
	int target = c->at[first], landed = c->landed[t->wqe];
	/* The target's next run is in this lap, or, if it has had its turn, in the next. fetch[] is of lap 1
	 */
	int fetch = target > t->wqe ? c->fetch[target] - c->n : c->fetch[target];

	if (landed == NEVER || landed > fetch)
		return CHAIN_REFUSE(c->err, LAP_FETCHED_EARLY, .number = {c->w[t->wqe].at, c->w[target].at});
	return 0;
}

static bool on_count(const struct check *c, const struct touch *t)
{
	return t->key == c->env->lanes_key &&
	       (t->everywhere || (t->from < c->env->count_iova + 8 && t->until > c->env->count_iova));
}

/* Nothing changes what is added, nor the word besides, not even in order */
static int check_count(struct check *c)
{
	for (int k = 0; k < c->ntouches; k++) {
		const struct touch *t = &c->touches[k];
		const struct wqe *w = &c->w[t->wqe];
		const bool adds = t->remote && counts(c, w);

		if (adds ? !!memchr(c->patched + (size_t)w->at * WQEBB + WQE_OPCODE, 1, WQEBB - WQE_OPCODE)
			 : t->write && on_count(c, t))
			return CHAIN_REFUSE(c->err, LAP_COUNT, .number = {w->at});
	}
	return 0;
}

static bool conflict(const struct touch *a, const struct touch *b)
{
	if ((!a->write && !b->write) || (a->atomic && b->atomic) || a->key != b->key)
		return false;
	return a->everywhere || b->everywhere || (a->from < b->until && b->from < a->until);
}

/* @b's WQE is the later one, in the same lap or by up to one; -1: not ordered */
static bool ordered(const struct check *c, const struct touch *a, const struct touch *b, int later)
{
	/* a WRITE has gathered, and been executed, before the responder executes what follows */
	bool in_turn = b->remote && !c->w[a->wqe].v->scatters;

	return in_turn || c->landed[a->wqe] <= b->wqe + later;
}

static int check_pair(struct check *c, const struct touch *a, const struct touch *b)
{
	int later = a->wqe < b->wqe ? 0 : c->n;

	if (ordered(c, a, b, later))
		return 0;
	return CHAIN_REFUSE(c->err, LAP_UNORDERED, .number = {c->w[a->wqe].at, c->w[b->wqe].at});
}

/* By key; in it those that may be anywhere come first, then by address */
static int by_place(const void *x, const void *y)
{
	const struct touch *a = *(struct touch *const *)x, *b = *(struct touch *const *)y;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->everywhere != b->everywhere)
		return a->everywhere ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

/* A ring has some ten thousand places, and a client waits when it is the first of its offload: in order of
 * address, only neighbours are compared */
static int check_sorted(struct check *c, struct touch *const *p, int n)
{
	int r = 0;

	for (int i = 0; i < n; i++)
		for (int k = i + 1; k < n && p[k]->key == p[i]->key && r == 0; k++) {
			if (!p[i]->everywhere && p[k]->from >= p[i]->until)
				break;
			if (p[i]->wqe == p[k]->wqe || !conflict(p[i], p[k]))
				continue;
			r = check_pair(c, p[i], p[k]);
			if (r == 0)
				r = check_pair(c, p[k], p[i]);
		}
	return r;
}

static int check_data(struct check *c)
{
	struct touch **p = calloc((size_t)c->ntouches + 1, sizeof(*p));
	int n = 0, r;

	if (!p)
		return -ENOMEM;
	for (int k = 0; k < c->ntouches; k++)
		if (!in_ring(c, &c->touches[k]))
			p[n++] = &c->touches[k];
	qsort(p, (size_t)n, sizeof(*p), by_place);
	r = check_sorted(c, p, n);
	free(p);
	return r;
}

static int check_all(struct check *c, uint16_t start)
{
	int r = parse(c);

	if (r == 0)
		r = resolve_sync(c);
	if (r == 0 && c->env->doorbell)
		r = resolve_doorbells(c);
	if (r == 0)
		r = find_fetches(c, start);
	if (r == 0)
		r = collect(c);
	if (r)
		return r;
	find_landings(c);
	for (int k = 0; k < c->ntouches && r == 0; k++)
		if (in_ring(c, &c->touches[k]))
			r = check_patch(c, &c->touches[k]);
	if (r)
		return r;
	find_wanderers(c);
	if (c->env->doorbell)
		r = check_count(c);
	return r ? r : check_data(c);
}

int lap_check(const struct lap_made *made, uint16_t start, struct chain_error *err)
{
	struct check c = {.env = made, .err = err};
	int r = -ENOMEM;

	*err = (struct chain_error){0};
	c.w = calloc(made->wqebbs, sizeof(*c.w));
	c.at = calloc(made->wqebbs, sizeof(*c.at));
	c.landed = calloc(made->wqebbs, sizeof(*c.landed));
	c.fetch = calloc(made->wqebbs, sizeof(*c.fetch));
	c.patched = calloc(made->wqebbs, WQEBB);
	if (made->doorbell)
		start = made->doorbell->end[made->doorbell->sections / 2 - 1];
	if (c.w && c.at && c.landed && c.fetch && c.patched)
		r = check_all(&c, start);
	free(c.w);
	free(c.at);
	free(c.landed);
	free(c.fetch);
	free(c.patched);
	free(c.touches);
	return r;
}
