/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stored.h - the bytes of files in which programs have stored something, or may store it: no program may take
 * them for what the owner of the file vouches for (catalog/influence.h). What was stored stays for as long
 * as the file lives, whatever its path or region; so the list goes from one generation to the next.
 *
 * Sessions of earlier generations go on to read and to store. So a program may store only in bytes on which
 * no program of such a session relies.
 *
 * Thread rules: one thread at a time.
 */
#ifndef GENERATION_STORED_H
#define GENERATION_STORED_H

#include "reddnd/catalog/influence.h"
#include "reddnd/generation/offload.h"

/** What is stored in a file. */
struct stored_file {
	struct rnic_file_id id;
	struct chain_stored stored;
	bool handed; /* of a region whose file is handed over, */
	uid_t owner; /* by this user */
};

struct stored {
	struct stored_file *files;
	unsigned n;
};

int stored_copy(struct stored *to, const struct stored *from);
void stored_free(struct stored *s);

/** Writes the list to file @fd, in place of the one that was there, which counts until all of this one is
 * written; the next daemon loads it. -EBADMSG: stored_save()
 * of this version has not written the file. */
int stored_save(const struct stored *s, int fd);
int stored_load(struct stored *s, int fd);

/** True if what @in gives for part @part of @r is in the list. */
bool stored_has(const struct stored *s, const struct region *r, uint8_t part, const struct chain_stored *in);

/** Bytes of a file of which no more is known than its number. */
struct stored_place {
	uint64_t dev, ino;
	uint64_t off, size;
};

/** True if @s has more than @before of the file of @at, and some of what it has is there: a program that was
 * proved with what @before has may take bytes of @at for what they are no longer. */
bool stored_has_more(const struct stored *s, const struct stored *before, const struct stored_place *at);

/** What is found out about an offload of a catalog. */
struct stored_offload {
	struct catalog_stored in;
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
