/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * params.h - the params of a program that the catalog may leave to the table or store that its region
 * "buckets" is in: "width" and "record", and of a store "most".
 *
 * Thread rules: any.
 */
#ifndef GENERATION_PARAMS_H
#define GENERATION_PARAMS_H

#include "reddnd/catalog/influence.h"
#include "reddnd/generation/region.h"

/** Those that @program has, with the values that @table gives: up to INFLUENCE_PARAMS. Returns their number.
 */
unsigned params_of_table(
	const struct program *program, const struct region *table, struct program_setting *params);

#endif
