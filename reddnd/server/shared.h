/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.h - what the devices of a daemon have in common: rates and bans hold for a client and a tenant on
 * whatever device they come in, sessions are numbered together, and counters are those of the daemon.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_SHARED_H
#define SERVER_SHARED_H

#include "reddnd/policy/refusals.h"
#include "reddnd/server/accounting.h"
#include "reddnd/server/events.h"
#include "reddnd/server/pacer.h"
#include "reddnd/server/record.h"
#include "reddnd/server/stores.h"

struct shared {
	struct events *events;
	struct record *record;
	struct accounting accounting;
	struct refusals refusals;
	struct pacer pacer;
	struct stores stores;
	uint64_t last_session; /* number */
	sd_event_source *unlisted_timer;
	bool reports_unlisted; /* soon */
};

/** @sh: all zero. @events and @record are borrowed. @ops: of the sessions of all devices. -errno, logged. */
int shared_init(struct shared *sh, sd_event *event, struct events *events, struct record *record,
	const struct stores_ops *ops, void *arg);
/** After all sessions. Fine on one that is all zero. */
void shared_deinit(struct shared *sh);

/** Refusals that were only counted are reported in a while, if there are any. */
void shared_report_unlisted(struct shared *sh);

#endif
