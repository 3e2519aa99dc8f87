/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h - a snapshot of the daemon for people and programs: its state, its sessions, and what is configured
 * with the counters of each. Arrays belong to the snapshot.
 *
 * What it points to belongs to the daemon: use a snapshot before the event loop goes on, and do not keep it.
 */
#ifndef SERVER_STATS_H
#define SERVER_STATS_H

#include "reddnd/generation/offload.h"
#include "reddnd/server/accounting.h"

struct stats_device {
	const char *name;
	const char *no_chains; /* why it runs none: a clause; "": it does */
	const char *left_out;  /* why the daemon began without it: a clause; "": it did not */
	bool lost;
	unsigned sessions;               /* now */
	uint64_t arena_used, arena_size; /* bytes */
};

struct stats_status {
	uint64_t uptime_us;
	unsigned sessions;       /* now */
	uint64_t sessions_total; /* since the daemon started */
	struct accounting counts;
	const char *configuration_refused; /* why what is in force is not the configuration as it is now; "":
					      it is */
	unsigned disabled;                 /* offloads */
	unsigned moved;                    /* files that are served and no longer at their path */
	unsigned unfinished;               /* tables whose writer died in a move */
	uint64_t arena_used, arena_size;   /* bytes, of all devices */
};

struct stats_session {
	uint64_t id;
	const char *device;
	const char *peer, *tenant, *offload;
	bool current;     /* its offload is of the configuration in force */
	const char *note; /* why its offload is not known here, if a daemon before this one made it; or "" */
	unsigned connections;
	/* of all of them: */
	unsigned depth, instances;
	uint64_t queue_bytes, age_us, requests;
	uint64_t rate, burst; /* rate 0: no limit of its own */
	uint64_t bytes_rate;  /* the same */
	uint64_t hits, misses, wqes, bytes_in, bytes_out;
	uint64_t unseen;     /* requests that are missing in hits, misses and bytes_out */
	uint64_t iterations; /* of a loop without a bound */
	uint64_t verdicts[VERDICT_KINDS];
	struct service_times service;
};

/** An offload of the configuration in force. */
struct stats_offload {
	const struct offload *of;   /* on the device where it is worst; its .stats outlive reloads */
	const char *device;         /* that, if others have it otherwise; "": it is the same on all of them */
	char disabled[OFFLOAD_WHY]; /* why clients cannot have it; "": they can */
};

/** A region of the configuration in force. */
struct stats_region {
	const struct region *of;
	char bad[REGION_WHY];         /* why it cannot be served; "": it can */
	struct memcached_state cache; /* of kind "memcached"; all zero if it is not proved */
	bool alive;                   /* of a table: it has this: */
	struct reddn_table_live live;
	struct store_numbers numbers; /* of kind "store"; all zero if it is bad */
};

struct stats {
	struct stats_status status;
	struct stats_device devices[CATALOG_DEVICES_MAX]; /* those that were left out behind the others */
	struct stats_session *sessions;                   /* the oldest first */
	struct stats_offload *offloads;
	struct stats_region *regions;
	const struct tenant *tenants; /* configured, or with sessions from before: by hh */
	unsigned ndevices, nsessions, noffloads, nregions;
};

void stats_free(struct stats *stats);

struct device_left_out;
struct generation;
struct session;
struct tenant;

/** What a snapshot is made of. */
struct stats_source {
	struct stats_status status;
	const struct session *sessions[CATALOG_DEVICES_MAX]; /* of each device, by_id */
	unsigned nsessions[CATALOG_DEVICES_MAX];             /* the same; one of several connections is one */
	const struct device_left_out *left_out;
	unsigned nleft_out;
	const struct generation *generation;
	const struct tenant *tenants;
	uint64_t now_us;
};

/** For the server: the state of the daemon and of its devices, and nothing else of a snapshot. Nothing is to
 * be freed. It takes the same time however many sessions there are. */
void stats_overview(struct stats *stats, const struct stats_source *source);
/** For the server: a snapshot. The counters in @source must be up to date. NULL: no memory. */
struct stats *stats_new(const struct stats_source *source);

#endif
