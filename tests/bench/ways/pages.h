/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages.h - zeroed memory in pages of its own. An emulated NIC can map it and needs no remote copy for each
 * access.
 */
#ifndef TESTS_BENCH_WAYS_PAGES_H
#define TESTS_BENCH_WAYS_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/** NULL: no memory. */
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
