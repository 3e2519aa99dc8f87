/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connection.h - a handle of libreddn: its state and its memory. It has a session (session.h), which
 * connect.c makes (options.c: of what the caller wants, hosts.c: at one of the addresses of its hosts).
 * When it is lost, reconnect.c puts another one in its place; of several hosts that is ready before
 * (standby.c). A part of the offload has a handle of its own (part.c). request.c submits requests, poll.c
 * polls for CQEs, results.c makes results of replies, wait.c waits for them, describe.c asks why it ended
 * and what the offload takes and answers. A handle with shards has one of these for each (shards.h,
 * open.c).
 *
 * A *request* is what the caller submitted: a raw one, or a key. Its key and cookie stay in struct
 * reddn_request until the caller has the result. Requests need not complete in order: those of other
 * connections overtake, and a repeated one takes a new number.
 */
#ifndef LIBCLIENT_CONNECTION_H
#define LIBCLIENT_CONNECTION_H

#include "libclient/connect.h"
#include "libclient/put.h"
#include "libclient/question.h"
#include "libclient/reddn.h"
#include "libclient/session.h"
#include "libclient/standby.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** The arguments and the reply of an offload, as its server describes them (REDDN_REQ_DESCRIBE of wire.h),
 * understood (description.c). All zero: none. */
struct reddn_description {
	char *text; /* the names are in it */
	/* of the session that it is about */
	uint64_t program;
	uint32_t reply_max;
	const char **arg;
	struct reddn_reply_field *field;
	unsigned nargs, nfields;
};

/**
 * Puts @part, which came with the length @whole of all, behind the *len bytes of @text, which has room for
 * REDDN_WIRE_DESCRIPTION_MAX and a zero byte. Both come from outside. False: they cannot be true.
 */
bool reddn_description_add(char *text, size_t *len, size_t whole, const char *part);

/**
 * Takes over @text, which was allocated. It comes from outside: a field that does not lie within @reply_max
 * bytes, or has a name that no program can have, is wrong. @program: of the session. 0; or -EPROTO or
 * -ENOMEM, and *d is empty then.
 */
int reddn_description_read(struct reddn_description *d, char *text, uint64_t program, uint32_t reply_max);
/** True: it is about a session of @program with replies of @reply_max bytes. Servers may name the same
 * program, and have replies of another length: fields would lie behind them. */
bool reddn_description_is_of(const struct reddn_description *d, uint64_t program, uint32_t reply_max);
void reddn_description_deinit(struct reddn_description *d);

enum reddn_request_kind {
	REDDN_ONE_KEY,    /* the only one of its number */
	REDDN_SOME_KEY,   /* of an offload whose numbers have several, or whose records have a header */
	REDDN_KEY_EXISTS, /* if it does */
	REDDN_KEY_INTO,   /* into memory of the caller */
	REDDN_RAW,
	REDDN_RECORD,    /* a put: put.h */
	REDDN_NO_RECORD, /* a delete */
};

struct reddn_request {
	uint64_t cookie;
	uint64_t retried_since;     /* ns, CLOCK_MONOTONIC */
	struct reddn_seen before;   /* by the last reply before it was sent; without the epoch */
	uint8_t *key;               /* or the raw request, or what put.h has of a put, of len bytes */
	struct reddn_request *next; /* in a queue, or among those of a slot */
	struct reddn_request *next_free;
	uint32_t len;
	int status;       /* of one that has ended */
	uint8_t kind;     /* enum reddn_request_kind */
	bool dated;       /* `before` has more than moves */
	uint16_t retries; /* how often it was repeated; no further than matters */
	uint16_t losses;  /* sessions that were lost before its reply */
	uint16_t mark;    /* of REDDN_KEY_EXISTS: see reddn_exists_build() */
	union {
		struct reddn_put put;
		struct {
			uint8_t *at;
			uint32_t room;   /* bytes there */
			unsigned memory; /* index in that of the handle */
			uint64_t longer; /* struct reddn_apart */
		} into;
	};
	uint64_t due; /* ns, CLOCK_MONOTONIC; of one that pauses */
};

/** Memory that the caller has registered. */
struct reddn_memory {
	uint8_t *at;
	size_t len;      /* 0: none */
	int dmabuf;      /* that it is mapped from; -1: it is the process's */
	uint64_t offset; /* of its first byte in that */
};

/** Be the same as @q, in memory of its own. */
static inline void reddn_request_copy(struct reddn_request *to, const struct reddn_request *q)
{
	uint8_t *key = to->key;

	memcpy(key, q->key, q->len);
	*to = *q;
	to->key = key;
}

static inline bool reddn_request_is_put(const struct reddn_request *q)
{
	return q->kind >= REDDN_RECORD;
}

/** A get of a table's key, as it is sent in the usual way, is a kind of its own. */
static inline enum reddn_request_kind reddn_kind_of_keys(const struct reddn_geometry *g)
{
	if (g->part)
		return REDDN_KEY_EXISTS;
	if (g->into)
		return REDDN_KEY_INTO;
	return g->keys == 1 && !g->header ? REDDN_ONE_KEY : REDDN_SOME_KEY;
}

struct reddn_queue {
	struct reddn_request *first, *last;
};

static inline void reddn_queue_append(struct reddn_queue *to, const struct reddn_queue *from)
{
	if (to->first)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
}

static inline void reddn_queue_add(struct reddn_queue *to, struct reddn_request *q)
{
	q->next = NULL;
	reddn_queue_append(to, &(struct reddn_queue){q, q});
}

/** The first one, or NULL. */
static inline struct reddn_request *reddn_queue_take(struct reddn_queue *from)
{
	struct reddn_request *q = from->first;

	if (q) {
		from->first = q->next;
		q->next = NULL;
	}
	return q;
}

/*
 *     UP ──a loss──▶ LOST ──▶ AWAY ──a new session──▶ UP
 *                     └──▶ OVER, with REDDN_NO_RECONNECT
 */
enum reddn_state {
	REDDN_UP,   /* its session answers */
	REDDN_LOST, /* the session does not, and has not been left: the caller may have values in its slots */
	REDDN_AWAY, /* there is none, but perhaps that of a table that was replaced, which is not used any
		     * more. The connector rests until connect_at, or makes one */
	REDDN_OVER, /* and there will be none */
};

struct reddn {
	/* There is more to do than to send and to take replies: requests to repeat or to report, or the end
	 * of the session. reddn_poll() takes it back */
	bool exceptional;
	bool is_part;            /* of another handle (part.h): it connects only while it has requests, */
	bool wanted;             /* or for those to come */
	uint8_t part;            /* which one, as in wire.h */
	struct reddn *owner;     /* of a part or a shard; NULL: it is the caller's */
	struct reddn *parts;     /* of this handle, a list: those that were asked; or its shards */
	struct reddn *next_part; /* in that list */
	struct reddn *polled;    /* of the handle and its parts: reddn_poll() begins with it */
	struct reddn *asked;     /* the part of the last submission: errors may be its own; NULL: none */
	struct reddn *several;   /* the part that last took several keys, and by the session in use */
	unsigned several_least;  /* so few go there; NULL: another one, perhaps */
	bool is_whole;           /* of several shards (shards.h): it has no session */
	bool strays;             /* and there are requests in `elsewhere` of one of them */
	struct reddn *shard;     /* that it is, or whose part it is; NULL: of no handle with shards */
	uint64_t slots;          /* of a shard: that its table has stated last (redis-slots.h); 0: none yet */
	enum reddn_state state;
	struct reddn_session session;
	/* Of a table that was replaced, until this one has answered; or none, as with REDDN_INTO */
	struct reddn_session before;

	uint8_t *keys; /* keys (or raw requests) of key_room bytes, as many as requests */
	size_t key_room;
	unsigned most_keys, most_exists; /* that one request of a session, or of its parts, has had */
	struct reddn_request *requests;  /* nrequests */
	uint32_t nrequests;              /* at least reddn_session_requests() */
	struct reddn_slot *arrived;      /* list of slots whose reply has come, and has no result yet */
	uint32_t arrived_key;            /* keys of the first arrived slot that have their result */
	struct reddn_slot *held;         /* list of slots whose results the caller has */

	uint32_t busy;                              /* requests without a result */
	struct reddn_request *free_request;         /* list */
	struct reddn_queue retry;                   /* requests to send, most of them again */
	struct reddn_queue ended;                   /* requests whose result is their status */
	struct reddn_queue paused;                  /* puts that go on when they are due, */
	uint64_t pause_until;                       /* the first one then, ns; UINT64_MAX: there is none */
	struct reddn_queue elsewhere;               /* requests of keys that another shard has */
	struct reddn_memory memory[REDDN_MEMORIES]; /* memory.h */
	uint64_t retries_moved, retries_overtaken, retries_old, retries_conflict, retries_absent, reconnects;
	unsigned idle_polls;

	struct reddn_connector connector;
	struct reddn_standby standby;
	uint64_t connect_at; /* ms; AWAY */
	uint64_t up_since;   /* ms */
	uint64_t lost_at;    /* ms: the last session */
	uint64_t used_at;    /* ms; by the last request that may change something */
	/* the table was replaced, and its successor is at the same host: until that refuses, or a session
	 * with it is lost */
	bool go_back;
	uint32_t pause_ms;                    /* the last one; 0: a session has answered since */
	struct reddn_description description; /* empty until reddn_describe() */
	int broken;  /* -errno: requests end with it, as long as it is there; else 0 */
	int give_up; /* -errno: a call has waited long enough, its requests end with it; else 0 */
	int loss;    /* -errno: why the last session was lost; 0: none was */
	struct reddn_subject lost; /* it */
	bool end_asked;            /* reddn_end_reason has asked about it */
	int end_outcome;           /* and this is the result */
	size_t loss_len;           /* bytes of errmsg that are about it */
	char errmsg[1024];
};

void reddn_set_state(struct reddn *c, enum reddn_state state);

/** Have memory for the requests of @s, which is the first session or the next one, and let its NIC read the
 * puts there. -ENOMEM; -errno: it cannot be registered. */
int reddn_requests_grow(struct reddn *c, struct reddn_session *s);

void reddn_requests_deinit(struct reddn *c);

/**
 * Make a handle, as reddn_connect() does without shards. With @waits, 1: no host can be reached now, and it
 * is AWAY; its session is to be expected.
 */
int reddn_open(struct reddn **out, const struct reddn_options *options, bool waits, char *err, size_t errlen);

/** It is AWAY, and has had no session: its first one will be @like this one. -ENOMEM. */
int reddn_expect(struct reddn *c, const struct reddn_session *like);

/** @q, which is in no queue, and whose key the session takes, is sent when that can send it. */
void reddn_request_send_later(struct reddn *c, struct reddn_request *q);

/** The same of @to, after it was one of @from; @to has a free request. */
void reddn_request_hand_over(struct reddn *from, struct reddn_request *q, struct reddn *to);

/** Process the connection manager's events that have arrived. Sets hangup or broken. */
void reddn_check_events(struct reddn *c);

/** Before a request that may change something: a session that has ended while nobody used it is lost now, and
 * does not take a request of which nobody could tell what became of it. */
void reddn_look_first(struct reddn *c);

/** All that @whole consists of: itself and then its parts, each followed by its own. Returns what follows @p,
 * or NULL. */
static inline struct reddn *reddn_next_of(const struct reddn *whole, const struct reddn *p)
{
	if (p->parts)
		return p->parts;
	while (p != whole && !p->next_part)
		p = p->owner;
	return p == whole ? NULL : p->next_part;
}

/** The part that was made for that, or NULL. */
static inline struct reddn *reddn_part_find(const struct reddn *whole, uint8_t part)
{
	struct reddn *p = whole->parts;

	while (p && p->part != part)
		p = p->next_part;
	return p;
}

/**
 * Of the parts with those @kind bits of reddn_wire_table.part that for @n keys, as of reddn_session_part():
 * of the session in use, or of several hosts one that was made with another, if that takes more. 0: there is
 * none.
 */
static inline uint8_t reddn_part_for(const struct reddn *c, uint8_t kind, unsigned n)
{
	uint8_t best = reddn_session_part(&c->session, kind, n);

	for (const struct reddn *p = c->standby.wanted ? c->parts : NULL; p && reddn_wire_part_keys(best) < n;
		p = p->next_part)
		if ((p->part & REDDN_WIRE_PART_EXISTS) == kind &&
			reddn_wire_part_keys(p->part) > reddn_wire_part_keys(best))
			best = p->part;
	return best;
}

/** Any of them has requests without a result. */
static inline bool reddn_is_busy(const struct reddn *c)
{
	const struct reddn *p = c;

	while (p && !p->busy)
		p = reddn_next_of(c, p);
	return p;
}

/** A request that may have been executed is not sent again, and all go to one machine. */
static inline bool reddn_is_sent_once(const struct reddn *c)
{
	return !c->is_whole && !(c->connector.opt.flags & REDDN_REPEATABLE) &&
	       reddn_hosts_is_one_machine(&c->connector.hosts);
}

/** Send what is to be repeated, as far as there is room. */
void reddn_send_retries(struct reddn *c) __attribute__((cold));

/** The session is lost with -errno @error and the reason in words. Of each session the first call counts. */
void reddn_break(struct reddn *c, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- from replies to results: judges the replies that have arrived, queues requests that have to be
 * repeated, and reports the results to the caller (results.c) ---- */

/**
 * Report results from @res on, but none at @end: of the slots in c->arrived, which is not empty, as far as
 * there is room, of which there is some. Returns their number, 0 if all requests are to be repeated, or
 * -errno if there is none because the connection is lost.
 */
int reddn_report_arrived(struct reddn *c, struct reddn_result *res, const struct reddn_result *end);

/**
 * Do what is left when c->exceptional, behind the results from @res up to @at: send what is to be sent again;
 * report the requests that have ended without a reply. Returns the same.
 */
int reddn_report_rest(
	struct reddn *c, struct reddn_result *res, struct reddn_result *at, const struct reddn_result *end);

/** The slots whose results the caller has take requests again. */
static inline void reddn_release_held(struct reddn *c)
{
	for (struct reddn_slot *s = c->held; s; s = s->next_held)
		s->request = NULL;
	c->held = NULL;
}

/* ---- how a handle outlives its session: what becomes of the requests that were outstanding, when to connect
 * again, and the exchange of the session. It takes steps in reddn_poll() and waits for nothing (reconnect.c)
 * ---- */

/**
 * Take the steps of a handle that is not UP, or has the session before. No reply may be left in c->arrived,
 * and no value of a slot with the caller.
 */
void reddn_recover(struct reddn *c) __attribute__((cold));

/**
 * A poll of a handle with several hosts, which is UP, has found nothing: if the session is late, another one
 * takes its place. Else as above.
 */
void reddn_look_after(struct reddn *c);

#endif
