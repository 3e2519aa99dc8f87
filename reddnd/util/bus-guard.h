/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus-guard.h - work on files of others that are mapped: if a file becomes shorter, or a hole in it cannot be
 * filled, SIGBUS ends the work and not the process.
 */
#ifndef UTIL_BUS_GUARD_H
#define UTIL_BUS_GUARD_H

/** Runs @work, which takes no locks and no memory: it may end anywhere. 0; -EFAULT: by SIGBUS. Not nested. */
int bus_guard(void (*work)(void *arg), void *arg);

#endif
