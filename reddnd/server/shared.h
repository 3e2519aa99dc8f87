/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.h - what the devices of a daemon have in common: rates and bans hold for a client and a tenant on
 * whatever device they come in, sessions are numbered together, and counters are those of the daemon.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_SHARED_H
#define SERVER_SHARED_H

#include "reddnd/policy/request.h"
#include "reddnd/policy/source.h"
#include "reddnd/server/accounting.h"
#include "reddnd/server/enforcement.h"
#include "reddnd/server/events.h"
#include "reddnd/server/pacer.h"
#include "reddnd/server/stores.h"

enum { RECORD_VERSION = 1 }; /* of struct record, and those that it consists of */

/** What the daemon has on record about clients, in a memfd that outlives it: who is banned or throttled, and
 * why sessions ended. Times in it are of CLOCK_MONOTONIC, so it is of one boot. */
struct record {
	uint64_t magic;
	uint32_t version, bytes;
	struct enforcement enforcement;
	struct end_reasons end_reasons;
};

/** An empty one, and its file. -errno. */
int record_new(struct record **record, int *fd);
/** The one in file @fd. Whatever is in the file, it can be used after this; all of it may be another's
 * invention. -EBADMSG: the file is none of this version. */
int record_open(struct record **record, int fd);
void record_free(struct record *record); /* the file stays as it is */

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
