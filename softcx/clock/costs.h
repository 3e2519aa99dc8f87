/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * costs.h - reads a clock file: what was measured of a NIC, as cx5.conf has it, and what follows for each unit.
 */
#ifndef SOFTCX_CLOCK_COSTS_H
#define SOFTCX_CLOCK_COSTS_H

#include "softcx/hw/hw.h"

/**
 * The file that @name means: itself if there is a / in it, else NAME.conf of those that come with softcx. -ENAMETOOLONG.
 */
int costs_find(const char *name, char *path, size_t size);
/** 0, or -EINVAL (-ENOENT, ...) and in @why what is wrong and where. */
int costs_read(const char *path, struct hw_costs *costs, char *why, size_t size);

#endif
