/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * derive-set.h - private to derive*.c: sets of steps of a text.
 */
#ifndef CHAIN_SCHEDULE_DERIVE_SET_H
#define CHAIN_SCHEDULE_DERIVE_SET_H

#include "reddnd/chain/ir/layout.h"

enum {
	REQUEST = CHAIN_MAX_STEPS, /* in a set: the request's bytes */
	SET_WORDS = REQUEST / 64 + 1,
	NONE = LAYOUT_NONE,
};

struct set {
	uint64_t w[SET_WORDS];
};

static inline void set_add(struct set *s, unsigned i)
{
	s->w[i / 64] |= 1ull << i % 64;
}

static inline bool set_has(const struct set *s, unsigned i)
{
	return s->w[i / 64] >> i % 64 & 1;
}

static inline void set_join(struct set *s, const struct set *more)
{
	for (unsigned i = 0; i < SET_WORDS; i++)
		s->w[i] |= more->w[i];
}

static inline struct set set_and(const struct set *a, const struct set *b)
{
	struct set r;

	for (unsigned i = 0; i < SET_WORDS; i++)
		r.w[i] = a->w[i] & b->w[i];
	return r;
}

static inline struct set set_minus(const struct set *a, const struct set *b)
{
	struct set r;

	for (unsigned i = 0; i < SET_WORDS; i++)
		r.w[i] = a->w[i] & ~b->w[i];
	return r;
}

/* The members below @i */
static inline struct set set_below(const struct set *s, unsigned i)
{
	struct set r = *s;

	for (unsigned w = 0; w < SET_WORDS; w++)
		if (64 * (w + 1) > i)
			r.w[w] &= 64 * w >= i ? 0 : (1ull << i % 64) - 1;
	return r;
}

/* The last step in @s, or NONE; REQUEST does not count */
static inline unsigned set_last(const struct set *s)
{
	for (unsigned w = REQUEST / 64; w-- > 0;)
		if (s->w[w])
			return 64 * w + 63 - (unsigned)__builtin_clzll(s->w[w]);
	return NONE;
}

/* Steps in @s; REQUEST does not count */
static inline unsigned set_size(const struct set *s)
{
	unsigned n = 0;

	for (unsigned w = 0; w < REQUEST / 64; w++)
		n += (unsigned)__builtin_popcountll(s->w[w]);
	return n;
}

#endif
