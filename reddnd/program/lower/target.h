/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.h - the device that a program is compiled for, and the request that a client sends for it.
 */
#ifndef PROGRAM_LOWER_TARGET_H
#define PROGRAM_LOWER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

/** What is compiled for. All zero: a device of which nothing is known but the verbs, with index checks. */
struct program_target {
	bool masked_atomics;
	bool ignores_index;  /* known not to check WQE indices and QPNs: the direct form of `if` */
	bool fenced_enables; /* seen to start a fenced SEND_EN after the READs and atomics before it */
	unsigned max_sge;    /* data segments of a WQE; 0: CHAIN_MAX_SGE */
};

/**
 * The next `len` bytes of the request. The big-endian form of argument `arg` (a string: as it is), `bytes`
 * long, is with every bit inverted if that is asked for; of that, bytes first .. first + len - 1, in reverse
 * if that is asked for.
 */
struct program_piece {
	uint16_t arg, first, len;
	bool reversed, inverted;
};

#endif
