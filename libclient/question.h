/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * question.h - a question to the server about the session of a connection (struct reddn_wire_query). It takes
 * a connect request of its own, which the server always refuses: the refusal is the answer.
 */
#ifndef LIBCLIENT_QUESTION_H
#define LIBCLIENT_QUESTION_H

#include "libclient/session.h"
#include "protocol/wire.h"

/** A session that is asked about. It need not be there any more. */
struct reddn_subject {
	uint64_t session; /* its number */
	uint64_t slot_addr;
	uint32_t slot_rkey;
	struct sockaddr_storage from, to; /* its ends; from any port */
};

struct reddn_subject reddn_subject_of(const struct reddn_session *s);

/** Milliseconds until @deadline (clock_ms), 0 if it is over. */
int reddn_time_left(uint64_t deadline);

/**
 * Ask once, and wait for the answer until @deadline (clock_ms). @flag: REDDN_REQ_END_REASON or
 * REDDN_REQ_DESCRIBE, of which @from is the first byte that is wanted. 0 and *rej; -ECONNREFUSED: no reddnd
 * listens there; -EHOSTUNREACH, -ETIMEDOUT, -errno.
 */
int reddn_ask(const struct reddn_subject *of, uint8_t flag, uint32_t from, uint64_t deadline,
	struct reddn_wire_rej *rej);

#endif
