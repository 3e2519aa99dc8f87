/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adoption.h - sessions of the daemon before this one (inheritance.h) among those of this one. All that go on
 * come first, then adoption_serve(): connections of one session may come in any order.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_ADOPTION_H
#define SERVER_ADOPTION_H

#include "reddnd/server/dispatch.h"

/** @s was taken over. */
void adoption_add(struct dispatch *d, struct session *s);
/** Serves the sessions that were taken over. -errno of sd-event. */
int adoption_serve(struct dispatch *d);
/** Session @number, of a client with @address, is over: remembers why. */
void adoption_end(struct dispatch *d, uint64_t number, const struct end_reason_query *query,
	const uint8_t address[16], const char *peer, const char *why);

#endif
