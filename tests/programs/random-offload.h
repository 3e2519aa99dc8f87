/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random-offload.h - programs made at random (generate.h), compiled, with memory and requests for them, ready
 * for run.h.
 */
#ifndef TESTS_PROGRAMS_RANDOM_OFFLOAD_H
#define TESTS_PROGRAMS_RANDOM_OFFLOAD_H

#include "tests/programs/run.h"

/** Requests that the interpreter has answered: of all, those that lacked bytes, those of no bytes although
 * there are arguments, those with a payload of no bytes and of the most, and those that published it. */
struct random_counts {
	uint64_t all, lacking, empty, none, most, published;
};
extern struct random_counts random_counts;

struct random_offload {
	char text[PROGRAM_MAX_SOURCE];
	struct program *p; /* NULL: not one that can run here */
	char *messages;    /* of the compiler, or NULL */
	struct ast_program *tree;
	struct run_offload o;
};

/**
 * Program number @seed, or that of the file @path unless that is NULL, compiled for @target. Its requests are
 * such that the interpreter (interpret.h) can answer them, and the model is what it makes of them; a program
 * that it cannot interpret runs only if @any, with requests of any kind, and the model is what the CPU makes
 * of them (reddnd/executor). Those of every eighth seed, from 5 on, are mostly cut into queues.
 */
void random_offload_make(struct random_offload *r, uint64_t seed, const char *path,
	const struct program_target *target, bool any);
void random_offload_free(struct random_offload *r);

#endif
