/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop-size.h - sizes for the loop without a bound of a program (chain/ring/endless.h), beside its chain.
 * Pure.
 */
#ifndef GENERATION_LOOP_SIZE_H
#define GENERATION_LOOP_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct program;

struct loop_size {
	uint32_t ring_wqebbs;
	uint32_t cqes;                   /* at most, after an error */
	uint32_t lanes, scratch, shared; /* bytes */
	uint32_t credits;                /* WQEBBs of the queue that gives the credits: a power of two */
};

/** How a loop is held at a rate: a credit lets it run half a lap of its ring. */
struct loop_pace {
	uint64_t per_second; /* credits */
	uint32_t ahead;      /* credits that it may have, for the time in which nobody gives more */
};

/** False if @p has no loop without a bound. It runs at most @rate WQEs per second. */
bool loop_size_of(const struct program *p, uint64_t rate, struct loop_size *size);

/** At least one credit per second, and two ahead. */
struct loop_pace loop_pace_of(const struct program *p, uint64_t rate);

/** Credits for a loop that has @ahead unused ones, one of those of @connections that share the rate, when
 * there are @tokens for it: it may have its part of pace->ahead. */
uint64_t loop_pace_credits(
	const struct loop_pace *pace, uint64_t ahead, unsigned connections, uint64_t tokens);

#endif
