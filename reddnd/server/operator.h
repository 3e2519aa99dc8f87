/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * operator.h - what those who run it ask of a server: limits and ends of sessions, files for regions, and its
 * state.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_OPERATOR_H
#define SERVER_OPERATOR_H

#include "reddnd/generation/region.h"
#include "reddnd/server/server.h"
#include "reddnd/server/stats.h"

/** Brings all counters up to date and takes a snapshot of them: stats_free(). NULL: no memory. */
struct stats *operator_snapshot(struct server *server);
/** Brings all counters up to date, and takes of a snapshot only the state of the daemon and of its devices:
 * nothing is to be freed. */
void operator_overview(struct server *server, struct stats *stats);
/** The same without counting: requests that no completion reports may be missing. It takes the same time
 * however many sessions there are. */
void operator_glance(struct server *server, struct stats *stats);

/** Limits to change. Rates of 0: none. */
struct operator_limit {
	bool has_rate, has_bytes; /* the others stay as they are */
	uint64_t rate, burst;     /* of requests */
	uint64_t bytes_rate;      /* of replies */
};

/** In force until the next reload of the limits of its tenant. -ENOENT: there is no such session or tenant.
 */
int operator_limit_session(struct server *server, uint64_t id, const struct operator_limit *limit);
int operator_limit_tenant(struct server *server, const char *name, const struct operator_limit *limit);

/**
 * User @by hands the file @fd, which stays the caller's, over as region @name: sessions that begin from then
 * on get it. The number under which it comes into force, as of server_reload(), is in @number; nothing else
 * of the configuration changes.
 * -ENOENT: there is no region of that name that is handed over; -EPERM: @by is neither its owner nor root;
 * -EBUSY: it is handed over too often (handover.h); -EINVAL, and the reason in @why: the file cannot be
 * served, and nothing has changed.
 */
int operator_hand_over(
	struct server *server, const char *name, int fd, uid_t by, uint64_t *number, char why[REGION_WHY]);
/** A descriptor of the file that was handed over as region @name, for its owner @by: the caller's to close.
 * -ENOENT: there is none of the owner's, and -EPERM, as above. */
int operator_give_back(struct server *server, const char *name, uid_t by);

/** Ends session @id. -ENOENT: there is none. */
int operator_kick(struct server *server, uint64_t id);

#endif
