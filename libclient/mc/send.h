/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * send.h - sends a get to its NIC, there again if the answer is not to be relied on, and to memcached.
 */
#ifndef LIBCLIENT_MC_SEND_H
#define LIBCLIENT_MC_SEND_H

#include "libclient/mc/pool.h"

/** Sends @a to its NIC, or lets the next mc_send_queued() do so. It has its key and its server. */
void mc_send(struct reddn_mc *mc, struct mc_ask *a);

/** Asks the NIC from the start, or memcached if it was asked often enough. */
void mc_send_again(struct reddn_mc *mc, struct mc_ask *a);

/** Asks memcached; @counter is that of the reason. */
void mc_send_tcp(struct reddn_mc *mc, struct mc_ask *a, uint64_t *counter);

/** Sends what its NIC had no room for before. */
void mc_send_queued(struct reddn_mc *mc);

/** Requests that are on their way to the NIC of @s get no reply any more: memcached is asked. */
void mc_send_abandon(struct reddn_mc *mc, const struct mc_server *s);

/** The same, and the NIC is lost because of @why. */
void mc_send_lose(struct reddn_mc *mc, struct mc_server *s, const char *why);

#endif
