/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect.h - a client that connects, from its request to a session that is served. connect.c has the steps
 * in the order of events:
 *
 *   request      A question about a session is answered by a refusal. Anything else is judged: the address of
 *                the client and bans, then its tenant, the offload, the depth and the size of slots, quotas.
 *                The tenant is charged. A client of a table that was replaced waits until that is opened
 *                again, and is judged once more: a session with the old one would end with its first reply.
 *   address      The MAC address of the client's NIC is resolved: about a second if nobody answers. A GID
 *                that did not answer is refused at once for some seconds, and a path that answered in the
 *                last second is not asked for again. Of several clients with one GID the first asks the
 *                network, the others wait for what it learns.
 *   regions      Those of the offload are registered for the tenant, once: seconds for gigabytes.
 *   session      It is made, it gets RECVs as its limits allow, the client is answered, and the NIC begins.
 *   established  The client has the answer.
 *
 * Workers (util/worker.h) resolve and register. A tenant cannot take all of them, and has at most
 * CONNECTS_MAX clients that wait for them whose addresses have answered before, and as many others: who sends
 * requests in the name of addresses that do not answer keeps those waiting that come for the first time, but
 * not the clients of the tenant that were here before. As many again may wait for tables. A client waits for
 * connect_timeout at most, however often it is judged. That one
 * has gone is noticed when it is answered: Linux reports nothing of a connection before it is accepted
 * (drivers/infiniband/core/ucma.c: ucma_event_handler).
 *
 * Refusals are listed as events, and questions are answered, at the rate of their source (policy/source.h):
 * why a session ended, what its offload takes and answers, and how large reply slots must be. Beyond it
 * refusals are counted, a question about a session gets no answer, and one about slots counts as a refusal.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_CONNECT_H
#define SERVER_CONNECT_H

#include "reddnd/policy/source.h"
#include "reddnd/rnic/cm.h"
#include "reddnd/rnic/conn.h"
#include "reddnd/util/worker.h"

struct connect;
struct dispatch;

enum { CONNECTS_MAX = 256 };

/** Clients of a device that wait. */
struct connects {
	sd_event *event;
	struct worker *resolver;  /* of addresses */
	struct worker *registrar; /* of regions; borrowed */
	struct reachability reachability;
	struct rnic_conn_memory memory; /* of addresses that were resolved */
	uint64_t timeout_us;            /* connect_timeout of the configuration in force */
	bool ending;
	TAILQ_HEAD(connect_list, connect) all;
};

/** With the dispatch as argument. */
extern const struct rnic_cm_ops connect_cm_ops;

/** @c: all zero. @registrar: must outlive connects_end(), and be freed before the dispatch. -errno. */
int connects_init(struct connects *c, sd_event *event, struct worker *registrar);
/** What tables were replaced has been opened again, or cannot be: go on with the clients that wait for that.
 */
void connects_go_on(struct dispatch *d);
/** From now on everybody is refused; waits for addresses that are being resolved. */
void connects_end(struct connects *c);

#endif
