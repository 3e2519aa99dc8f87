/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.h - "softcx fuzz": runs one command under many seeds and reports on the first that breaks it.
 */
#ifndef SOFTCX_TOOL_FUZZ_H
#define SOFTCX_TOOL_FUZZ_H

#include "softcx/tool/nic.h"

#include <stdint.h>

struct tool_fuzz_options {
	uint64_t first, last;
	unsigned jobs;    /* runs at once, at most OPTIONS_MAX_JOBS */
	unsigned timeout; /* seconds for each */
	unsigned lines;   /* of output and trace to show */
	bool keep_going, json;
};

/** Reads "N" (1 to N) or "FROM-TO". False when @text is neither. */
bool tool_fuzz_seeds(const char *text, uint64_t *first, uint64_t *last);

/**
 * @opt: of the NICs, without a seed. Returns the exit status: 0 when the command passed under every seed, 1
 * when it failed under one, 125 when it could not be tried, 126 or 127 as "softcx run", 130 after an
 * interrupt.
 */
int tool_fuzz(char **argv, const struct tool_nic_options *opt, const struct tool_fuzz_options *fuzz);

#endif
