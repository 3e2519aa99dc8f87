/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - a pool of memcacheds: its state, and that of its memcached_st now. pool.c makes one, ask.c sends
 * gets, in pieces where an item is longer than an answer, and judges the answers, wait.c waits for all of
 * that.
 *
 * A get is an *ask* from its submission until its result is released. It is sent to the NIC of its server;
 * what the NIC cannot answer goes over TCP.
 */
#ifndef LIBCLIENT_MC_POOL_H
#define LIBCLIENT_MC_POOL_H

#include "libclient/mc/server.h"
#include "libclient/reddn-mc.h"
#include "memcached/key.h"

#include <libmemcached/memcached.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>

/** A get by libmemcached, and room for its answer, which is kept for the next one. All zero: none. */
struct mc_tcp_get {
	const char *key;
	size_t key_len;
	int status; /* 0, REDDN_MISS, or -errno */
	char *value;
	size_t len, room;
	uint64_t cas;
	uint32_t flags;
};

/** Frees the room. */
void mc_tcp_deinit(struct mc_tcp_get *get);

/** Makes room for @len bytes. 0 or -ENOMEM. */
int mc_tcp_reserve(struct mc_tcp_get *get, size_t len);

/** Gets @n keys that have one server, in one question. Sets the status of each, and the answer if that is 0.
 */
void mc_tcp_ask(memcached_st *memc, struct mc_tcp_get *const *gets, size_t n);

struct mc_ask {
	struct mc_ask *next;              /* in its queue */
	char key[MEMCACHED_KEY_MOST + 1]; /* with the namespace, */
	size_t key_len, space_len;        /* which has so many bytes of it */
	uint64_t cookie;
	uint32_t server;
	uint64_t asked_ms; /* when it was submitted, by clock_tick_ms(): no later */
	uint64_t began_ms; /* when the NIC was asked first, or again, by the same clock */
	uint64_t nth;      /* of the requests to the NIC of its server */
	bool flying;
	bool beyond;           /* a bucket that the NIC has seen has more items than it sends */
	bool absent;           /* it goes over TCP because the NIC did not find it */
	uint8_t table, tries;  /* of those in use; how often the NIC was asked again */
	struct mc_place place; /* where the NIC was asked to look */
	uint64_t newest;       /* CAS id that was known then */
	struct mc_pieces {
		struct mc_item item;        /* what the first answer showed, if it is longer */
		uint64_t generation;        /* of its memcached */
		uint32_t all, sent, flying; /* pieces of it */
		bool waiting;               /* in the queue: some are not sent */
		bool changed, lost;         /* what came is of no use; none will come */
	} pieces;
	struct mc_tcp_get tcp;
};

struct mc_queue {
	struct mc_ask *first, **end;
};

struct reddn_mc {
	memcached_st *memc;
	struct reddn_mc_options options; /* without defaults */
	char *strings[3];                /* of options */
	struct mc_server *servers;       /* and one without a NIC behind them, for what was added later */
	uint32_t nservers;
	struct pollfd *fds;         /* two for each server, to sleep on */
	struct mc_ask *asks;        /* depth */
	uint32_t busy;              /* without a result */
	struct mc_queue idle, held; /* without a get; with a result that is not released */
	struct mc_queue nic, tcp;   /* to be sent to their NIC; over TCP */
	struct mc_queue pieces;     /* with pieces that are to be sent */
	struct reddn_mc_stats stats;
	char errmsg[512];
};

/* The application may change the memcached_st between two calls: what it has is asked for each time. */

/** In front of each key, *@len bytes; "" if there is none. Until the application's next call. */
const char *mc_pool_namespace(const struct reddn_mc *mc, size_t *len);

/**
 * The server of @key, which comes without the namespace. *@behind: what the application has sent to it may
 * not be done yet, because nobody has waited for the answer; only memcached itself answers after that.
 */
uint32_t mc_pool_server(struct reddn_mc *mc, const char *key, size_t key_len, bool *behind);

static inline void mc_queue_init(struct mc_queue *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static inline void mc_queue_put(struct mc_queue *q, struct mc_ask *a)
{
	a->next = NULL;
	*q->end = a;
	q->end = &a->next;
}

static inline struct mc_ask *mc_queue_take(struct mc_queue *q)
{
	struct mc_ask *a = q->first;

	if (a) {
		q->first = a->next;
		if (!q->first)
			q->end = &q->first;
	}
	return a;
}

/** Sends @a to its NIC, or lets the next mc_send_queued() do so. It has its key and its server. */
void mc_send(struct reddn_mc *mc, struct mc_ask *a);

/** Asks memcached; @counter is that of the reason. */
void mc_send_tcp(struct reddn_mc *mc, struct mc_ask *a, uint64_t *counter);

/** Takes up to @max results; over TCP if no NIC has one. Those of the call before are released. */
int mc_ask_poll(struct reddn_mc *mc, struct reddn_mc_result *res, int max);

/** Releases the results of the last mc_ask_poll(). */
void mc_ask_release(struct reddn_mc *mc);

#endif
