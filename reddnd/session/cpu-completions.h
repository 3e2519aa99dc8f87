/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu-completions.h - what completions mean for a session whose requests the CPU executes. Private to cpu.c.
 */
#ifndef SESSION_CPU_COMPLETIONS_H
#define SESSION_CPU_COMPLETIONS_H

#include "reddnd/session/session.h"

/** Takes completions, some hundred at most: counts requests that have come and those that are done. 0: there
 * are no more for now; 1: there may be; -1: a verdict. */
int cpu_completions_take(struct session *s);

#endif
