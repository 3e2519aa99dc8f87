/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zipf.h - ranks by Zipf's law: rank r, from 0, comes with a probability in proportion to 1 / (r + 1)^s.
 */
#ifndef TOOLS_LOAD_ZIPF_H
#define TOOLS_LOAD_ZIPF_H

#include <stddef.h>
#include <stdint.h>

struct zipf {
	double *until; /* the probability of ranks up to this one */
	size_t n;
};

/** @n ranks, one at least, with exponent @s. -ENOMEM. */
int zipf_init(struct zipf *z, size_t n, double s);
void zipf_deinit(struct zipf *z);

/** The rank for 64 random bits. */
size_t zipf_rank(const struct zipf *z, uint64_t random);

#endif
