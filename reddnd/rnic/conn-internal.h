/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn-internal.h - what cm.c and conn.c share.
 */
#ifndef RNIC_CONN_INTERNAL_H
#define RNIC_CONN_INTERNAL_H

#include "reddnd/rnic/conn.h"
#include "reddnd/rnic/ucm.h"

/* What listeners have as uid, so that no session has it */
#define CM_LISTENER (UINT64_C(1) << 63)

struct rnic_conn {
	int fd;                /* the connection manager's */
	struct ledger *ledger; /* the same, or NULL */
	uint32_t id;
	bool accepted;
	bool over;     /* there is no such id any more */
	bool recorded; /* in the ledger, as one that waits for an answer */
	char peer[80];
	const char *device;
	struct rnic_ucm_route route;
	struct ibv_qp_attr rtr; /* the path to the client, and its queue pair; fixed by its request */
	bool resolved;          /* the members that follow */
	uint8_t mac[6];
	uint16_t udp_sport;
};

/** What the kernel would bring a queue pair of @conn into @state with. -ECONNABORTED: the client took its
 * request back. Errors have been logged. */
int conn_get_attr(const struct rnic_conn *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr);

#endif
