/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * put.h - a put or a delete in a store, without the network: what is sent, what an answer means, and what
 * follows from it. The formats are those of wire.h and table-format.h. Pure functions.
 *
 * A request asks one bucket. If the key is in neither, the server makes an entry for it, which has no record
 * yet, and the put is asked again after a pause: so a put always takes place in the NIC, when that replaces
 * the locator in a bucket, or not at all.
 */
#ifndef LIBCLIENT_PUT_H
#define LIBCLIENT_PUT_H

#include "libclient/reply.h"

/*
 * Memory of a put or delete: what is before the record, `header` bytes, ends where that begins, so that both
 * are one message. A delete has the record of its key without a value, and does not send it. If a value is
 * sent from the caller's memory, its place here has nothing of meaning.
 */
enum { REDDN_PUT_RECORD = 24 };
_Static_assert((int)REDDN_PUT_RECORD >= (int)REDDN_STORE_HEADER_MAX, "room for the longest");

static inline const struct reddn_record *reddn_put_record(const uint8_t *memory)
{
	return (const struct reddn_record *)(memory + REDDN_PUT_RECORD);
}

/** Bytes that such memory has, with a key and a value, and the padding of their record. */
static inline uint64_t reddn_put_size(const struct reddn_geometry *g, uint64_t key_len, uint64_t value_len)
{
	return REDDN_PUT_RECORD + reddn_store_payload(g->header, reddn_record_size(key_len, value_len));
}

/** Bytes of the longest record of a store, by the lengths of its keys and values, with its padding. */
static inline uint32_t reddn_put_record_most(const struct reddn_geometry *g)
{
	return (uint32_t)(reddn_put_size(g, g->max_key, g->max_value) - REDDN_PUT_RECORD);
}

/** Bytes of memory that any put has room in: of a record, of the key of a delete, or of a raw request. */
static inline uint64_t reddn_put_room(const struct reddn_geometry *g)
{
	uint64_t most = reddn_put_size(g, g->max_key, 0);

	if (most < REDDN_PUT_RECORD + g->room)
		most = REDDN_PUT_RECORD + g->room;
	return most > REDDN_KEY_ROOM ? (most + 7) & ~(uint64_t)7 : REDDN_KEY_ROOM;
}

/** False: the key is too long for the store, or the record for the store or a request. */
static inline bool reddn_put_fits(
	const struct reddn_geometry *g, size_t key_len, size_t value_len, bool is_delete)
{
	return key_len <= g->max_key &&
	       (is_delete || (value_len <= g->max_value &&
				     reddn_put_size(g, key_len, value_len) <= REDDN_PUT_RECORD + g->room));
}

/** Write the padding that the store wants behind the record in such memory. Returns the bytes that it has
 * then. */
uint64_t reddn_put_pad(const struct reddn_geometry *g, uint8_t *memory);

/** Write the record of a key and a value with its padding, behind where the arguments are to be; but for the
 * value, if it stays @apart. @memory: 8-byte aligned. */
void reddn_put_compose(const struct reddn_geometry *g, uint8_t *memory, const void *key, size_t key_len,
	const void *value, size_t value_len, bool apart);

/** Of a put or a delete that has no result yet. All zero at first, but for the versions, the seed, the
 * expiry, and a value with its memory. */
struct reddn_put {
	uint64_t version;     /* of what it is to replace, if it has a condition: 0: there is no record */
	uint64_t asked;       /* for that, or for that of a deleted one */
	uint64_t seed;        /* of the store whose version it is */
	uint64_t expiry;      /* of a record that is put without a condition: as in table-format.h */
	const uint8_t *value; /* that is sent from where it is; NULL: the record has it, if it has one */
	uint8_t memory;       /* index in that of the handle, where it is */
	uint8_t probe;        /* the bucket that is asked */
	uint8_t absent; /* answers in a row that the key was not in it; when they are many, only if they are
			   odd */
	uint8_t full;   /* how often in a row it was in neither, and the server had no room */
	uint64_t moves[2]; /* of the last of them, one for each bucket */
};

/** Write what is before the record, for the bucket and the version that @p asks for, or with its expiry.
 * Returns where it begins. */
uint8_t *reddn_put_address(const struct reddn_geometry *g, uint8_t *memory, const struct reddn_put *p);

/** What an answer is, and what the caller does. */
enum reddn_put_state {
	REDDN_PUT_DONE,     /* the NIC has replaced what the key had */
	REDDN_PUT_NOTHING,  /* a delete: the key was absent */
	REDDN_PUT_OTHER,    /* it is not in this bucket: ask the other one at once */
	REDDN_PUT_NO_ENTRY, /* nor in the other: ask that one again, after a pause */
	REDDN_PUT_FULL,     /* the same, and there will be no entry: the server has no room */
	REDDN_PUT_CONFLICT, /* another client was first: ask the same bucket again, after a pause */
	REDDN_PUT_AGAIN,    /* the key has no record, as is wanted: ask the same bucket again, at once */
	REDDN_PUT_VERSION,  /* the key has another version */
};

/** Take the answer @now. Whatever the state is but DONE, nothing has happened in the store. */
enum reddn_put_state reddn_put_learn(struct reddn_put *p, const struct reddn_geometry *g, bool is_delete,
	const struct reddn_wire_put *now);

/** The same of one with a condition. *@version: that which the key has; 0: it has no record. */
enum reddn_put_state reddn_put_if_learn(struct reddn_put *p, const struct reddn_geometry *g,
	const struct reddn_wire_put_if *now, uint64_t *version);

/** How long to pause, in ns, after it was asked @times times in vain: grows from 20 us to 1 ms. Spread by a
 * caller that knows random numbers. */
uint64_t reddn_put_pause(unsigned times);

#endif
