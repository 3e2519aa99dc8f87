/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrivals.h - clients that are admitted and cannot be answered yet, because something may take long:
 *
 * - their NIC's address must be resolved: about a second if nobody answers. A GID that did not answer is
 *   refused at once for some seconds, and a path that answered in the last second is not asked for again. Of
 *   several clients with one GID the first asks the network, the others wait for what it learns.
 * - the regions of their offload must be registered for their tenant, once: seconds for gigabytes.
 *
 * Threads of workers wait for that (util/worker.h). A tenant cannot take all of them, and has at most
 * ARRIVALS_MAX clients here whose addresses have answered before, and as many others: who sends requests in
 * the name of addresses that do not answer keeps those waiting that come for the first time, but not the
 * clients of the tenant that were here before. A client waits for connect_timeout at most. That one has gone
 * is noticed when it is answered: Linux reports nothing of a connection before it is accepted
 * (drivers/infiniband/core/ucma.c: ucma_event_handler).
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_ARRIVALS_H
#define SERVER_ARRIVALS_H

#include "reddnd/policy/reachability.h"
#include "reddnd/session/session.h"
#include "reddnd/util/worker.h"

enum { ARRIVALS_MAX = 256 };

struct arrival;

struct arrivals_ops {
	/** All is there: the session of the client can begin, which takes over its connection. False: it was
	 * refused. */
	bool (*ready)(void *arg, const struct session_client *client, const struct admit_result *admitted);
	/** The client must be refused, and its tenant refunded. The connection stays here. */
	void (*refused)(void *arg, const struct session_client *client, const struct admit_result *admitted,
		const struct reddn_wire_rej *rej);
};

struct arrivals {
	sd_event *event;
	struct rnic_device *dev;
	unsigned device;          /* its number (generation/served.h) */
	struct worker *resolver;  /* of addresses */
	struct worker *registrar; /* borrowed */
	struct reachability reachability;
	struct rnic_conn_memory memory; /* of addresses that were resolved */
	uint64_t connect_timeout;       /* us; of the configuration in force */
	bool ending;
	const struct arrivals_ops *ops;
	void *arg;
	TAILQ_HEAD(, arrival) all;
};

/** @a: all zero. @registrar: must outlive arrivals_end(), and be freed before arrivals_deinit(). -errno. */
int arrivals_init(struct arrivals *a, sd_event *event, struct rnic_device *dev, unsigned device,
	struct worker *registrar, const struct arrivals_ops *ops, void *arg);
/** From now on everybody is refused; waits for addresses that are being resolved. */
void arrivals_end(struct arrivals *a);

/** Takes a client that was admitted, and its connection. One of ops is called, at once or later. */
void arrivals_add(
	struct arrivals *a, const struct session_client *client, const struct admit_result *admitted);

#endif
