/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw-client.h - a client of reddnd on plain verbs, for tests that libreddn cannot do.
 *
 * Its reply slots are the first RAW_DEPTH * RAW_SLOT bytes of @mem, a request is composed in the RAW_REQUEST
 * bytes behind them. All of it is one memory region. An unexpected failure ends the program with a line that
 * begins with raw_case.
 */
#ifndef TESTS_LIB_RAW_CLIENT_H
#define TESTS_LIB_RAW_CLIENT_H

#include "protocol/token.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAW_DEPTH = 8, RAW_SLOT = 16384, RAW_REQUEST = 4096, RAW_WRS = 1024, RAW_PATIENCE_MS = 20000 };

struct raw_client {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	struct reddn_wire_req req; /* a good request, for tests to damage */
	struct reddn_wire_rej rej; /* of the last refusal */
	struct reddn_wire_rep rep; /* of the last connection */
};

/** The current case, for messages. */
extern const char *raw_case;
/** IPv4 address that requests come from; NULL: any. It may be one that the device does not have. */
extern const char *raw_source;
/** Type of service of the packets both ways; 0: that of the host. */
extern uint8_t raw_tos;

__attribute__((noreturn)) void raw_fail(const char *what); /* appends strerror(errno) */
void raw_need(bool ok, const char *what);

/** Does everything before connecting. @port: text. */
void raw_prepare(struct raw_client *c, const char *address, const char *port, const char *offload);
void raw_finish(struct raw_client *c);
/** @c->req asks for a further connection of a session, which its reply names so. */
void raw_name_session(struct raw_client *c, uint64_t session, uint64_t secret);
/** Of a prepared client: what tokens are made for, and a token of @c->req as it is now. */
struct token_ends raw_ends(const struct raw_client *c);
void raw_sign(struct raw_client *c, const struct token_key *key);

/** Sends a request with @size bytes of private data at @data, and does not wait for the answer. */
void raw_ask(struct raw_client *c, const void *data, size_t size);
/** Connects with @size bytes of private data at @data. Returns the event that answers, or -1 without one. */
int raw_connect(struct raw_client *c, const void *data, size_t size);
/** Connects with @c->req. Ends the program unless the server accepts. */
void raw_start(struct raw_client *c);

/** Waits for the next event of the connection manager and copies its private data to rej or rep. -1: none. */
int raw_event(struct raw_client *c, int patience_ms);
/** Ends the program with the reason, unless @event of @c is the one that is @expected. */
void raw_expect(struct raw_client *c, int event, enum rdma_cm_event_type expected);
void raw_expect_disconnect(struct raw_client *c);

uint8_t *raw_request(struct raw_client *c);
uint32_t raw_arg_len(const struct raw_client *c);
void raw_post_recvs(struct raw_client *c, unsigned n);
/** Sends the first @len bytes of raw_request() @n times, the last and every sixteenth signalled. */
void raw_post_sends(struct raw_client *c, unsigned n, uint32_t len);
/** Counts replies until there are @n, a CQE in error, whose status *@status then is (else 0), or none for a
 * while. */
unsigned raw_replies(struct raw_client *c, unsigned n, enum ibv_wc_status *status);

#endif
