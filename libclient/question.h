/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * question.h - a question to the server about the session of a connection (struct reddn_wire_query). It takes
 * a connect request of its own, which the server always refuses: the refusal is the answer.
 */
#ifndef LIBCLIENT_QUESTION_H
#define LIBCLIENT_QUESTION_H

#include "libclient/connection.h"
#include "protocol/wire.h"

/**
 * Asks once, until @deadline (clock_ms). @flag: REDDN_REQ_END_REASON or REDDN_REQ_DESCRIBE, of which @from is
 * the first byte that is wanted. 0 and *rej; -ECONNREFUSED: no reddnd listens there; -EHOSTUNREACH,
 * -ETIMEDOUT, -errno.
 */
int reddn_ask(struct reddn *c, uint8_t flag, uint32_t from, uint64_t deadline, struct reddn_wire_rej *rej);

#endif
