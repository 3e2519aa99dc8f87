/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - the command lines of softcx and of its NIC process: one table of verbs and one of options.
 *
 * From the tables come getopt's array, the help text, and the arguments with which the tool starts the NIC
 * process; a test compares them with softcx(1). The words after "softcx fault add" are not options of the
 * tool: the NIC reads them.
 */
#ifndef SOFTCX_PROTO_OPTIONS_H
#define SOFTCX_PROTO_OPTIONS_H

#include "softcx/proto/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { OPTIONS_MAX_JOBS = 256 };

enum option_verb {
	VERB_RUN,
	VERB_NIC, /* also softcx-nic itself */
	VERB_FUZZ,
	VERB_STATUS,
	VERB_TRACE,
	VERB_FAULT,
	VERB_DEVICES,
	VERB_STOP,
	VERBS,
};

enum option_id {
	OPTION_DIR,
	OPTION_SEED,
	OPTION_LENIENT,
	OPTION_NO_INDEX_CHECK,
	OPTION_NO_QPN_CHECK,
	OPTION_NO_SYNC_FENCE,
	OPTION_CLOCK,
	OPTION_DEVICE,
	OPTION_DEVICES,
	OPTION_HOSTS,
	OPTION_PU,
	OPTION_LINGER,
	OPTION_READY_FD,
	OPTION_HOST,
	OPTION_LEAK_CHECK,
	OPTION_THINK,
	OPTION_IN_TURN,
	OPTION_SEEDS,
	OPTION_JOBS,
	OPTION_TIMEOUT,
	OPTION_KEEP_GOING,
	OPTION_LINES,
	OPTION_OBJECTS,
	OPTION_SHOW,
	OPTION_QP,
	OPTION_PID,
	OPTION_COUNT,
	OPTION_PCAPNG,
	OPTION_JSON,
	OPTION_HELP,
	OPTIONS,
};

struct option_row {
	const char *name; /* without "--" */
	const char *arg;  /* name of its argument; NULL: a flag */
	unsigned verbs;   /* 1 << enum option_verb of those that take it */
	const char *help; /* a newline continues it on the next line */
	/* If max is not 0, the argument is a number: its range, and the value if it is not given */
	uint64_t min, max, value;
};
extern const struct option_row option_table[OPTIONS];

/** The options of a command line. Texts belong to the caller of options_parse() or options_set(). */
struct options {
	const char *text[OPTIONS];     /* NULL: not given; of a flag that was given: "" */
	uint64_t number[OPTIONS];      /* of options that have a number: given or default */
	uint32_t qp[SOFTCX_TRACE_QPS]; /* every OPTION_QP */
	unsigned nqps;
};

/** A verb by its name; VERBS: there is none. */
enum option_verb options_verb(const char *name);

/** Gives an option, as on the command line. 0, or -EINVAL and the mistake in @why. */
int options_set(struct options *o, enum option_id id, const char *text, char *why, size_t size);
static inline bool options_given(const struct options *o, enum option_id id)
{
	return o->text[id];
}

/** The profile of the device: of OPTION_DEVICE, else of $SOFTCX_DEVICE, else the default one. */
const char *options_device(const struct options *o);

/**
 * Reads the options of @verb up to the first other argument, whose index in @argv goes to @first. 0, or
 * -EINVAL and the mistake in @why, which is empty if getopt_long(3) has printed it.
 */
int options_parse(
	struct options *o, enum option_verb verb, int argc, char **argv, int *first, char *why, size_t size);

/** Checks --pu for a NIC of @ndevs devices. 0, or -EINVAL and the mistake in @why. */
int options_check_pu(const struct options *o, unsigned ndevs, char *why, size_t size);

/**
 * Adds those options of @verb that are given as "--NAME=VALUE" to @argv, which has room for OPTIONS of them.
 * Returns how many, or -ENOMEM. The caller frees them.
 */
int options_args(const struct options *o, enum option_verb verb, char **argv);

/** Prints the usage and the help of every verb, or of one as program @program. */
void options_help(FILE *to);
void options_help_verb(FILE *to, const char *program, enum option_verb verb);

#endif
