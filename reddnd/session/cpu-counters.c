/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/cpu-counters.h"

#include <errno.h>

enum { INDEX_BITS = 16 };

/* The compiler moves nothing across it. The CPU retires stores in their order, and what is killed has no
 * store that is not retired */
static void store(uint64_t *p, uint64_t v)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void cpu_counters_begun(struct ledger_cpu *l, uint64_t begun)
{
	store(&l->begun, begun);
}

void cpu_counters_finished(struct ledger_cpu *l, uint64_t finished, uint16_t added)
{
	store(&l->finished, finished << INDEX_BITS | added);
}

void cpu_counters_taken(struct ledger_cpu *l, uint64_t received, uint64_t done, uint32_t cqes)
{
	const uint64_t next = !l->last;

	l->taken[next].received = received;
	l->taken[next].done = done;
	l->taken[next].cqes = cqes;
	store(&l->last, next);
}

void cpu_counters_spoil(struct ledger_cpu *l)
{
	__atomic_store_n(&l->spoilt, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

bool cpu_counters_amid(const struct ledger_cpu *l)
{
	return l->begun != l->finished >> INDEX_BITS;
}

int cpu_counters_read(const struct ledger_cpu *l, unsigned slots, unsigned replies, struct cpu_counters *c)
{
	if (l->last > 1)
		return -EBADMSG;
	*c = (struct cpu_counters){
		.received = l->taken[l->last].received,
		.begun = l->begun,
		.finished = l->finished >> INDEX_BITS,
		.done = l->taken[l->last].done,
		.cqes = l->taken[l->last].cqes,
		.added = (uint16_t)l->finished,
	};
	if (c->done > c->finished || c->finished - c->done > replies || c->finished > c->begun ||
		c->begun - c->finished > 1 || c->begun > c->received || c->received - c->done > slots)
		return -EBADMSG;
	return 0;
}
