/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handshake.h - the private data of a connection attempt, without the network: what a server's REP and REJ
 * mean (wire.h). They come from outside and are checked.
 */
#ifndef LIBCLIENT_HANDSHAKE_H
#define LIBCLIENT_HANDSHAKE_H

#include "libclient/session.h"
#include "protocol/wire.h"

/**
 * Copy the REJ in the private data, and make its text safe for a terminal. False: the refusal is not a
 * reddnd's, as when no server listens.
 */
bool reddn_read_rej(struct reddn_wire_rej *rej, const struct rdma_conn_param *p);

/** The documented error of reddn_connect for a REJ. */
int reddn_rej_error(const struct reddn_wire_rej *rej);

/** Check the REP of a further connection: it must be like the first one's. The same errors. */
int reddn_compare_rep(
	const struct reddn_session *s, const struct rdma_conn_param *p, char *err, size_t errlen);

/**
 * Check the REP in the private data and take over info, geometry, request format and key_room. 0, or -EPROTO
 * or -EPROTONOSUPPORT and the reason in @err.
 */
int reddn_read_rep(struct reddn_session *s, const struct rdma_conn_param *p, char *err, size_t errlen);

#endif
