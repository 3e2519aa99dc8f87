/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log-pace.h - how often one line of the source may log: clients can cause some messages, without end. Pure;
 * the caller has the clock and the lock.
 *
 * Each has LOG_PACE_BURST messages after a pause, and LOG_PACE_PER_SECOND in the long run; what is left out
 * is counted.
 */
#ifndef UTIL_LOG_PACE_H
#define UTIL_LOG_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_PACE_PLACES = 256, LOG_PACE_BURST = 1000, LOG_PACE_PER_SECOND = 10 };

/** All zero: nothing was logged. */
struct log_pace {
	struct {
		const char *file;
		int line;
		uint64_t from_us; /* the bucket was full then, but for what was taken */
		uint64_t taken, left_out;
	} place[LOG_PACE_PLACES];
};

/** True: the message may be logged, and *@left_out is how many before it may not. @file: of __FILE__. */
bool log_pace_allows(struct log_pace *p, const char *file, int line, uint64_t now_us, uint64_t *left_out);

#endif
