/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/offer.h"

#include "reddnd/generation/table.h"
#include "reddnd/generation/wrong.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

_Static_assert(CHAIN_BUCKET == sizeof(struct reddn_bucket) && CHAIN_TAG == REDDN_TABLE_TAG &&
		       CHAIN_BUCKET_TAG == offsetof(struct reddn_bucket, tag),
	"chains publish in tables");

enum { FP = sizeof(((struct reddn_bucket *)0)->fp) };

/* It has fingerprints to compare, and not only offsets of parts that the client compares */
static bool compares(const struct offload *o)
{
	const struct program *p = o->program;

	return p->shape != PROGRAM_EXISTS || (p->nargs && p->args[0].kind != PROGRAM_WINDOW);
}

/* Bytes of the request for a key: two candidates, each a fingerprint, if there is one, and an offset, in this
 * order */
static unsigned bytes_of_key(const struct offload *o)
{
	return 2u * ((compares(o) ? FP : 0) + o->table->geometry.offset_len);
}

unsigned shape_keys(const struct offload *o)
{
	return o->img->arg_len / bytes_of_key(o);
}

/* What libreddn asks for, with one key or several */
static bool takes_keys(const struct offload *o, unsigned most)
{
	unsigned keys = shape_keys(o);

	return o->img->arg_len % bytes_of_key(o) == 0 && keys && keys <= most;
}

/* A client encodes each of @keys keys as the first one (wire.h) */
static bool are_alike(const struct program *p, unsigned keys)
{
	const unsigned nargs = p->nargs / keys, npieces = p->npieces / keys;

	for (unsigned i = nargs; i < p->nargs; i++) {
		const struct program_arg *a = &p->args[i - nargs], *b = &p->args[i];

		if (a->kind != b->kind || a->bytes != b->bytes)
			return false;
	}
	for (unsigned i = npieces; i < p->npieces; i++) {
		const struct program_piece *a = &p->pieces[i - npieces], *b = &p->pieces[i];

		if (a->arg + nargs != b->arg || a->first != b->first || a->len != b->len ||
			a->reversed != b->reversed || a->inverted != b->inverted)
			return false;
	}
	return p->nargs % keys == 0 && p->npieces % keys == 0;
}

/* It fits the slot, which ends where that of the next request begins. libreddn looks for those of several
 * keys one after the other. */
static bool has_room(const struct offload *o, uint64_t record)
{
	unsigned keys = shape_keys(o);
	uint64_t need = REDDN_SLOT_RECORD + keys * record;

	return keys == 1 ? o->slot_need >= need : o->slot_need == need;
}

/* Its requests that put are conditional: the version is the last argument */
static bool has_version(const struct offload *o)
{
	return o->img->arg_len == o->table->geometry.header;
}

uint8_t shape_on_wire(const struct offload *o)
{
	switch (o->program->shape) {
	case PROGRAM_TABLE:
		return shape_keys(o) > 1 ? REDDN_SHAPE_MGET : REDDN_SHAPE_TABLE;
	case PROGRAM_PUT:
		return has_version(o) ? REDDN_SHAPE_PUT_IF : REDDN_SHAPE_PUT;
	case PROGRAM_EXISTS:
		return REDDN_SHAPE_EXISTS;
	case PROGRAM_INTO:
		return REDDN_SHAPE_INTO;
	default:
		return REDDN_SHAPE_OPAQUE;
	}
}

/* What is published counts the bytes of the request, and names an extent that begins with the header */
static int check_extent(struct offload *o)
{
	const uint64_t most = le64toh(o->table->header.chunk) - REDDN_STORE_CHUNK_LINE;

	if (o->img->arg_len + (uint64_t)o->img->payload.max > most)
		return offload_wrong(o, -EINVAL,
			"with its arguments its payload may have %" PRIu64 " bytes, and the extents of the "
			"store have %" PRIu64 " at most; see its param \"most\"",
			o->img->arg_len + (uint64_t)o->img->payload.max, most);
	if (has_version(o) || o->img->arg_len + REDDN_STORE_VERSION == o->table->geometry.header)
		return 0;
	return offload_wrong(o, -EINVAL,
		"its requests have %u bytes of arguments, and the store has %u bytes in front of each "
		"record; these must be as many, or %d more: see its param \"width\"",
		o->img->arg_len, o->table->geometry.header, REDDN_STORE_VERSION);
}

static int check_put(struct offload *o)
{
	const size_t need = has_version(o) ? sizeof(struct reddn_wire_put_if) : sizeof(struct reddn_wire_put);

	if (o->program->reply_max >= need)
		return 0;
	return offload_wrong(o, -EINVAL,
		"the answer to a put has %zu bytes, and its program replies with %" PRIu64, need,
		(uint64_t)o->program->reply_max);
}

/* libreddn looks for what is of the buckets one after the other */
static int check_exists(struct offload *o)
{
	const unsigned part = compares(o) ? REDDN_PART_EXACT : reddn_wire_part(o->table->geometry.header);
	const uint64_t need = REDDN_SLOT_RECORD + 2ull * part * shape_keys(o);

	if (!takes_keys(o, REDDN_WIRE_KEYS))
		return offload_wrong(o, -EINVAL,
			"a program of shape exists reads in two buckets of a table for each key; its request "
			"must be two times%s an offset of %u bytes, up to %d times",
			compares(o) ? " a fingerprint of 6 bytes and" : "", o->table->geometry.offset_len,
			REDDN_WIRE_KEYS);
	if (o->program->reply_max == need)
		return 0;
	return offload_wrong(o, -EINVAL,
		"a program of shape exists replies with parts of buckets one after the other from byte %d of "
		"the slot; for %u keys, with parts of %u bytes, the reply must have %" PRIu64
		" bytes, not %" PRIu64 ": see its param \"part\"",
		REDDN_SLOT_RECORD, shape_keys(o), part, need, (uint64_t)o->program->reply_max);
}

/* The request of a key and its number; the answer goes into no slot, and a client has room for its head there
 */
static int check_into(struct offload *o)
{
	const struct table_geometry *g = &o->table->geometry;
	const uint64_t head = reddn_record_size(g->max_key, 0),
		       record = table_slot_need(g) - REDDN_SLOT_RECORD;

	o->slot_need = (uint32_t)(REDDN_INTO_RECORD + g->header + head + 63) / 64 * 64;
	if (o->program->reply_max || o->img->arg_len != bytes_of_key(o) + REDDN_INTO_NUMBER_BYTES)
		return offload_wrong(o, -EINVAL,
			"a program of shape into reads two buckets of a table, and answers with a SEND; its "
			"request must be two times a fingerprint of %d bytes and a bucket's offset, and a "
			"number of %d bytes",
			FP, REDDN_INTO_NUMBER_BYTES);
	if (o->max_message >= REDDN_INTO_RECORD + record)
		return 0;
	return offload_wrong(o, -EINVAL,
		"a program of shape into answers with %d bytes and a record of up to %" PRIu64
		" bytes; the longest answer of this one has %u bytes: see its param \"record\"",
		REDDN_INTO_RECORD, record, o->max_message);
}

static int check_table(struct offload *o)
{
	uint64_t record;

	if (!takes_keys(o, REDDN_WIRE_RECORDS))
		return offload_wrong(o, -EINVAL,
			"a program of shape table reads two buckets of a table for each key; its request "
			"must be two times a fingerprint of %d bytes and a bucket's offset, up to %d times",
			FP, REDDN_WIRE_RECORDS);
	record = table_slot_need(&o->table->geometry) - REDDN_SLOT_RECORD;
	if (has_room(o, record))
		return 0;
	return offload_wrong(o, -EINVAL,
		"a program of shape table replies with records one after the other from byte %d of the slot; "
		"for %u of up to %" PRIu64 " bytes the slot must have %s%" PRIu64 " bytes, not %u: see its "
		"param \"record\"",
		REDDN_SLOT_RECORD, shape_keys(o), record, shape_keys(o) == 1 ? "at least " : "",
		REDDN_SLOT_RECORD + shape_keys(o) * record, o->slot_need);
}

static int check_keys(struct offload *o)
{
	const int r = o->program->shape == PROGRAM_EXISTS ? check_exists(o) : check_table(o);

	if (r < 0 || are_alike(o->program, shape_keys(o)))
		return r;
	return offload_wrong(o, -EINVAL,
		"a client asks for each of its %u keys in the same form; their arguments must have the same "
		"types "
		"in the same order, and be used alike",
		shape_keys(o));
}

int shape_check(struct offload *o)
{
	if (o->img->publish.there && check_extent(o) < 0)
		return -EINVAL;
	if (o->program->shape == PROGRAM_OPAQUE)
		return 0;
	assert(o->table); /* bindings_check() of the catalog */
	switch (o->program->shape) {
	case PROGRAM_PUT:
		return check_put(o);
	case PROGRAM_INTO:
		return check_into(o);
	default:
		return check_keys(o);
	}
}
