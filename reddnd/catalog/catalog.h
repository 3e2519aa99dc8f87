/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catalog.h - what the operator asks for: reddnd.conf and the files it includes, parsed and checked.
 *
 * Syntax is libconfig's. Settings, with defaults in parentheses:
 *
 *   listen   "address:port" or a list of them, numeric; IPv6 in brackets     ("0.0.0.0:7471")
 *   device   name of the RDMA device, "" for the only one there is           ("")
 *   control  absolute path of the control socket; without it
 *            $RUNTIME_DIRECTORY/control, and none where there is no such
 *   metrics  "address:port" where HTTP clients get /metrics                    (none)
 *   connect_timeout  "10s": a client that was accepted has to complete the connection in that time   ("10s")
 *   arena    bytes of queue memory for all sessions, "256M"                  ("256M")
 *   programs directory with programs (*.rdn), or a list of them              (as installed)
 *   regions  list of { name, path, kind = "table" or "raw", writable = true for a raw one that programs
 * change } offloads list of { name, program = name of a file in "programs", or a path params = { name =
 * value; ... } of the program region = region that all of the program's regions are in regions = { name of
 * the program's = "region" or "table.part"; ... } mode = "unrolled" or "recycled" ("unrolled") depth_max =
 * requests a client may have outstanding     (64) instances = chain instances per session, a power of two; 0:
 * as many as depth needs (0) wqe_budget = WQEs that one request may take; 0: any number    (0) time_budget =
 * "250ms": from taking a request to its reply; without it: any time on_error = what follows a verdict
 * (verdicts.h): "log", "throttle:100:60s", "terminate", "ban:60s", or a group of these by kind ("terminate")
 * } tenants  list of { name, networks = [ "192.0.2.0/24", "2001:db8::/32" ]: the longest prefix decides
 * (anywhere) key = path of the file with the key of its tokens, or "credential:NAME"              (no token)
 *                      offloads = names of those that it may use (all) sessions, depth (sum of all sessions),
 * queue_bytes, slot_bytes: quotas rate, burst: requests per second of all its sessions, and at once after a
 * pause session_rate, session_burst: of each of its sessions bytes_rate, session_bytes_rate: bytes of replies
 * per second connect_rate, connect_burst: sessions that begin per second, and at once after a pause
 * idle_timeout = "10m": a session without a request for so long ends }                 (no limits) without it
 * there is one tenant, "everyone", without limits
 *
 * Loading is a transaction: a catalog is complete and right, or there is none and every mistake is told.
 */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "protocol/token.h"
#include "reddnd/catalog/verdicts.h"
#include "reddnd/program/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CATALOG_NAME_MAX = 23, /* of regions and offloads; the wire has 24 bytes */
	CATALOG_LISTEN_MAX = 16,
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
	char *path;  /* absolute */
	char *where; /* "file:line" of its entry */
};

struct catalog_setting {
	char name[CATALOG_NAME_MAX + 1];
	uint64_t value;
};

/** Parts of a table (protocol/table-format.h). */
enum catalog_part { CATALOG_WHOLE, CATALOG_BUCKETS, CATALOG_HEAP, CATALOG_LIVE };

struct catalog_binding {
	char name[CATALOG_NAME_MAX + 1]; /* of the program's region */
	unsigned region;                 /* index in regions */
	uint8_t part;                    /* enum catalog_part; WHOLE of a raw region only */
};

struct catalog_offload {
	char name[CATALOG_NAME_MAX + 1];
	char *path; /* of the program */
	char *text; /* and what was in it */
	size_t text_len;
	struct catalog_setting params[CATALOG_PARAMS_MAX];
	unsigned nparams;
	bool has_region;
	unsigned region; /* index in regions: for what has no binding of its own */
	struct catalog_binding bindings[CATALOG_BINDINGS_MAX];
	unsigned nbindings;
	bool recycled;
	uint16_t depth_max;
	uint32_t instances;   /* 0: automatic */
	uint32_t wqe_budget;  /* per request, 0: none */
	uint64_t time_budget; /* us, 0: none */
	uint64_t loop_budget; /* iterations of a request in a loop without a bound, 0: none */
	struct verdict_policy on_error[VERDICT_KINDS];
	char *where;
};

struct catalog_network {
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned bits;       /* of 128 */
};

/** 0: none. */
struct catalog_limits {
	uint32_t sessions, depth;
	uint64_t queue_bytes, slot_bytes;
	uint64_t rate, burst; /* requests per second; requests. burst 0: what a tenth of a second brings */
	uint64_t session_rate, session_burst;
	uint64_t bytes_rate, session_bytes_rate; /* of replies, bytes per second */
	uint64_t idle_timeout;                   /* us */
	uint64_t connect_rate,
		connect_burst; /* sessions that begin per second; burst 0: what a second brings */
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
	struct catalog_listen listen[CATALOG_LISTEN_MAX];
	unsigned nlisten;
	bool serves_metrics;
	struct catalog_listen metrics;
	char device[64]; /* "" */
	char *control;   /* NULL: not set */
	uint64_t arena;
	uint64_t connect_timeout;             /* us */
	char *programs[CATALOG_PROGRAMS_MAX]; /* directories, absolute */
	unsigned nprograms;
	struct catalog_region *regions;
	unsigned nregions;
	struct catalog_offload *offloads;
	unsigned noffloads;
	struct catalog_tenant *tenants;
	unsigned ntenants; /* at least 1 */
};

/**
 * 0 and a catalog for catalog_free(). -EINVAL when there are mistakes: @errors (to be freed) has one line for
 * each, "file:line: what is wrong; what would be right", in the order of the file. -ENOMEM.
 */
int catalog_load(const char *path, struct catalog **catalog, char **errors);
void catalog_free(struct catalog *catalog);

/**
 * Compiles the program of @offload with its params; those of @more that it does not set are set to these. As
 * program_compile().
 */
int catalog_compile(const struct catalog_offload *offload, const struct program_setting *more, unsigned nmore,
	const struct program_target *target, struct program **program, char **messages);

/** Bits of the longest network of @tenant that @address (IPv4 as ::ffff:a.b.c.d) is in; -1: none. */
int catalog_match(const struct catalog_tenant *tenant, const uint8_t address[16]);
/** Whether it may use the offload of that index. */
bool catalog_allows(const struct catalog_tenant *tenant, unsigned offload);
/** The smallest burst that goes with a rate. */
uint64_t catalog_burst_min(uint64_t rate);

/** What region @name of the program is, to be written if @writable. -EINVAL with @why in words. */
int catalog_bind(const struct catalog *catalog, const struct catalog_offload *offload, const char *name,
	bool writable, struct catalog_binding *bound, char *why, size_t size);

#endif
