/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu-counters.h - how far a session is whose requests the CPU executes, in the ledger, for the next daemon.
 * Private to cpu*.c.
 *
 * A process can be killed between any two stores. What it has stored by then is there, in the order of the
 * program. So each counter is stored before what it counts takes effect, and what must agree is one store:
 *
 *   begun     before the first work request of the request is executed. If it is ahead of .finished, the last
 *             request may have done a part of what it does to regions
 *   finished  when the WQEs of the reply are in the SQ, with the index behind them; before the doorbell
 *   taken     before the room of CQEs is given back to the device, and before anybody else sees it: what they
 *             were, and which one is next
 *
 * Thread rules: of the thread that executes; of the event loop before the first turn and after the last one.
 */
#ifndef SESSION_CPU_COUNTERS_H
#define SESSION_CPU_COUNTERS_H

#include "reddnd/ledger/format.h"

#include <stdbool.h>

/** @begun: requests, the one that is about to begin included. */
void cpu_counters_begun(struct ledger_cpu *l, uint64_t begun);
/** @finished: requests; @added: rnic_plain_added(). */
void cpu_counters_finished(struct ledger_cpu *l, uint64_t finished, uint16_t added);
/** @cqes: rnic_plain_taken(). */
void cpu_counters_taken(struct ledger_cpu *l, uint64_t received, uint64_t done, uint32_t cqes);
/** The session has a verdict that is in no queue, so it cannot go on. */
void cpu_counters_spoil(struct ledger_cpu *l);

/** As the daemon before this one left them. */
struct cpu_counters {
	uint64_t received, begun, finished, done;
	uint32_t cqes;
	uint16_t added;
};

/** Of a session with @slots, and with room for the replies to @replies requests. -EBADMSG: they cannot be
 * right. */
int cpu_counters_read(
	const struct ledger_cpu *l, unsigned slots, unsigned replies, struct cpu_counters *counters);
/** True if a request has begun that is not finished. */
bool cpu_counters_amid(const struct ledger_cpu *l);

#endif
