/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity.h - distinguishes memcacheds. Neither a process id nor an address does: in containers, and
 * after a restart, two memcacheds may have the same. So reddnd stores an item over TCP in the memcached that
 * it has proved (memcached/proof.h), under a key with a random number, and publishes the number beside the
 * items (protocol/cache-format.h). A memcached that has this item is the one whose items the NIC reads: an
 * item does not outlive its memcached.
 */
#ifndef MEMCACHED_IDENTITY_H
#define MEMCACHED_IDENTITY_H

#include "memcached/talk.h"

#include <stdint.h>

struct identity {
	uint64_t number;     /* names the key; 0: none */
	uint64_t generation; /* of the memcached (struct reddn_cache_live), which is the value */
};

/** Stores the item of a new identity for @generation, and sets *@identity. Errors of talk.h; -EPROTO:
 * memcached does not take the item. */
int identity_store(struct talk *t, uint64_t generation, struct identity *identity);

/** 1: the memcached has the item; 0: it does not, because it is another memcached, or because somebody has
 * deleted the item, as by flush_all. Errors of talk.h. */
int identity_ask(struct talk *t, const struct identity *identity);

#endif
