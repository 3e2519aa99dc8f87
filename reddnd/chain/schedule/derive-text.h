/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * derive-text.h - private to derive*.c: what a text without barriers needs: for each step, what must be over
 * before its fetch and before its start.
 */
#ifndef CHAIN_SCHEDULE_DERIVE_TEXT_H
#define CHAIN_SCHEDULE_DERIVE_TEXT_H

#include "reddnd/chain/schedule/derive-set.h"

/** The text, and what must be over before what. All zero but for `err` before text_read(). */
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

#endif
