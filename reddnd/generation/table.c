/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/table.h"
#include "util/text.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t table_slot_need(const struct table_geometry *g)
{
	uint64_t record = reddn_record_padded(g->header + reddn_record_size(g->max_key, g->max_value));

	return (REDDN_SLOT_RECORD + record + 63) / 64 * 64;
}

int table_geometry(const uint8_t *file, uint64_t size, struct table_geometry *g, char *why, size_t n)
{
	const uint64_t heap_max = 1ull << 8 * sizeof((struct reddn_bucket *)0)->off;
	struct reddn_table_header h;
	uint64_t bytes;

	if (size < REDDN_TABLE_PAGE)
		return text_why(
			-EINVAL, why, n, "it has %" PRIu64 " bytes; a table has at least one page", size);
	memcpy(&h, file, sizeof(h)); /* the writer may be at work, so read each value once */
	if (le64toh(h.magic) != REDDN_TABLE_MAGIC)
		return text_why(-EINVAL, why, n, "it is not a reddnd table; reddn-table makes one");
	if (le32toh(h.version) != REDDN_TABLE_VERSION)
		return text_why(-EINVAL, why, n, "it is a table of version %u; this reddnd serves version %d",
			le32toh(h.version), REDDN_TABLE_VERSION);
	*g = (struct table_geometry){
		.hash_seed = le64toh(h.hash_seed),
		.buckets = le64toh(h.buckets),
		.buckets_off = le64toh(h.buckets_off),
		.heap_off = le64toh(h.heap_off),
		.heap_size = le64toh(h.heap_size),
		.max_key = le32toh(h.max_key),
		.max_value = le32toh(h.max_value),
		.header = le32toh(h.header),
	};
	if (le64toh(h.file_size) > size)
		return text_why(-EINVAL, why, n,
			"its header has a size of %" PRIu64 " bytes, the file has %" PRIu64,
			le64toh(h.file_size), size);
	if (g->buckets < 2 || (g->buckets & (g->buckets - 1)) ||
		g->buckets > UINT64_MAX / sizeof(struct reddn_bucket))
		return text_why(-EINVAL, why, n,
			"it has %" PRIu64 " buckets; their number must be a power of two, at least 2",
			g->buckets);
	bytes = g->buckets * sizeof(struct reddn_bucket);
	if (g->buckets_off < REDDN_TABLE_PAGE || g->buckets_off % REDDN_TABLE_PAGE || g->buckets_off > size ||
		bytes > size - g->buckets_off)
		return text_why(-EINVAL, why, n,
			"its buckets at %#" PRIx64 " are not page aligned or not inside the file",
			g->buckets_off);
	if (g->heap_off % REDDN_TABLE_PAGE || g->heap_off < g->buckets_off + bytes || g->heap_off >= size ||
		g->heap_size == 0 || g->heap_size > size - g->heap_off || g->heap_size > heap_max)
		return text_why(-EINVAL, why, n,
			"its heap at %#" PRIx64
			" is not page aligned, overlaps the buckets, or is not inside the "
			"file",
			g->heap_off);
	if (g->max_key == 0 || reddn_record_size(g->max_key, g->max_value) > REDDN_RECORD_LIMIT)
		return text_why(-EINVAL, why, n,
			"keys of up to %u and values of up to %u bytes; a record has at most %d", g->max_key,
			g->max_value, REDDN_RECORD_LIMIT);
	while (g->offset_len < 8 && (bytes - 1) >> 8 * g->offset_len)
		g->offset_len++;
	if (g->header && (g->header < REDDN_STORE_HEADER_MIN || g->header > REDDN_STORE_HEADER_MAX ||
				 g->header - (REDDN_STORE_HEADER_MIN - 2) < g->offset_len))
		return text_why(-EINVAL, why, n,
			"it is a store with %u bytes in front of each record; there must be %d to %d, and as "
			"many as a put has arguments",
			g->header, REDDN_STORE_HEADER_MIN, REDDN_STORE_HEADER_MAX);
	if (g->header)
		g->offset_len = (uint8_t)(g->header - REDDN_STORE_HEADER_MIN + 2);
	if (8u * g->offset_len > RNIC_WINDOW_BITS)
		return text_why(-EINVAL, why, n,
			"its bucket array of %" PRIu64 " bytes is larger than a window", bytes);
	return 0;
}

void table_describe(
	const struct table_geometry *g, unsigned keys, uint32_t payload_max, struct reddn_wire_table *wire)
{
	*wire = (struct reddn_wire_table){
		.hash_seed = htobe64(g->hash_seed),
		.buckets = htobe64(g->buckets),
		.max_key = htobe32(g->max_key),
		.max_value = htobe32(g->max_value),
		.offset_len = g->offset_len,
		.probes = 2,
		.keys = (uint8_t)keys,
		.header = (uint8_t)g->header,
		.payload_max = htobe32(payload_max),
	};
}

static bool has_param(const struct program *p, const char *name)
{
	for (unsigned i = 0; i < p->nparams; i++)
		if (strcmp(p->params[i].name, name) == 0)
			return true;
	return false;
}

unsigned table_params(const struct table_geometry *g, const struct program *p, struct program_setting *params)
{
	const struct program_setting all[INFLUENCE_PARAMS] = {
		{"width", g->offset_len},
		{"record", table_slot_need(g) - REDDN_SLOT_RECORD},
		{"part", reddn_wire_part(g->header)},
		{"most", g->header
				 ? reddn_store_payload(g->header, reddn_record_size(g->max_key, g->max_value))
				 : 0},
	};
	unsigned n = 0;

	for (unsigned i = 0; i < INFLUENCE_PARAMS; i++)
		if (all[i].value && has_param(p, all[i].name))
			params[n++] = all[i];
	return n;
}

int table_open(struct table *t, const struct rnic_region *file, char *why, size_t n)
{
	uint64_t size = rnic_region_size(file);
	uint8_t page[REDDN_TABLE_PAGE] = {0};
	int r = rnic_region_read(file, 0, page, size < sizeof(page) ? size : sizeof(page));

	if (r < 0) {
		snprintf(why, n, "its first page cannot be read: %s", strerror(-r));
		return r;
	}
	memcpy(&t->header, page, sizeof(t->header));
	return table_geometry(page, size, &t->geometry, why, n);
}

bool table_has_header(const struct table *t, const void *file)
{
	/* what is before the padding never changes */
	return memcmp(file, &t->header, offsetof(struct reddn_table_header, pad)) == 0;
}

bool table_is_overwritten(const struct table *t, const struct rnic_region *file)
{
	struct reddn_table_header now;

	return rnic_region_read(file, 0, &now, sizeof(now)) == 0 && !table_has_header(t, &now);
}

/* The word of the live line at offset @at */
static bool read_live(const struct rnic_region *file, size_t at, uint64_t *word)
{
	if (rnic_region_read(file, offsetof(struct reddn_table_header, live) + at, word, sizeof(*word)) < 0)
		return false;
	*word = le64toh(*word);
	return true;
}

static bool read_moves(const struct rnic_region *file, uint64_t *moves)
{
	return read_live(file, offsetof(struct reddn_table_live, moves), moves);
}

bool table_is_unfinished(const struct rnic_region *file)
{
	uint64_t before, after;

	/* The same number before and after: a writer that ends the move, and one that comes, change it */
	return read_moves(file, &before) && before % 2 == 1 &&
	       !rnic_region_is_locked(file, REDDN_TABLE_LOCK_WRITER) && read_moves(file, &after) &&
	       after == before;
}

bool table_live(const struct rnic_region *file, bool in_memory, struct reddn_table_live *live)
{
	const uint64_t at = offsetof(struct reddn_table_header, live);
	struct reddn_table_live l;
	int e = in_memory ? rnic_region_read(file, at, &l, sizeof(l))
			  : rnic_region_read_cached(file, at, &l, sizeof(l));

	if (e < 0)
		return false;
	*live = (struct reddn_table_live){.moves = le64toh(l.moves),
		.entries = le64toh(l.entries),
		.epoch = le64toh(l.epoch),
		.state = le64toh(l.state),
		.slots = le64toh(l.slots),
		.as_of_source = le64toh(l.as_of_source),
		.as_of_host = le64toh(l.as_of_host)};
	return true;
}

bool table_is_retired(const struct rnic_region *file)
{
	uint64_t epoch;

	return read_live(file, offsetof(struct reddn_table_live, epoch), &epoch) && !epoch;
}

int table_is_retired_cached(const struct rnic_region *file)
{
	uint64_t epoch;
	int e = rnic_region_read_cached(
		file, offsetof(struct reddn_table_header, live.epoch), &epoch, sizeof(epoch));

	return e < 0 ? e : !epoch;
}
