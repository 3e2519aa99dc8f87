/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * draw.h - draws a chain: queues as columns, time downwards, arrows for what patches what, what waits
 * for what and what enables what.
 */
#ifndef PROGRAM_REPORT_DRAW_H
#define PROGRAM_REPORT_DRAW_H

#include "reddnd/program/program.h"

#include <stdio.h>

/** Writes an SVG of its own, without scripts or outside references. 0 or -ENOMEM. */
int draw_svg(FILE *f, const struct program *p);

#endif
