/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reconnect.h - how a handle outlives its session: what becomes of the requests that were outstanding, when
 * to connect again, and the exchange of the session. It takes steps in reddn_poll() and waits for nothing.
 */
#ifndef LIBCLIENT_RECONNECT_H
#define LIBCLIENT_RECONNECT_H

#include "libclient/connection.h"

/**
 * Take the steps of a handle that is not UP, or has the session before. No reply may be left in c->arrived,
 * and no value of a slot with the caller.
 */
void reddn_recover(struct reddn *c) __attribute__((cold));

/**
 * A poll of a handle with several hosts, which is UP, has found nothing: if the session is late, another one
 * takes its place. Else as above.
 */
void reddn_look_after(struct reddn *c);

#endif
