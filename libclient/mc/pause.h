/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause.h - how long to leave a memcached alone that did not accept, or did not answer who it is.
 */
#ifndef LIBCLIENT_MC_PAUSE_H
#define LIBCLIENT_MC_PAUSE_H

#include <stdint.h>

/* MC_PAUSE_SHARE: the pause is at least so much longer than the attempt took */
enum { MC_PAUSE_LEAST_MS = 20, MC_PAUSE_MOST_MS = 200, MC_PAUSE_SHARE = 4 };

/** Milliseconds after an attempt that took @took_ms. @before: the last pause, which was for the same
 * memcached and is doubled; 0: it answered since then. */
static inline uint64_t mc_pause_next(uint64_t before, uint64_t took_ms)
{
	uint64_t pause = 2 * before, least = MC_PAUSE_SHARE * took_ms;

	if (pause < MC_PAUSE_LEAST_MS)
		pause = MC_PAUSE_LEAST_MS;
	if (pause > MC_PAUSE_MOST_MS)
		pause = MC_PAUSE_MOST_MS;
	return pause < least ? least : pause;
}

#endif
