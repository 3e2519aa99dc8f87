/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-model.h - for tests of tables: tables in memory files, and the plain map that a table must equal.
 */
#ifndef LIBCLIENT_TABLE_TEST_MODEL_H
#define LIBCLIENT_TABLE_TEST_MODEL_H

#include "libclient/reddn-table.h"

#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

extern char table_why[256]; /* of the last one that failed */

int table_file(void);
/** Fail the test if they do. */
struct reddn_table *table_create(int fd, const struct reddn_table_options *opt);
struct reddn_table *table_reopen(int fd, int flags);

struct model_pair {
	UT_hash_handle hh;
	size_t key_len, val_len;
	uint8_t *val;
	uint8_t key[];
};

struct model {
	struct model_pair *map;
};

struct model_pair *model_find(struct model *m, const void *key, size_t len); /* NULL: there is none */
void model_delete(struct model *m, struct model_pair *p);
void model_put(struct model *m, const void *key, size_t key_len, const void *val, size_t val_len);
void model_free(struct model *m);

/** Every pair is found, the iteration yields exactly the pairs, and the count agrees. */
void model_check(struct reddn_table *t, struct model *m);

#endif
