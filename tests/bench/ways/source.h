/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - what baseline-server has: a table, or a list. It is in files that NICs can read as well, so that
 * answers are sent from where the data are. Errors: 0 or a negative errno, after a message on stderr.
 */
#ifndef TESTS_BENCH_WAYS_SOURCE_H
#define TESTS_BENCH_WAYS_SOURCE_H

#include "tests/bench/ways/link.h"

#include <stdbool.h>

struct source_file {
	void *mem;
	size_t size;
	struct ibv_mr *mr; /* made at the first connection */
};

struct source {
	struct source_file file;  /* the table, or the values of the list */
	struct source_file array; /* the hopscotch array of the table, made for the first client that READs
				     it, or the nodes of the list */
	uint32_t request_max, reply_max; /* bytes of a key with a checksum and a value, and of an answer */
	/** 0: @answer names the bytes. REDDN_MISS, or a negative errno. */
	int (*get)(struct source *s, const void *key, uint32_t key_len, struct ibv_sge *answer);
	/** @value: NULL: a delete, which may be a REDDN_MISS. @sum: of the record that is replaced, otherwise
	 * REDDN_CONFLICT, or REDDN_MISS; NULL: of any. */
	int (*set)(struct source *s, const void *key, uint32_t key_len, const void *value, uint32_t val_len,
		const uint64_t *sum);
	/** Gives a client that changes the table itself memory for @n records. -ENOSPC. NULL: there are none
	 * of these. */
	int (*give)(struct source *s, uint32_t n, struct link_range *range);
	/** Prepares for clients of @way. -EOPNOTSUPP: it has nothing for them. */
	int (*serve)(struct source *s, struct ibv_pd *pd, enum link_way way);
	void (*free)(struct source *s);
};

enum source_access {
	SOURCE_READ,
	SOURCE_WRITE,  /* this server changes the table when it is asked to; nobody else may write */
	SOURCE_SHARED, /* clients do, by WRITEs and atomics; nobody else may write */
};

/** Answers are records (table-format.h). */
int source_table(struct source **out, const char *path, enum source_access access);

/**
 * Answers are values. Nodes have the layout of list-walk.rdn, the first one is at the begin of their file,
 * and the last one points to it. Keys are decimal numbers, behind a comma if there are several.
 */
int source_list(struct source **out, const char *nodes, const char *values);

/* For the two: */
int source_map(struct source_file *f, const char *path);
int source_register(struct source_file *f, struct ibv_pd *pd, int more_access);
/** Ends the registration and the mapping. Nothing to do is fine. */
void source_unmap(struct source_file *f);

#endif
