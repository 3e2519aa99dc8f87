/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity.h - distinguishes memcacheds. Neither a process id nor an address does: in containers, and after a
 * restart, two memcacheds may have the same. Nor do items: a memcached may be warmed with the items of
 * another. But each memcached numbers its own sets with CAS ids. So reddnd stores an item over TCP in the
 * memcached that it has proved (memcached/proof.h), under a key with the generation, and publishes the CAS id
 * of the item beside the items (protocol/cache-format.h). A memcached that has this item with this CAS id is
 * the one whose items the NIC reads.
 */
#ifndef MEMCACHED_IDENTITY_H
#define MEMCACHED_IDENTITY_H

#include "memcached/talk.h"

#include <stdint.h>

struct identity {
	uint64_t generation; /* of the memcached (struct reddn_cache_live), which names the key */
	uint64_t cas;        /* of the item; 0: none */
};

/** Stores the item for @generation if the memcached does not have it, and sets *@identity. Two daemons that
 * do so at the same time get the same identity. Errors of talk.h; -EPROTO: memcached does not take the item.
 */
int identity_store(struct talk *t, uint64_t generation, struct identity *identity);

/** 1: the memcached has the item; 0: it does not have it with this CAS id, because it is another memcached,
 * because somebody has deleted the item, as by flush_all, or because memcached before 1.6.27 has moved it.
 * Errors of talk.h. */
int identity_ask(struct talk *t, const struct identity *identity);

#endif
