/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * actions.h - what happens to a session: a verdict becomes an action by the policy of its offload
 * (enforcement.h), timers have actions too (timers.h), and here they are carried out.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_ACTIONS_H
#define SERVER_ACTIONS_H

#include "reddnd/server/dispatch.h"

/** A verdict on @s, a session or one of several connections: counts, reports and enforces it. Nothing happens
 * to a session that is over. */
void actions_judge(struct dispatch *d, struct session *s, const struct verdict *v);
void actions_take(struct dispatch *d, struct session *s, const struct action *action);

/** Ends @s, with all of its connections; nothing is done for it after this. collect_reap() frees it. A
 * session that is over already stays as it is. */
void actions_end(struct dispatch *d, struct session *s, enum reddn_wire_end reason, const char *text);
/** The same of one whose client has left, with the verdict that it did not wait for. */
void actions_left(struct dispatch *d, struct session *s, const char *why);
/** The same of one connection that has begun no session: nobody learns of it. */
void actions_drop(struct dispatch *d, struct session *s);

/** The limits of @s have changed. */
void actions_limits_changed(struct dispatch *d, struct session *s);

#endif
