/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache.h - the memory of one cache file (protocol/cache-format.h), given out to memcached.
 *
 * Threads may call it at the same time. Nothing here is given back by another cache or by the C library.
 */
#ifndef MEMCACHED_CACHE_H
#define MEMCACHED_CACHE_H

#include "protocol/cache-format.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Which slab pages of a cache file are in use. */
struct pages {
	uint32_t *runs; /* of each page: pages of the run that begins there, 0: not in use, or within a run */
	uint32_t count;
	uint32_t first; /* all before this are in use */
};

struct cache {
	uint8_t *base; /* of the file */
	struct reddn_cache_header *header;
	struct pages pages;
	bool early;      /* cache_begin() was called */
	bool begun;      /* tables of an earlier memcached have been cleared */
	uint64_t used;   /* places of tables, as live.tables, and that of what is none */
	uint64_t tables; /* live.tables, from cache_begin() on */
	pthread_mutex_t lock;
};

enum { CACHE_ELSEWHERE = 1 };

/** @base: a mapping of the whole file, with its header, which the caller has locked: live.next is 1 until the
 * generation begins. -ENOMEM. */
int cache_init(struct cache *a, void *base);
void cache_deinit(struct cache *a); /* the mapping stays */

/**
 * For calloc(@count, 8). 0: *@p is a table of zeroes. CACHE_ELSEWHERE: this is no hash table. -ENOMEM: it is
 * one, and there is no place for it. Measured of memcached 1.6.18: its main thread makes the first table, and
 * its array of connections before that, which may have as many elements; another thread makes the larger
 * ones.
 *
 * The first one gets a place where an earlier memcached has no table, if there is one, and is not in the live
 * line before cache_begin().
 */
int cache_table(struct cache *a, size_t count, bool main_thread, void **p);

/**
 * Begins a generation, once, if there is a table: the tables of an earlier memcached are cleared, and a NIC
 * finds what is in ours. To be called before anybody can set an item; cache_pages() does so, too, and
 * cache_table() if pages were taken before, or if it has to take a place of an earlier table.
 */
void cache_begin(struct cache *a);

/** @size bytes of slab pages, from a multiple of @align on, a power of two of at least a page. NULL: none
 * left. */
void *cache_pages(struct cache *a, size_t size, size_t align);

/** True if @p is from here. */
static inline bool cache_has(const struct cache *a, const void *p)
{
	return (const uint8_t *)p >= a->base && (const uint8_t *)p < a->base + a->header->file_size;
}

/** Gives back what cache_table() or cache_pages() returned. */
void cache_free(struct cache *a, void *p);

#endif
