/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * derive-internal.h - private to derive*.c, from the ground up: sets of steps of a text; a text without
 * barriers, and what it needs; an ordered text while it grows; one way to order a text.
 */
#ifndef CHAIN_SCHEDULE_DERIVE_INTERNAL_H
#define CHAIN_SCHEDULE_DERIVE_INTERNAL_H

#include "reddnd/chain/ir/layout.h"
#include "reddnd/chain/schedule/ordered.h"

/* ---- sets ---- */

enum {
	REQUEST = CHAIN_MAX_STEPS, /* in a set: the request's bytes */
	SET_WORDS = REQUEST / 64 + 1,
	NONE = LAYOUT_NONE,
};

struct set {
	uint64_t w[SET_WORDS];
};

static inline void set_add(struct set *s, unsigned i)
{
	s->w[i / 64] |= 1ull << i % 64;
}

static inline bool set_has(const struct set *s, unsigned i)
{
	return s->w[i / 64] >> i % 64 & 1;
}

static inline void set_join(struct set *s, const struct set *more)
{
	for (unsigned i = 0; i < SET_WORDS; i++)
		s->w[i] |= more->w[i];
}

static inline struct set set_and(const struct set *a, const struct set *b)
{
	struct set r;

	for (unsigned i = 0; i < SET_WORDS; i++)
		r.w[i] = a->w[i] & b->w[i];
	return r;
}

static inline struct set set_minus(const struct set *a, const struct set *b)
{
	struct set r;

	for (unsigned i = 0; i < SET_WORDS; i++)
		r.w[i] = a->w[i] & ~b->w[i];
	return r;
}

/* The members below @i */
static inline struct set set_below(const struct set *s, unsigned i)
{
	struct set r = *s;

	for (unsigned w = 0; w < SET_WORDS; w++)
		if (64 * (w + 1) > i)
			r.w[w] &= 64 * w >= i ? 0 : (1ull << i % 64) - 1;
	return r;
}

/* The last step in @s, or NONE; REQUEST does not count */
static inline unsigned set_last(const struct set *s)
{
	for (unsigned w = REQUEST / 64; w-- > 0;)
		if (s->w[w])
			return 64 * w + 63 - (unsigned)__builtin_clzll(s->w[w]);
	return NONE;
}

/* Steps in @s; REQUEST does not count */
static inline unsigned set_size(const struct set *s)
{
	unsigned n = 0;

	for (unsigned w = 0; w < REQUEST / 64; w++)
		n += (unsigned)__builtin_popcountll(s->w[w]);
	return n;
}

/* ---- texts ---- */

/** A text without barriers, and what must be over before what: for each step, before its fetch and before its
 * start. All zero but for `err` before text_read(). */
struct text {
	struct chain_desc d;
	struct chain_step steps[CHAIN_MAX_STEPS];
	struct chain_queue_desc queues[CHAIN_MAX_QUEUES];
	struct layout l;
	struct set of_queue[CHAIN_MAX_QUEUES], scatterers;
	struct set data[CHAIN_MAX_STEPS];  /* before the step starts */
	struct set fetch[CHAIN_MAX_STEPS]; /* before it may be fetched */
	uint16_t by_hand[CHAIN_MAX_STEPS]; /* the author's SEND_EN that lets it be fetched, or NONE */
	uint16_t next[CHAIN_MAX_STEPS];    /* in its queue, or NONE */
	uint16_t first[CHAIN_MAX_QUEUES], last[CHAIN_MAX_QUEUES];
	struct set wakes[CHAIN_MAX_STEPS]; /* those whose opcode it writes */
	bool wakes_end[CHAIN_MAX_STEPS];   /* writes the opcode of the reply's last step */
	bool early[CHAIN_MAX_STEPS];       /* of the reply: it does not wait for what comes after it */
	bool any_early;
	struct chain_error *err;
};

/** Reads @d, whose barriers by hand stay in it. 0; CHAIN_REFUSED and the reason in @t->err; -ENOMEM. */
int text_read(struct text *t, const struct chain_desc *d);

/** Step @s waits for the request. */
bool text_is_request_wait(const struct text *t, unsigned s);

/** First step of its queue, from @s on, that must not be fetched as soon as all before step @at is over;
 * NONE if none. */
unsigned text_run_end(const struct text *t, unsigned s, unsigned at);
/** What must be over before the steps of its queue from @s until @end may be fetched. */
struct set text_run_needs(const struct text *t, unsigned s, unsigned end);
/** All that step @s and those enabled with it need is the request. */
bool text_starts_with_request(const struct text *t, unsigned s);

/* ---- attempts ---- */

/* An ordered text while it grows, what each queue knows to be over at its end, and the barriers by which a
 * queue comes to know more */

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

/* ---- ways ---- */

/**
 * Orders @t into @out: goes through the text once, and puts each step where its queue ends, behind the
 * barriers that it needs there; derive.h lists these. 0: the order passes chain_check_order(); CHAIN_REFUSED
 * and the reason in @err: this way leads to no order that does; -ENOMEM.
 */
int way_order(struct text *t, struct way way, struct derived *out, struct chain_error *err);

#endif
