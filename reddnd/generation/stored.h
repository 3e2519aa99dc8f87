/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stored.h - what programs have stored in files for clients, or may: bytes that no program may take for a
 * length or an address (catalog/influence.h). It stays in a file for as long as that lives, whatever its path
 * or region; so it goes from one generation to the next.
 *
 * Sessions of earlier generations go on to read and to store. So a program may store only what theirs do not
 * rely on either.
 *
 * Thread rules: one thread at a time.
 */
#ifndef GENERATION_STORED_H
#define GENERATION_STORED_H

#include "reddnd/catalog/influence.h"
#include "reddnd/generation/offload.h"

/** Bytes from..to - 1 of a file. */
struct stored_file {
	struct rnic_file_id id;
	uint64_t from, to;
	bool handed; /* of a region whose file is handed over */
};

struct stored {
	struct stored_file *files;
	unsigned n;
};

int stored_copy(struct stored *to, const struct stored *from);
void stored_free(struct stored *s);

/** Writes it to file @fd, in place of what was there, and reads it again, for the next daemon. -EBADMSG: the
 * file is none of stored_save(). */
int stored_save(const struct stored *s, int fd);
int stored_load(struct stored *s, int fd);

/** True if bytes @from to @to - 1 of part @part of @r are known as such. */
bool stored_has(const struct stored *s, const struct region *r, uint8_t part, bool writable, uint64_t from,
	uint64_t to);

/** What is found out about an offload of a catalog. */
struct stored_offload {
	struct catalog_influenced in;
	bool wrong; /* its program is refused because of that; logged */
	/* or an offload whose earlier sessions rely on bytes that it would store in: a name in the catalog of
	 * one of @living, valid as long as that is */
	const char *relied_upon;
};

/**
 * Finds out about all offloads of @catalog, with @regions, beside @living ones of earlier generations; adds
 * to @s what they store. @offloads: one for each, all zero. -ENOMEM.
 */
int stored_settle(struct stored *s, const struct catalog *catalog, struct region **regions,
	const struct offload *const *living, unsigned nliving, struct stored_offload *offloads);

#endif
