/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - the nodes of a list as list-walk.rdn reads them.
 */
#ifndef TESTS_BENCH_WAYS_LIST_H
#define TESTS_BENCH_WAYS_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_VALUE_MAX = 65536 };

struct list_node {
	uint8_t next[5]; /* offset of the next node, big-endian; 0: this is the last one */
	uint8_t key[6];  /* little-endian */
	uint8_t len[3];  /* of the value, big-endian */
	uint8_t off[5];  /* of the value, big-endian */
};

static inline uint64_t list_big(const uint8_t *bytes, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *bytes++;
	return v;
}

static inline uint64_t list_key(const struct list_node *node)
{
	uint64_t v = 0;

	memcpy(&v, node->key, sizeof(node->key));
	return v;
}

/** The key in the text of a request: the number behind the last comma. */
static inline uint64_t list_asked(const char *text, size_t len)
{
	char copy[32] = "";
	const char *comma;

	memcpy(copy, text, len < sizeof(copy) ? len : sizeof(copy) - 1);
	comma = strrchr(copy, ',');
	return strtoull(comma ? comma + 1 : copy, NULL, 10);
}

#endif
