/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - the sessions of a device that have not ended, and the connections of each: what finds them, and
 * counts them.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_LIVE_H
#define SERVER_LIVE_H

#include "reddnd/server/dispatch.h"

/** NULL: there is no such session. */
struct session *live_find(const struct dispatch *d, uint64_t id);
/** Whether the offload of @s is not of the generation for new clients. */
bool live_is_older(const struct dispatch *d, const struct session *s);

void live_add(struct dispatch *d, struct session *s);
void live_remove(struct dispatch *d, struct session *s);
/** What looks after @s from now on, besides its events. An error: end it, or drop it. */
int live_begin(struct dispatch *d, struct session *s);

#endif
