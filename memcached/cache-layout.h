/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache-layout.h - the layout of a cache file (protocol/cache-format.h) for a memcached: how large its parts
 * are.
 */
#ifndef MEMCACHED_CACHE_LAYOUT_H
#define MEMCACHED_CACHE_LAYOUT_H

#include "protocol/cache-format.h"

#include <stdbool.h>

enum {
	CACHE_POWER_LEAST = 12, /* memcached takes no smaller table */
	CACHE_POWER_MOST = 27,  /* places of tables are below 4 GiB: a client sends four bytes of an offset */
};

/**
 * The header for a memcached with @memory bytes for items and a first table of 2^@power buckets. Slab pages:
 * @memory and 64 MiB, because each slab class may take its first page beyond the limit (slabs.c,
 * do_slabs_newslab). Tables: up to the power that memcached grows to when items are the smallest, of 96
 * bytes. -ERANGE: @power is out of range; -EINVAL: @memory is 0, which is no limit, or more than a five-byte
 * offset reaches.
 */
int cache_layout_make(struct reddn_cache_header *h, uint64_t memory, unsigned power);

/** True if both headers have one layout. What is live is not compared. */
bool cache_layout_same(const struct reddn_cache_header *a, const struct reddn_cache_header *b);

/** The header at @h, of a file of @size bytes, is one that a reader can rely on. */
bool cache_layout_is_sound(const struct reddn_cache_header *h, uint64_t size);

#endif
