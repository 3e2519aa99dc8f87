/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h - a token bucket: so many requests or clients per second, and so many at once after a pause. Pure;
 * the caller has the clock.
 *
 * Time only goes forward. Fractions of a token are kept, so that the rate is exact in the long run.
 *
 * The burst is for those who pause. Who waits for tokens has none put aside, and must not lose what time
 * brings because the one who hands them out comes late: while it is known that somebody waits, the bucket
 * holds a second's worth more.
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
	uint64_t at;         /* us: up to when it has been filled */
	unsigned awaited;    /* by so many */
};

/** A full bucket. @burst 0: what a tenth of a second brings, at least 1. */
void rate_init(struct rate *r, uint64_t per_second, uint64_t burst, uint64_t now_us);

/** What a tenth of a second brings, at least @least. */
uint64_t rate_burst(uint64_t per_second, uint64_t least);

/** Changes the limits; tokens beyond the new burst are lost. */
void rate_set(struct rate *r, uint64_t per_second, uint64_t burst, uint64_t now_us);

/** Tokens there are now: UINT64_MAX without a limit. */
uint64_t rate_available(struct rate *r, uint64_t now_us);

/** Takes @n of those that rate_available() told. */
void rate_take(struct rate *r, uint64_t n);

/** One more waits for tokens from now on, or one less. What is in the bucket stays, even beyond the burst. */
void rate_await(struct rate *r, bool waits);

/** Gives back @n of those that were taken; what the bucket does not hold is lost. */
void rate_give(struct rate *r, uint64_t n);

/** Microseconds from @now_us until there are @n tokens (at most the burst): 0 if there are. */
uint64_t rate_delay(struct rate *r, uint64_t n, uint64_t now_us);

#endif
