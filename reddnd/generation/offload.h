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
#include "reddnd/chain/ring/again.h"
#include "reddnd/chain/ring/recycle-template.h"
#include "reddnd/generation/outcome.h"
#include "reddnd/generation/queue-layout.h"
#include "reddnd/generation/region.h"

enum { OFFLOAD_WHY = 320 }; /* bytes of a reason */

struct generation;
struct offload_stats;

struct offload {
	struct generation *generation; /* of which it is a part */
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
	const struct table *table;         /* of a program of shape table */
	uint32_t slot_need;                /* bytes of a reply slot */
	uint32_t max_message;              /* bytes of the longest message to the client */
	struct queue_layout *layouts;      /* by the logarithm of the number of slots */
	struct chain_again *again;         /* for instances of its sessions; NULL if they are recycled */
	struct chain_template **templates; /* the same; NULL: no session has needed it */
	char why[OFFLOAD_WHY];             /* what was wrong when it was opened; "": nothing */
	bool unfit;                        /* that is the device, so it stays wrong */
	bool cpu;                          /* this process executes it, not the NIC */
	char why_cpu[OFFLOAD_WHY];         /* of that */
	bool cq_alone;                     /* each session has the CQ of its replies alone (rnic/cq-pool.h) */
};

/**
 * @o: all zero but for .generation and .stats. @regions: the opened regions of @catalog; both must outlive
 * the offload. Errors, which have been logged, are mistakes of the configuration and -ENOMEM; what is wrong
 * with files of regions, or with the device for this offload, disables it, unless the CPU may execute it.
 * offload_close() in any case. May be called on any thread. The params "width" and "record" of a program,
 * unless the catalog sets them, are the bytes of a bucket's offset and of the largest record of the table
 * that its region "buckets" is in. @pd: of a tenant that will use the offload; its windows are registered
 * now, so that errors come before the first client.
 */
int offload_open(struct offload *o, const struct catalog_offload *conf, const struct catalog *catalog,
	struct region **regions, struct rnic_pd *pd);
void offload_close(struct offload *o); /* fine on an offload that is all zero */

/** True if clients cannot have it; @why, if not NULL, gets the reason, a clause. */
bool offload_is_disabled(const struct offload *o, char why[OFFLOAD_WHY]);
bool offload_uses(const struct offload *o, const struct region *r);

unsigned offload_slots(const struct offload *o, unsigned depth);
/** Layout of the queues of a session with @depth, at most depth_max. */
const struct queue_layout *offload_layout(const struct offload *o, unsigned depth);
/** The same of a session with so many instances; NULL: this offload has none. */
const struct queue_layout *offload_layout_of(const struct offload *o, unsigned slots);
/** Of a recycled offload: what the recyclers of its sessions with that layout are written from. Made when
 * the first of them begins, which takes milliseconds; only on the thread of sessions. -ENOMEM. */
int offload_template(
	const struct offload *o, const struct queue_layout *layout, const struct chain_template **t);
/** CQEs of its replies that may be unread; of a recycled offload, which has a CQ of its own, 0. */
uint32_t offload_reply_cqes(const struct offload *o, unsigned slots);
/** Bytes of memory of all its queues. */
uint64_t offload_queue_bytes(const struct offload *o, unsigned depth);
uint64_t offload_bytes_of(const struct offload *o, const struct queue_layout *layout); /* the same */
/** Of a session whose requests the CPU executes: bytes of a RECV, of the data of the replies to a request,
 * and of these with a number for each, where there are no immediates; and the number of requests for whose
 * replies there is room. */
struct offload_cpu {
	uint32_t recv_bytes, data_size, reply_bytes;
	unsigned replies;
};
struct offload_cpu offload_cpu_layout(const struct offload *o, unsigned slots);

/** Fills in the regions of @env: windows on them for queues of @pd. Errors have been logged. The first call
 * for a PD registers them, which may take seconds; it may be on another thread. */
int offload_bind(const struct offload *o, struct rnic_pd *pd, struct chain_env *env);

/** The slots of these windows in the ledger, by region; NULL for what is in none. After offload_bind(). */
void offload_window_slots(
	const struct offload *o, struct rnic_pd *pd, const struct ledger_slot *slots[CHAIN_MAX_WINDOWS]);

/** True if the windows for @pd are registered. */
bool offload_is_bound(const struct offload *o, struct rnic_pd *pd);

/** Fills in what a client must know: shape, lengths, arguments and pieces of requests, and the table. */
void offload_describe(const struct offload *o, struct reddn_wire_rep *rep);

/** Fills in only the arguments and pieces. None if @rep has no room for all: applications must compose such
 * requests themselves. */
void offload_describe_request(const struct program *p, struct reddn_wire_rep *rep);

#endif
