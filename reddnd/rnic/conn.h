/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn.h - one connection of a client, which cm.h has reported: who it is, the path to it, and the answer to
 * it.
 *
 * Thread rules: one thread, that of the connection manager, but for rnic_conn_resolve().
 */
#ifndef RNIC_CONN_H
#define RNIC_CONN_H

#include "reddnd/rnic/cm.h"

/** The connection manager's id of it. */
uint32_t rnic_conn_id(const struct rnic_conn *conn);
/** "address port N" of the client. */
const char *rnic_conn_peer(const struct rnic_conn *conn);
/** Its address, without the port; IPv4 as ::ffff:a.b.c.d. */
void rnic_conn_address(const struct rnic_conn *conn, uint8_t address[16]);
/** The address and the port that the client connected to; IPv4 as ::ffff:a.b.c.d. */
void rnic_conn_server(const struct rnic_conn *conn, uint8_t address[16], uint16_t *port);
/** True if the GID that the client's packets come to is @address. It is one of @dev, which is the
 * connection's. That it was so a second before @now_us is enough. */
bool rnic_conn_came_to(
	const struct rnic_conn *conn, struct rnic_device *dev, const uint8_t address[16], uint64_t now_us);
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

enum { RNIC_CONN_KNOWN = 64 };

/** GIDs whose MAC addresses were found out in the last second, on one device: further connections from there
 * need not ask. The kernel itself keeps a neighbour for longer without looking again. All zero: none. */
struct rnic_conn_memory {
	struct rnic_conn_known {
		uint8_t gid[16]; /* of the client */
		uint8_t port, sgid_index;
		uint8_t mac[6];
		uint64_t until; /* us */
	} known[RNIC_CONN_KNOWN];
	unsigned next;
};

/** In place of rnic_conn_resolve(), without waiting. False: it is not known. */
bool rnic_conn_recall(struct rnic_conn *conn, const struct rnic_conn_memory *m, uint64_t now_us);
/** After rnic_conn_resolve(). */
void rnic_conn_remember(const struct rnic_conn *conn, struct rnic_conn_memory *m, uint64_t now_us);

/**
 * Brings @qp up, connected to the client's, without remote access rights. Before rnic_conn_accept(). @slow: a
 * client whose SEND finds no RECV waits 640 us, not 10, before it tries again. -ECONNABORTED: the client took
 * its request back.
 */
int rnic_conn_connect(struct rnic_conn *conn, struct rnic_qp *qp, bool slow);
/** The same of queues of plain.h. */
int rnic_conn_connect_plain(struct rnic_conn *conn, struct rnic_plain *q, bool slow);
/** @number: of the connection, not 0 and below 2^63. @qpn: of its queue pair. At most 196 bytes of private
 * data. Only once. */
int rnic_conn_accept(struct rnic_conn *conn, uint64_t number, uint32_t qpn, const void *data, size_t size);
/** At most 148 bytes of private data. */
int rnic_conn_reject(struct rnic_conn *conn, const void *data, size_t size);
/** The daemon before this one may have died before it answered the connection: refuses it then, with at most
 * 148 bytes of private data. False: it is connected, or was answered. */
bool rnic_conn_refuse_inherited(struct rnic_conn *conn, const void *data, size_t size);
/** The client gets an event. What is known of the connection stays until rnic_conn_free(), which does the
 * same if nobody has. */
void rnic_conn_disconnect(struct rnic_conn *conn);
void rnic_conn_free(struct rnic_conn *conn);

#endif
