/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server-state.h - private to server.c and operator.c: what a server has.
 */
#ifndef SERVER_SERVER_STATE_H
#define SERVER_SERVER_STATE_H

#include "reddnd/server/devices.h"
#include "reddnd/server/renewal.h"
#include "reddnd/server/server.h"

struct server {
	uint64_t since;
	sd_event *event;
	struct fd_store store; /* what was left, and what is kept besides devices */
	struct devices devices;
	struct shared shared;
	struct generation *generation; /* what new clients get */
	struct offload_stats *stats;
	struct tenant *tenants;
	struct events *events;
	struct record *record;
	struct worker *worker; /* registers and closes regions, reads files */
	struct handovers *handovers;
	struct stored stored_before; /* by the daemons before this one */
	struct renewal renewal;
	sd_event_source *watch, *retry;
	struct inspection *inspection; /* of the files of regions */
	bool replaces;                 /* all files are looked at for dispatch_end_replaced(), */
	bool again;                    /* once those are that were looked at before */
	uint64_t retry_us,
		retry_pause_us; /* a client may be the reason for the next one from then on; and after it */
	bool kept;              /* the catalog that it began with is the one that was last in force */
	char *refused;          /* why the catalog in force is not the one of the file; NULL: it is */
	uint64_t reload;        /* that is in force and not acknowledged; 0: none */
	bool ending;
	const struct server_ops *ops;
	void *arg;
};

#endif
