/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queues-code.h - the queues of a session without the queue pair of its client: those that can serve another
 * session. Private to queues.c and restart.c.
 */
#ifndef SESSION_QUEUES_CODE_H
#define SESSION_QUEUES_CODE_H

#include "reddnd/session/session.h"

/** Makes them in the block of the session, or finds them if that was adopted; not connected. */
int session_queues_make_code(struct session *s);
int session_queues_connect_code(struct session *s);
/** Queues that were never made are fine. */
void session_queues_destroy_code(struct session *s);

/** Fills in what the numbers of the chain's CQEs begin with: those of sessions before. Nobody waits for those
 * of an unrolled session's replies. */
void session_queues_begin_at(const struct session *s, struct chain_env *env);

#endif
