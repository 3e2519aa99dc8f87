/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache-format.h - layout of the cache file: the file in which a memcached has its hash tables and items, so
 * that a NIC can read them. The contract between libreddn-memcached.so, which is preloaded into memcached and
 * makes the file, and those who read it. Version 1. Numbers are in the byte order of the machine, as
 * memcached's own.
 *
 * File: [null page, 64 KiB][header, 64 KiB][hash tables][slab pages][padding]. memcached maps it at
 * REDDN_CACHE_BASE. So the low five bytes of one of its pointers are the offset in the file, and the sixth is
 * the same in all of them.
 *   - The null page stays zero. A null pointer leads to an item without a key, whose h_next is null.
 *   - The table of 2^p buckets is at tables_off + 2^(p+3), for p from power_min to power_max. These places do
 *     not overlap. The 2^(power_min+3) bytes at tables_off are another place for 2^power_min buckets: it is
 *     used if the memcached before has its table in the first, so that both exist until the next one opens
 *     its port; or if something else had that size first, which memcached's array of connections may.
 *   - Slab pages have 1 MiB. The padding behind them has as many bytes as the longest READ of an item, at
 * least.
 *
 * The layout of a file never changes, and it is never truncated: a NIC may have it pinned. A memcached that
 * needs another layout makes another file in its place. A memcached that runs has a write lock on its file,
 * by an open file description (F_OFD_SETLK, fcntl(2)). The lock ends with the process, however that ends.
 */
#ifndef PROTOCOL_CACHE_FORMAT_H
#define PROTOCOL_CACHE_FORMAT_H

#include <stdint.h>

#define REDDN_CACHE_MAGIC 0x434d454d444e4452ull /* "RDNDMEMC" */
#define REDDN_CACHE_VERSION 1
#define REDDN_CACHE_BASE 0x10000000000ull /* 2^40: no program that can be placed anywhere lies there */
#define REDDN_CACHE_NULL 65536            /* bytes of the null page; the header follows */
#define REDDN_CACHE_TABLES 131072         /* tables_off */
#define REDDN_CACHE_PAGE (1u << 20)       /* bytes of a slab page */
#define REDDN_CACHE_PADDING (1u << 20)

/**
 * What changes while a memcached runs. 64 bytes, one cache line; words are stored whole. A reader that sees
 * the same even generation before and after it looked at the tables has seen tables of one memcached.
 */
struct reddn_cache_live {
	uint64_t generation; /* odd while tables of an earlier memcached are cleared; grows with each
				memcached */
	uint64_t tables; /* bit p: the table of 2^p is in use; bit 0: so is the other place of 2^power_min */
	uint64_t pid;    /* of the memcached, as it is known where that runs */
	uint64_t power_min; /* of the header: how many buckets the other place has */
	uint64_t next; /* 1 from when a memcached has the file to the begin of its generation: what is here
			  is of one that has ended */
	uint64_t reserved[3];
};

/**
 * What reddnd knows of the memcached, beside the live line, so that one reply has both. It is written once or
 * more in a second. A reader uses it if `sum` is right, which it is not in the middle of a write, and
 * `generation` is that of the live line: otherwise this memcached has not been proved yet
 * (memcached/proof.h).
 */
struct reddn_cache_served {
	uint64_t generation; /* of the memcached that was proved; 0: none */
	uint32_t hash;       /* enum cache_hash (protocol/cache-hash.h) */
	uint32_t traits;     /* REDDN_CACHE_... */
	uint64_t clock;      /* the server's, in seconds (protocol/cache-item.h), at the last look */
	uint64_t died;       /* seconds since 1970 when it was seen that no memcached runs; 0: one does */
	uint64_t identity;   /* CAS id of the item by which clients know theirs (memcached/identity.h) */
	uint64_t flushed;    /* 0, or items whose time is up to this second may be gone by flush_all; */
	uint64_t asked;      /* by the server's clock, when memcached was last asked for that */
	uint64_t sum;        /* XXH3_64bits of the bytes before */
};

/** Items that memcached moves to another page keep their CAS ids: so since 1.6.27. */
enum { REDDN_CACHE_IDS_MOVE = 1 };

struct reddn_cache_header { /* at REDDN_CACHE_NULL */
	uint64_t magic;
	uint32_t version;
	uint32_t header_size;
	uint64_t file_size;
	uint64_t base; /* REDDN_CACHE_BASE */
	uint64_t tables_off;
	uint32_t power_min, power_max;
	uint64_t pages_off;
	uint64_t pages_size;
	uint8_t reserved[128 - 64];
	struct reddn_cache_live live; /* at byte 128 */
	struct reddn_cache_served served;
};

/** Where the table of 2^@power begins; @power 0: the other place of 2^power_min. */
static inline uint64_t reddn_cache_table(uint64_t tables_off, unsigned power)
{
	return power ? tables_off + (8ull << power) : tables_off;
}

_Static_assert(sizeof(struct reddn_cache_live) == 64, "one line");
_Static_assert(sizeof(struct reddn_cache_served) == 64, "one line");
_Static_assert(__builtin_offsetof(struct reddn_cache_header, live) == 128, "live line");
_Static_assert(__builtin_offsetof(struct reddn_cache_header, served) == 192, "behind the live line");

#endif
