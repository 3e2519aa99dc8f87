/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catalog.h - what the operator asks for: reddnd.conf and the files it includes, parsed and checked.
 *
 * Syntax is libconfig's. Settings, with defaults in parentheses:
 *
 *   listen   "address:port" or a list of them, numeric; IPv6 in brackets     ("0.0.0.0:7471")
 *   device   name of the RDMA device, "" for the only one there is           ("")
 *   arena    bytes of queue memory for all sessions, "256M"                  ("256M")
 *   regions  list of { name, path, kind = "table" }
 *   offloads list of { name, program = "hash-get", region,
 *                      mode = "sequential" or "parallel"                      ("sequential")
 *                      depth_max = requests a client may have outstanding     (64)
 *                      instances = chain instances per session, a power of two; 0: as many as depth needs (0) }
 *
 * Loading is a transaction: a catalog is complete and right, or there is none and every mistake is told.
 */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

enum {
	CATALOG_NAME_MAX = 23, /* of regions and offloads; the wire has 24 bytes */
	CATALOG_LISTEN_MAX = 16,
};

struct catalog_listen {
	char address[64];
	uint16_t port;
};

struct catalog_region {
	char name[CATALOG_NAME_MAX + 1];
	char *path;  /* absolute */
	char *where; /* "file:line" of its entry */
};

struct catalog_offload {
	char name[CATALOG_NAME_MAX + 1];
	unsigned region; /* index in regions */
	bool parallel;
	uint16_t depth_max;
	uint32_t instances; /* 0: automatic */
	char *where;
};

struct catalog {
	struct catalog_listen listen[CATALOG_LISTEN_MAX];
	unsigned nlisten;
	char device[64]; /* "" */
	uint64_t arena;
	struct catalog_region *regions;
	unsigned nregions;
	struct catalog_offload *offloads;
	unsigned noffloads;
};

/**
 * 0 and a catalog for catalog_free(). -EINVAL when there are mistakes: @errors (to be freed) has one line for each,
 * "file:line: what is wrong; what would be right", in the order of the file. -ENOMEM.
 */
int catalog_load(const char *path, struct catalog **catalog, char **errors);
void catalog_free(struct catalog *catalog);

#endif
