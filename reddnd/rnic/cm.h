/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm.h - the passive side of the connection manager, for queue pairs of any making.
 *
 * A connection (conn.h) begins with ops.request; the owner answers with rnic_conn_accept() or
 * rnic_conn_reject(), and frees it with rnic_conn_free(), from any callback or outside. Events of an accepted
 * connection carry the number that the owner gave it; some may come after it was freed.
 *
 * Thread rules: one thread.
 */
#ifndef RNIC_CM_H
#define RNIC_CM_H

#include "reddnd/rnic/plain.h"
#include "reddnd/rnic/qp.h"

struct rnic_cm;
struct rnic_conn;

struct rnic_cm_ops {
	/** @data: the client's private data, zero padded by the CM. Ownership of @conn passes. */
	void (*request)(void *arg, struct rnic_conn *conn, const void *data, size_t size);
	/** The client has the answer; the connection is established. */
	void (*established)(void *arg, uint64_t number);
	/** The client disconnected, died or was never reached; @why is the reason in words. */
	void (*gone)(void *arg, uint64_t number, const char *why);
};

/** @ledger: where listeners are recorded; or NULL. */
int rnic_cm_new(struct rnic_cm **cm, const struct rnic_cm_ops *ops, void *arg, struct ledger *ledger);
void rnic_cm_free(struct rnic_cm *cm); /* after its connections */

/**
 * Takes over the listeners that the ledger names and that are in files of daemons before this one: @old, of
 * which @cm keeps @n open for now. Requests are in no danger: they are queued, and read later.
 */
void rnic_cm_inherit(struct rnic_cm *cm, const int *old, unsigned n);
/** True if one of them is at @address, also if the address itself is gone from the machine: rnic_cm_bind()
 * takes that one, and rnic_cm_end_others() leaves it. */
bool rnic_cm_keep(struct rnic_cm *cm, const char *address, uint16_t port);
/** Ends those that rnic_cm_keep() has not been asked for: their addresses can be bound again. */
void rnic_cm_end_others(struct rnic_cm *cm);
/** The same of connection @id, whose events carry @number. -ENOENT: it has ended with its daemon. -ENOMEM. */
int rnic_cm_inherit_conn(struct rnic_cm *cm, uint32_t id, uint64_t number, struct rnic_conn **conn);
/** All connections that go on are here: refuses those whose requests daemons before this one have read, and
 * have not answered. Returns their number. */
unsigned rnic_cm_refuse_old(struct rnic_cm *cm, const void *data, size_t size);
/**
 * All connections that go on are here: runs the callbacks of all events that came before this process did,
 * then closes the old files. What is left in them ends. A negative errno only if the channel itself failed.
 */
int rnic_cm_leave_old(struct rnic_cm *cm);

/** Takes @address (IPv4 or IPv6, numeric; a link-local one as fe80::1%eth0) for this process. One of IPv6 is
 * for IPv6 alone, also the wildcard. Errors have been logged. */
int rnic_cm_bind(struct rnic_cm *cm, const char *address, uint16_t port);
/** Port of the first bound address: one that the kernel chose if it was bound to port 0. */
uint16_t rnic_cm_port(const struct rnic_cm *cm);
/** Listens on all bound addresses. Until then clients are refused at once. Errors have been logged. */
int rnic_cm_listen(struct rnic_cm *cm);
/** Name of the device that a bound address belongs to; NULL if the addresses belong to none in particular. */
const char *rnic_cm_device(const struct rnic_cm *cm);

/** Readable when rnic_cm_dispatch() has something to do. Owned by @cm. */
int rnic_cm_fd(const struct rnic_cm *cm);
/**
 * Runs the callback of the next event, if there is one. One event at a time: clients that connect without end
 * do not block other work, because the fd stays readable. A negative errno only if the channel itself failed.
 */
int rnic_cm_dispatch(struct rnic_cm *cm);

#endif
