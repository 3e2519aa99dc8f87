/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proof.h - finds out, and proves, how a running memcached has its items in its cache file: by keys that it
 * sets over TCP and finds in the file. Nothing is assumed from a version.
 *
 * For a proof some keys of random names are set and deleted. memcached is asked four times, by about twenty
 * commands. A walk looks at READER_CHAIN items of a bucket at most, whatever the file has.
 */
#ifndef MEMCACHED_PROOF_H
#define MEMCACHED_PROOF_H

#include "memcached/proof-item.h"
#include "memcached/reader.h"
#include "memcached/talk.h"
#include "protocol/cache-hash.h"

#include <stdint.h>

struct proof {
	uint64_t generation; /* of the cache file: the proof holds for this memcached */
	uint64_t pid;
	char version[32];
	enum cache_hash hash;
	unsigned power;     /* of the table where the last probe was */
	uint64_t table_off; /* of that table in the file */
	uint32_t clock;     /* the server's, in seconds, when the last key was set */
};

/**
 * 0. -EINVAL: this memcached cannot be served from this file, and @why is the reason, a sentence. -EAGAIN: it
 * changed meanwhile. Errors of talk.h and reader.h, also with @why.
 */
int proof_make(struct proof *p, const struct reader *file, struct talk *talk, char why[PROOF_WHY]);

#endif
