/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table-format.h - layout of a reddn table in its file and in memory: the contract between the writer, the
 * NIC and the client. Version 2. Integers are little-endian, except in buckets, whose bytes a NIC copies raw
 * into work requests. reddn-table-format(5) describes it for others.
 *
 * File: [header page][bucket array][heap]. The bucket array starts at a page boundary, so that it can have a
 * memory key and an IOVA of its own. The heap holds records.
 *
 * A client chooses the byte at which the NIC reads a bucket, and six of the seven bytes that must match. The
 * seventh is REDDN_TABLE_TAG, a constant in the chain. It is byte 14 of every bucket in use, and no other
 * byte of the bucket array has that value, at any time. So a match implies that the NIC read a whole bucket
 * in use, whatever the client sent. The writer keeps the tag out of the other bytes:
 *   - Sizes and offsets of records are multiples of 8 and the tag is odd, so it is never their lowest byte.
 *     The writer passes over those with the tag in another byte: it pads the record, or places it behind.
 *   - In a fingerprint it is replaced.
 *
 * A key is in one of two buckets. XXH3_128bits_withSeed(key, len, hash_seed) gives
 *   fp      low 48 bits of low64; a byte with the value of the tag is replaced by its complement
 *   b0      high64 & (buckets - 1)
 *   b1      (b0 ^ mix(fp)) & (buckets - 1), mix(x) = (x * 0x9e3779b97f4a7c15) >> 20, | 1 if it gives b1 == b0
 * Either bucket follows from the other and the fingerprint, so the writer can move an entry without its key.
 *
 * There is one writer. Readers are NICs. They read at any time, in any order, without locks, and see each
 * aligned 8-byte word whole but no more than that. The writer keeps these rules:
 *   - A record never changes once a bucket points at it. Its memory is reused late, and it has a checksum,
 *     so an overtaken reader notices and asks again.
 *   - The locator of a bucket is always valid (an empty bucket points at the null record). A NIC may read a
 *     locator before an insert and the mark after it, and must not READ 0 bytes (2 GiB to it) or a wild
 * address.
 *   - A mark (fingerprint and tag) is stored whole, and all 0 when the bucket is empty.
 *   - Insert: record, then locator, then mark. Delete: mark 0, then locator of the null record.
 *     Replace: record, then one 8-byte store of the locator.
 *   - Move: live.moves becomes odd; copy to the other bucket (locator, mark); clear the old bucket;
 *     live.moves becomes even. A miss is certain if the reader saw the same even number before it asked and
 *     with the reply.
 *   - Replacement by another file, while the name of the old one is locked: live.epoch becomes 0, then the
 *     other file takes the name. A program that dies in between leaves a retired table with a name: clients
 *     get no old value, and its next writer gives it a new epoch, under the same lock. In the other order it
 *     would leave a table that clients believe in, and that nobody can find any more to mark it.
 *
 * A *store* is a table whose `header` is not 0: clients change it through the NIC, and reddnd is its one
 * writer. What differs:
 *   - A bucket points at an *extent*: `header` bytes of the server's, the first 8 of them the version (le64,
 *     of which a put compares 7), then the record. A length of `header` is that of no record: the key of the
 *     mark is absent. Empty buckets, and those whose key has never had a record, point at the null extent, of
 *     `header` bytes.
 *   - The last 7 bytes of the header are the *expiry* of the record, which its client has put there: ms since
 *     1970, big-endian; 0: it does not expire. A reader takes the key for absent when its own CLOCK_REALTIME
 *     has reached that time; the writer removes the entry when its own has.
 *   - Each put and delete of a key that has a bucket is one compare-and-swap of the locator by a NIC. The
 *     writer alone changes marks. It changes the locator of a bucket only after the mark was 0 for as long as
 *     any chain ran that had begun before, and then looks at it again.
 *   - So a move takes long, many are under way together, and the journal has each of them. A put that reads a
 *     mark of 0 changes nothing, and its client asks again. A get that a move has overtaken may find the null
 *     extent, or the record of another key: absence is certain by live.moves alone.
 *   - A message is as long as its client likes, and so is what it publishes. A client that keeps to this
 *     format pads a record until the length in the bucket is one that a table could have
 *     (reddn_store_payload()), or sends none. The writer takes an entry of another length out of the store:
 *     the tag may be in it, and a read that begins within the bucket might match.
 *   - The heap is an array of chunks. The first line of each has the size of the extents that follow it.
 */
#ifndef PROTOCOL_TABLE_FORMAT_H
#define PROTOCOL_TABLE_FORMAT_H

#include <stdint.h>

#define REDDN_TABLE_MAGIC 0x324c42544e444452ull /* "RDDNTBL2" */
#define REDDN_TABLE_VERSION 2
#define REDDN_TABLE_PAGE 4096
#define REDDN_TABLE_TAG 0xa5 /* odd */

/* The bytes that are locked by F_OFD_SETLK (fcntl(2)) with F_WRLCK: by the writer, and by who replaces it */
enum { REDDN_TABLE_LOCK_WRITER = 0, REDDN_TABLE_LOCK_NAME = 1 };

/**
 * Parts of live.state. A table that ceases to be complete has that state before it loses a key. When the
 * epoch changes, as_of_source and as_of_host are 0 before, then `origin` changes if it does, and they get
 * their values after that. `slots` becomes 0 before a table has other slots, with another epoch, and gets its
 * value when it has all of them.
 */
enum reddn_table_state {
	REDDN_TABLE_FOLLOWS = 1,     /* its entries come from another source */
	REDDN_TABLE_COMPLETE = 2,    /* and none is missing */
	REDDN_TABLE_CEASED = 1 << 2, /* bits 2 to 31 count how often it has ceased to be complete */
	REDDN_TABLE_EPOCH = 32,      /* from this bit on: the epoch of the source */
	/* Of a store, in place of the count, because its entries come from no source: there was no room for
	 * the last key that had no bucket and got none. Keys of other sizes, or other buckets, may find some
	 */
	REDDN_TABLE_FULL = 1 << 2,
};

/** The live line, which every reply carries to the client. 64 bytes, one cache line. */
struct reddn_table_live {
	uint64_t moves; /* odd while an entry moves between its buckets; grows by 2 with every move */
	uint64_t entries;
	uint64_t epoch; /* differs between a table and its replacement; 0: retired, another has its name */
	uint64_t state; /* enum reddn_table_state; 0: the entries come from no other source */
	uint64_t slots; /* of a cluster of Redis, whose keys it has (redis-slots.h); 0: it does not state that
			 */
	uint64_t as_of_source; /* how new the entries are, us by the clock of their source; 0: unknown */
	uint64_t as_of_host;   /* and ns by CLOCK_REALTIME of the host */
	uint64_t origin; /* which source it is, for who uses that source as well (redis-origin.h); 0: unknown.
			  * Another origin has another epoch in `state` */
};

struct reddn_table_header { /* first page of the file */
	uint64_t magic;
	uint32_t version; /* REDDN_TABLE_VERSION */
	uint32_t header_size;
	uint64_t hash_seed;
	uint64_t buckets;     /* power of two */
	uint64_t buckets_off; /* offset in the file */
	uint64_t heap_off;    /* offset in the file */
	uint64_t heap_size;
	uint64_t file_size;
	uint32_t max_key;
	uint32_t max_value;
	uint64_t null_off; /* offset of the null record in the heap */
	uint32_t grow;     /* 1: its writer makes a larger one when it is nearly full */
	uint32_t header;   /* bytes before each record, REDDN_STORE_HEADER_MIN to _MAX: a store; 0: a table */
	uint64_t chunk;    /* bytes of a chunk of a store's heap, a power of two */
	uint32_t evict;    /* of a store. 1: where there is no room, entries go that were put long ago */
	uint32_t reserved;
	uint64_t opened; /* of a store: a random number, another one each time that its writer opens it */
	uint8_t pad[128 - 112];
	struct reddn_table_live live; /* at byte 128; the rest of the page belongs to the writer */
};

/**
 * 16-byte aligned: two words, the locator and the mark. The NIC reads 15 bytes: len and off into a data
 * segment, fp and tag into a scratch word.
 */
struct reddn_bucket {
	uint8_t len[3]; /* bytes of the record and its padding, big-endian, a multiple of 8, never 0 */
	uint8_t off[5]; /* offset of the record in the heap, big-endian */
	uint8_t fp[6];  /* byte 0 is the least significant of the 48 bits */
	uint8_t tag;    /* REDDN_TABLE_TAG, or 0 with all of fp: empty */
	uint8_t zero;
};

/**
 * A record, 8-byte aligned in the heap, and padded with zeroes to the length in its bucket. The null record
 * has key_len = UINT32_MAX, val_len = 0 and no bytes.
 */
struct reddn_record {
	uint32_t key_len;
	uint32_t val_len;
	uint64_t sum;    /* XXH3_64bits_withSeed of key then value, seed = key_len << 32 | val_len */
	uint8_t bytes[]; /* key, value */
};

/** A move of a store's entry, or with to == from the removal of one that has no record, or is evicted. */
struct reddn_store_move {
	uint64_t from, to; /* buckets */
	uint64_t mark;     /* of the entry; mark of `from` is 0 while it waits */
};

enum {
	REDDN_STORE_VERSION = 7, /* bytes of a version that are compared: no extent has a higher one */
	REDDN_STORE_EXPIRY = 7,  /* bytes of it: the place in a request where others have a version */
	/* As many as a request that puts has: a fingerprint, an offset of 2 to 7 bytes, and a version */
	REDDN_STORE_HEADER_MIN = 6 + 2 + REDDN_STORE_VERSION,
	REDDN_STORE_HEADER_MAX = 6 + 7 + REDDN_STORE_VERSION,
	REDDN_STORE_MOVES = 144,
	REDDN_STORE_JOURNAL = 192, /* its offset in the file */
	REDDN_STORE_CHUNK_LINE = 64,
};

/** The part of a store's header page that belongs to its writer. */
struct reddn_store_journal {
	/* No extent has this version or a higher one. A new store begins with 1 + (live.epoch >> 9): higher
	 * than those of a store that it replaces */
	uint64_t versions;
	uint64_t count; /* of moves that are under way; live.moves is odd if it is not 0 */
	struct reddn_store_move move[REDDN_STORE_MOVES];
	uint64_t expires; /* 1: records may have an expiry, as while a writer has the store open */
};

/** The first line of a chunk: extents of `extent` bytes, a multiple of 64, follow it without gaps. Those
 * whose offset in the heap has the tag are not used. 0: the chunk has never had any. */
struct reddn_store_chunk {
	uint64_t extent;
	uint8_t reserved[REDDN_STORE_CHUNK_LINE - 8]; /* of the first chunk: the null extent is in it */
};

/** Largest key that the API allows, and largest record that a bucket's 3-byte length allows. Bytes. */
enum { REDDN_KEY_LIMIT = 65536, REDDN_RECORD_LIMIT = 0xfffff8 };

/** Bytes of a record. */
static inline uint64_t reddn_record_size(uint64_t key_len, uint64_t val_len)
{
	return sizeof(struct reddn_record) + key_len + val_len;
}

/** The smallest number from `v` on that has the tag in none of its bytes. `v`: a multiple of 8. */
static inline uint64_t reddn_untagged(uint64_t v)
{
	for (unsigned i = 8; i < 64; i += 8)
		if ((v >> i & 0xff) == REDDN_TABLE_TAG)
			v = ((v >> i) + 1) << i;
	return v;
}

/** Bytes of a record and its padding: the length in its bucket. */
static inline uint64_t reddn_record_padded(uint64_t size)
{
	return reddn_untagged((size + 7) & ~7ull);
}

/** Bytes that a client sends as the record of `size` bytes, with its padding, to a store: behind a header of
 * `header` bytes they have a length that a bucket may have. */
static inline uint64_t reddn_store_payload(uint32_t header, uint64_t size)
{
	return reddn_record_padded(header + size) - header;
}

/** True if a client may publish an extent of `len` bytes, the header included. */
static inline int reddn_store_length_ok(uint32_t header, uint64_t len)
{
	return len == header ||
	       (len >= header + sizeof(struct reddn_record) && len == reddn_record_padded(len));
}

_Static_assert(REDDN_TABLE_TAG % 2 == 1, "no lowest byte of a multiple of 8");
_Static_assert(sizeof(struct reddn_bucket) == 16, "the NIC reads buckets of 16 bytes");
_Static_assert(sizeof(struct reddn_record) == 16, "record header");
_Static_assert(sizeof(struct reddn_table_live) == 64, "one line");
_Static_assert(__builtin_offsetof(struct reddn_table_header, live) == 128, "live line");
_Static_assert(REDDN_STORE_JOURNAL == 128 + sizeof(struct reddn_table_live), "behind the live line");
_Static_assert(REDDN_STORE_JOURNAL + sizeof(struct reddn_store_journal) <= REDDN_TABLE_PAGE, "in the page");
_Static_assert(sizeof(struct reddn_store_chunk) == REDDN_STORE_CHUNK_LINE, "one line");

#endif
