/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offload.h - an offload of the catalog, ready to serve: its program is compiled for the device and bound to
 * its regions.
 *
 * Files of regions belong to others: if one cannot be served, or a program does not fit what is in it, the
 * offload is *disabled*, and the others are not. So it is if the device lacks what only this offload needs.
 */
#ifndef GENERATION_OFFLOAD_H
#define GENERATION_OFFLOAD_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/chain/ring/ring.h"
#include "reddnd/generation/outcome.h"
#include "reddnd/generation/queue-layout.h"
#include "reddnd/generation/region.h"

enum { OFFLOAD_WHY = 320 }; /* bytes of a reason */

struct generation;
struct offload_stats;
struct stored_offload;

struct offload {
	struct generation *generation;      /* of which it is a part */
	const struct stored_offload *found; /* what was found out about it (stored.h); NULL: nothing */
	struct offload_stats *stats;
	const struct catalog_offload *conf;
	struct program *program;
	const struct chain_image *img; /* the program's */
	char *description;             /* the program's, for clients that ask; NULL: not known */
	struct {                       /* by region of the program */
		struct region *region;
		uint8_t part;
		bool writable;
	} bound[CHAIN_MAX_WINDOWS];
	struct outcome_plan outcome;
	const struct table *table;     /* of a program of shape table */
	uint32_t slot_need;            /* bytes of a reply slot */
	uint32_t max_message;          /* bytes of the longest message to the client */
	struct queue_layout *layouts;  /* by the logarithm of the number of slots */
	uint64_t *images;              /* the same, of a recycled one: layouts_image() */
	struct ring_image **recyclers; /* by that, too; NULL: no session has needed it */
	char why[OFFLOAD_WHY];         /* what was wrong when it was opened; "": nothing */
	bool unfit;                    /* that is the device, so it stays wrong */
	bool elsewhere;                /* the same: it publishes, and the first device is another one */
	bool cpu;                      /* this process executes it, not the NIC */
	bool recycled;                 /* the NIC executes it, and arms instances again by itself */
	char reason[OFFLOAD_WHY];      /* why the CPU executes it, or why it is unrolled; "": neither */
	bool in_turn;                  /* its instances do not overlap, so that they fit a queue */
	bool cq_alone;                 /* each session has the CQ of its replies alone (rnic/cq-pool.h) */
};

/**
 * @o: all zero but for .generation, .found and .stats. @regions: the opened regions of @catalog; both must
 * outlive the offload. Errors, which have been logged, are mistakes of the configuration and -ENOMEM; what is
 * wrong with files of regions, or with the device for this offload, disables it, unless the CPU may execute
 * it. offload_close() in any case. May be called on any thread. The params "width" and "record" of a program,
 * unless the catalog sets them, are the bytes of a bucket's offset and of the largest record of the table
 * that its region "buckets" is in. @pd: of a tenant that will use the offload; its windows are registered
 * now, so that errors come before the first client.
 */
int offload_open(struct offload *o, const struct catalog_offload *conf, const struct catalog *catalog,
	struct region **regions, struct rnic_pd *pd);
/** In place of offload_open(): it is disabled, because of @why, and has no program. */
void offload_leave_out(struct offload *o, const struct catalog_offload *conf, const char *why);
void offload_close(struct offload *o); /* fine on an offload that is all zero */

/** True if clients cannot have it; @why, if not NULL, gets the reason, a clause. */
bool offload_is_disabled(const struct offload *o, char why[OFFLOAD_WHY]);
bool offload_uses(const struct offload *o, const struct region *r);
/** True if a table of it was replaced: region_is_retired(). */
bool offload_is_retired(const struct offload *o);

/** True if it changes a store that is lost: region_is_lost(). */
bool offload_loses(const struct offload *o);
/** True if its program may write to one of its regions. */
bool offload_writes(const struct offload *o);

#endif
