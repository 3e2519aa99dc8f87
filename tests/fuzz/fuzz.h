/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.h - shared by the fuzz targets, each a file with LLVMFuzzerTestOneInput() for one kind of input.
 *
 * A target refuses a malformed input with a message, or accepts a whole object; anything else aborts. It runs
 * below libFuzzer ("./dev fuzz KIND") or below replay.c (the test fuzz-KIND). Thread rules: one thread.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Inputs refused so far. */
extern uint64_t fuzz_refusals;

/** Reports @what and aborts unless @ok. */
void fuzz_need(bool ok, const char *what);

/** Counts a refused input. @why must not be empty; libFuzzer takes each new reason for new behaviour. */
void fuzz_refused(const char *why);

#endif
