/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queues.h - the queues of a session: in one block of the arena, which its layout divides. They are made,
 * connected, started and stopped, and error CQEs and events of them become verdicts.
 */
#ifndef SESSION_QUEUES_H
#define SESSION_QUEUES_H

#include "reddnd/session/session.h"

/**
 * Makes the queues of the session's layout and fills in the environment of its chain for a client that asked
 * for @request. session_queues_destroy() also cleans up after an error: -ENOSPC, -ENOMEM or what the device
 * reports, logged.
 */
int session_queues_make(struct session *s, struct rnic_arena *arena, const struct request *request);
/** Stops all of them, destroys them, and frees their memory. Fine on queues that were never made. */
void session_queues_destroy(struct session *s);

/**
 * The same of a session whose queues are in its slot, which was inherited: finds them as they are. -EBADMSG:
 * the slot has others. After an error nothing has been destroyed.
 */
int session_queues_adopt(struct session *s, struct rnic_arena *arena, const struct request *request);
/** Asks for the events of adopted queues. Errors before that raise none: look for them afterwards. */
void session_queues_arm_events(struct session *s);

/** When the rings are written: connects the QPs and lets the NIC begin with the chain, which takes a moment.
 */
int session_queues_start(struct session *s);
/** The NIC begins, and session_queues_started() has not waited for that: one session of a tenant at a time.
 */
bool session_queues_are_starting(const struct session *s);
/** Waits for that, and for RECVs that were enabled meanwhile. 0 if nothing has to begin. An error that the
 * master QP has logged: the session cannot go on. */
int session_queues_started(struct session *s);

/* The calls of engine.h, of a session whose requests the NIC executes */

int session_queues_serve(struct session *s);
uint64_t session_queues_received(const struct session *s, uint64_t to);
uint64_t session_queues_iterations(const struct session *s);
int session_queues_settle(struct session *s, struct verdict *v);
/** Moves the QPs to the error state: they execute nothing any more, and its extents are given back. */
void session_queues_stop(struct session *s);

/** The CQ of queue @part (see cookies), or NULL. */
struct rnic_cq *session_cq(struct session *s, unsigned part);
/** The queue pair of queue @part, but for that of a loop; NULL: there is none. */
const struct rnic_qp *session_qp(const struct session *s, unsigned part);

/** A recycled session: instances that its recycler has re-armed, a section's slots at a time. */
uint64_t session_recycled(const struct session *s);
/** The same: the opcode by which section @section of its recycler posts RECVs, or a NOP if it is paced. */
uint8_t *session_recv_en(const struct session *s, unsigned section);

/** Writes to @v what error CQE @cqe of queue @part means. If it is only flushed, looks for the cause in all
 * queues. */
void session_fault(struct session *s, unsigned part, const struct rnic_cqe *cqe, struct verdict *v);

/** Takes the event with @cookie (see cookies, without the session) and asks for the next one. 0; or positive:
 * @v describes the fault. */
int session_event(struct session *s, unsigned cookie, struct verdict *v);

#endif
