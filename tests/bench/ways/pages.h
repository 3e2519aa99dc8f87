/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages.h - zeroed memory in pages of its own, as NICs like it: an emulated one can then map it, instead of
 * having to ask for each access.
 */
#ifndef TESTS_BENCH_WAYS_PAGES_H
#define TESTS_BENCH_WAYS_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/** NULL: there is none. */
static inline void *pages_get(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/** NULL is fine. */
static inline void pages_put(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

#endif
