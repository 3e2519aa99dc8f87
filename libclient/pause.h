/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause.h - how long to leave a server alone that did not accept, or did not last: longer each time, and not
 * as long as others who were lost together; and how long to wait for what other clients do.
 */
#ifndef LIBCLIENT_PAUSE_H
#define LIBCLIENT_PAUSE_H

#include <stdbool.h>
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

/** One who asks the server again and again what others have done. The pauses in between grow: a waiter is not
 * to load the server's NIC, nor to be late by much. */
struct reddn_waiter {
	uint64_t until; /* ns of CLOCK_MONOTONIC; UINT64_MAX: there is no limit */
	uint64_t pause; /* ns, the next one */
};

/** @timeout_ms: how long it waits at most; negative: without a limit. */
struct reddn_waiter reddn_waiter_begin(int timeout_ms);

/** Sleep until it is time to ask again. False, at once: the time is over. */
bool reddn_waiter_pause(struct reddn_waiter *w);

#endif
