/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-as-of.h - how new a table is that follows a source, as reddn-follow(1) keeps one. See libreddn(3).
 *
 * As of a moment: the table has every change that the source had made until then, and perhaps later ones. So
 * a value was that of its key at the source at that moment or later. So is a miss, if the table is complete:
 * the source did not have the key. A table whose writer states nothing is its own source, and has no as-of:
 * all of this is 0.
 */
#ifndef REDDN_AS_OF_H
#define REDDN_AS_OF_H

#include <stdint.h>

enum reddn_as_of_flag {
	REDDN_FOLLOWS = 1,  /* the table follows a source */
	REDDN_COMPLETE = 2, /* and has all of its keys; else a miss proves nothing */
};

struct reddn_as_of {
	uint64_t source; /* the moment by the clock of the source, us since 1970 by that of Redis. 0: unknown
			  */
	uint64_t host;   /* and by CLOCK_REALTIME of the host of its writer, ns. 0: unknown */
	uint32_t epoch;  /* of the source: after a change, its clock and its values may have gone backwards */
	uint32_t flags;  /* enum reddn_as_of_flag */
	uint64_t origin; /* which source, as libreddn-redis compares it with its own; 0: unknown. Another one
			    has another epoch, too */
};

#endif
