/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/cache-layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define SPARE_PAGES 64
/* sizeof(item) with a CAS id, a key of one byte and no value, in the smallest slab class by default */
#define SMALLEST_ITEM 96
#define END_MOST (1ull << 40) /* an offset has five bytes */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* memcached doubles its table when there are 1.5 items per bucket (assoc.c, assoc_start_expand) */
static unsigned power_most(uint64_t memory, unsigned power)
{
	while (power < CACHE_POWER_MOST && (3ull << power) / 2 < memory / SMALLEST_ITEM)
		power++;
	return power;
}

int cache_layout_make(struct reddn_cache_header *h, uint64_t memory, unsigned power)
{
	uint64_t tables_end;

	if (power < CACHE_POWER_LEAST || power > CACHE_POWER_MOST)
		return -ERANGE;
	if (memory == 0 || memory > END_MOST / 2)
		return -EINVAL;
	*h = (struct reddn_cache_header){
		.magic = REDDN_CACHE_MAGIC,
		.version = REDDN_CACHE_VERSION,
		.header_size = sizeof(*h),
		.base = REDDN_CACHE_BASE,
		.tables_off = REDDN_CACHE_TABLES,
		.power_min = power,
		.power_max = power_most(memory, power),
	};
	tables_end = h->tables_off + (16ull << h->power_max);
	/* whole huge pages from here on */
	h->pages_off = round_up(tables_end, 2 * REDDN_CACHE_PAGE);
	h->pages_size = round_up(memory, REDDN_CACHE_PAGE) + SPARE_PAGES * (uint64_t)REDDN_CACHE_PAGE;
	h->file_size = h->pages_off + h->pages_size + REDDN_CACHE_PADDING;
	return 0;
}

bool cache_layout_same(const struct reddn_cache_header *a, const struct reddn_cache_header *b)
{
	return memcmp(a, b, offsetof(struct reddn_cache_header, live)) == 0;
}

bool cache_layout_is_sound(const struct reddn_cache_header *h, uint64_t size)
{
	return h->magic == REDDN_CACHE_MAGIC && h->version == REDDN_CACHE_VERSION &&
	       h->header_size == sizeof(*h) && h->file_size <= size && h->file_size <= END_MOST &&
	       h->base == REDDN_CACHE_BASE && h->tables_off == REDDN_CACHE_TABLES &&
	       h->power_min >= CACHE_POWER_LEAST && h->power_min <= h->power_max &&
	       h->power_max <= CACHE_POWER_MOST && h->pages_off <= h->file_size &&
	       h->pages_off >= h->tables_off + (16ull << h->power_max) && h->pages_size <= h->file_size &&
	       h->pages_off + h->pages_size + REDDN_CACHE_PADDING <= h->file_size;
}
