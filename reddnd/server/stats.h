/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h - a snapshot of the daemon for people and programs: its state, its sessions, and what is configured
 * with the counters of each. Plain arrays that belong to the snapshot.
 *
 * Strings belong to the daemon: use a snapshot before the event loop goes on, and do not keep it.
 */
#ifndef SERVER_STATS_H
#define SERVER_STATS_H

#include "reddnd/generation/offload.h"
#include "reddnd/policy/service-times.h"

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
	uint64_t sessions_total; /* since the daemon started, as all that follow */
	uint64_t failed;         /* sessions that ended because of an error or a broken rule */
	uint64_t refused;        /* clients */
	uint64_t unlisted;       /* of these: counted, and not listed one by one */
	uint64_t requests, reloads;
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

/** An offload of the configuration in force, and its counters, which outlive reloads. */
struct stats_offload {
	const char *name, *program, *shape, *path, *where;
	/* It is as follows on this device, and perhaps not on the others; "": on all of them */
	const char *device;
	bool recycled;
	bool cpu;                 /* not the NIC executes it */
	char reason[OFFLOAD_WHY]; /* why it is so, if not recycled by the NIC */
	const struct program_arg *args;
	unsigned nargs;
	char disabled[OFFLOAD_WHY]; /* why clients cannot have it; "": they can */
	unsigned depth_max;
	uint64_t request_bytes, reply_bytes;
	uint64_t copies, atomics, waits_enables, wqes_per_request;
	uint64_t sessions; /* now */
	uint64_t failed, requests, hits, misses, wqes, iterations, bytes_in, bytes_out;
	uint64_t unseen; /* as of sessions */
	bool publishes;
	uint64_t conflicts; /* of one that publishes */
	uint64_t verdicts[VERDICT_KINDS];
	struct service_times service; /* recycled: of some requests */
};

/** A region of the configuration in force. */
struct stats_region {
	const char *name, *path, *where;
	uint64_t bytes;
	char bad[REGION_WHY]; /* why it cannot be served; "": it can */
	bool raw;
	const struct catalog_region *memcached; /* of kind "memcached", else NULL */
	struct memcached_state cache;           /* the same; all zero if it is not proved */
	bool writable;                          /* raw */
	uint64_t offset;                        /* the same: in its file */
	int moved;                              /* of struct region */
	bool unfinished;                        /* a table: its writer died in a move */
	uint64_t buckets, heap_bytes;           /* of a table, as those that follow */
	uint64_t max_key, max_value;            /* bytes */
	bool alive;                             /* it has this: */
	struct reddn_table_live live;
	bool store; /* of kind "store"; all zero if it is bad: */
	struct store_numbers numbers;
};

/** A tenant that is configured, or has sessions from before. */
struct stats_tenant {
	const char *name;
	struct catalog_limits limits;
	uint64_t sessions, depth, queue_bytes, slot_bytes, extent_bytes; /* in use */
	uint64_t accepted, refused, failed, requests;                    /* since it was first configured */
	struct service_times service;
};

struct stats {
	struct stats_status status;
	struct stats_device devices[CATALOG_DEVICES_MAX]; /* those that were left out behind the others */
	struct stats_session *sessions;                   /* the oldest first */
	struct stats_offload *offloads;
	struct stats_region *regions;
	struct stats_tenant *tenants;
	unsigned ndevices, nsessions, noffloads, nregions, ntenants;
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
