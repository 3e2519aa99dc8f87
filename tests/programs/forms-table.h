/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forms-table.h - reads tests/programs/forms/NAME.forms: programs of every form that reddn-programs(7)
 * documents, and what they do. forms/README explains the notation.
 */
#ifndef TESTS_PROGRAMS_FORMS_TABLE_H
#define TESTS_PROGRAMS_FORMS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORMS_MAX_PATCHES = 32, FORMS_MAX_VECTORS = 48, FORMS_MAX_ARGS = 64, FORMS_MAX_BYTES = 4200 };

/** Bytes at an offset of something with a name. */
struct forms_bytes {
	char name[24];
	uint32_t at, len;
	uint8_t *bytes;
};

struct forms_list {
	struct forms_bytes v[FORMS_MAX_PATCHES];
	unsigned n;
};

/** One request, and what follows. */
struct forms_vector {
	struct {
		char name[56];
		bool bytes;
		uint64_t number;
		uint8_t raw[256];
	} arg[FORMS_MAX_ARGS];
	unsigned nargs;
	struct forms_list payload;
	struct forms_list memory; /* regions: what differs from before */
	struct forms_list reply;  /* the reply slot */
	struct forms_list sent;   /* by `send` */
	bool sends, has_imm;
	uint32_t imm;
};

/** An entry of the table, of its alternatives one each. */
struct forms_case {
	const char *file;
	unsigned line;
	char title[120];
	char which[400];          /* of the alternatives */
	char *text;               /* the program */
	struct forms_list size;   /* regions that do not have FORMS_REGION bytes but .len */
	struct forms_list memory; /* before a request */
	struct forms_vector *vector;
	unsigned nvectors;
	char refused[32];            /* "": accepted. Else the code, */
	unsigned refused_line;       /* the line, 0: of the program as a whole */
	char words[200];             /* and a part of the message */
	bool masks, unrolled, quiet; /* needs masked atomics; cannot be recycled; only compiled */
	bool calculates;             /* on a device with CALC or masked atomics */
	char device[16];             /* "": all; else only this one */
};

enum { FORMS_REGION = 256 };

/** Calls @f with every alternative of every entry of @path. False: something is wrong with it, and was said.
 */
bool forms_read(const char *path, void (*f)(void *arg, const struct forms_case *c), void *arg);

#endif
