/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spark.h - the last numbers of a counter as a line of small bars. Pure.
 */
#ifndef TOOLS_REDDNCTL_SPARK_H
#define TOOLS_REDDNCTL_SPARK_H

#include <stdbool.h>
#include <stdint.h>

enum { SPARK_MAX = 30, SPARK_TEXT = 3 * SPARK_MAX + 1 };

/** The last SPARK_MAX numbers, the oldest first. All zero: none. */
struct spark {
	uint64_t number[SPARK_MAX];
	unsigned n;
};

void spark_add(struct spark *s, uint64_t number);

/** A bar for each of the last @most numbers, as high as it is beside the largest of them; 0 is the lowest
 * one.
 * @utf8: of block elements, else of ASCII. */
void spark_draw(const struct spark *s, unsigned most, bool utf8, char text[SPARK_TEXT]);

#endif
