/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connection.h - a handle of libreddn: its state and its memory. It has a session (session.h), which
 * connect.c makes (options.c: of what the caller wants, addresses.c: at one of the addresses of the server).
 * request.c submits requests, poll.c polls for CQEs, results.c makes results of replies, wait.c waits for
 * them, end-reason.c asks why it ended, describe.c what the offload takes and answers.
 *
 * A *request* is what the caller submitted: a raw one, or a key. Its key and cookie stay in struct
 * reddn_request until the caller has the result. Requests need not complete in order: those of other
 * connections overtake, and a repeated one takes a new number.
 */
#ifndef LIBCLIENT_CONNECTION_H
#define LIBCLIENT_CONNECTION_H

#include "libclient/connect.h"
#include "libclient/description.h"
#include "libclient/reddn.h"
#include "libclient/session.h"

#include <stdbool.h>
#include <stdint.h>

enum reddn_request_kind {
	REDDN_ONE_KEY,  /* the only one of its number */
	REDDN_SOME_KEY, /* of an offload whose numbers have several */
	REDDN_RAW,
};

struct reddn_request {
	uint64_t cookie;
	uint64_t retried_since;     /* ns, CLOCK_MONOTONIC */
	uint64_t moves_before;      /* those of the last reply before it was sent */
	uint8_t *key;               /* or the raw request, of len bytes */
	struct reddn_request *next; /* in the retry queue, or among those of a slot */
	struct reddn_request *next_free;
	uint32_t len;
	uint16_t kind;    /* enum reddn_request_kind */
	uint16_t retries; /* how often it was repeated; no further than matters */
	bool is_free;     /* of use to reddn_poll() when the connection is lost */
};

struct reddn {
	/* There is more to do than to send and to take replies: requests to repeat, or the end of the
	 * connection. reddn_poll() takes it back */
	bool exceptional;
	struct reddn_session session;

	uint8_t *keys; /* keys (or raw requests) of key_room bytes, as many as requests */
	size_t keys_len, key_room;
	struct reddn_request *requests; /* nrequests */
	uint32_t nrequests;             /* session.info.depth times the keys of a number */
	struct reddn_slot *arrived;     /* list of slots whose reply has come, and has no result yet */
	uint32_t arrived_key;           /* keys of the first arrived slot that have their result */
	struct reddn_slot *held;        /* list of slots whose results the caller has */

	uint32_t busy;                            /* requests without a result */
	struct reddn_request *free_request;       /* list */
	struct reddn_request *retry, *retry_tail; /* queue of requests to repeat */
	uint64_t retries_moved, retries_overtaken;
	unsigned idle_polls;

	struct reddn_connector connector;
	struct reddn_description description; /* empty until reddn_describe() */
	int broken;                           /* 0, or -errno: the connection is lost */
	bool end_asked;                       /* reddn_end_reason has asked */
	int end_outcome;                      /* and this is its result */
	char errmsg[512];
};

/** Allocate memory for the requests that the session may have. -ENOMEM; deinit frees it. */
int reddn_requests_init(struct reddn *c);

void reddn_requests_deinit(struct reddn *c);

/** Milliseconds until @deadline (clock_ms), 0 if it is over. */
int reddn_time_left(uint64_t deadline);

/**
 * Wait for an event of the connection manager until @deadline; the caller acknowledges it. 0, -ETIMEDOUT, or
 * -errno.
 */
int reddn_next_event(struct rdma_event_channel *events, uint64_t deadline, struct rdma_cm_event **out);

/** Process the connection manager's events that have arrived. Sets hangup or broken. */
void reddn_check_events(struct reddn *c);

/** Send what is to be repeated, as far as there is room. */
void reddn_send_retries(struct reddn *c) __attribute__((cold));

/** Mark the connection as lost with -errno @error and the reason in words. The first call counts. */
void reddn_break(struct reddn *c, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
