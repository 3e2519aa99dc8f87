/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fair-lock.h - a lock that threads get in the order in which they asked. Linux has no lock between the calls
 * of two threads on different files: a thread that makes call after call must not keep another one waiting
 * for longer than one call. A mutex would: who releases it has it again before a sleeper wakes.
 *
 * Threads: any. Allocates nothing.
 */
#ifndef SOFTCX_DRIVER_FAIR_LOCK_H
#define SOFTCX_DRIVER_FAIR_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

/** All zeros: free. */
struct fair_lock {
	_Atomic uint32_t next;    /* ticket of the next thread that asks */
	_Atomic uint32_t serving; /* ticket of the thread that has the lock, or may take it */
};

void fair_lock(struct fair_lock *lock);
void fair_unlock(struct fair_lock *lock);
/** In a forked child: frees the lock, for which other threads of the parent may have waited. */
void fair_lock_fork_child(struct fair_lock *lock);

#endif
