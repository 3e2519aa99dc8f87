/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/fair-lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void fair_lock(struct fair_lock *lock)
{
	uint32_t ticket = atomic_fetch_add(&lock->next, 1), serving;

	while ((serving = atomic_load(&lock->serving)) != ticket)
		syscall(SYS_futex, &lock->serving, FUTEX_WAIT_PRIVATE, serving, NULL);
}

void fair_unlock(struct fair_lock *lock)
{
	uint32_t serving = atomic_fetch_add(&lock->serving, 1) + 1;

	/* Only the one whose turn it is goes on; which of the sleepers that is, the kernel cannot know. */
	if (atomic_load(&lock->next) != serving)
		syscall(SYS_futex, &lock->serving, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void fair_lock_fork_child(struct fair_lock *lock)
{
	atomic_store(&lock->next, 0);
	atomic_store(&lock->serving, 0);
}
