/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - one connection of a client, its queues, its ring of armed instances. It is a session, or one of
 * several connections that are one together (REDDN_REQ_JOIN of wire.h). How it begins and ends; the headers
 * beside this one hold what happens in between:
 *
 *   engine.h     who executes its requests: three implementations, in recycled.c, unrolled.c and cpu.c
 *   queues.h     queues of the first two: made and destroyed; their error CQEs and events become verdicts
 *   count.h      counts what is over, has it made ready again, notes it in the ledger; finds what
 *                is silent
 *   limits.h     limits in force
 *   extents.h    the extents of a store that its instances are armed with
 *   heir.h       takes over a recycled session of a daemon before this one, as it is in the ledger
 *   foreign.h    stands in for an offload that this daemon does not have
 *
 * Instances are numbered from 0. Of N slots, instances [done, done + N) are armed, and RECVs [0, done + N -
 * 1) are posted: an instance enables the head of its successor, which therefore must be armed first.
 *
 * The NIC itself re-arms the instances of a recycled chain. After the start this process arms nothing but
 * extents, posts no RECV (except for server/pacer.h) and takes no CQE. Such a chain goes on if this process
 * stops for good, for as long as its files are open somewhere. One that publishes goes on until its extents
 * are used up, and then waits for the next process.
 *
 * Of several connections, the first one stands for the session: it has the limits that all of them share, and
 * what is reported is the sum of all. It begins first, and all end together, the first one last. Connection k
 * of session n has the number n + k * 2^LEDGER_CONNECTION_SHIFT: events and the ledger lead from each of them
 * to the first.
 *
 * Thread rules: one thread. Nothing here is on the path of a request.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "reddnd/generation/admit.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/policy/verdict.h"
#include "reddnd/rnic/conn.h"
#include "reddnd/rnic/cq-pool.h"
#include "reddnd/session/engine.h"
#include "reddnd/session/loop-queue.h"

#include <stdatomic.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>
#include <uthash.h>

/**
 * Of each connection. session_set_state() is the only one that changes it.
 *
 *   MAKING -> ARMED -> ACCEPTED -> ESTABLISHED -> ENDED -> GONE
 *
 * One that fails while it is made is freed from MAKING: its client is refused. One that a daemon before this
 * one made goes from MAKING to ACCEPTED, and ESTABLISHED if it was. ARMED and ACCEPTED may go to ENDED, too.
 */
enum session_state {
	SESSION_MAKING,      /* charged, in the ledger BUILDING */
	SESSION_ARMED,       /* session_new(): its client has no answer */
	SESSION_ACCEPTED,    /* server/connect.c: answered, the NIC has begun; if recycled, it outlives the
				daemon */
	SESSION_ESTABLISHED, /* its client has the answer: connect_timeout is over */
	SESSION_ENDED,       /* session_end(): queues are stopped; completions that still come are ignored */
	SESSION_GONE,        /* collect_reap(): no queue pair, and no completion; session_free() is left */
};

/** Whom a connection comes from; derived once, when it comes in. */
struct session_client {
	struct rnic_conn *conn;
	const char *peer;    /* "ADDRESS port N"; valid as long as @conn */
	uint8_t address[16]; /* on RoCE its GID, which is one; else rnic_conn_address() */
};

struct session_queues {
	struct queue_layout layout;
	struct rnic_block block;
	/* By queue of the chain */
	struct rnic_cq cq[CHAIN_MAX_QUEUES]; /* [0]: RECVs; others: SQ of the code queue */
	struct rnic_qp qp[CHAIN_MAX_QUEUES];
	struct session_loop *loop; /* of a program that has a loop without a bound; else NULL */
	struct chain_env env;
	uint32_t qpn;  /* of qp[0] */
	uint32_t tail; /* WQEBBs from the start of the last WQE of a reply to the end of it */
	struct cq_pool *pool;
	struct cq_pool_queue *pool_cq; /* where replies complete; NULL if the chain is recycled */
	uint32_t pool_cqes;            /* charged to pool_cq */
};

/** Only of a recycled chain. */
struct session_recycler {
	struct rnic_qp qp;
	struct rnic_cq cq;
	struct rnic_cq reply_cq; /* in place of a CQ of the pool */
	/* Of one with extents, to whose recycler this process gives sections (chain/ring/recycle.h): */
	bool is_behind; /* the next one was due, and could not be given yet: look again */
	bool watched;   /* by server/collect.h, */
	uint64_t seen;  /* which has seen so many requests that were over */
	TAILQ_ENTRY(session) link;
};

/** Instances and RECVs since the beginning. */
struct session_progress {
	uint64_t done, armed;
	uint64_t posted; /* RECVs */
};

/** Of an offload that publishes (extents.h). */
struct session_extents {
	struct held_store *store;
	uint64_t *at;       /* by slot; NULL: it has none */
	uint64_t settled;   /* instances of which the store knows what became of their extents */
	bool waits;         /* it has none for the next instance */
	bool broken;        /* a payload is no record: */
	uint64_t broken_by; /* that of this request */
};

struct session_counters {
	uint64_t read; /* instances whose outcome has been counted */
	uint64_t hits, misses, bytes_out;
	uint64_t unseen;     /* instances whose outcome nobody has read in time */
	uint64_t iterations; /* of the loop without a bound */
	uint64_t conflicts;  /* requests whose publish has found another word than they had read */
	uint64_t payload;    /* bytes of requests behind their arguments */
	uint64_t verdicts[VERDICT_KINDS];
	unsigned false_alarms;
	struct service_times service;
};

struct session_limits {
	struct rate rate; /* of requests, in force: the configured rate, or a lower throttle while it lasts */
	struct rate bytes; /* of replies */
	struct {
		uint64_t rate, burst; /* rate 0: none */
	} configured;
	struct {
		uint64_t rate;
		uint64_t until; /* us; 0: none */
	} throttle;
};

/** What limits a session, and of each: requests first, then bytes of replies. */
enum session_limit { SESSION_REQUESTS, TENANT_REQUESTS, SESSION_BYTES, TENANT_BYTES, SESSION_LIMITS };

/** server/pacer.h */
struct session_pacing {
	enum {
		PACING_NONE,    /* RECVs are posted as soon as they can be */
		PACING_ON,      /* as rates allow: session_set_paced() */
		PACING_WAITING, /* for credits, in the list of the pacer */
	} state;
	bool unsettled;              /* the NIC may have posted fewer RECVs than progress.posted */
	bool awaits[SESSION_LIMITS]; /* the limits whose credits it waits for */
	uint64_t seen;               /* progress.done at the last step of a recycled session */
	/* Of each limit: RECVs before this number were posted without paying it, and tokens that were paid
	 * for RECVs that are still unused */
	uint64_t paid_from[SESSION_LIMITS], held[SESSION_LIMITS];
	TAILQ_ENTRY(session) link;
};

/** Of an offload with budgets (server/timers.h): a session without outstanding requests rests until one
 * comes, then it is watched. */
struct session_budgets {
	bool resting, watched;
	struct verdict_silence time, loop; /* in us; in iterations */
	TAILQ_ENTRY(session) link;
};

/** server/timers.h */
struct session_timer {
	sd_event_source *source;
	void *owner;
	struct verdict_idle idle;
};

struct session_cpu;
struct cpu_threads;
struct held_store;

/** Where it is, if a thread serves it; private to cpu-threads.c. */
struct session_executed {
	struct cpu_thread *thread; /* NULL: none does */
	struct share *share;
	enum { SESSION_ASLEEP, SESSION_READY, SESSION_RESTING } state;
	atomic_bool changed;
	TAILQ_ENTRY(session) link, changed_link;
};

struct session {
	uint64_t id; /* > 0: session_number(), and that of the connection */
	enum session_state state;
	const struct session_engine *engine;
	uint64_t since; /* CLOCK_MONOTONIC, us */
	const struct offload *offload;
	struct tenant *tenant;
	struct tenant_domain *domain; /* of the tenant, in the device of the session */
	struct tenant_charge charge;  /* paid by the tenant */
	struct session_client client;
	struct ledger_slot *slot; /* or NULL */
	/* Of engine_cpu, which has none of the queues below, but their .env.slot_*, .qpn, and .layout with
	 * .slots and .size; else NULL */
	struct session_cpu *cpu;
	bool sends;         /* replies end with a SEND, as REDDN_REP_SENDS of the protocol */
	unsigned described; /* questions about its offload that were answered */
	struct session_executed executed;
	struct session_queues queues;
	struct session_recycler recycler;
	struct session_progress progress;
	struct session_extents extents;
	struct session_counters counters;
	struct session *first, *further; /* connections of the session */
	/* Only of the first one: */
	unsigned connections;
	uint64_t secret;              /* that others must name */
	struct session_limits limits; /* of all of them */
	struct rate_sharers sharers;  /* connections */
	struct session_loops loops;   /* those of all of them */
	/* Of each: */
	struct session_pacing pacing;
	struct session_budgets budgets;
	struct session_timer timer;
	struct foreign *foreign;   /* what .offload is part of if this daemon does not have it; or NULL */
	bool adopted;              /* a daemon before this one made it */
	bool finished;             /* instances finished that are not armed again */
	TAILQ_ENTRY(session) link; /* of those finished, or of those ended */
	/* of the server, of its completions, of the thread that executes */
	UT_hash_handle by_id, by_qpn, by_thread;
};

/** @to follows the state of @s, as above. */
void session_set_state(struct session *s, enum session_state to);
static inline bool session_is_over(const struct session *s)
{
	return s->state >= SESSION_ENDED;
}

/** Its offload has a time budget or a loop budget. The thread that executes checks those of the CPU. */
static inline bool session_has_budgets(const struct session *s)
{
	return !s->engine->judges_budgets && (s->offload->conf->time_budget || s->offload->conf->loop_budget);
}

static inline bool session_is_paced(const struct session *s)
{
	return s->pacing.state != PACING_NONE;
}

/** What sessions are made from. */
struct session_parts {
	struct rnic_device *dev;
	unsigned device; /* its number (generation/tenant.h) */
	struct rnic_arena *arena;
	struct cq_pool *cq_pool;
	struct cpu_threads *threads;
};

/** Events carry cookies: number of the session, and which of its queues (CQ of ring q, or its QP). Those of
 * the CQ pool have CQ_POOL_COOKIE. */
enum {
	SESSION_COOKIE_BITS = 8,
	SESSION_COOKIE_QP = 0x80,
	SESSION_RECYCLER = CHAIN_MAX_QUEUES, /* in place of a queue */
	SESSION_REPLIES,
	SESSION_LOOP,
};

/**
 * Makes what the session needs, arms every instance, and connects; only RECVs are still missing, and to wait
 * until the NIC has begun (session_queues_started()), when the client has been answered. It is a session
 * of its own; or the next connection of @first if that is not NULL, whatever @id is, and has waited for the
 * NIC. On success the session owns the connection of @client and the charge of @a. -ENOSPC, -ENOMEM or an
 * error of the device; errors of the device have been logged. -EAGAIN: a store has no extents for it.
 */
int session_new(struct session **s, uint64_t id, struct session *first, const struct session_parts *parts,
	const struct admit_result *a, const struct session_client *client, uint64_t now_us);

/** Fills in the part of the accept that describes the session. */
void session_describe(const struct session *s, struct reddn_wire_rep *rep);

/** Stops the queues, then disconnects the client: once the client has the event, nothing is written to it. */
void session_end(struct session *s);
/** Destroys the queue pairs. They write no CQE after this: empty the CQ pool before new ones are made. */
void session_destroy_qps(struct session *s);
/** Of one that is SESSION_GONE. */
void session_free(struct session *s);

/* ---- connections ---- */

/** Number of the session, of whose connections @s is one. */
static inline uint64_t session_number(const struct session *s)
{
	return s->id & LEDGER_SESSION_MASK;
}

static inline bool session_is_first(const struct session *s)
{
	return s->first == s;
}

/** Each connection of a session, the first one first. */
#define SESSION_CONNECTIONS(s, of) for (s = (of)->first; s; s = s->further)

/** Requests that are over, of all connections. */
static inline uint64_t session_done(const struct session *s)
{
	const struct session *c;
	uint64_t done = 0;

	SESSION_CONNECTIONS(c, s)
	done += c->progress.done;
	return done;
}

/** @s becomes the next connection of @first. */
void session_join(struct session *s, struct session *first);
/** To the ledger: so many have been accepted. One that was not does not end the session with the daemon. */
void session_note_connections(const struct session *first);

/** False: the daemon before this one had more connections of that session. */
bool session_is_whole(const struct session *first);

#endif
