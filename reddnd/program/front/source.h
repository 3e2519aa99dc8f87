/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - what a compilation starts from: the text of a program, and the catalog's choices for its params.
 */
#ifndef PROGRAM_FRONT_SOURCE_H
#define PROGRAM_FRONT_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct program_source {
	const char *name; /* of the file, for messages */
	const char *text; /* need not end in zero */
	size_t len;
};

/** The catalog's choice for a param. */
struct program_setting {
	const char *name;
	uint64_t value;
};

/** A positive return of the compiler: the program has errors, and they have been reported. */
#define PROGRAM_REFUSED 1

#endif
