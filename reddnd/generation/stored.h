/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stored.h - the bytes of files in which programs have stored something for clients, or may store it: no
 * program may take them for a length or an address (catalog/influence.h). What was stored stays for as long
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

/** Writes the list to file @fd, in place of what was there; the next daemon loads it. -EBADMSG: stored_save()
 * of this version has not written the file. */
int stored_save(const struct stored *s, int fd);
int stored_load(struct stored *s, int fd);

/** True if bytes @from to @to - 1 of part @part of @r are in the list. */
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
