/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client-impl.h - a connection, shared by connect.c (making and ending one), request.c (using it) and
 * end-reason.c (asking why it ended).
 *
 * A *request* is what the caller submitted: its key and cookie stay in struct reddn_request until the result
 * is handed out. Each time it is sent it takes the next *number*; the reply lands in *slot* number % depth.
 * Numbers complete in order; requests need not, because one that is sent again takes a new number.
 */
#ifndef LIBCLIENT_CLIENT_IMPL_H
#define LIBCLIENT_CLIENT_IMPL_H

#include "libclient/args.h"
#include "libclient/reddn.h"
#include "libclient/reply.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	REDDN_ARG_MAX = 256, /* bytes of a request */
	REDDN_AGAIN_MIN =
		16, /* asked again so often at least, even if the machine stands still for retry_ms */
	REDDN_NONE = UINT32_MAX, /* no request */
};

struct reddn_request {
	uint64_t cookie;
	uint64_t again_since;     /* ns, CLOCK_MONOTONIC */
	uint32_t again;           /* how often it was sent again */
	struct reddn_seen before; /* when it was sent */
	uint32_t len;             /* of the key, or of the raw request */
	bool raw;
	bool busy;
	uint32_t next; /* in the free list or the queue of those to send again */
};

struct reddn_slot {
	uint32_t request; /* whose reply is awaited, or REDDN_NONE */
	bool held;        /* the caller has its result */
};

struct reddn {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	int epoll;

	uint8_t *area; /* registered: depth slots, then depth requests of REDDN_ARG_MAX bytes */
	size_t area_len;
	uint8_t *args;
	uint8_t *keys; /* depth keys (or raw requests) of key_room bytes */
	size_t keys_len, key_room;
	struct reddn_request *requests; /* depth */
	struct reddn_slot *slots;       /* depth */
	uint32_t *held;                 /* slots whose results the caller has */
	uint32_t nheld;
	struct ibv_recv_wr *recvs; /* one batch of depth receives */

	struct reddn_info info;
	struct reddn_geometry geo;
	struct reddn_form form;
	uint32_t retry_ms, spin_us, timeout_ms;
	uint32_t inline_max;
	uint32_t signal_every;

	uint64_t sent, done;        /* numbers given out, numbers completed */
	uint64_t reclaimed;         /* sends whose WQEs are free again */
	uint32_t recvs_used;        /* since the last batch was posted */
	uint32_t busy;              /* requests that have no result yet */
	uint32_t free_request;      /* list */
	uint32_t again, again_tail; /* queue */
	struct reddn_seen seen;     /* of the latest reply */
	unsigned idle_polls;
	bool armed;
	bool hangup; /* the server disconnected; replies that came before still count */
	int broken;  /* -errno, the connection's end */
	bool asked_why;
	int why; /* the answer */
	char errmsg[512];
};

/** Where `slot` starts. */
static inline uint8_t *reddn_slot_mem(const struct reddn *c, uint64_t slot)
{
	return c->area + slot * c->info.slot_size;
}

/** Memory for info.depth requests and reply slots of info.slot_size. -ENOMEM; deinit clears up. */
int reddn_requests_init(struct reddn *c);

/** Memory for as many keys of key_room bytes. -ENOMEM. */
int reddn_keys_init(struct reddn *c);

void reddn_requests_deinit(struct reddn *c);

/** Take connection manager events that are there. Sets hangup or broken. */
void reddn_check_events(struct reddn *c);

/** The connection ends, for a reason in words; the first reason stays. */
void reddn_break(struct reddn *c, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** Post a batch of `depth` receives. -errno. */
int reddn_post_receives(struct reddn *c);

#endif
