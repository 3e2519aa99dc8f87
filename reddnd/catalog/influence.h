/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * influence.h - which bytes of files programs store in, of any offload, and which of these clients influence:
 * what one program stores another one may read, and must not take for a length that the region's writer
 * vouches for, or, if it is a client's, for an address. Pure; what is one file the caller knows.
 */
#ifndef CATALOG_INFLUENCE_H
#define CATALOG_INFLUENCE_H

#include "reddnd/catalog/catalog.h"

enum { INFLUENCE_PARAMS = 4 };

/** Bytes @off to @off + @size - 1 of a file; @size may be more than it has. */
struct influence_place {
	unsigned file; /* its number, of the caller's */
	uint64_t off, size;
};

struct influence_offload {
	const struct catalog *catalog;
	const struct catalog_offload *conf;
	void *regions; /* the caller's */
	/* Set by influence_settle(): */
	struct catalog_stored in;
	bool wrong; /* its program is refused, because of what is stored in its regions */
	unsigned files[CATALOG_BINDINGS_MAX], nfiles;
	uint32_t stores; /* by bits, into which of these files it stores */
};

struct influence {
	struct influence_offload *offloads;
	unsigned noffloads;
	struct chain_stored *files; /* by number: what is stored there */
	/** Where part @part (enum catalog_part) of region @region of @offload's catalog is. False: nowhere
	 * now */
	bool (*place)(void *arg, const struct influence_offload *offload, unsigned region, uint8_t part,
		struct influence_place *place);
	/** The params of @offload that what its regions hold gives to @program, up to INFLUENCE_PARAMS; NULL:
	 * nothing is known of that */
	unsigned (*params)(void *arg, const struct influence_offload *offload, const struct program *program,
		struct program_setting *params);
	/** @offload is wrong, for the reason in @messages, which may be NULL */
	void (*wrong)(void *arg, const struct influence_offload *offload, const char *messages);
	void *arg;
};

/** Compiles the programs with what is in @files, and again with what they store there themselves, until that
 * changes nothing any more. */
void influence_settle(const struct influence *all);

#endif
