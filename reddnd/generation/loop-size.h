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
};

/** False if @p has no loop without a bound. */
bool loop_size_of(const struct program *p, struct loop_size *size);

/** WQEs that @iterations of the loop execute; 0 if @p has no such loop. */
uint64_t loop_size_wqes(const struct program *p, uint64_t iterations);

#endif
