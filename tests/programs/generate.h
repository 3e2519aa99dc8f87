/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * generate.h - programs at random that keep to the grammar, and mostly to the rules for names and types.
 */
#ifndef TESTS_PROGRAMS_GENERATE_H
#define TESTS_PROGRAMS_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state; /* not 0 */
};

uint32_t random_next(struct random *r);
/** 0 .. n - 1. */
unsigned random_below(struct random *r, unsigned n);

struct generate_style {
	unsigned mistakes;   /* of 1000 choices: made without a look at the rules */
	unsigned statements; /* about that many */
	unsigned endless;    /* of 100 programs: those with a loop without a bound */
	bool cut;            /* most programs without one are cut into queues */
};

/** Writes a program of at most @size bytes to @text and returns its length. The same for the same @r. */
size_t generate(struct random *r, const struct generate_style *style, char *text, size_t size);

#endif
