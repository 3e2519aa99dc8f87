/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kept.h - a catalog in a file in memory, with all that it was read from: the text of the configuration with
 * what it includes, programs, and keys of tenants. A daemon whose configuration is wrong goes on with the one
 * that the daemon before it has kept. The file is sealed: it is whole, and nobody changes it.
 *
 * Names of users are looked up again when it is restored. Places of mistakes and entries are lines of the
 * text in the file, which nobody has written: they are not given.
 */
#ifndef CATALOG_KEPT_H
#define CATALOG_KEPT_H

#include "reddnd/catalog/catalog.h"

/** Keeps @catalog in a new file. */
int catalog_keep(const struct catalog *catalog, int *fd);
/** True if catalog_keep() made file @fd, which stays the caller's, from one that was read from the same bytes
 * as @catalog. */
bool catalog_is_kept(const struct catalog *catalog, int fd);
/** Like catalog_load(), from file @fd, which stays the caller's. -EBADMSG: it is none of catalog_keep(), or
 * of another version. */
int catalog_restore(int fd, struct catalog **catalog, char **errors);

/* ---- private to the catalog: what a file has ---- */

struct kept_bytes {
	const uint8_t *at;
	size_t len;
};

struct kept_program {
	struct kept_bytes path, text;
};

/** Programs by index of their offloads, keys by that of their tenants; len 0: it has none. */
struct kept {
	struct kept_bytes all;
	char *text; /* of the configuration */
	struct kept_program *programs;
	struct kept_bytes *keys;
	uint32_t nprograms, nkeys;
};

/** @catalog, as catalog_load(), from what was kept. */
int kept_load(const struct kept *kept, struct catalog **catalog, char **errors);

#endif
