/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - an open region of the catalog: a table with its parts, or raw bytes. Programs get windows on it;
 * each PD has windows with keys of its own.
 */
#ifndef GENERATION_REGION_H
#define GENERATION_REGION_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/generation/table.h"

#include <sys/queue.h>

enum { REGION_WINDOWS = 3 }; /* of one PD */

struct region_keys;

struct region {
	const struct catalog_region *conf;
	struct rnic_region *file;
	struct table table; /* of kind "table" */
	unsigned number;
	SLIST_HEAD(, region_keys) keys;
};

/** Takes the window numbers @number to @number + REGION_WINDOWS - 1. @conf must outlive the region. Errors
 * have been logged.
 */
int region_open(struct region *r, const struct catalog_region *conf, unsigned number);
void region_close(struct region *r); /* and its windows; fine on one that is all zero */

uint64_t region_size(const struct region *r);                    /* bytes of the file */
uint64_t region_part_size(const struct region *r, uint8_t part); /* bytes of a part: enum catalog_part */

/** The window on a part for queues of @pd; the first call registers it. Errors have been logged. */
int region_window(
	struct region *r, struct rnic_pd *pd, uint8_t part, bool writable, struct rnic_window *window);

#endif
