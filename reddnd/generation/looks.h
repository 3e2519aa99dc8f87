/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * looks.h - how long to wait before the next look at a memcached: longer while it answers, or is away for
 * long.
 */
#ifndef GENERATION_LOOKS_H
#define GENERATION_LOOKS_H

#include <stdbool.h>

/* LOOKS_SOON_MS: between the first LOOKS_SOON when memcached has ended, and at the next one, which does not
 * answer yet. Until that is proved, clients get nothing by the NIC. */
enum { LOOKS_MS = 200, LOOKS_SOON_MS = 10, LOOKS_SOON = 200 };

/** All zero: a memcached that has been away for long. */
struct looks {
	unsigned soon; /* looks that are soon, while no memcached answers */
};

/** A memcached began: looks are soon, until one answers. */
void looks_begins(struct looks *l);

/** Milliseconds to the next look, of which one is counted; @answers: memcached is proved and answers. */
int looks_rest_ms(struct looks *l, bool answers);

#endif
