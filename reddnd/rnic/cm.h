/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm.h - the passive side of the connection manager, for queue pairs of any making.
 *
 * A connection begins with ops.request; the owner answers with rnic_conn_accept() or rnic_conn_reject(), and
 * frees it with rnic_conn_free(), from any callback or outside. Events of an accepted connection carry the
 * number that the owner gave it; some may come after it was freed.
 *
 * Thread rules: one thread.
 */
#ifndef RNIC_CM_H
#define RNIC_CM_H

#include "reddnd/rnic/plain.h"
#include "reddnd/rnic/queue.h"

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
 * which @cm keeps @n open for now. Requests are in no danger: they are queued, and read later. A listener
 * that rnic_cm_bind() does not ask for ends with rnic_cm_listen().
 */
void rnic_cm_inherit(struct rnic_cm *cm, const int *old, unsigned n);
/** The same of connection @id, whose events carry @number. -ENOENT: it has ended with its daemon. -ENOMEM. */
int rnic_cm_inherit_conn(struct rnic_cm *cm, uint32_t id, uint64_t number, struct rnic_conn **conn);
/** The daemon before this one may have died before it answered the connection: refuses it then, with at most
 * 148 bytes of private data. False: it is connected, or was answered. */
bool rnic_conn_refuse_inherited(struct rnic_conn *conn, const void *data, size_t size);
/** All connections that go on are here: refuses those whose requests daemons before this one have read, and
 * have not answered. Returns their number. */
unsigned rnic_cm_refuse_old(struct rnic_cm *cm, const void *data, size_t size);
/**
 * All connections that go on are here: runs the callbacks of all events that came before this process did,
 * then closes the old files. What is left in them ends. A negative errno only if the channel itself failed.
 */
int rnic_cm_leave_old(struct rnic_cm *cm);

/** Takes @address (IPv4 or IPv6, numeric) for this process. Errors have been logged. */
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

/** The connection manager's id of it. */
uint32_t rnic_conn_id(const struct rnic_conn *conn);
/** "address port N" of the client. */
const char *rnic_conn_peer(const struct rnic_conn *conn);
/** Its address, without the port; IPv4 as ::ffff:a.b.c.d. */
void rnic_conn_address(const struct rnic_conn *conn, uint8_t address[16]);
/** The address and the port that the client connected to; IPv4 as ::ffff:a.b.c.d. */
void rnic_conn_server(const struct rnic_conn *conn, uint8_t address[16], uint16_t *port);
/** Our own GID that the client's packets come to, of @dev, which is the connection's. -errno. */
int rnic_conn_server_gid(const struct rnic_conn *conn, const struct rnic_device *dev, uint8_t gid[16]);
/** Its queue pair, which replies go to. */
uint32_t rnic_conn_client_qpn(const struct rnic_conn *conn);
/** The GID that packets to the client go to, by which it is known in the network. Without a GRH, that of its
 * path; all zero if the connection manager reports none. */
void rnic_conn_gid(const struct rnic_conn *conn, uint8_t gid[16]);
/** Name of the device that the client's request came to. */
const char *rnic_conn_device(const struct rnic_conn *conn);

/**
 * Finds out the MAC address of the client, which rnic_conn_connect() needs. This waits for as long as the
 * kernel asks the network, about a second if the client does not answer: call it on a thread of its own.
 * Meanwhile @conn may only be rejected. -EHOSTUNREACH and others, which have not been logged.
 */
int rnic_conn_resolve(struct rnic_conn *conn, struct rnic_device *dev);

/**
 * Brings @qp up, connected to the client's, without remote access rights. Before rnic_conn_accept(). @slow: a
 * client whose SEND finds no RECV waits 640 us, not 10, before it tries again.
 */
int rnic_conn_connect(struct rnic_conn *conn, struct rnic_qp *qp, bool slow);
/** The same of a queue pair that verbs made. */
int rnic_conn_connect_plain(struct rnic_conn *conn, struct rnic_plain *q, bool slow);
/** @number: of the connection, not 0 and below 2^63. @qpn: of its queue pair. At most 196 bytes of private
 * data. Only once. */
int rnic_conn_accept(struct rnic_conn *conn, uint64_t number, uint32_t qpn, const void *data, size_t size);
/** At most 148 bytes of private data. */
int rnic_conn_reject(struct rnic_conn *conn, const void *data, size_t size);
/** The client gets an event. Fine on a connection that is gone. */
void rnic_conn_disconnect(struct rnic_conn *conn);
void rnic_conn_free(struct rnic_conn *conn);

#endif
