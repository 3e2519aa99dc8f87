/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ask.h - the results of gets: what the NICs answer, judged, and what memcached answers over TCP.
 */
#ifndef LIBCLIENT_MC_ASK_H
#define LIBCLIENT_MC_ASK_H

#include "libclient/mc/pool.h"

/** Takes up to @max results; over TCP if no NIC has one. Those of the call before are released. */
int mc_ask_poll(struct reddn_mc *mc, struct reddn_mc_result *res, int max);

/** Releases the results of the last mc_ask_poll(). */
void mc_ask_release(struct reddn_mc *mc);

#endif
