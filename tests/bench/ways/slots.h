/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.h - the free slots of a connection, and those with results that the caller holds.
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

/** There must be a free slot. */
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
