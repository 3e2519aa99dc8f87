/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * completions.h - takes the completions of replies, counts them, and arms their instances again.
 *
 * While there is traffic, completions are collected in rounds; the event of the device is asked for again
 * only when a round found none. The time between rounds follows the client that is nearest to running out of
 * armed instances: it shrinks when that client has used half of them since the last round, and grows below a
 * quarter.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_COMPLETIONS_H
#define SERVER_COMPLETIONS_H

#include "reddnd/server/accounting.h"
#include "reddnd/session/session.h"

struct completions {
	struct cq_pool pool;
	struct accounting *accounting;
	struct session *by_qpn;
	TAILQ_HEAD(, session) finished; /* with instances to arm */
	unsigned taken;                 /* CQEs, by the calls of completions_take() for one round */
	unsigned used;                  /* eighths: most of session_used() in this round */
	uint64_t round_us;              /* from one round to the next */
};

int completions_init(struct completions *c, struct rnic_device *dev, struct rnic_arena *arena,
	struct accounting *accounting);
void completions_deinit(struct completions *c); /* after all sessions; fine on one that is all zero */

/** Completions of @s are taken from now on. */
void completions_add(struct completions *c, struct session *s);
/** They are ignored from now on. */
void completions_remove(struct completions *c, struct session *s);

/** Instances of @s may have to be armed, whether or not a completion comes. */
void completions_rearm_later(struct completions *c, struct session *s);

/**
 * Takes completions and counts them. False: all that were there are taken. True: @broken is a session that
 * broke, for the reason in @v; judge it, then call again.
 */
bool completions_take(struct completions *c, struct session **broken, struct verdict *v);

/**
 * Arms the finished instances of one session, which it returns; NULL: there are none left. True in *@broke:
 * the session broke a rule, which @v names. Post RECVs of the session afterwards.
 */
struct session *completions_rearm(struct completions *c, bool *broke, struct verdict *v);

/** A round begins. */
void completions_begin_round(struct completions *c);
/** A round that took completions is over: adapts the time to the next. */
void completions_end_round(struct completions *c);

#endif
