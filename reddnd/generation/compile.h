/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compile.h - compiles the program of an offload for the device, or for the CPU if that executes it. If it
 * has mistakes only there, it finds out what the device lacks.
 *
 * Thread rules: any.
 */
#ifndef GENERATION_COMPILE_H
#define GENERATION_COMPILE_H

#include "reddnd/generation/offload.h"

/** Sets o->program and o->img, with @nmore params that the catalog does not set. -EOPNOTSUPP: the device
 * lacks something (offload_unfit()), and o->program is for another one. Errors have been logged. */
int compile_offload(
	struct offload *o, const struct program_setting *more, unsigned nmore, const struct rnic_caps *caps);
/** Compiles once more if the program has params that depend on the table. */
int compile_for_table(struct offload *o, const struct table_geometry *g, const struct rnic_caps *caps);

#endif
