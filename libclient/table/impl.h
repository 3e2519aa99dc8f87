/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impl.h - a table handle, shared by file.c (making, opening, checking, repairing) and table.c
 * (using).
 */
#ifndef LIBCLIENT_TABLE_IMPL_H
#define LIBCLIENT_TABLE_IMPL_H

#include "libclient/table/heap.h"
#include "protocol/table-format.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longest chain of moves that makes room for one entry; at 48 % load chains of a few hundred happen. */
enum { REDDN_TABLE_MAX_PATH = 1024 };

/** The writer's part of the header page: the move under way. Valid while live.moves is odd. */
struct reddn_table_journal {
	uint64_t from;
	uint64_t to;
};

struct reddn_table {
	int fd;
	bool writer;
	uint8_t *map;
	size_t map_len;
	/* Geometry, copied when it was checked: what others do to the header later cannot lead us astray. */
	struct reddn_table_header geo;
	struct reddn_table_live *live;
	struct reddn_table_journal *journal;
	_Atomic uint64_t *words; /* two per bucket: locator, fingerprint */
	uint8_t *heap;
	uint64_t null_locator;
	uint64_t heap_used;           /* reader: as of open */
	struct reddn_heap space;      /* writer */
	uint64_t *path;               /* writer: two of REDDN_TABLE_MAX_PATH */
	struct reddn_record *scratch; /* a copy of the record that get and next hand out */
};

static inline _Atomic uint64_t *reddn_table_locator(const struct reddn_table *t, uint64_t bucket)
{
	return &t->words[2 * bucket];
}

static inline _Atomic uint64_t *reddn_table_fp(const struct reddn_table *t, uint64_t bucket)
{
	return &t->words[2 * bucket + 1];
}

static inline uint64_t reddn_word_get(const _Atomic uint64_t *w)
{
	return atomic_load_explicit((_Atomic uint64_t *)w, memory_order_acquire);
}

/* Every store that readers see is a whole word and comes after all stores before it. */
static inline void reddn_word_set(_Atomic uint64_t *w, uint64_t v)
{
	atomic_store_explicit(w, v, memory_order_release);
}

static inline _Atomic uint64_t *reddn_live_word(uint64_t *field)
{
	return (_Atomic uint64_t *)field;
}

/** The locator points at something that can be a record of this table. */
bool reddn_table_locator_ok(const struct reddn_table *t, uint64_t locator);

#endif
