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
 */
#ifndef LIBCLIENT_INTO_H
#define LIBCLIENT_INTO_H

#include "libclient/connection.h"

/** Post the receive for the reply to @q, which is the next one of the connection. 0 or -errno. */
int reddn_into_receive(const struct reddn_session *s, struct reddn_connection *k,
	const struct reddn_slot *slot, const struct reddn_request *q);

#endif
