/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connection.h - a handle of libreddn: its state and its memory. connect.c makes one (options.c: of what the
 * caller wants, addresses.c: at one of the addresses of the server), queues.c has its queues, request.c
 * submits requests, poll.c polls for CQEs, results.c makes results of replies, wait.c waits for them,
 * end-reason.c asks why it ended, describe.c what the offload takes and answers.
 *
 * A *request* is what the caller submitted: a raw one, or a key. Its key and cookie stay in struct
 * reddn_request until the caller has the result. A handle has one or more *connections*, with a queue pair
 * and `depth` slots each; they share everything else. Each time the library sends a request, it takes the
 * next *number* of one of them, and its reply arrives in the slot number % depth of that one. The numbers of
 * a connection complete in order. Several keys may have one number (reddn_info.keys). Requests need not
 * complete in order: those of other connections overtake, and a repeated one takes a new number.
 */
#ifndef LIBCLIENT_CONNECTION_H
#define LIBCLIENT_CONNECTION_H

#include "libclient/args.h"
#include "libclient/description.h"
#include "libclient/reddn.h"
#include "libclient/reply.h"
#include "protocol/wire.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	REDDN_REQUEST_MAX = 256, /* bytes of a request */
	/* for an encoded one: bytes of no meaning may follow it, see reddn_request_write() */
	REDDN_REQUEST_BYTES = REDDN_REQUEST_MAX + 64,
	REDDN_NUMBER_BYTES = 4,
	/* A wr_id is the address of the connection, and this in that of a SEND */
	REDDN_SEND = 1,
};

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

struct reddn_slot {
	/* the first of those whose reply is due, one for each key; or one whose result in this slot the
	 * caller has; or NULL, and the slot can be used */
	struct reddn_request *request;
	struct reddn_slot *next; /* that of the next number of its connection */
	struct reddn_slot *next_arrived, *next_held;
	struct reddn_connection *refill; /* of its last slot: posts a batch of receives behind its replies */
	uint8_t *mem;                    /* info.slot_size bytes for the reply */
	uint8_t *encoded;                /* REDDN_REQUEST_BYTES for the request */
};

struct reddn_connection {
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qp_ex;         /* of qp; NULL if its provider has ibv_post_send() only */
	struct ibv_recv_wr *recvs;       /* one batch of depth receives */
	uint32_t base;                   /* its first slot */
	uint64_t sent, arrived;          /* numbers sent; those of them whose reply has come */
	struct reddn_slot *sent_slot;    /* base + sent % depth */
	struct reddn_slot *arrived_slot; /* base + arrived % depth */
	uint32_t until_signal;           /* sends until the next one with a completion, which counts */
	uint64_t reclaimed;              /* sends whose WQEs are free again */
	struct reddn_connection *next;
};

struct reddn {
	struct reddn_connection connection[REDDN_WIRE_CONNECTIONS];
	struct reddn_connection *turn; /* the one that takes the next request, if it can */
	/* Keys of up to so many bytes are sent in the usual way: inline, by ibv_wr_*(), one to a number. 0:
	 * none are */
	size_t usual_key;
	/* There is more to do than to send and to take replies: requests to repeat, or the end of the
	 * connection. reddn_poll() takes it back */
	bool exceptional;

	struct rdma_event_channel *events; /* of all connections, as what follows */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex; /* the same; NULL if its provider has ibv_poll_cq() only */
	struct ibv_mr *mr;
	int epoll;

	/* registered: the slots, then as many encoded requests of REDDN_REQUEST_BYTES, then as many
	 * numbers */
	uint8_t *area;
	size_t area_len;
	uint8_t *numbers; /* the numbers: by slot, what a receive gets where there are no immediates */
	uint8_t *keys;    /* keys (or raw requests) of key_room bytes, as many as requests */
	size_t keys_len, key_room;
	struct reddn_request *requests; /* nrequests */
	struct reddn_slot *slots;       /* info.depth */
	struct reddn_slot *arrived;     /* list of slots whose reply has come, and has no result yet */
	struct reddn_slot *held;        /* list of slots whose results the caller has */
	struct ibv_recv_wr *recvs;      /* of all connections */
	struct ibv_sge *number;         /* by receive: its place in the numbers */

	uint32_t nrequests;   /* info.depth times the keys of a number */
	uint32_t arrived_key; /* keys of the first arrived slot that have their result */

	uint32_t depth;  /* of a connection; info.depth is that of all */
	uint64_t secret; /* for further connections */
	struct reddn_info info;
	struct reddn_geometry geo;
	struct reddn_request_format format;
	struct reddn_description description; /* empty until reddn_describe() */
	uint32_t retry_ms, spin_us, timeout_ms;
	uint32_t inline_max;
	uint32_t signal_every;
	uint32_t wqes; /* of the SQ of a connection */

	bool sends;                               /* replies end with a SEND, not with an immediate */
	uint32_t busy;                            /* requests without a result */
	struct reddn_request *free_request;       /* list */
	struct reddn_request *retry, *retry_tail; /* queue of requests to repeat */
	struct reddn_seen seen;                   /* moves of the latest reply, epoch of the first */
	unsigned idle_polls;
	bool armed;
	bool hangup;     /* the server disconnected; earlier replies still count */
	int broken;      /* 0, or -errno: the connection is lost */
	bool end_asked;  /* reddn_end_reason has asked */
	int end_outcome; /* and this is its result */
	char errmsg[512];
};

static inline uint8_t *reddn_slot_mem(const struct reddn *c, uint64_t slot)
{
	return c->area + slot * c->info.slot_size;
}

/** Allocate memory for info.connections, `depth` reply slots of info.slot_size each. -ENOMEM; deinit frees
 * it.
 */
int reddn_requests_init(struct reddn *c);

/** Allocate memory for the requests that the handle may have, with keys of key_room bytes. -ENOMEM. */
int reddn_keys_init(struct reddn *c);

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
