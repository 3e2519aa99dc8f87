/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * foreign.h - a recycled session of an offload that this daemon does not have: it is not configured any more,
 * or it cannot be served now, or its program is another one by now. The NIC goes on with the one that the
 * session began with. This stands in for it: what is in the ledger is enough to count requests, to pace them,
 * to find errors, and to end the session. What a program is needed for is missing: steps have no names. How
 * requests ended is known if the ledger has room for the WRITEs of a reply; else each is as long as the
 * longest.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_FOREIGN_H
#define SESSION_FOREIGN_H

#include "reddnd/generation/offload.h"
#include "reddnd/ledger/format.h"
#include "reddnd/policy/offload-stats.h"

struct foreign {
	struct offload offload; /* in no generation, without regions */
	struct queue_layout layout;
	const char *why; /* this daemon does not have it, in words */
	/* what the offload consists of */
	struct catalog_offload conf;
	struct program program;
	struct chain_image image;
	uint8_t start;
	struct offload_stats stats; /* of this session alone */
};

/**
 * For the session in @slot, which is recycled and has no loop without a bound. @now: the offload that has its
 * name now, whose policy it is judged by, or NULL. @why: static. -EBADMSG: its queues are not complete;
 * -ENOMEM.
 */
int foreign_new(
	struct foreign **foreign, const struct ledger_slot *slot, const struct offload *now, const char *why);
void foreign_free(struct foreign *foreign); /* NULL is fine */

#endif
