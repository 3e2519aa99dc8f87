/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply.h - a get on a table, without the network: the request for a key, and the meaning of a reply. The
 * formats are those of wire.h and table-format.h. Pure functions.
 */
#ifndef LIBCLIENT_REPLY_H
#define LIBCLIENT_REPLY_H

#include "libclient/reddn-as-of.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- memcpy() and memcmp() of short keys, of 9 to 16 bytes: a call is more instructions than what it does.
 * A hash of XXH3 has a case of its own for the same lengths ---- */

/** True if @len is that of a short key. */
static inline bool short_is(size_t len)
{
	return len - 9 < 8;
}

/** Copy the @len bytes of a short key. */
static inline void short_copy(void *to, const void *from, size_t len)
{
	uint64_t first, last;

	memcpy(&first, from, sizeof(first));
	memcpy(&last, (const uint8_t *)from + len - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy((uint8_t *)to + len - sizeof(last), &last, sizeof(last));
}

/** True if the @len bytes of both are the same, whether it is a short key or not. */
static inline bool short_same(const void *a, const void *b, size_t len)
{
	uint64_t first[2], last[2];

	if (!short_is(len))
		return memcmp(a, b, len) == 0;
	memcpy(&first[0], a, sizeof(first[0]));
	memcpy(&first[1], b, sizeof(first[1]));
	memcpy(&last[0], (const uint8_t *)a + len - sizeof(last[0]), sizeof(last[0]));
	memcpy(&last[1], (const uint8_t *)b + len - sizeof(last[1]), sizeof(last[1]));
	return !((first[0] ^ first[1]) | (last[0] ^ last[1]));
}

/** What a client needs to know of a table. */
struct reddn_geometry {
	uint64_t seed;
	uint64_t buckets;
	uint32_t max_key;   /* bytes */
	uint32_t max_value; /* bytes */
	uint8_t offset_len; /* bytes of a bucket offset in a request */
	uint8_t keys;       /* of a request, >= 1 */
	uint8_t header;     /* bytes of the server's in front of each record: of a store; 0: of a table */
	uint8_t part;       /* bytes that answer if a key is in a bucket (wire.h); 0: its record does */
	bool into;          /* a record comes in a message, with its value apart (REDDN_INTO) */
	/* Bytes for the record of a key in a slot, behind its header: the longest one fits. Of a put: for its
	 * record */
	uint32_t room;
};

/** Where record @k is in a slot. */
static inline size_t reddn_record_at(const struct reddn_geometry *g, uint32_t k)
{
	return REDDN_SLOT_RECORD + g->header + (size_t)k * (g->header + g->room);
}

/** Where the record is in a slot whose value is elsewhere. */
static inline size_t reddn_into_at(const struct reddn_geometry *g)
{
	return REDDN_INTO_RECORD + g->header;
}

/** Check a geometry that a server sent, whose requests ask @probes buckets for each key. NULL, or why no
 * table or store has it. */
const char *reddn_geometry_error(const struct reddn_geometry *g, unsigned probes, uint32_t request_len);

/** Bytes of the part of a request that asks a bucket: with the fingerprint, where the server compares. */
static inline uint32_t reddn_probe_len(const struct reddn_geometry *g)
{
	const bool compares = !g->part || g->part == REDDN_PART_EXACT;

	return (compares ? (uint32_t)sizeof(((struct reddn_bucket *)0)->fp) : 0) + g->offset_len;
}

/** Bytes of the request for a key. */
static inline uint32_t reddn_request_len(const struct reddn_geometry *g)
{
	return 2 * reddn_probe_len(g);
}

/** Room for the longest request, which reddn_request_build() may write whatever the length is. */
enum { REDDN_REQUEST_ROOM = 28 };

enum {
	REDDN_REQUEST_MAX = 2048, /* bytes of any request */
	REDDN_KEY_ROOM = 256,     /* that each keeps for its key, at least */
};

/** Write the request for a key at @p, reddn_request_len() bytes, and nothing of meaning behind it. */
static inline void reddn_request_write(
	const struct reddn_geometry *g, const struct reddn_place *p, uint8_t *request)
{
	const size_t fp_len = sizeof(((struct reddn_bucket *)0)->fp), offset_len = g->offset_len;
	/* a bucket of 16 bytes; at most 60, as an offset has a byte */
	unsigned shift = 64 - 8 * (unsigned)offset_len + 4;
	/* big-endian, and zeros up to eight bytes */
	uint64_t fp = htobe64(p->fp << (64 - 8 * fp_len)), offset;

	_Static_assert(sizeof(struct reddn_bucket) == 1 << 4, "the shift of an offset");
	for (int i = 0; i < 2; i++) {
		offset = htobe64(p->bucket[i] << shift);
		memcpy(request, &fp, sizeof(fp));
		memcpy(request + fp_len, &offset, sizeof(offset));
		request += fp_len + offset_len;
	}
}

/** The same for a key. */
void reddn_request_build(const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request);

/** Write the request that asks if a key exists, and keep in @mark what shows that. */
void reddn_exists_build(
	const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request, uint16_t *mark);

/** Where the parts of the buckets of key @k are in a slot. */
static inline size_t reddn_parts_at(const struct reddn_geometry *g, uint32_t k)
{
	return REDDN_SLOT_RECORD + (size_t)k * 2 * g->part;
}

/** True if the @parts of its buckets in a slot show that the key exists, or one with the same @mark. */
bool reddn_parts_show(const struct reddn_geometry *g, uint16_t mark, const uint8_t *parts);

/** What a client has seen in the live line of a reply. */
struct reddn_seen {
	uint64_t moves;
	uint64_t epoch;
	uint64_t state;
	uint64_t as_of_source;
	uint64_t as_of_host;
	uint64_t origin;
	uint64_t slots;
};

/** Before the first reply: an odd number of moves, which proves nothing, and an epoch that no table has. */
#define REDDN_SEEN_NOTHING ((struct reddn_seen){.moves = 1, .epoch = UINT64_MAX})

/** Read the live line of a reply, once: a server may write to the slot at any time. */
static inline struct reddn_seen reddn_reply_see(const uint8_t *slot)
{
	const struct reddn_table_live *live = (const struct reddn_table_live *)(slot + REDDN_SLOT_LIVE);

	return (struct reddn_seen){.moves = __atomic_load_n(&live->moves, __ATOMIC_RELAXED),
		.epoch = __atomic_load_n(&live->epoch, __ATOMIC_RELAXED),
		.state = __atomic_load_n(&live->state, __ATOMIC_RELAXED),
		.as_of_source = __atomic_load_n(&live->as_of_source, __ATOMIC_RELAXED),
		.as_of_host = __atomic_load_n(&live->as_of_host, __ATOMIC_RELAXED),
		.origin = __atomic_load_n(&live->origin, __ATOMIC_RELAXED),
		.slots = __atomic_load_n(&live->slots, __ATOMIC_RELAXED)};
}

/** True if the live line of a reply has this @epoch and states nothing of an age; then *@moves is in it. */
static inline bool reddn_reply_is_plain(const uint8_t *slot, uint64_t epoch, uint64_t *moves)
{
	const struct reddn_table_live *live = (const struct reddn_table_live *)(slot + REDDN_SLOT_LIVE);

	*moves = __atomic_load_n(&live->moves, __ATOMIC_RELAXED);
	return !((__atomic_load_n(&live->epoch, __ATOMIC_RELAXED) ^ epoch) |
		 __atomic_load_n(&live->state, __ATOMIC_RELAXED));
}

/**
 * False if the table is retired, or not the one of the replies before. @now is the live line of a reply,
 * which the NIC read after the request was sent, and @before that of any reply before.
 */
static inline bool reddn_seen_current(const struct reddn_seen *now, const struct reddn_seen *before)
{
	return now->epoch == before->epoch || (before->epoch == UINT64_MAX && now->epoch);
}

/**
 * How new an answer is whose line is @now: as new as the table was by the line @before, of a reply that had
 * arrived before it was asked for. What the table has had since may have come behind the reading of the
 * record, and before that of its line. It was complete throughout if it was so by both, and has not ceased
 * in between.
 */
static inline struct reddn_as_of reddn_seen_as_of(
	const struct reddn_seen *now, const struct reddn_seen *before)
{
	bool same = (now->state ^ before->state) >> REDDN_TABLE_EPOCH == 0;
	uint32_t complete = now->state == before->state ? now->state & REDDN_COMPLETE : 0;

	return (struct reddn_as_of){.source = same ? before->as_of_source : 0,
		.host = same ? before->as_of_host : 0,
		.epoch = (uint32_t)(now->state >> REDDN_TABLE_EPOCH),
		.flags = (now->state & REDDN_FOLLOWS) | complete,
		.origin = now->origin};
}

/** The head of a record in a slot. Packed: it is read where a server has put it. */
struct reddn_head {
	uint32_t key_len;
	uint32_t val_len;
	uint64_t sum;
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_head) == sizeof(struct reddn_record), "a record begins with it");

/** Read the head of a record, once as well: not again where it is used, as clang does with a memcpy(). */
static inline struct reddn_head reddn_head_read(const uint8_t *record)
{
	const volatile struct reddn_head *h = (const volatile struct reddn_head *)record;

	return (struct reddn_head){.key_len = h->key_len, .val_len = h->val_len, .sum = h->sum};
}

/** True if the table may have such a record: then a slot has room for it. */
static inline bool reddn_head_fits(const struct reddn_geometry *g, const struct reddn_head *h)
{
	return h->key_len <= g->max_key && h->val_len <= g->max_value;
}

/** True if its checksum is that of the record's @bytes. */
static inline bool reddn_head_is_right(const struct reddn_head *h, const uint8_t *bytes)
{
	return reddn_record_sum_of(bytes, (size_t)h->key_len + h->val_len,
		       (uint64_t)h->key_len << 32 | h->val_len) == h->sum;
}

/**
 * Look for a hit in the reply to a get of the key, which has a length that keys may have: the record of the
 * key, with a right checksum, at @record in the slot, and in the g->room bytes there. Returns the length of
 * its value, which was checked and may be another one in the slot by now; or -1.
 */
static inline int64_t reddn_reply_hit(
	const struct reddn_geometry *g, const void *key, size_t key_len, const uint8_t *record)
{
	const struct reddn_head h = reddn_head_read(record);
	const uint8_t *bytes = record + sizeof(h);

	if (h.key_len == key_len && h.val_len <= g->max_value && short_same(bytes, key, key_len) &&
		reddn_head_is_right(&h, bytes))
		return h.val_len;
	return -1;
}

/** The version of a hit in a store; 0 in a table. */
static inline uint64_t reddn_reply_version(const struct reddn_geometry *g, const uint8_t *record)
{
	uint64_t version = 0;

	if (g->header)
		memcpy(&version, record - g->header, sizeof(version));
	return le64toh(version);
}

/** Where the value of a hit is. */
static inline const uint8_t *reddn_reply_value(const uint8_t *record, size_t key_len)
{
	return record + sizeof(struct reddn_record) + key_len;
}

enum reddn_reply_state {
	REDDN_REPLY_MISS,
	REDDN_REPLY_MOVED,     /* no record, but entries moved or may have moved: ask again */
	REDDN_REPLY_OVERTAKEN, /* the record changed while the NIC read it: ask again */
	REDDN_REPLY_STALE,     /* another table has replaced the one of this connection */
	REDDN_REPLY_OLD,       /* by reddn_seen_as_of(), for this caller: not of reddn_reply_without() */
	REDDN_REPLY_ELSEWHERE, /* the table does not have the slot of the key: not of reddn_reply_without() */
	REDDN_REPLY_EXISTS,    /* of reddn_reply_parts(); a hit of reddn_reply_into() */
	REDDN_REPLY_TOO_LONG,  /* of reddn_reply_into() */
};

/**
 * What a reply is that was no hit, or one of a table that is not current. @now is its live line, and @before
 * that of a reply that had arrived before this request was sent.
 */
enum reddn_reply_state reddn_reply_without(const struct reddn_geometry *g, const void *key, size_t key_len,
	const uint8_t *record, const struct reddn_seen *now, const struct reddn_seen *before);

/** A record whose bytes are in three places: the first ones, as many as the key that was asked for has,
 * behind its head, then up to @room at @value, and what is left at @rest, where those of another reply may be
 * by now.
 */
struct reddn_apart {
	const uint8_t *record;
	const uint8_t *value;
	const uint8_t *rest;
	size_t room;
	uint64_t *longer; /* checksum of the record of this request that was the last without room; 0: none */
};

/** The right checksum for such a record, of the key that was asked for. */
uint64_t reddn_apart_sum(const struct reddn_apart *r, uint32_t key_len, uint32_t val_len);

/**
 * What a reply with such a record is, or with none. TOO_LONG: the value has more bytes than there is room
 * for. Not all of them are there, so the record may have changed while the NIC read it: the first such reply
 * is OVERTAKEN, and another one with the same checksum is TOO_LONG. *@len is the length of the value then,
 * and of a hit. The same.
 */
enum reddn_reply_state reddn_reply_into(const struct reddn_geometry *g, const void *key, size_t key_len,
	const struct reddn_apart *r, const struct reddn_seen *now, const struct reddn_seen *before,
	size_t *len);

/** What a reply with @parts is to the question if a key exists. The same. */
enum reddn_reply_state reddn_reply_parts(const struct reddn_geometry *g, uint16_t mark, const uint8_t *parts,
	const struct reddn_seen *now, const struct reddn_seen *before);

#endif
