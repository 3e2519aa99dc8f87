/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults.h - what is wrong with the queues of a session, from their error CQEs and events.
 */
#ifndef SESSION_FAULTS_H
#define SESSION_FAULTS_H

#include "reddnd/session/session.h"

/** Writes to @v what error CQE @cqe of queue @part means. If it is only flushed, looks for the cause in all
 * queues. */
void session_fault(struct session *s, unsigned part, const struct rnic_cqe *cqe, struct verdict *v);

/** Takes the event with @cookie (see cookies, without the session) and asks for the next one. 0; or positive:
 * @v describes the fault. */
int session_event(struct session *s, unsigned cookie, struct verdict *v);

#endif
