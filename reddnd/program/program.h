/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * program.h - compiles the text of a program to its image, and reports what is known about it.
 * docs/man/reddn-programs.7 defines the language.
 *
 * Pure: no device, no files, no state. One compilation is one thread's; several may run at a time.
 */
#ifndef PROGRAM_PROGRAM_H
#define PROGRAM_PROGRAM_H

#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/endless.h"
#include "reddnd/program/front/limits.h"
#include "reddnd/program/front/source.h"
#include "reddnd/program/lower/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program_param {
	char name[PROGRAM_MAX_NAME + 1];
	uint64_t value, lo, hi, by_default;
};

/** A region that the catalog binds; its index is that of the image's CHAIN_SYM_REGION bindings. */
struct program_region {
	char name[PROGRAM_MAX_NAME + 1];
	bool writable;
	bool steered;               /* and a client may choose where it is written */
	struct chain_stored stored; /* by the program, or by others, as the target declared */
	uint64_t size;              /* bytes it must have at least, 0: any */
};

enum program_arg_kind {
	PROGRAM_NUMBER, /* unsigned, `bytes` of it */
	PROGRAM_STRING, /* `bytes` as they are */
	PROGRAM_WINDOW, /* byte offset in `region`, a number */
};

struct program_arg {
	char name[2 * PROGRAM_MAX_NAME + 8]; /* "key", "probe[1].at" */
	uint8_t kind;                        /* enum program_arg_kind */
	uint8_t region;                      /* WINDOW: index in regions */
	uint16_t bytes;
};

/** What a request has behind its arguments (chain/ir/image.h). */
struct program_payload {
	char name[PROGRAM_MAX_NAME + 1];
	uint8_t region; /* index in regions */
	uint32_t max;   /* bytes; 0: there is none */
};

enum program_field_kind {
	PROGRAM_FIELD_BE, /* unsigned, the most significant byte first */
	PROGRAM_FIELD_LE, /* unsigned, the least significant byte first */
	PROGRAM_FIELD_BYTES,
	PROGRAM_FIELD_UP_TO, /* at most `bytes` of them: the request decides */
};

/** A part of the reply. */
struct program_field {
	char name[2 * PROGRAM_MAX_NAME + 8]; /* "hit", "seen[1]", "at64" */
	uint8_t kind;                        /* enum program_field_kind */
	uint32_t at, bytes;                  /* of the slot; at + bytes <= reply_max */
};

struct program {
	char name[PROGRAM_MAX_NAME + 1];
	uint8_t shape; /* enum program_shape */
	struct chain_image *image;
	struct chain_writer *writer; /* of it */
	struct program_param *params;
	unsigned nparams;
	struct program_region *regions;
	unsigned nregions;
	struct program_arg *args; /* in the order of the text */
	unsigned nargs;
	struct program_payload payload;
	struct program_piece *pieces; /* the request, in wire order; their lengths add up to image->arg_len */
	unsigned npieces;
	struct program_field *fields; /* of the reply, in the order of `at` */
	unsigned nfields;
	uint32_t reply_max;            /* bytes of the reply slot, up to the highest that it may write */
	const struct chain_desc *desc; /* what the image was built from, ordered: for explain and draw */
	/* NULL without an endless loop. Else an iteration of it, with the size of its ring and the image of
	 * that (chain_loop_write()). The last region of the chain's image is then not in `regions`: it is
	 * memory of the session that chain and loop share, with shared_init as its first content */
	const struct chain_desc *loop;
	uint32_t loop_ring; /* WQEBBs */
	struct chain_loop_info loop_info;
	struct ring_image *loop_image;
	const uint8_t *shared_init;
	uint32_t shared_bytes;
};

/** An error of a program. */
struct program_error {
	const char *code;      /* static: one of DIAG_KINDS (diag.h) or CHAIN_ERRORS (chain/ir/error.h) */
	unsigned line, column; /* from 1; line 0: the program as a whole */
	char *text;
};

struct program_errors {
	struct program_error *error; /* n of them, in the order of lines */
	unsigned n;
	char *text; /* all of them, with the lines that they quote (diag.h shows an example) */
};

void program_errors_free(struct program_errors *errors); /* frees what @errors owns, and empties it */

/**
 * Compiles @src with @settings for @target. 0 and a program that the caller frees with program_free();
 * PROGRAM_REFUSED and the errors, which the caller frees with program_errors_free(); -ENOMEM. *out is NULL
 * and *errors is empty otherwise.
 */
int program_diagnose(const struct program_source *src, const struct program_setting *settings,
	unsigned nsettings, const struct program_target *target, struct program **out,
	struct program_errors *errors);

/** The same with the text of the errors alone, which the caller frees with free(). */
int program_compile(const struct program_source *src, const struct program_setting *settings,
	unsigned nsettings, const struct program_target *target, struct program **out, char **messages);

/** Adds to the first @bytes of a @request what it lacks up to image->arg_len: arguments that are zero, in the
 * form in which they arrive. */
void program_complete(const struct program *p, uint8_t *request, uint32_t bytes);

/**
 * The step (an index in desc->steps) whose work request is at WQEBB @wqebb of an instance in queue @queue;
 * desc->nsteps if there is none.
 */
unsigned program_step_at(const struct program *p, unsigned queue, uint32_t wqebb);

/** Work requests of an iteration of its loop by class, without what renews the ring. */
struct program_loop_size {
	unsigned copy, atomic, sync;
};
struct program_loop_size program_loop_size(const struct program *p);

/** WQEs of an instance of its chain, with NOPs, which the NIC fetches and executes as well. */
unsigned program_wqes(const struct program *p);
/** WQEs that @iterations of its loop without a bound execute; 0 if it has none. */
uint64_t program_loop_wqes(const struct program *p, uint64_t iterations);

void program_free(struct program *p); /* NULL is fine */

#endif
