/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.h - which of a connection's slots are free, and which hold results that the caller has.
 */
#ifndef TESTS_BENCH_WAYS_SLOTS_H
#define TESTS_BENCH_WAYS_SLOTS_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct slots {
	uint32_t *free, *held;
	unsigned nfree, nheld;
};

static inline int slots_init(struct slots *s, unsigned n)
{
	s->free = calloc(2 * n, sizeof(*s->free));
	if (!s->free)
		return -ENOMEM;
	s->held = s->free + n;
	while (s->nfree < n) {
		s->free[s->nfree] = s->nfree;
		s->nfree++;
	}
	return 0;
}

static inline void slots_deinit(struct slots *s)
{
	free(s->free);
}

/** There must be a free one. */
static inline uint32_t slots_take(struct slots *s)
{
	return s->free[--s->nfree];
}

static inline void slots_hold(struct slots *s, uint32_t slot)
{
	s->held[s->nheld++] = slot;
}

static inline void slots_release(struct slots *s)
{
	while (s->nheld)
		s->free[s->nfree++] = s->held[--s->nheld];
}

#endif
