/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h - a token bucket: a number of requests, bytes or clients per second, and a burst after a pause.
 * Pure; the caller has the clock.
 *
 * A clock that goes back adds nothing. Fractions of a token are kept, so that the rate is exact in the long
 * run.
 *
 * What is known only when it is over, as the length of a reply, may cost more than the bucket has. Then the
 * bucket is in debt, and has no tokens until the rate has paid it.
 *
 * The burst serves clients that pause. A client that waits has no tokens in reserve, and must not lose tokens
 * because the daemon hands them out late: while a client waits, the bucket holds the tokens of one second
 * more.
 */
#ifndef POLICY_RATE_H
#define POLICY_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
	uint64_t per_second; /* 0: no limit */
	uint64_t burst;      /* tokens that the bucket holds, >= 1 */
	uint64_t tokens;     /* whole ones */
	uint64_t part;       /* of the next one, in millionths */
	uint64_t debt;       /* > 0: tokens to pay before there are any */
	uint64_t at;         /* us: time up to which tokens have been added */
	unsigned awaited;    /* number of waiters */
	uint64_t held;       /* tokens that were taken and are not used yet, as server/pacer.c counts them */
};

/** Those who share a bucket and want more tokens than there are. */
struct rate_sharers {
	unsigned waiting;
	unsigned turns; /* of those, who are still to get tokens in this round */
};

/** Makes a full bucket. @burst 0: the tokens of a tenth of a second, at least 1. */
void rate_init(struct rate *r, uint64_t per_second, uint64_t burst, uint64_t now_us);

/** The tokens of a tenth of a second, at least @least. */
uint64_t rate_burst(uint64_t per_second, uint64_t least);

/** Changes the limits; tokens beyond the new burst are lost. A debt stays while there is a limit. */
void rate_set(struct rate *r, uint64_t per_second, uint64_t burst, uint64_t now_us);

/** Tokens in the bucket now; UINT64_MAX without a limit. */
uint64_t rate_available(struct rate *r, uint64_t now_us);

/** Of the tokens in the bucket the even part, rounded up, of one of those who share it: of those whose turn
 * it is, of which there is one less afterwards; if it is nobody's, of all who want some. UINT64_MAX without a
 * limit. */
uint64_t rate_part(struct rate *r, struct rate_sharers *of, uint64_t now_us);

/** Takes @n tokens, at most as many as rate_available() has returned. */
void rate_take(struct rate *r, uint64_t n);

/** Takes @n tokens that have been spent already; those that the bucket lacks are a debt. */
void rate_charge(struct rate *r, uint64_t n);

/** Counts one waiter more, or one less. Tokens in the bucket stay, even beyond the burst. */
void rate_await(struct rate *r, bool waits);

/** Gives back @n tokens that were taken: they pay the debt first; those beyond the size of the bucket are
 * lost. */
void rate_give(struct rate *r, uint64_t n);

/** Microseconds from @now_us until the bucket has @n tokens (at most the burst); 0 if it has them. */
uint64_t rate_delay(struct rate *r, uint64_t n, uint64_t now_us);

#endif
