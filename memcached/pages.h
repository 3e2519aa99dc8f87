/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages.h - which slab pages of a cache file are in use. Pure bookkeeping; one thread at a time.
 */
#ifndef MEMCACHED_PAGES_H
#define MEMCACHED_PAGES_H

#include <stdint.h>

struct pages {
	uint32_t *runs; /* of each page: pages of the run that begins there, 0: not in use, or within a run */
	uint32_t count;
	uint32_t first; /* all before this are in use */
};

/** All @count pages are free. -ENOMEM. */
int pages_init(struct pages *p, uint32_t count);
void pages_deinit(struct pages *p);

/** Takes @run consecutive pages, the first that are free, from a multiple of @align on. Their first, or -1.
 */
int64_t pages_take(struct pages *p, uint32_t run, uint32_t align);

/** Gives back the run that begins with @page. -EINVAL: none does. */
int pages_give(struct pages *p, uint32_t page);

#endif
