/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - geometry of a region that holds a table (protocol/table-format.h). The file belongs to its
 * writer: each value is checked before it is used.
 */
#ifndef GENERATION_TABLE_H
#define GENERATION_TABLE_H

#include "protocol/table-format.h"
#include "protocol/wire.h"
#include "reddnd/catalog/influence.h"
#include "reddnd/rnic/region.h"

struct table_geometry {
	uint64_t hash_seed, buckets, buckets_off, heap_off, heap_size;
	uint32_t max_key, max_value;
	uint32_t header;    /* bytes in front of a record: of a store; else 0 */
	uint8_t offset_len; /* bytes that the offset of any bucket fits in; that of a request has */
};

/**
 * Checks the first page of a file of @size bytes at @file. 0; -EINVAL, and @why in words, when it is not a
 * table that this version can serve.
 */
int table_geometry(const uint8_t *file, uint64_t size, struct table_geometry *g, char *why, size_t why_size);

/** Bytes of a reply slot that holds any record of the table, with what is in front of it (wire.h). */
uint64_t table_slot_need(const struct table_geometry *g);

/** @keys: of a request with several gets; else 0. @payload_max: bytes of a payload; 0: there is none. */
void table_describe(
	const struct table_geometry *g, unsigned keys, uint32_t payload_max, struct reddn_wire_table *wire);

/** The params of @program that the catalog may leave to a table or store: "width", "record" and "part", and
 * of a store "most"; up to INFLUENCE_PARAMS. Returns their number. */
unsigned table_params(
	const struct table_geometry *g, const struct program *program, struct program_setting *params);

struct table {
	struct table_geometry geometry;
	struct reddn_table_header header; /* as it was when the table was opened */
};

/** Reads the geometry from @file. Errors: those of table_geometry() and of reading; @why in words. */
int table_open(struct table *t, const struct rnic_region *file, char *why, size_t why_size);

/** True if the bytes at @file, those of a header, are those that the table had when it was opened. */
bool table_has_header(const struct table *t, const void *file);
/** True if @file has the header of another table now, as after cp(1) on a served file: the NIC may go on to
 * read pages that the file does not have any more. */
bool table_is_overwritten(const struct table *t, const struct rnic_region *file);
/**
 * True if a writer died in the middle of a move: live.moves is odd, and nobody holds the lock of a writer. No
 * miss is certain before the next writer has ended the move, and clients ask again in vain.
 */
bool table_is_unfinished(const struct rnic_region *file);
/** Reads the live line, without waiting for the file system if it is not @in_memory. False: it cannot. */
bool table_live(const struct rnic_region *file, bool in_memory, struct reddn_table_live *live);
/** True if whoever replaced the table has marked it: its readers learn that. */
bool table_is_retired(const struct rnic_region *file);
/** 1 or 0: the same, without waiting for the file system; the errors of rnic_region_read_cached(). */
int table_is_retired_cached(const struct rnic_region *file);

#endif
