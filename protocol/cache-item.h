/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache-item.h - an item of memcached, as it is in the slab pages of a cache file. The layout is memcached's
 * (memcached.h, struct _stritem), the same from 1.5.15 to 1.6.45. It is no contract of memcached: whoever
 * reads items proves it first (memcached/proof.h).
 *
 * Bucket b of a table of 2^p is a pointer to the first item whose key has the hash b in its low p bits;
 * h_next leads to the others. Items begin at multiples of 8. Behind the header there are the key, a zero, the
 * client's flags of 4 bytes if CFLAGS is set, the value, CR and LF.
 */
#ifndef PROTOCOL_CACHE_ITEM_H
#define PROTOCOL_CACHE_ITEM_H

#include <stdbool.h>
#include <stdint.h>

/** it_flags. */
enum {
	CACHE_ITEM_LINKED = 1,   /* in the table */
	CACHE_ITEM_CAS = 2,      /* the header has a CAS id */
	CACHE_ITEM_SLABBED = 4,  /* free */
	CACHE_ITEM_FETCHED = 8,  /* used */
	CACHE_ITEM_ACTIVE = 16,  /* used again since it was last moved in its LRU list */
	CACHE_ITEM_CHUNKED = 32, /* its value is in other chunks */
	CACHE_ITEM_HDR = 128,    /* its value is on flash */
	CACHE_ITEM_CFLAGS = 256, /* it has flags of the client */
};

struct reddn_cache_item {
	uint64_t lru[2];
	uint64_t h_next; /* 0: the last one of its bucket */
	uint32_t time; /* seconds of the server's clock: when it was set, touched, or moved in its LRU list */
	uint32_t exptime; /* the same, when it expires; 0: never */
	int32_t nbytes;   /* of the value, CR and LF included */
	uint16_t refcount;
	uint16_t it_flags;
	uint8_t clsid; /* two high bits: the LRU list */
	uint8_t nkey;
	uint8_t reserved[6];
	uint64_t cas; /* if CACHE_ITEM_CAS */
};

/** Of clsid: the list, and the one of them that memcached evicts from. */
enum { CACHE_ITEM_LIST = 192, CACHE_ITEM_COLD = 128 };

/** Seconds that the server's clock is ahead of "uptime" of `stats` (memcached.h, ITEM_UPDATE_INTERVAL). */
enum { CACHE_CLOCK_AHEAD = 60 };

/** Where the value begins, in bytes from the start of the item. */
static inline uint32_t reddn_cache_value(uint8_t nkey, uint16_t it_flags)
{
	return (uint32_t)sizeof(struct reddn_cache_item) + nkey + 1 + (it_flags & CACHE_ITEM_CFLAGS ? 4 : 0);
}

_Static_assert(sizeof(struct reddn_cache_item) == 56, "with a CAS id");
_Static_assert(__builtin_offsetof(struct reddn_cache_item, h_next) == 16, "h_next");
_Static_assert(__builtin_offsetof(struct reddn_cache_item, cas) == 48, "cas");

#endif
