/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share.h - the share of the event loop's time that goes to peers who may only read. An answer takes as long
 * as there are sessions, and peers can ask without end: after one that took t they wait SHARE_OF - 1 times t.
 * Pure; the caller has the clock.
 */
#ifndef CONTROL_SHARE_H
#define CONTROL_SHARE_H

#include <stdint.h>

enum { SHARE_OF = 10 };

/** All zero: nothing was answered yet. */
struct share {
	uint64_t until; /* us: they wait */
};

/** Microseconds until the next answer; 0: now. */
uint64_t share_wait(const struct share *s, uint64_t now_us);
/** One took from @begin_us to @end_us. */
void share_took(struct share *s, uint64_t begin_us, uint64_t end_us);

#endif
