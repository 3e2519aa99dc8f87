/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explain.h - describes a compiled program: the work requests of each line, and the reason for each; and
 * draws it.
 */
#ifndef PROGRAM_REPORT_EXPLAIN_H
#define PROGRAM_REPORT_EXPLAIN_H

#include "reddnd/program/program.h"

#include <stdio.h>

/** What a program that calculates is on a device that does CALC, or on one that does not, whichever it was
 * not compiled for. */
struct explain_calc {
	bool without;                  /* one that does not */
	const struct program *program; /* NULL: such a device cannot execute it */
	const char *refusal;           /* for that reason */
};

/** For people: the source line by line, each followed by its work requests. @source: what @p was compiled
 * from. @nic: what the times are modelled on, such as "a ConnectX-5". @calc: NULL if it does not calculate.
 */
int explain_text(FILE *f, const struct program *p, const struct program_source *source, const char *nic,
	const struct explain_calc *calc);

/** The same facts as one JSON object, documented in reddnc(1). 0 or -ENOMEM. */
int explain_json(FILE *f, const struct program *p, const struct explain_calc *calc);

/** "READ table.buckets -> hit.addr 5, seen 7", of step @s. Cut when @size is too small. */
void explain_step(const struct chain_desc *d, unsigned s, char *text, size_t size);

/*
 * Draws a chain: queues as columns, time downwards, arrows for what patches what, what waits for what and
 * what enables what.
 */

/** Writes an SVG of its own, without scripts or outside references. 0 or -ENOMEM. */
int draw_svg(FILE *f, const struct program *p);

#endif
