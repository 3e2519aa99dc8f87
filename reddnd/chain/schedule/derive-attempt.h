/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * derive-attempt.h - private to derive*.c: an ordered text while it grows, what each queue knows to be over
 * at its end, and the barriers by which a queue comes to know more.
 */
#ifndef CHAIN_SCHEDULE_DERIVE_ATTEMPT_H
#define CHAIN_SCHEDULE_DERIVE_ATTEMPT_H

#include "reddnd/chain/schedule/derive-text.h"
#include "reddnd/chain/schedule/ordered.h"

/** A description with room for what is put in. */
struct derived {
	struct chain_desc d;
	struct chain_queue_desc queues[CHAIN_MAX_QUEUES];
	struct ordered order;
	bool cautious[CHAIN_MAX_STEPS]; /* a fence that only errors may need */
};

struct queue_state {
	bool started;
	uint16_t skipped;    /* a WAIT of the text for the request, needless as the queue starts; or NONE */
	struct set known;    /* over when the next step starts */
	struct set executed; /* not known to be over, but the responder has executed it by then */
	uint16_t covers;    /* the SEND_EN, in the output, up to the end of what is enabled; NONE: the head */
	uint16_t enabled;   /* first step of the text that is not; NONE: all are */
	uint16_t last;      /* step of the output */
	unsigned nsteps;    /* in the output */
	uint16_t scatterer; /* last READ or atomic, of the text; or NONE */
	uint16_t certain;   /* the last one of these that is not dormant */
};

/** One way to order the text. */
struct way {
	unsigned reply_by; /* the queue that enables the reply */
	/* steps that wake the end of the reply start when all of their queue is over, and a queue when all of
	 * what it needs is */
	bool cautious;
	bool fenced;  /* SEND_ENs are fenced rather than preceded by a WAIT */
	bool overlap; /* the head is in a queue of code, and lets the next instance begin */
	bool eager; /* SEND_ENs come before a step that has to wait, rather than one for as much as can be */
};

/** The order of a text in one way, as far as it has come. */
struct attempt {
	struct text *t;
	struct way way;
	unsigned head;     /* queue */
	uint16_t answered; /* the reply is enabled through this step of the text; NONE: not at all */
	struct queue_state q[CHAIN_MAX_QUEUES];
	struct set at_start[CHAIN_MAX_STEPS]; /* what was over when the step of the text started */
	uint16_t at[CHAIN_MAX_STEPS];         /* in the output, of a step of the text */
	struct derived *out;
	uint16_t used; /* steps of the output */
	bool full;
};

/** Appends a copy of @st to the output, and returns it; there is one place for what is too much (`full`). */
struct chain_step *attempt_put(struct attempt *a, const struct chain_step *st);

/** Queue @q knows what the CQE of step @i of the text implies. */
void attempt_hear(struct attempt *a, unsigned q, unsigned i);
/** Waits in @q for all of @need, for the sake of step @s. The waits are in the order of the text. */
void attempt_learn(struct attempt *a, unsigned q, const struct set *need, unsigned s);
/** Makes @need be over when the SEND_EN that comes next in @in starts, for the sake of step @s. Returns the
 * flags of that SEND_EN. */
uint8_t attempt_settle(struct attempt *a, unsigned in, const struct set *need, unsigned s);

/**
 * Puts in the SEND_EN @en. How far it reaches is found out later: up to the next one for that queue. One of
 * the reply that is not the last is an author's and reaches to what it names, as does one whose queue has
 * nothing in the output yet.
 */
struct chain_step *attempt_enable(struct attempt *a, const struct chain_step *en);
/** The same with a SEND_EN in @in for @q that has @line and @flags. */
struct chain_step *attempt_enable_for(
	struct attempt *a, unsigned in, unsigned q, unsigned line, uint8_t flags);

#endif
