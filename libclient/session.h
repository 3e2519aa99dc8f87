/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - a session with a server: what the server has reported of it (handshake.c), its memory, queues
 * (queues.c) and slots. connect.c makes one. A handle has one in use, and of several hosts a second one
 * (standby.h); it outlives them.
 *
 * A session has one or more *connections*, with a queue pair and `depth` slots each; they share everything
 * else. Each time the library sends a request, it takes the next *number* of one of them, and its reply
 * arrives in the slot number % depth of that one. The numbers of a connection complete in order. Several keys
 * may have one number (reddn_info.keys).
 *
 * The struct can be copied to another place: nothing points to it, but only to what it points to.
 */
#ifndef LIBCLIENT_SESSION_H
#define LIBCLIENT_SESSION_H

#include "libclient/args.h"
#include "libclient/reddn.h"
#include "libclient/reply.h"
#include "protocol/wire.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* for an encoded one: bytes of no meaning may follow it, see reddn_request_write() */
	REDDN_REQUEST_BYTES = REDDN_REQUEST_MAX + 64,
	REDDN_NUMBER_BYTES = 4,
	REDDN_MEMORIES = 16,   /* that a handle may register */
	REDDN_INTO_PLACES = 3, /* that a reply goes to, */
	REDDN_PUT_PLACES = 3,  /* and that a put comes from */
	/* A wr_id is the address of the connection, and this in that of a SEND */
	REDDN_SEND = 1,
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
	uint64_t mark; /* numbers below have been sent when the standby's watch last looked (standby.h) */
};

struct reddn_session {
	struct reddn_connection *connection; /* info.connections */
	struct reddn_connection *turn;       /* the one that takes the next request, if it can */
	/* Keys of up to so many bytes are sent in the usual way: inline, by ibv_wr_*(), one to a number. 0:
	 * none are */
	size_t usual_key;

	struct rdma_event_channel *events; /* of all connections, as what follows */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex; /* the same; NULL if its provider has ibv_poll_cq() only */
	struct ibv_mr *mr;
	struct ibv_mr *puts; /* of one that puts: the handle's memory of requests; else NULL */
	/* those of the handle's memory, by index, and of the sink of REDDN_INTO */
	struct ibv_mr *memory[REDDN_MEMORIES], *sunk;
	uint8_t *sink; /* reddn_session_sink_len() bytes for what is longer than its place; or NULL */

	/* registered: the slots, then as many encoded requests of REDDN_REQUEST_BYTES, then as many
	 * numbers */
	uint8_t *area;
	size_t area_len;
	uint8_t *numbers; /* the numbers: by slot, what a receive gets where there are no immediates */
	struct reddn_slot *slots;  /* info.depth */
	struct ibv_recv_wr *recvs; /* of all connections */
	struct ibv_sge *number;    /* by receive: its place in the numbers */

	unsigned host;          /* where it is: index in the hosts of the handle */
	uint32_t depth;         /* of a connection; info.depth is that of all */
	uint64_t secret;        /* for further connections */
	uint64_t program;       /* hash of its description; 0: not reported */
	struct reddn_info info; /* without what is counted */
	struct reddn_geometry geo;
	struct reddn_request_format format;
	size_t key_room; /* bytes of the longest key or raw request */
	uint32_t inline_max;
	uint32_t signal_every;
	uint32_t wqes; /* of the SQ of a connection */

	uint8_t part[REDDN_WIRE_PARTS]; /* of the offload, as in reddn_wire_table; those unknown here are 0 */
	bool into;                      /* replies are SENDs, each into a receive of its own (REDDN_INTO) */
	bool sends;                     /* replies end with a SEND, not with an immediate */
	bool repeatable;                /* the offload writes to no region */
	struct reddn_seen seen;         /* by the latest reply, but for the epoch, of the first */
	uint64_t plain; /* that epoch, if all lines were plain; UINT64_MAX: one was not, or there is none */
	bool dated;     /* one was not */
	bool armed;
	bool hangup; /* the server disconnected; earlier replies still count */
};

static inline uint8_t *reddn_slot_mem(const struct reddn_session *s, uint64_t slot)
{
	return s->area + slot * s->info.slot_size;
}

/** Numbers that it owes replies to. */
uint64_t reddn_session_outstanding(const struct reddn_session *s);

/** Requests that were sent with it. */
uint64_t reddn_session_sent(const struct reddn_session *s);

/** The number of the reply that has come with the CQE @wc of a receive, whose slot is arrived_slot. */
uint32_t reddn_session_number(const struct reddn_session *s, const struct ibv_wc *wc);

/** The same program, as far as a request or a reader of replies can tell. */
bool reddn_session_is_same(const struct reddn_session *a, const struct reddn_session *b);

/** Requests of @a can be sent with @b: it is the same, or both get of tables, or put in stores. */
bool reddn_session_can_follow(const struct reddn_session *a, const struct reddn_session *b);

/** Its replies have the live line of a table: of gets, and of what exists. */
static inline bool reddn_session_sees_table(const struct reddn_session *s)
{
	return s->info.shape == REDDN_TABLE || s->info.shape == REDDN_TABLE_INTO ||
	       s->info.shape == REDDN_EXISTS;
}

/** It gets of a store. */
static inline bool reddn_session_is_store(const struct reddn_session *s)
{
	return s->info.shape == REDDN_TABLE && s->geo.header;
}

/** Its requests change a store. */
static inline bool reddn_session_puts(const struct reddn_session *s)
{
	return s->info.shape == REDDN_PUT || s->info.shape == REDDN_PUT_IF;
}

/** Requests that it may have outstanding. */
static inline uint32_t reddn_session_requests(const struct reddn_session *s)
{
	return s->info.depth * (s->info.keys ? s->info.keys : 1);
}

/** Of the parts with those @kind bits of reddn_wire_table.part the one with the fewest keys that are @n, or
 * that with the most if none has so many. 0: there is none. */
uint8_t reddn_session_part(const struct reddn_session *s, uint8_t kind, unsigned n);

/**
 * Allocate memory for info.connections, `depth` reply slots of info.slot_size each. -ENOMEM; deinit frees it.
 */
int reddn_session_init(struct reddn_session *s);

/** The longest record fits it. */
static inline size_t reddn_session_sink_len(const struct reddn_session *s)
{
	return s->geo.header + (size_t)s->geo.room;
}

/** Allocate it. -ENOMEM; deinit frees it. */
int reddn_session_sink(struct reddn_session *s);

/** All its connections are connected: see how it sends, and what its receives need. */
void reddn_session_complete(struct reddn_session *s);

/** Free its memory. The queues are gone (queues.h). What the server has reported stays. */
void reddn_session_deinit(struct reddn_session *s);

#endif
