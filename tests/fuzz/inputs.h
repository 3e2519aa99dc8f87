/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inputs.h - malformed input of one kind: made at random from good input, or from a corpus, and given to what
 * takes it. What is wrong must be refused in words, what is accepted must be whole; anything else ends the
 * program.
 */
#ifndef TESTS_FUZZ_INPUTS_H
#define TESTS_FUZZ_INPUTS_H

#include "tests/fuzz/corpus.h"

enum input_outcome { INPUT_ACCEPTED, INPUT_REFUSED };

struct input_kind {
	const char *name;
	void (*begin)(void);
	void (*end)(void);
	void (*make)(struct input *in); /* from inputs_pick() */
	enum input_outcome (*use)(const struct input *in);
	bool live; /* of a daemon that inputs_socket leads to */
};

extern const struct input_kind inputs_config, inputs_connect, inputs_table, inputs_control;
extern const char *inputs_socket;

/** Number in [0, n), from the seed and the number of the input; a word as fuzz_word() has it. */
unsigned inputs_pick(unsigned n);
uint64_t inputs_word(void);

/** Unless it is true: tells @what and the input, and aborts. */
void inputs_need(bool ok, const char *what);

/** @good with some damage: parts of it and @words in wrong places. */
void inputs_damage(struct input *in, const char *good, const char *const *words, unsigned nwords);

/**
 * What the code did with an input, for choosing inputs that differ: features are parts of the program that
 * ran and how often, if it was built with -fsanitize-coverage=trace-pc-guard, and whatever inputs_feature()
 * was told. Returns how many were never seen before;
 * @*path is a hash of them all. coverage_begin() before each input.
 */
void coverage_begin(void);
unsigned coverage_end(uint64_t *path);
void inputs_feature(const char *text);

#endif
