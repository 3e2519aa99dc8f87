/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - a cache file (protocol/cache-format.h), looked at from outside. It is read with pread(2):
 * whatever becomes of the file, the reader goes on.
 */
#ifndef MEMCACHED_READER_H
#define MEMCACHED_READER_H

#include "protocol/cache-format.h"
#include "protocol/cache-item.h"

#include <stdbool.h>
#include <stddef.h>

struct reader {
	int fd;
	struct reddn_cache_header header; /* as it was when the file was opened */
};

/** Looks at the file of @fd, which stays the caller's, as one of @bytes: its owner may change its size at any
 * time. An error has its reason in @why, a clause. */
int reader_init(struct reader *r, int fd, uint64_t bytes, char *why, size_t size);

/** -EIO: the file does not have these bytes any more. -errno. */
int reader_read(const struct reader *r, uint64_t off, void *bytes, size_t size);
int reader_live(const struct reader *r, struct reddn_cache_live *live);

/** True if a memcached runs with the file, or if the system cannot answer: one that runs is never taken for
 * dead. */
bool reader_is_served(const struct reader *r);

/**
 * Offset of the item that pointer @p leads to. -EFAULT: it leads to no place in the slab pages where there
 * can be one.
 */
int64_t reader_item(const struct reader *r, uint64_t p);

/* Items of a bucket that a walk looks at: others may write the file, and there may be a circle */
enum { READER_CHAIN = 1000 };

/** 0 if pointer @p leads to the item at @off, or to one from which h_next of READER_CHAIN items leads there.
 * -EFAULT: it does not. Errors of reader_read(). */
int reader_leads(const struct reader *r, uint64_t p, int64_t off);

#endif
