/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause.h - how long to leave a server alone that did not accept, or did not last: longer each time, and not
 * as long as others who were lost together.
 */
#ifndef LIBCLIENT_PAUSE_H
#define LIBCLIENT_PAUSE_H

#include <stdint.h>

/* Of connects again, in ms */
enum { REDDN_PAUSE_LEAST_MS = 20, REDDN_PAUSE_MOST_MS = 2000 };

/** @ms, but at least @least and at most @most. */
static inline uint32_t reddn_pause_within(uint64_t ms, uint32_t least, uint32_t most)
{
	return ms < least ? least : ms > most ? most : (uint32_t)ms;
}

/** The pause that follows the one of @before ms, doubled within the limits. 0: there was none. */
static inline uint32_t reddn_pause_next(uint32_t before, uint32_t least, uint32_t most)
{
	return reddn_pause_within(2ull * before, least, most);
}

/** @time plus or minus a quarter, so that those who were lost together do not come back together. */
uint64_t reddn_jitter(uint64_t time);

#endif
