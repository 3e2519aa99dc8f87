/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/hw.h"

/*
 * pu.h - processing units: the locks that let several threads execute devices. (The PUs of clock.h are those
 * of the silicon.)
 *
 * Each device belongs to one unit. A thread executes a device, or calls anything of hw.h for it, while it has
 * the unit's lock. Much of what a device executes is for another one: a message has a responder. Then the
 * thread needs the lock of the other unit too, for the rest of the turn of that queue:
 *
 * - It tries to take it (hw_pu_claim). It never waits while it has its own, so there is no circle of waiting.
 * - If another thread has it, the WQE stays at the head of its queue, and the pass ends. hw_poll() gives the
 *   own lock up, takes both in the order of the units, and begins with that queue. The order of the WQEs of
 *   a queue is kept, and between queues there is none.
 * - Who is waited for ends its pass after the turn of the queue that it executes.
 *
 * UMR, faults, and commands of the driver may change anything. They need the locks of all units.
 *
 * Late effects (inflight.h) land without the lock of the device whose memory they go to. They need nothing of
 * it but the memory, which commands alone can take away.
 */
#ifndef SOFTCX_HW_PU_H
#define SOFTCX_HW_PU_H

#include <stdatomic.h>

enum { HW_PU_MAX = 16 };
#define HW_PU_EVERY UINT32_MAX /* of hw_pu_claim(): all that there are */

struct hw_pu {
	_Atomic(bool) taken;
	_Atomic(unsigned) waiters;
	_Atomic(int) holder_cpu, waiter_cpu; /* where the last of each was */

	struct hw_pu *const *all; /* of the NIC, in the order in which their locks are taken */
	unsigned index;           /* of this one */
	uint32_t every;           /* 1 << index of each */
	/* With its lock, and before it is given back to its thread: another has executed something for it */
	void (*on_return)(struct hw_pu *pu);

	/* of whoever has the lock */
	bool alone;        /* and that of all others */
	uint32_t borrowed; /* other units whose locks the thread has, until the queue's turn ends */
	uint32_t wants;    /* those that a WQE needs, and that others had */
};

/** @n units, HW_PU_MAX at most; the array outlives them. Nobody has a lock. */
void hw_pu_init(struct hw_pu *const *all, unsigned n);
/** From now on @dev is executed with the lock of @pu, beside other units. For a device without work. */
void hw_dev_set_pu(struct hw_dev *dev, struct hw_pu *pu);

void hw_pu_take(struct hw_pu *pu); /* waits */
void hw_pu_give(struct hw_pu *pu);
/** Takes the locks of all units, or gives them up. Who has them may call everything. */
void hw_pu_take_all(struct hw_pu *const *all);
void hw_pu_give_all(struct hw_pu *const *all);
/** True if another thread waits for the lock. */
static inline bool hw_pu_awaited(const struct hw_pu *pu)
{
	return atomic_load_explicit(&pu->waiters, memory_order_relaxed) != 0;
}
/** Lets another thread have the lock if one waits for it. */
void hw_pu_give_way(struct hw_pu *pu);

/* Internal to softcx/hw: */

/** The thread has the lock of @pu, and gets those of @needs (1 << index). False: not all; see wants. */
bool hw_pu_claim(struct hw_pu *pu, uint32_t needs);
/** Gives those back. */
void hw_pu_return(struct hw_pu *pu);
/** Gives the own lock up, and takes it with those of wants. */
void hw_pu_take_wanted(struct hw_pu *pu);

#endif
