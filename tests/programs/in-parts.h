/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * in-parts.h - executes the requests of an executor once more, in parts, on memory of its own, and by
 * executors that are newer: the first has two requests, the next four, up to 32. A pause may come anywhere,
 * and both must do the same.
 */
#ifndef TESTS_PROGRAMS_IN_PARTS_H
#define TESTS_PROGRAMS_IN_PARTS_H

#include "reddnd/executor/executor.h"

struct in_parts;

/** Beside an executor of @p that has executed nothing, and works on @parts. */
struct in_parts *in_parts_new(const struct program *p, const struct executor_parts *parts);
void in_parts_free(struct in_parts *t); /* NULL is fine */

/** Request @number, which was executed at once: up to @wqes work requests, with @result. Its messages had
 * @data. The request had @bytes in all; those behind the arguments went to @extent, if the program has a
 * payload. NULL, or what differs. */
const char *in_parts_differs(struct in_parts *t, const struct executor *at_once, enum executor_result result,
	uint64_t number, const uint8_t *request, uint32_t bytes, uint64_t extent, uint64_t wqes,
	const uint8_t *data);
/** As a RECV does, and for the CPU: @bytes of a message to @region, and into @extent of the one of its
 * payload.
 */
void in_parts_receive(struct executor *x, const struct program *p, uint8_t *region, uint64_t extent,
	const uint8_t *request, uint32_t bytes);
/** The regions are as those of the other one now. */
void in_parts_follow(struct in_parts *t);

#endif
