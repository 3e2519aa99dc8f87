/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random-chain.h - chains at random: steps in the order of a text, for chain_derive(), that copy, patch and
 * decide. Whatever the memory holds, they reach nothing but their regions when these have the sizes below.
 */
#ifndef TESTS_CHAIN_RANDOM_CHAIN_H
#define TESTS_CHAIN_RANDOM_CHAIN_H

#include "reddnd/chain/ir/build.h"

enum {
	RANDOM_DATA,  /* regions: read-only */
	RANDOM_STORE, /* and writable */
	RANDOM_REGIONS,
	RANDOM_REGION_SIZE = 65536 + 4096,
	RANDOM_SLOT = 73728,
	RANDOM_STEPS = 32,
	RANDOM_QUEUES = 4,
};

struct random_chain {
	uint64_t rng;
	unsigned nifs;
	bool wide_address[RANDOM_STEPS]; /* 16 bits of an address of the step are replaced */
	char label[RANDOM_STEPS][8];
	uint8_t lanes[64], opcodes[8]; /* what the words hold at first */
	struct chain_word words[3];
	struct chain_step steps[RANDOM_STEPS];
	struct chain_place args[4];
	struct chain_desc d;
};

void random_chain(struct random_chain *r, uint64_t seed);

#endif
