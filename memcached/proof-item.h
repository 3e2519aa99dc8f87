/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proof-item.h - compares an item in memory with what memcached was asked to store.
 */
#ifndef MEMCACHED_PROOF_ITEM_H
#define MEMCACHED_PROOF_ITEM_H

#include "protocol/cache-item.h"

#include <stddef.h>

enum { PROOF_WHY = 400 }; /* bytes of a reason */

/** What an item that was set must look like. */
struct proof_item {
	const char *key, *value;
	uint32_t flags;
	uint32_t ttl; /* 0: none */
	uint64_t cas;
	uint32_t clock_min, clock_max; /* of the server, when it was set */
};

/** Bytes of such an item. */
size_t proof_item_size(const struct proof_item *want);

/** Compares the item at @bytes, all of it, field by field. -EINVAL: @why names the first that differs. */
int proof_item_compare(const struct proof_item *want, const uint8_t *bytes, char why[PROOF_WHY]);

#endif
