/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/image/values.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20, NOBODY = 0xff };

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

/* ---- bytes ------------------------------------------------------------------------------------ */

struct bytes bytes_one(uint8_t v)
{
	struct bytes b = {0};

	b.in[v / 64] = 1ull << v % 64;
	return b;
}

struct bytes bytes_any(uint8_t from)
{
	struct bytes b = {.from = from};

	memset(b.in, 0xff, sizeof(b.in));
	return b;
}

bool bytes_have(const struct bytes *b, uint8_t v)
{
	return b->in[v / 64] >> v % 64 & 1;
}

static unsigned count(const struct bytes *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 4; i++)
		n += (unsigned)__builtin_popcountll(b->in[i]);
	return n;
}

static uint8_t least(const struct bytes *b)
{
	unsigned i = 0;

	while (i < 3 && !b->in[i])
		i++;
	return (uint8_t)(64 * i + (unsigned)__builtin_ctzll(b->in[i] ? b->in[i] : 1));
}

uint8_t bytes_most(const struct bytes *b)
{
	unsigned i = 3;

	while (i && !b->in[i])
		i--;
	return (uint8_t)(64 * i + 63 - (unsigned)__builtin_clzll(b->in[i] | 1));
}

bool bytes_const(const struct bytes *b, uint8_t *v)
{
	*v = least(b);
	return count(b) == 1;
}

bool bytes_only(const struct bytes *b, uint8_t v)
{
	return count(b) == 1 && bytes_have(b, v);
}

void bytes_join(struct bytes *to, const struct bytes *more)
{
	for (unsigned i = 0; i < 4; i++)
		to->in[i] |= more->in[i];
	to->from |= more->from;
}

static bool contains(const struct bytes *b, const struct bytes *in)
{
	for (unsigned i = 0; i < 4; i++)
		if (in->in[i] & ~b->in[i])
			return false;
	return !(in->from & ~b->from);
}

/* ---- cases ------------------------------------------------------------------------------------ */

static bool guard_contains(const struct guard *g, const struct guard *in)
{
	return !g->decision || (g->decision == in->decision && !(in->cases & ~g->cases));
}

static bool same_bytes(const struct word_case *a, const struct word_case *b)
{
	for (unsigned k = 0; k < WORD_BYTES; k++)
		if (memcmp(a->b[k].in, b->b[k].in, sizeof(a->b[k].in)) != 0 || a->b[k].from != b->b[k].from)
			return false;
	return true;
}

static bool case_contains(const struct word_case *c, const struct word_case *in)
{
	if (!guard_contains(&c->in, &in->in))
		return false;
	for (unsigned k = 0; k < WORD_BYTES; k++)
		if (!contains(&c->b[k], &in->b[k]))
			return false;
	return true;
}

struct list {
	struct word_case c[CASES];
	unsigned n;
};

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
	for (unsigned i = 0; i < CASES; i++)
		for (unsigned k = 0; k < WORD_BYTES; k++)
			bytes_join(&l->c[0].b[k], i ? &l->c[i].b[k] : &c->b[k]);
	l->c[0].in = (struct guard){0};
	l->n = 1;
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
	const struct word_case *seen[2 * CASES];
	unsigned n = word_seen(w, a, seen);
	struct bytes b = {.from = 0};

	for (unsigned i = 0; i < n; i++)
		bytes_join(&b, &seen[i]->b[k]);
	return b;
}

/* Of a store that may not happen: what is there then */
static void list_add_others(struct list *l, const struct word *w, const struct actor *a, uint32_t made)
{
	for (unsigned i = 0; i < w->n; i++) {
		struct word_case c = w->now[i];

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
	struct list now = {.n = 0}, before = {.n = 0};

	if (a->sure) {
		list_add_all(&before, w->before, w->nbefore);
		if (made) /* if it has failed, then as a whole */
			list_add_others(&before, w, a, made);
		else
			list_add_all(&before, w->now, w->n);
		w->before = keep(p, &before);
		w->nbefore = (uint8_t)before.n;
		w->owner = a->queue;
	} else {
		list_add_others(&now, w, a, made);
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

bool word_join(struct pool_of_cases *p, struct word *w, const struct word *was)
{
	struct list now = {.n = 0}, then = {.n = 0};
	bool more;

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
	w->now = keep(p, &now);
	w->n = (uint8_t)now.n;
	w->grown = was->grown < UINT8_MAX ? (uint8_t)(was->grown + 1) : UINT8_MAX;
	return true;
}

/* ---- atomics ---------------------------------------------------------------------------------- */

/* What of @a can be equal to something in @c, and different from something, under the mask @m */
static void compare(
	const struct bytes *a, const struct bytes *c, const struct bytes *m, bool *equal, bool *differ)
{
	uint8_t mask, x, y;

	*equal = *differ = true;
	if (!bytes_const(m, &mask))
		return;
	if (!mask) {
		*differ = false;
		return;
	}
	if (count(a) == 256 || count(c) == 256)
		return;
	if (bytes_const(a, &x) && bytes_const(c, &y)) {
		*equal = ((x ^ y) & mask) == 0;
		*differ = !*equal;
		return;
	}
	*equal = false;
	for (unsigned i = 0; i < 256; i++)
		for (unsigned k = 0; k < 256 && bytes_have(a, (uint8_t)i) && !*equal; k++)
			*equal = bytes_have(c, (uint8_t)k) && ((i ^ k) & mask) == 0;
}

static struct bytes mix(const struct bytes *a, const struct bytes *s, const struct bytes *m)
{
	struct bytes r = {.from = a->from | s->from};
	uint8_t mask;

	if (bytes_const(m, &mask) && mask == 0)
		return *a;
	if (bytes_const(m, &mask) && mask == 0xff)
		return *s;
	if (!bytes_const(m, &mask))
		return bytes_any(r.from | m->from);
	for (unsigned i = 0; i < 256; i++)
		for (unsigned k = 0; k < 256 && bytes_have(a, (uint8_t)i); k++)
			if (bytes_have(s, (uint8_t)k)) {
				unsigned v = (i & ~(unsigned)mask) | (k & mask);

				r.in[v / 64] |= 1ull << v % 64;
			}
	return r;
}

unsigned case_swap(const struct word_case *c, const struct word_atomic *a, struct word_case out[2])
{
	bool can = true, cannot = false;
	unsigned tested = 0, at = 0, n = 0;
	uint8_t mask, v;

	for (unsigned k = 0; k < WORD_BYTES; k++) {
		bool equal, differ;

		compare(&c->b[k], &a->compare[k], &a->compare_mask[k], &equal, &differ);
		can &= equal;
		cannot |= differ;
		if (!bytes_only(&a->compare_mask[k], 0)) {
			tested++;
			at = k;
		}
	}
	if (can) {
		for (unsigned k = 0; k < WORD_BYTES; k++)
			out[n].b[k] = mix(&c->b[k], &a->swap[k], &a->swap_mask[k]);
		out[n++].in = c->in;
	}
	if (!cannot)
		return n;
	out[n] = *c;
	/* where one byte decides, it is known not to be that */
	if (tested == 1 && bytes_const(&a->compare_mask[at], &mask) && bytes_const(&a->compare[at], &v))
		for (unsigned i = 0; i < 256; i++)
			if (((i ^ v) & mask) == 0)
				out[n].b[at].in[i / 64] &= ~(1ull << i % 64);
	return n + 1;
}

/* Sums of the bits of a byte, with a carry that does not leave a bit of @boundary */
static unsigned add_byte(unsigned x, unsigned y, unsigned carry, unsigned boundary, unsigned *out)
{
	unsigned sum = 0;

	if (boundary == 0 || boundary == 0x80) {
		sum = x + y + carry;
		*out = boundary ? 0 : sum >> 8;
		return sum & 0xff;
	}
	for (unsigned i = 0; i < 8; i++) {
		unsigned bits = (x >> i & 1) + (y >> i & 1) + carry;

		sum |= (bits & 1) << i;
		carry = boundary >> i & 1 ? 0 : bits >> 1;
	}
	*out = carry;
	return sum;
}

static void add_sets(const struct bytes *x, const struct bytes *y, unsigned boundary, const bool in[2],
	struct bytes *sum, bool out[2])
{
	bool any = (count(x) == 256 || count(y) == 256) && (boundary == 0 || boundary == 0x80);

	if (any) {
		unsigned low = least(x) + least(y) + (in[0] ? 0 : 1),
			 high = bytes_most(x) + bytes_most(y) + (in[1] ? 1 : 0);

		memset(sum->in, 0xff, sizeof(sum->in));
		out[0] = boundary || low < 256;
		out[1] = !boundary && high > 255;
		return;
	}
	for (unsigned i = 0; i < 256; i++)
		for (unsigned k = 0; k < 256 && bytes_have(x, (uint8_t)i); k++)
			for (unsigned c = 0; c < 2 && bytes_have(y, (uint8_t)k); c++) {
				unsigned carry, v;

				if (!in[c])
					continue;
				v = add_byte(i, k, c, boundary, &carry);
				sum->in[v / 64] |= 1ull << v % 64;
				out[carry] = true;
			}
}

void case_add(const struct word_case *c, const struct word_atomic *a, struct word_case *out)
{
	bool carry[2] = {true, false};

	out->in = c->in;
	for (unsigned k = 0; k < WORD_BYTES; k++) {
		struct bytes sum = {.from = c->b[k].from | a->add[k].from};
		bool next[2] = {false, false};
		uint8_t boundary;

		if (!bytes_const(&a->boundary[k], &boundary)) {
			sum = bytes_any(sum.from);
			next[0] = next[1] = true;
		} else if (a->again && (carry[1] || !bytes_only(&a->add[k], 0))) {
			sum = bytes_any(sum.from);
			next[0] = true;
			next[1] = !(boundary & 0x80);
		} else {
			add_sets(&c->b[k], &a->add[k], boundary, carry, &sum, next);
		}
		out->b[k] = sum;
		carry[0] = next[0];
		carry[1] = next[1];
	}
}
