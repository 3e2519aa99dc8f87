/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache-file.h - the file of a cache file: found or made, locked, and with all of its memory.
 */
#ifndef MEMCACHED_CACHE_FILE_H
#define MEMCACHED_CACHE_FILE_H

#include "protocol/cache-format.h"

#include <stddef.h>

/**
 * Opens @path as a cache file with the layout @want. A file with this layout is used as it is. One with
 * another layout is replaced, and lives on for those who have it open; so is an empty one. Whatever else the
 * path leads to is refused. The whole file has memory afterwards.
 *
 * Returns a descriptor that holds the lock of the file. An error has its reason in @why, a clause that begins
 * with the path. -EBUSY: another process holds the lock.
 */
int cache_file_open(const char *path, const struct reddn_cache_header *want, char *why, size_t size);

#endif
