/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offload.h - an offload of the catalog, ready to serve: its program as an image, bound to its region.
 */
#ifndef SESSION_OFFLOAD_H
#define SESSION_OFFLOAD_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/chain/arm.h"
#include "reddnd/session/table.h"

struct offload {
	const struct catalog_offload *conf;
	const struct table *table;
	struct chain_image *img;
	uint32_t slot_need;   /* bytes of a reply slot */
	uint64_t session_max; /* bytes of queues of a session as deep as depth_max */
};

/** @conf and @table must outlive it. Errors have been logged. */
int offload_open(struct offload *o, const struct catalog_offload *conf, const struct table *table,
	const struct rnic_caps *caps);
void offload_close(struct offload *o); /* fine on an offload that is all zero */

unsigned offload_slots(const struct offload *o, unsigned depth);
/** Puts the region's windows into @env. */
void offload_bind(const struct offload *o, struct chain_env *env);

#endif
