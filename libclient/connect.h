/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect.h - makes a session at one of the addresses of one of the hosts of a handle. It waits for nothing:
 * the caller sleeps on a descriptor, and lets it take the next steps.
 *
 *     IDLE ──begin──▶ ADDRESS ──▶ ROUTE ──▶ ANSWER ──▶ DONE, with the session ──▶ IDLE
 *                        ▲                    │  └───▶ FAILED, with the error ───▶ IDLE
 *                        └────────────────────┘
 *          the next connection of the session; slots of the size or the depth that the server asks for; the
 *          next address; the next host
 */
#ifndef LIBCLIENT_CONNECT_H
#define LIBCLIENT_CONNECT_H

#include "libclient/hosts.h"
#include "libclient/pause.h"
#include "libclient/reddn.h"
#include "libclient/session.h"
#include "protocol/token.h"

#include <stdbool.h>
#include <stdint.h>

enum { REDDN_CONNECT_WORDS = 512 };

/* A session that has lasted so long resets the pause until the next attempt */
enum { REDDN_STEADY_MS = 1000 };

enum reddn_connect_state {
	REDDN_CONNECT_IDLE,    /* nothing is being done */
	REDDN_CONNECT_ADDRESS, /* of one connection: its address is being resolved, */
	REDDN_CONNECT_ROUTE,   /* its route, */
	REDDN_CONNECT_ANSWER,  /* and the server has its request, */
	REDDN_CONNECT_ENDED,   /* and ended it after its answer: an event of that follows */
	REDDN_CONNECT_DONE,
	REDDN_CONNECT_FAILED,
};

struct reddn_connector {
	enum reddn_connect_state state;
	struct reddn_options opt; /* with the defaults, and strings of its own */
	struct token_key key;     /* len 0: none */
	/* The handle's: for poll(2), readable when there is a step to take; and what is in it for the time */
	int epoll, timer;
	uint64_t alarm; /* ms: that of the timer */

	unsigned begun; /* how often */
	struct reddn_hosts hosts;
	const struct addrinfo *at; /* the address that is tried, of the host that is tried */
	uint64_t deadline;         /* ms, of all addresses */
	uint64_t until;            /* ms, of this one */

	struct reddn_session session; /* that is being made */
	struct reddn_connection *k;   /* and the connection of it */
	unsigned depth;               /* that is asked for */
	uint32_t slot_size;
	bool yields;            /* opt.depth to the most that the server allows */
	bool sized;             /* the server asked for this slot_size */
	bool asked;             /* a REQ was sent to this address */
	bool answered;          /* by a REP or a reddnd's REJ: no other address of the host is tried */
	uint32_t slot_required; /* the slot size that the server asked for */
	unsigned depth_allowed; /* what the server allows, if it refused @depth; else 0 */
	char err[REDDN_CONNECT_WORDS];

	/* The failure of the addresses before: the last of those that answered; else of those that a REQ was
	 * sent to; else the last. And that of all, when they have failed */
	int error;
	enum { REDDN_NOT_ASKED, REDDN_ASKED, REDDN_ANSWERED } telling; /* of it: the more, the better */
	bool all_answered;                                             /* every host: none was left out */
	char words[REDDN_CONNECT_WORDS];
};

/**
 * Take @opt, of which it keeps a copy, look the hosts up, for opt.timeout_ms at most, and make the
 * descriptors. 0, or -errno and the reason in @words. deinit frees it in any case; all zero is allowed there.
 */
int reddn_connector_init(struct reddn_connector *a, const struct reddn_options *opt);

/** One that makes no session, of a handle with shards: it has the options but for the strings, and the
 * descriptors. Errors and deinit as of init. */
int reddn_connector_init_bare(struct reddn_connector *a, const struct reddn_options *opt);

/**
 * One for another offload of the hosts of @of, for a part: waits for no names (@host, @known: as of
 * reddn_hosts_copy()), and a depth that the server does not allow gives way to the most that it does. Errors
 * and deinit as of init.
 */
int reddn_connector_copy(struct reddn_connector *a, const struct reddn_connector *of, const char *offload,
	unsigned host, const struct sockaddr *known);

void reddn_connector_deinit(struct reddn_connector *a);

/**
 * Begin with the first address of the first host of the choice (hosts.h), for opt.timeout_ms in all. It is
 * IDLE, and stays so if there is no such host. The names are looked up again each time but the first, for the
 * next time: that may take long, and most servers come back where they were.
 */
void reddn_connector_begin(struct reddn_connector *a, enum reddn_choice choice, unsigned host);

/** Take the steps that can be taken now. */
void reddn_connector_step(struct reddn_connector *a);

/** The same until it is DONE or FAILED. */
void reddn_connector_wait(struct reddn_connector *a);

/** It is DONE: hand over the session, whose queues and memory are the caller's, and be IDLE. */
struct reddn_session reddn_connector_take(struct reddn_connector *a);

/** It is not IDLE, nor has it FAILED: take no step any more, and be IDLE. */
void reddn_connector_abandon(struct reddn_connector *a);

/** It has FAILED: be IDLE. */
void reddn_connector_rest(struct reddn_connector *a);

/** The descriptor becomes readable at @ms (clock_ms), and stays so until the next call. UINT64_MAX: never. */
void reddn_connector_alarm(struct reddn_connector *a, uint64_t ms);
/** The same in ns (clock_ns). */
void reddn_connector_alarm_ns(struct reddn_connector *a, uint64_t ns);

#endif
