/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path.h - models how long a chain takes on an idle NIC, a ConnectX-5 or another one, from the arrival of the
 * request in the NIC to that of the reply in the client's memory.
 *
 * A WQE starts when it has been fetched, when the one before it in its queue has been issued, and when what
 * its fence or WAIT asks for is complete. What each of these takes is in costs/costs.h: it follows from what
 * the RedN paper (NSDI'22, section 5.1) measured, or what was measured in the same way on another NIC. Every
 * condition holds, and values are short: contention and the time of long data are left out. Use it to compare
 * programs, not as a promise.
 */
#ifndef PROGRAM_REPORT_PATH_H
#define PROGRAM_REPORT_PATH_H

#include "costs/costs.h"
#include "reddnd/chain/ir/build.h"

/** Models with @costs, which must stay, from now on; without this call, those of a ConnectX-5. */
void path_use_costs(const struct costs *costs);

/** Of one step, in picoseconds since the request was in the NIC. */
struct path_time {
	uint64_t start, done;
	unsigned after; /* step whose moment decided when this one starts; PATH_REQUEST: the request */
	bool critical;  /* the reply would be earlier if this step were */
};

#define PATH_REQUEST (~0u)

/** Fills @times, one for each step of @d, which is ordered. Returns the time of the whole, in picoseconds. */
uint64_t path_model(const struct chain_desc *d, struct path_time *times);
/**
 * The same as a client sees it, from its doorbell to the CQE of the reply: with what the NICs and the link
 * take for a request of
 * @bytes. Picoseconds.
 */
uint64_t path_model_client(uint64_t whole, uint32_t bytes);

#endif
