/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arg.h - numbers in the arguments of test programs.
 */
#ifndef TESTS_LIB_ARG_H
#define TESTS_LIB_ARG_H

#include "util/number.h"

#include <stdio.h>
#include <stdlib.h>

/** The number in @text. Ends the program with status 2 if there is none, or one above @max. */
static inline uint64_t arg_number(const char *text, uint64_t max)
{
	uint64_t n;

	if (number_parse(text, 0, max, &n) < 0) {
		fprintf(stderr, "\"%s\" is not a number up to %llu\n", text, (unsigned long long)max);
		exit(2);
	}
	return n;
}

#endif
