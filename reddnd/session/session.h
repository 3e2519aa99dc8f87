/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - one client: its queues, its ring of armed instances, its connection.
 *
 * Instances are numbered from 0. Of N slots, instances [done, done + N) are armed, and RECVs [0, done + N -
 * 1) posted: an instance enables the head of its successor, which therefore must be armed first.
 *
 * The instances of a recycled chain are kept going by the NIC: nothing is armed here after the start, no RECV
 * is posted (but see pace.h), and no CQE is taken. It goes on if this process stops for good, for as long as
 * its files are open somewhere.
 *
 * Thread rules: one thread. Nothing here is on the path of a request.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "reddnd/generation/admit.h"
#include "reddnd/policy/verdict.h"
#include "reddnd/rnic/cm.h"
#include "reddnd/rnic/cq-pool.h"
#include "reddnd/session/loop-queue.h"

#include <sys/queue.h>
#include <systemd/sd-event.h>
#include <uthash.h>

struct server;

struct session {
	uint64_t id;    /* > 0 */
	uint64_t since; /* CLOCK_MONOTONIC, us */
	uint32_t qpn;
	const struct offload *offload;
	struct tenant *tenant;
	struct tenant_charge paid; /* by the tenant */
	struct rnic_conn *conn;
	uint8_t address[16]; /* of the client, as rnic_conn_address() tells */
	struct cq_pool *cq_pool;
	struct cq_pool_queue *pool_cq;
	uint32_t charge;
	struct queue_layout layout;
	struct rnic_block block;
	struct rnic_cq cq[CHAIN_MAX_QUEUES]; /* [0]: RECVs; others: SQ of the code queue */
	struct rnic_qp qp[CHAIN_MAX_QUEUES];
	struct rnic_cq recycler_cq,
		reply_cq; /* of a recycled chain; its replies are not on a CQ of the pool */
	struct rnic_qp recycler;
	struct session_loop *loop; /* of a program that has one without a bound; else NULL */
	uint64_t iterations;       /* of it that have been counted */
	struct chain_env env;
	uint64_t done, armed;
	uint64_t posted;   /* RECVs, since the beginning */
	struct rate rate;  /* in force: the limit, or the throttle while there is one that is lower */
	struct rate bytes; /* of replies */
	struct {
		uint64_t rate, burst; /* rate 0: none */
		uint64_t until;       /* us; of a throttle */
	} limit, throttle;
	struct server *server;  /* for the timer */
	sd_event_source *timer; /* upkeep.c */
	bool paced;             /* RECVs are posted as rates allow (pace.h); else as soon as they can be */
	bool unsettled;         /* the NIC may have posted less than what is written in posted */
	uint64_t seen;          /* of done, by the pacer */
	bool waiting;
	bool awaits[4]; /* which of its limits (pace.c) */
	TAILQ_ENTRY(session) waiting_link;
	uint64_t looked; /* unrolled: instances whose outcome has been counted */
	uint64_t hits, misses, bytes_out;
	/* Of an offload with budgets (watch.c): while nothing is outstanding the session rests until a
	 * request comes, then it is watched */
	bool resting, watched;
	TAILQ_ENTRY(session) watched_link;
	struct verdict_silence silence, rounds; /* in us; in iterations */
	struct verdict_idle idle;
	uint64_t verdicts[VERDICT_KINDS];
	uint32_t tail; /* WQEBBs from the start of the last WQE of a reply to the end of it */
	unsigned false_alarms;
	bool established;
	bool ended; /* to be freed; nothing it still does matters */
	bool dirty; /* instances finished that are not armed again */
	TAILQ_ENTRY(session) dirty_link;
	UT_hash_handle by_id, by_qpn; /* of the server */
};

/** What sessions are made from. */
struct session_parts {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct cq_pool *cq_pool;
};

/** Events carry cookies: the session, and which of its queues (CQ of queue q, or its QP). Those of the CQ
 * pool have CQ_POOL_COOKIE. */
enum {
	SESSION_COOKIE_BITS = 8,
	SESSION_COOKIE_QP = 0x80,
	SESSION_RECYCLER = CHAIN_MAX_QUEUES, /* in place of a queue */
	SESSION_REPLIES,
	SESSION_LOOP,
};

/**
 * Makes the queues, arms every instance, and connects; session_post() is all that lacks. Ownership of @conn
 * and of what the tenant of @a was charged passes in any case of success. Fails with -ENOSPC, -ENOMEM or what
 * the device says; errors of the device have been logged.
 */
int session_new(struct session **s, uint64_t id, const struct session_parts *parts,
	const struct admit_result *a, struct rnic_conn *conn, uint64_t now_us);

/** Up to which number RECVs could be posted now: their instances are armed. */
uint64_t session_postable(const struct session *s);
/** Posts RECVs up to number @to, if that is more than there are. 0, or what the device says; logged. */
int session_post(struct session *s, uint64_t to);
/** Whether anything limits its requests. */
bool session_is_limited(const struct session *s);
/** Bytes that it pays for a request when its RECV is posted: the longest reply. */
uint64_t session_price(const struct session *s);
/** Who posts RECVs from now on: session_post() alone, or session_rearm() and the NIC as well. */
void session_set_paced(struct session *s, bool paced);
/** A recycled session: asks for the event SESSION_REPLIES of its next reply. */
void session_arm_replies(struct session *s);

/** Stops the queues and disconnects the client, in that order: after its event nothing is written to it. */
void session_end(struct session *s);
/** Destroys the queue pairs: no CQE of theirs is written after this. Empty the CQ pool before others are
 * made. */
void session_stop_queues(struct session *s);
void session_free(struct session *s);

/** The CQE of a reply. 0, or a positive value when something is wrong: @v says what. */
int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v);

/**
 * Of a recycled chain, which raises no events: counts what has completed since the last time from what the
 * NIC left in memory. Returns how many requests that were; 0 for any other session.
 */
uint64_t session_count(struct session *s);

/** Eighths of its instances that are finished and not armed again, rounded down: 8 is a client that has to
 * wait. */
unsigned session_used(const struct session *s);

/** Iterations of its loop since the last time. */
uint64_t session_count_loop(struct session *s);

/** Counts the outcomes of what is finished; of a session that the daemon arms: there they can be seen. */
void session_look(struct session *s);

/** Arms what is finished and lets the client use it. Positive as above. */
int session_rearm(struct session *s, struct verdict *v);

/** The event of queue @part (see cookies) came. Positive as above. */
int session_alarm(struct session *s, unsigned part, struct verdict *v);

/** Whether a request has been taken that, as far as has been counted, is not answered. */
bool session_busy(const struct session *s);
/** Nothing is outstanding: asks for one event of the next request. False: there is one already. */
bool session_rest(struct session *s);
/** Of an offload with budgets, while it is busy: whether the oldest request exceeds one. Positive as above.
 */
int session_watch(struct session *s, uint64_t now_us, struct verdict *v);

/** Whether its client has asked for nothing for @limit_us (verdict.h). */
bool session_is_idle(struct session *s, uint64_t now_us, uint64_t limit_us);

/** Puts the limit, or a lower throttle that is not over, in force. */
void session_apply_limit(struct session *s, uint64_t now_us);

/** What the client has to know, for the accept. */
void session_describe(const struct session *s, struct reddn_wire_rep *rep);

#endif
