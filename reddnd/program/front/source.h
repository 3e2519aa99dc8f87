/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - what a compilation starts from: the text of a program, and the catalog's choices for its params;
 * and what its clients call.
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

enum program_shape {
	PROGRAM_OPAQUE, /* reddn_call() */
	PROGRAM_TABLE,  /* reddn_get() too: table, request and reply are those of protocol/wire.h */
	PROGRAM_PUT,    /* reddn_put() and reddn_delete(), the same of a store */
	PROGRAM_EXISTS, /* reddn_exists(), the same of a table or a store */
	PROGRAM_INTO,   /* reddn_get_into(), the same */
};

/** As the text of a program has it. */
const char *program_shape_name(enum program_shape shape);

/** A positive return of the compiler: the program has errors, and they have been reported. */
#define PROGRAM_REFUSED 1

#endif
