/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/pu.h"

#include "softcx/hw/dev.h"
#include "util/clock.h"

#include <sched.h>

enum {
	TRIES = 1000,       /* to take a lock, before its owner may need a core */
	HANDOVER_NS = 2000, /* until a thread that runs has noticed that a lock is free */
};

void hw_pu_init(struct hw_pu *const *all, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		*all[i] = (struct hw_pu){.holder_cpu = -1,
			.waiter_cpu = -1,
			.all = all,
			.index = i,
			.every = (uint32_t)((1ull << n) - 1)};
}

void hw_dev_set_pu(struct hw_dev *dev, struct hw_pu *pu)
{
	dev->pu = pu;
}

/* ---- one lock --------------------------------------------------------------------------- */

static bool try_to_take(struct hw_pu *pu)
{
	if (atomic_load_explicit(&pu->taken, memory_order_relaxed) ||
		atomic_exchange_explicit(&pu->taken, true, memory_order_acquire))
		return false;
	atomic_store_explicit(&pu->holder_cpu, sched_getcpu(), memory_order_relaxed);
	return true;
}

static void announce(struct hw_pu *pu)
{
	atomic_store_explicit(&pu->waiter_cpu, sched_getcpu(), memory_order_relaxed);
	atomic_fetch_add_explicit(&pu->waiters, 1, memory_order_relaxed);
}

/* A lock is never kept for long, so waiting is looking again. */
static void wait_for(struct hw_pu *pu)
{
	for (unsigned n = 1; !try_to_take(pu); n++)
		if (n % TRIES == 0 ||
			atomic_load_explicit(&pu->holder_cpu, memory_order_relaxed) == sched_getcpu())
			sched_yield();
	atomic_fetch_sub_explicit(&pu->waiters, 1, memory_order_relaxed);
}

void hw_pu_take(struct hw_pu *pu)
{
	if (try_to_take(pu))
		return;
	announce(pu);
	wait_for(pu);
}

void hw_pu_give(struct hw_pu *pu)
{
	atomic_store_explicit(&pu->taken, false, memory_order_release);
}

/* Without a pause it would be taken again before the other thread has noticed. */
void hw_pu_give_way(struct hw_pu *pu)
{
	uint64_t until;

	if (!hw_pu_awaited(pu))
		return;
	hw_pu_give(pu);
	if (atomic_load_explicit(&pu->waiter_cpu, memory_order_relaxed) == sched_getcpu()) {
		sched_yield();
	} else {
		until = clock_ns() + HANDOVER_NS;
		while (hw_pu_awaited(pu) && clock_ns() < until)
			;
	}
	hw_pu_take(pu);
}

/* ---- several ---------------------------------------------------------------------------- */

/* All of them know before the first is waited for, so that their passes end together. */
static void take_set(struct hw_pu *const *all, uint32_t set)
{
	for (uint32_t left = set; left; left &= left - 1)
		announce(all[__builtin_ctz(left)]);
	for (uint32_t left = set; left; left &= left - 1)
		wait_for(all[__builtin_ctz(left)]);
}

void hw_pu_take_all(struct hw_pu *const *all)
{
	take_set(all, all[0]->every);
	for (uint32_t left = all[0]->every; left; left &= left - 1)
		all[__builtin_ctz(left)]->alone = true;
}

void hw_pu_give_all(struct hw_pu *const *all)
{
	for (uint32_t left = all[0]->every; left; left &= left - 1) {
		struct hw_pu *pu = all[__builtin_ctz(left)];

		pu->alone = false;
		hw_pu_give(pu);
	}
}

bool hw_pu_claim(struct hw_pu *pu, uint32_t needs)
{
	uint32_t missing = needs & pu->every & ~(pu->borrowed | 1u << pu->index), got = 0;

	if (!missing || pu->alone)
		return true;
	for (; missing; missing &= missing - 1) {
		unsigned i = (unsigned)__builtin_ctz(missing);

		if (!try_to_take(pu->all[i]))
			break;
		got |= 1u << i;
	}
	if (!missing) {
		pu->borrowed |= got;
		return true;
	}
	for (; got; got &= got - 1)
		hw_pu_give(pu->all[__builtin_ctz(got)]);
	pu->wants = needs & pu->every;
	return false;
}

void hw_pu_return(struct hw_pu *pu)
{
	for (; pu->borrowed; pu->borrowed &= pu->borrowed - 1) {
		struct hw_pu *other = pu->all[__builtin_ctz(pu->borrowed)];

		if (other->on_return)
			other->on_return(other);
		hw_pu_give(other);
	}
}

void hw_pu_take_wanted(struct hw_pu *pu)
{
	uint32_t own = 1u << pu->index, set = pu->wants | own;

	pu->wants = 0;
	hw_pu_give(pu);
	take_set(pu->all, set);
	pu->borrowed = set & ~own;
}
