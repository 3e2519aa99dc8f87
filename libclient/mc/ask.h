/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ask.h - the way of a get: to the NIC of its server, there again if the answer is not to be relied on, and
 * over TCP.
 */
#ifndef LIBCLIENT_MC_ASK_H
#define LIBCLIENT_MC_ASK_H

#include "libclient/mc/pool.h"

/** Sends @a to its NIC, or lets the next mc_ask_poll() do so. It has its key and its server. */
void mc_ask_send(struct reddn_mc *mc, struct mc_ask *a);

/** Asks the NIC from the start, or memcached if it was asked often enough. */
void mc_ask_again(struct reddn_mc *mc, struct mc_ask *a);

/** Asks memcached; @counter is that of the reason. */
void mc_ask_tcp(struct reddn_mc *mc, struct mc_ask *a, uint64_t *counter);

/** Takes up to @max results; over TCP if no NIC has one. Those of the call before are released. */
int mc_ask_poll(struct reddn_mc *mc, struct reddn_mc_result *res, int max);

/** Releases the results of the last mc_ask_poll(). */
void mc_ask_release(struct reddn_mc *mc);

#endif
