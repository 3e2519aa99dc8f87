/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/image/values.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20, NOBODY = 0xff, FEW = 8 /* values that a byte may get one by one */ };

/* ---- memory ----------------------------------------------------------------------------------- */

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(16) char mem[];
};

struct pool_of_cases {
	struct chunk *first, *at;
};

struct pool_of_cases *cases_pool_new(void)
{
	return calloc(1, sizeof(struct pool_of_cases));
}

void cases_pool_reset(struct pool_of_cases *p)
{
	bytes_reset();
	p->at = p->first;
	if (p->at)
		p->at->used = 0;
}

void cases_pool_free(struct pool_of_cases *p)
{
	for (struct chunk *c = p ? p->first : NULL, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(p);
}

static struct word_case *new_cases(struct pool_of_cases *p, unsigned n)
{
	size_t size = n * sizeof(struct word_case);
	struct chunk *c = p->at;

	if (!c || c->used + size > c->size) {
		c = c ? c->next : NULL;
		if (!c) {
			c = malloc(sizeof(*c) + CHUNK);
			if (!c)
				abort();
			c->size = CHUNK;
			c->next = NULL;
			*(p->at ? &p->at->next : &p->first) = c;
		}
		c->used = 0;
		p->at = c;
	}
	c->used += size;
	return (struct word_case *)(c->mem + c->used - size);
}

/* ---- cases ------------------------------------------------------------------------------------ */

static bool guard_contains(const struct guard *g, const struct guard *in)
{
	return !g->decision || (g->decision == in->decision && !(in->cases & ~g->cases));
}

static bool same_bytes(const struct word_case *a, const struct word_case *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

static bool case_contains(const struct word_case *c, const struct word_case *in)
{
	if (!guard_contains(&c->in, &in->in))
		return false;
	if (same_bytes(c, in))
		return true;
	for (unsigned k = 0; k < WORD_BYTES; k++)
		if (c->b[k].set != in->b[k].set && !bytes_contain(c->b[k], in->b[k]))
			return false;
	return true;
}

static void case_join(struct word_case *c, const struct word_case *with)
{
	for (unsigned k = 0; k < WORD_BYTES; k++)
		c->b[k] = bytes_join(c->b[k], with->b[k]);
	if (c->in.decision == with->in.decision)
		c->in.cases |= with->in.cases;
	else
		c->in = (struct guard){0};
}

struct list {
	struct word_case c[CASES];
	unsigned n;
};

/* All values of byte @k, but for cases that have any */
static struct bytes list_byte(const struct list *l, unsigned k)
{
	struct bytes b = {0};

	for (unsigned i = 0; i < l->n; i++)
		if (bytes_count(l->c[i].b[k]) < 256)
			b = bytes_join(b, l->c[i].b[k]);
	return b;
}

/* That which differs in the fewest bytes: what a comparison has decided stays beside what it was decided for
 */
static struct word_case *list_closest(struct list *l, const struct word_case *c)
{
	struct word_case *closest = l->c;
	unsigned most = 0;

	for (unsigned i = 0; i < l->n; i++) {
		unsigned same = 0;

		for (unsigned k = 0; k < WORD_BYTES; k++)
			same += l->c[i].b[k].set == c->b[k].set;
		if (same > most) {
			most = same;
			closest = &l->c[i];
		}
	}
	return closest;
}

static void list_add(struct list *l, const struct word_case *c)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (case_contains(&l->c[i], c))
			return;
		if (l->c[i].in.decision == c->in.decision && same_bytes(&l->c[i], c)) {
			l->c[i].in.cases |= c->in.cases;
			return;
		}
	}
	if (l->n < CASES) {
		l->c[l->n++] = *c;
		return;
	}
	case_join(list_closest(l, c), c);
}

static void list_add_all(struct list *l, const struct word_case *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		list_add(l, &c[i]);
}

/* With all decisions forgotten */
static void list_add_all_free(struct list *l, const struct word_case *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct word_case free = c[i];

		free.in = (struct guard){0};
		list_add(l, &free);
	}
}

static const struct word_case *keep(struct pool_of_cases *p, const struct list *l)
{
	struct word_case *c = new_cases(p, l->n);

	memcpy(c, l->c, l->n * sizeof(*c));
	return c;
}

void word_set(struct pool_of_cases *p, struct word *w, const uint8_t v[WORD_BYTES])
{
	struct word_case *c = new_cases(p, 1);

	c->in = (struct guard){0};
	for (unsigned k = 0; k < WORD_BYTES; k++)
		c->b[k] = bytes_one(v[k]);
	*w = (struct word){.now = c, .n = 1, .owner = NOBODY};
}

static bool can_see(const struct actor *a, const struct word_case *c)
{
	return !c->in.decision || c->in.decision != a->guard.decision || c->in.cases & a->guard.cases;
}

unsigned word_seen(const struct word *w, const struct actor *a, const struct word_case *seen[2 * CASES])
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->n; i++)
		if (can_see(a, &w->now[i]))
			seen[n++] = &w->now[i];
	for (unsigned i = 0; i < w->nbefore && a->queue != w->owner; i++)
		if (can_see(a, &w->before[i]))
			seen[n++] = &w->before[i];
	return n;
}

struct bytes word_byte(const struct word *w, const struct actor *a, unsigned k)
{
	struct bytes b = {0};

	for (unsigned i = 0; i < w->n; i++)
		if (can_see(a, &w->now[i]))
			b = bytes_join(b, w->now[i].b[k]);
	for (unsigned i = 0; i < w->nbefore && a->queue != w->owner; i++)
		if (can_see(a, &w->before[i]))
			b = bytes_join(b, w->before[i].b[k]);
	return b;
}

/* Of a store that may not happen: what is there then, of the @n cases @was */
static void list_add_others(
	struct list *l, const struct word_case *was, unsigned n, const struct actor *a, uint32_t made)
{
	for (unsigned i = 0; i < n; i++) {
		struct word_case c = was[i];

		if (made)
			c.in = (struct guard){made, NOT_MADE};
		else if (a->guard.decision && c.in.decision == a->guard.decision)
			c.in.cases &= ~a->guard.cases;
		else if (a->guard.decision)
			c.in = (struct guard){a->guard.decision, ~a->guard.cases};
		if (!c.in.decision || c.in.cases)
			list_add(l, &c);
	}
}

void word_store(struct pool_of_cases *p, struct word *w, const struct actor *a, const struct word_case *c,
	unsigned n, uint32_t made)
{
	const bool guarded = !a->sure && a->guard.decision && !made;
	struct list now, before;

	now.n = before.n = 0;
	if (!a->sure)
		list_add_others(&now, w->now, w->n, a, made);
	/* what it saw of another queue's is among what it stores */
	if (guarded && a->queue != w->owner)
		list_add_others(&now, w->before, w->nbefore, a, 0);
	if (!a->alone && (a->sure || guarded)) {
		list_add_all(&before, w->before, w->nbefore);
		if (made) /* if it has failed, then as a whole */
			list_add_others(&before, w->now, w->n, a, made);
		else
			list_add_all(&before, w->now, w->n);
		w->before = keep(p, &before);
		w->nbefore = (uint8_t)before.n;
		w->owner = a->queue;
	}
	for (unsigned i = 0; i < n; i++) {
		struct word_case more = c[i];

		if (!made && a->guard.decision)
			more.in = more.in.decision == a->guard.decision
					  ? (struct guard){more.in.decision, more.in.cases & a->guard.cases}
					  : a->guard;
		list_add(&now, &more);
	}
	w->now = keep(p, &now);
	w->n = (uint8_t)now.n;
}

static bool all_in(const struct word_case *c, unsigned n, const struct word_case *in, unsigned nin)
{
	for (unsigned i = 0; i < nin; i++) {
		unsigned k = 0;

		while (k < n && !case_contains(&c[k], &in[i]))
			k++;
		if (k == n)
			return false;
	}
	return true;
}

/* A byte that gets more and more values is one of a sum that goes on, and becomes any. What stands beside it
 * does not: a carry reaches that in the next lap if it can. */
static void widen(struct list *now, const struct list *was)
{
	for (unsigned k = 0; k < WORD_BYTES; k++) {
		struct bytes old = list_byte(was, k), new = list_byte(now, k);

		if (bytes_count(new) <= FEW || bytes_contain(old, new))
			continue;
		for (unsigned i = 0; i < now->n; i++)
			now->c[i].b[k] = bytes_any(bytes_from(now->c[i].b[k]));
	}
}

bool word_join(struct pool_of_cases *p, struct word *w, const struct word *was)
{
	struct list now, then;
	bool more;

	now.n = then.n = 0;
	if (w->now == was->now)
		return false;
	list_add_all_free(&then, was->now, was->n);
	list_add_all_free(&now, w->now, w->n);
	more = !all_in(then.c, then.n, now.c, now.n) || (w->written & ~was->written);
	if (!more) {
		*w = *was;
		w->now = keep(p, &then);
		w->n = (uint8_t)then.n;
		return false;
	}
	list_add_all(&now, then.c, then.n);
	widen(&now, &then);
	w->now = keep(p, &now);
	w->n = (uint8_t)now.n;
	return true;
}

/* ---- atomics ----------------------------------------------------------------------------------- */

unsigned case_swap(const struct word_case *c, const struct word_atomic *a, struct word_case out[2])
{
	bool can = true, cannot = false;
	unsigned tested = 0, at = 0, n = 0;
	uint8_t mask, v;

	for (unsigned k = 0; k < WORD_BYTES; k++) {
		bool equal, differ;

		bytes_compare(c->b[k], a->compare[k], a->compare_mask[k], &equal, &differ);
		can &= equal;
		cannot |= differ;
		if (!bytes_only(a->compare_mask[k], 0)) {
			tested++;
			at = k;
		}
	}
	if (can) {
		for (unsigned k = 0; k < WORD_BYTES; k++)
			out[n].b[k] = bytes_mix(c->b[k], a->swap[k], a->swap_mask[k]);
		out[n++].in = c->in;
	}
	if (!cannot)
		return n;
	out[n] = *c;
	/* where one byte decides, it is known not to be that */
	if (tested == 1 && bytes_const(a->compare_mask[at], &mask) && bytes_const(a->compare[at], &v))
		out[n].b[at] = bytes_except(c->b[at], v, mask);
	return n + 1;
}

void case_add(const struct word_case *c, const struct word_atomic *a, struct word_case *out)
{
	bool carry[2] = {true, false};

	out->in = c->in;
	for (unsigned k = 0; k < WORD_BYTES; k++) {
		uint8_t from = bytes_from(c->b[k]) | bytes_from(a->add[k]);
		bool in[2] = {carry[0], carry[1]};
		uint8_t boundary;

		if (!bytes_const(a->boundary[k], &boundary)) {
			out->b[k] = bytes_any(from);
			carry[0] = carry[1] = true;
		} else if (a->again && (carry[1] || !bytes_only(a->add[k], 0))) {
			out->b[k] = bytes_any(from);
			carry[0] = true;
			carry[1] = !(boundary & 0x80);
		} else {
			out->b[k] = bytes_add(c->b[k], a->add[k], boundary, in, carry);
		}
	}
}
