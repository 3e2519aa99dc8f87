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

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/** All zeros: free. */
struct fair_lock {
	_Atomic uint32_t next;    /* ticket of the next thread that asks */
	_Atomic uint32_t serving; /* ticket of the thread that has the lock, or may take it */
};

static inline void fair_lock(struct fair_lock *lock)
{
	uint32_t ticket = atomic_fetch_add(&lock->next, 1), serving;

	while ((serving = atomic_load(&lock->serving)) != ticket)
		syscall(SYS_futex, &lock->serving, FUTEX_WAIT_PRIVATE, serving, NULL);
}

static inline void fair_unlock(struct fair_lock *lock)
{
	uint32_t serving = atomic_fetch_add(&lock->serving, 1) + 1;

	/* Only the one whose turn it is goes on; which of the sleepers that is, the kernel cannot know. */
	if (atomic_load(&lock->next) != serving)
		syscall(SYS_futex, &lock->serving, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/** In a forked child: frees the lock, for which other threads of the parent may have waited. */
static inline void fair_lock_fork_child(struct fair_lock *lock)
{
	atomic_store(&lock->next, 0);
	atomic_store(&lock->serving, 0);
}

#endif
