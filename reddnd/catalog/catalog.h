/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catalog.h - the configuration: reddnd.conf and the files that it includes, parsed and checked. The syntax
 * is that of libconfig; reddnd.conf(5) describes each setting.
 *
 * Loading is a transaction: it gives a catalog that is complete and right, or none and every mistake.
 */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "protocol/token.h"
#include "reddnd/catalog/verdicts.h"
#include "reddnd/program/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CATALOG_NAME_MAX = 23, /* of regions and offloads; the wire has 24 bytes */
	CATALOG_LISTEN_MAX = 16,
	CATALOG_DEVICES_MAX = 8,
	CATALOG_DEVICE_BYTES = 64,
	CATALOG_PROGRAMS_MAX = 8,
	CATALOG_PARAMS_MAX = 16,
	CATALOG_BINDINGS_MAX = 8,
	CATALOG_NETWORKS_MAX = 32, /* of a tenant */
	CATALOG_SOCKET_MAX = 108,  /* bytes of the path of a Unix socket, its zero included */
};

struct catalog_listen {
	char address[64];
	uint16_t port;
};

struct catalog_region {
	char name[CATALOG_NAME_MAX + 1];
	bool raw, writable;
	bool memcached;     /* neither raw nor a table: the cache file of a memcached */
	bool store;         /* a table whose writer is the daemon, and which offloads publish in */
	char *server;       /* of that: its address (memcached/talk.h) */
	uint64_t stale_max; /* the same, us: how long it is served after memcached died */
	bool handover;      /* @owner hands its file over while the daemon runs */
	uint64_t size_max;  /* of that: bytes of the file, all of which may get pinned */
	bool owned;         /* its file must belong to @owner */
	uid_t owner;
	uint64_t offset,
		length; /* of the bytes in the file that it is; length 0: to the end. 0, 0: all of it */
	char *path;     /* absolute; "handover:NAME" if there is none */
	char *where;    /* "file:line" of its entry */
};

struct catalog_setting {
	char name[CATALOG_NAME_MAX + 1];
	uint64_t value;
};

/** Parts of a table or store (protocol/table-format.h), and of the cache file of a memcached
 * (protocol/cache-format.h). */
enum catalog_part {
	CATALOG_WHOLE,
	CATALOG_BUCKETS,
	CATALOG_HEAP,
	CATALOG_LIVE,
	CATALOG_CACHE_TABLES,
	CATALOG_CACHE_ITEMS,
	CATALOG_CACHE_LIVE,
};

struct catalog_binding {
	char name[CATALOG_NAME_MAX + 1]; /* of the program's region */
	unsigned region;                 /* index in regions */
	uint8_t part;                    /* enum catalog_part; WHOLE of a raw region only */
};

/** What any offload stores in regions of a program. */
struct catalog_stored {
	struct {
		char name[CATALOG_NAME_MAX + 1];
		struct chain_stored stored;
	} region[CATALOG_BINDINGS_MAX];
	unsigned n;
};

/** What executes an offload. */
enum catalog_engine {
	CATALOG_AUTO, /* the NIC if it can, else the CPU: the default */
	CATALOG_NIC,
	CATALOG_CPU,
};

/** Who arms the instances of an offload again that the NIC executes. */
enum catalog_mode {
	CATALOG_MODE_AUTO, /* the NIC if it can, else the daemon: the default */
	CATALOG_RECYCLED,  /* the NIC */
	CATALOG_UNROLLED,  /* the daemon */
};

struct catalog_offload {
	char name[CATALOG_NAME_MAX + 1];
	unsigned entry; /* index in the list of the configuration */
	char *path;     /* of the program */
	char *text;     /* contents of that file */
	size_t text_len;
	struct catalog_setting params[CATALOG_PARAMS_MAX];
	unsigned nparams;
	bool has_region;
	unsigned region; /* index in regions: for regions of the program without a binding */
	struct catalog_binding bindings[CATALOG_BINDINGS_MAX];
	unsigned nbindings;
	uint8_t mode;   /* enum catalog_mode */
	uint8_t engine; /* enum catalog_engine */
	/* It is a part of the offload of the same entry that has the name of the list: as in wire.h. 0: it is
	 * none, or that of puts */
	uint8_t part;
	uint32_t cpu_above; /* keys: it has more, and so its engine is CATALOG_CPU; 0: not for that */
	uint16_t depth_max;
	uint32_t instances;   /* 0: automatic */
	uint32_t wqe_budget;  /* per request, 0: none */
	uint64_t time_budget; /* us, 0: none */
	uint64_t loop_budget; /* iterations of a request in a loop without a bound, 0: none */
	uint64_t loop_rate;   /* WQEs per second of such a loop */
	struct verdict_policy on_error[VERDICT_KINDS];
	char *where;
};

struct catalog_network {
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned bits;       /* of 128 */
};

/** Limits of a tenant; 0: none. */
struct catalog_limits {
	uint32_t sessions, depth;
	uint64_t queue_bytes, slot_bytes, extent_bytes;
	uint64_t rate, burst; /* requests per second; requests. burst 0: the rate of a tenth of a second */
	uint64_t session_rate, session_burst;
	uint64_t bytes_rate, session_bytes_rate; /* of replies, bytes per second */
	uint64_t idle_timeout;                   /* us */
	uint64_t connect_rate, connect_burst;    /* new sessions per second; burst 0: the rate of a second */
};

struct catalog_tenant {
	char name[CATALOG_NAME_MAX + 1];
	struct catalog_network networks[CATALOG_NETWORKS_MAX]; /* none: anywhere */
	unsigned nnetworks;
	bool has_key;
	struct token_key key;
	unsigned *offloads; /* indices; NULL: all */
	unsigned noffloads;
	struct catalog_limits limits;
	char *where;
};

struct catalog {
	char *text; /* of the configuration with all that it includes, as libconfig writes it */
	struct catalog_listen listen[CATALOG_LISTEN_MAX];
	unsigned nlisten;
	bool serves_metrics;
	struct catalog_listen metrics;
	/* Names; none: the one that addresses belong to, or the only one */
	char devices[CATALOG_DEVICES_MAX][CATALOG_DEVICE_BYTES];
	unsigned ndevices;
	bool all_devices; /* in place of names: those that addresses belong to */
	char *control;    /* NULL: not set */
	uint64_t arena;
	uint64_t connect_timeout;             /* us */
	uint64_t refusal_rate;                /* of each source, per second (policy/source.h) */
	uint32_t source_bits;                 /* of an IPv6 address (policy/source.h) */
	uint8_t engine;                       /* enum catalog_engine, of offloads that do not set it */
	uint32_t executors;                   /* threads of the CPU engine, at most; 0: automatic */
	bool fenced_enables;                  /* rely on fences of SEND_ENs if the device heeds them */
	char *programs[CATALOG_PROGRAMS_MAX]; /* directories, absolute */
	unsigned nprograms;
	struct catalog_region *regions;
	unsigned nregions;
	struct catalog_offload *offloads;
	unsigned noffloads;
	bool has_offloads; /* the setting, which may be an empty list */
	struct catalog_tenant *tenants;
	unsigned ntenants; /* at least 1 */
	unsigned refs;     /* beyond the first */
};

/**
 * 0 and a catalog for catalog_free(). -EINVAL when there are mistakes: @errors (to be freed) has one line for
 * each, "file:line: what is wrong; what would be right", in the order of the file. -ENOMEM.
 */
int catalog_load(const char *path, struct catalog **catalog, char **errors);
struct catalog *catalog_ref(struct catalog *catalog);
void catalog_free(struct catalog *catalog); /* gives one reference back */

/**
 * Compiles the program of @offload with the params that the configuration sets, and with those of @more that
 * it does not set, for @target with what is influenced in its regions, @in, or NULL: nothing. Results are
 * those of program_compile().
 */
int catalog_compile(const struct catalog_offload *offload, const struct catalog_stored *in,
	const struct program_setting *more, unsigned nmore, const struct program_target *target,
	struct program **program, char **messages);

/** 0: a request of @program, compiled for @offload, takes no more WQEs than "wqe_budget". -E2BIG: it does.
 * -EINVAL: that cannot be known. @why is the reason in words. */
int catalog_check_budget(
	const struct catalog_offload *offload, const struct program *program, char *why, size_t size);

/** Length in bits (of 128) of the longest network of @tenant that has @address (IPv4 as ::ffff:a.b.c.d); -1:
 * none. 0 for a tenant without networks, which takes clients from anywhere. */
int catalog_match(const struct catalog_tenant *tenant, const uint8_t address[16]);
/** True if @tenant may use the offload with that index. */
bool catalog_allows(const struct catalog_tenant *tenant, unsigned offload);
/** The smallest burst that @rate can be kept with. */
uint64_t catalog_burst_min(uint64_t rate);

/** 0: @program, compiled for @offload, changes nothing in a store, or only by a publish that a store keeps
 * account of, and in a way in which that can be executed. -EINVAL: it does; @why is the reason in words. All
 * its regions are bound. */
int catalog_check_publish(const struct catalog *catalog, const struct catalog_offload *offload,
	const struct program *program, char *why, size_t size);

/**
 * Finds the memory for region @name of the program, which writes there if @writable. 0; -EINVAL, and @why is
 * the reason in words.
 */
int catalog_bind(const struct catalog *catalog, const struct catalog_offload *offload, const char *name,
	bool writable, struct catalog_binding *bound, char *why, size_t size);

#endif
