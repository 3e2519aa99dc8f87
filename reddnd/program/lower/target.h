/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.h - the device that a program is compiled for, and the request that a client sends for it.
 */
#ifndef PROGRAM_LOWER_TARGET_H
#define PROGRAM_LOWER_TARGET_H

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/build.h"

/** What other programs store in the region with that name. */
struct program_stored {
	const char *region;
	struct chain_stored stored;
};

/** All operations of CALC that a program may take. */
enum {
	PROGRAM_CALC = 1 << WQE_CALC_ADD | 1 << WQE_CALC_MAXLOC | 1 << WQE_CALC_AND | 1 << WQE_CALC_OR |
		       1 << WQE_CALC_XOR
};

/** The device to compile for. All zero: a device of which nothing is known but the verbs, with index checks.
 */
struct program_target {
	bool masked_atomics;
	bool swapped_old;     /* the old value of an atomic arrives with its bytes in reverse order */
	bool ignores_index;   /* checks neither WQE indices nor QPNs: allows the direct form of `if` */
	bool fenced_enables;  /* starts a fenced SEND_EN after the READs and atomics before it, as observed */
	uint8_t calc;         /* operations of CALC that are right: 1 << enum wqe_calc */
	bool overlap;         /* a request may begin while the one before it is at work: chain_desc.overlap */
	unsigned max_sge;     /* data segments of a WQE; 0: CHAIN_MAX_SGE */
	unsigned fetch_group; /* WQEBBs that it fetches together, as chain_desc.fetch_group */
	unsigned pad_wqebbs;  /* of a NOP, as chain_desc.pad_wqebbs */
	const struct program_stored *stored; /* and what is done there besides; nstored of them */
	unsigned nstored;
};

/**
 * The next `len` bytes of the request. They are bytes first .. first + len - 1 of the big-endian form of
 * argument `arg` (of a string: as it is), with every bit inverted if `inverted`, and in reverse order if
 * `reversed`.
 */
struct program_piece {
	uint16_t arg, first, len;
	bool reversed, inverted;
};

#endif
