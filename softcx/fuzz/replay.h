/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.h - one case of the fuzzer of sockets and commands: replays a recorded conversation with damage. A
 * step depends only on the seed, the number of the case and its own number, so steps can be left out.
 */
#ifndef SOFTCX_FUZZ_REPLAY_H
#define SOFTCX_FUZZ_REPLAY_H

#include "softcx/fuzz/conv.h"

#include <stdbool.h>
#include <stdint.h>

struct replay_setup {
	const char *dir; /* of the NIC */
	const struct conv *convs;
	unsigned nconvs;
	uint64_t seed;
};

struct replay_counts {
	uint64_t calls, done, good; /* sent, answered, answered with success */
};

/**
 * @skip: steps to leave out, or NULL; @nskip of them. Returns the number of steps that the case has.
 * @counts is added to.
 */
unsigned replay_case(const struct replay_setup *setup, uint64_t number, const bool *skip, unsigned nskip,
	struct replay_counts *counts);

#endif
