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

#include "memcached/talk.h"
#include "protocol/cache-format.h"
#include "protocol/cache-hash.h"
#include "protocol/cache-item.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A cache file (protocol/cache-format.h), looked at from outside. It is read with pread(2): whatever becomes
 * of the file, the reader goes on. */
struct reader {
	int fd;
	struct reddn_cache_header header; /* as it was when the file was opened */
};

/** Looks at the file of @fd, which stays the caller's, as one of @bytes: its owner may change its size at any
 * time. An error has its reason in @why, a clause. */
int reader_init(struct reader *r, int fd, uint64_t bytes, char *why, size_t size);

int reader_live(const struct reader *r, struct reddn_cache_live *live);

/** True if a memcached runs with the file, or if the system cannot answer: one that runs is never taken for
 * dead. */
bool reader_is_served(const struct reader *r);

/* Items of a bucket that a walk looks at: others may write the file, and there may be a circle */
enum { READER_CHAIN = 1000 };

enum { PROOF_WHY = 400 }; /* bytes of a reason */

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
 * changed meanwhile. Errors of talk.h and of readers, also with @why.
 */
int proof_make(struct proof *p, const struct reader *file, struct talk *talk, char why[PROOF_WHY]);

#endif
