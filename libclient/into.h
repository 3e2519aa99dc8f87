/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * into.h - memory of the caller that values go to (REDDN_INTO). The answer to a get is a message, and the
 * receive that takes it is posted with the request: its scatter list has the slot for the head of the record
 * and the key, then the place of the caller, then a sink for what is longer. So nobody but the own NIC writes
 * there, and only while that receive is posted. The result of a request is reported when its receive has
 * completed, or when the queue pair that has it was destroyed: then no late reply finds it. So a session that
 * is left, also of a table that was replaced, ends before its requests are sent again or have a result
 * (reconnect.c).
 *
 * All replies share the sink. It is read only for the end of a key that is longer than the one that was asked
 * for and its place: to tell a key with the same fingerprint, which is a miss, from a record that was reused.
 *
 * Memory belongs to the handle, and is registered for each of its sessions, each of which has a PD of its
 * own.
 */
#ifndef LIBCLIENT_INTO_H
#define LIBCLIENT_INTO_H

#include "libclient/connection.h"

/** Register the memory of the handle for a session, and have its sink, as far as that is not done. A session
 * without REDDN_INTO needs none. -errno; reddn_queues_free gives back what there is. */
int reddn_into_begin(const struct reddn *c, struct reddn_session *s);

/** Give back what is kept of the handle's memory, but for the registrations of sessions. */
void reddn_into_deinit(struct reddn *c);

/** Find the memory that has @room bytes from @at on. -EFAULT: none has. */
int reddn_into_find(const struct reddn *c, const uint8_t *at, size_t room);

/** Post the receive for the reply to @q, which is the next one of the connection. 0 or -errno. */
int reddn_into_receive(const struct reddn_session *s, struct reddn_connection *k,
	const struct reddn_slot *slot, const struct reddn_request *q);

#endif
