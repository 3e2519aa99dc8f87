/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.h - the addresses of this process's thread stacks. /proc does not have them, so pthread_create is
 * interposed: every thread notes its own stack before it runs and removes it at its end.
 *
 * Threads: any.
 */
#ifndef SOFTCX_DRIVER_STACKS_H
#define SOFTCX_DRIVER_STACKS_H

#include <stdbool.h>
#include <stdint.h>

/** Notes the control block of the initial thread; called once, by it. */
void stacks_init(void);
/** True if [start, end) touches a stack or control block of a noted thread or of the caller. */
bool stacks_touch(uint64_t start, uint64_t end);
/** In a forked child: only the caller is left. */
void stacks_fork_child(void);

#endif
