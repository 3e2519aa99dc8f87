/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - the thread that executes queues, beside the thread that executes commands (server.c).
 *
 * All state of the process belongs to the thread that has the *hardware*: devices, files, connections,
 * readers of traces. The command thread has it while it runs a handler, and gives it up around system calls:
 * they take most of the time of a command (a handler takes about 1 us, an answer that wakes its process 10
 * us, taking a mapping of a queue away 20 us). The engine has it otherwise, for as long as nobody asks for
 * it.
 *
 * Where both threads share a core, the engine cannot run while the command thread does. So the command thread
 * looks at the queues itself each time that it gives the hardware up.
 *
 * Which choices the seed makes depends on the order of commands and passes, as it does on when programs ring.
 */
#ifndef SOFTCX_NIC_ENGINE_H
#define SOFTCX_NIC_ENGINE_H

#include "softcx/hw/hw.h"
#include "softcx/nic/trace.h"

#include <pthread.h>

struct engine {
	struct hw_dev *const *devs;
	unsigned ndevs;
	struct tracers *tracers;

	_Atomic(bool) taken;           /* the hardware */
	_Atomic(bool) wanted;          /* by the command thread */
	_Atomic(int) cpu, command_cpu; /* where the threads were lately */

	/* of whoever has the hardware */
	bool stop;
	bool naps;        /* and does not know yet that it has been woken */
	uint64_t busy_at; /* when queues or commands last had something to do */

	/* of the engine's thread */
	pthread_t thread;
	int wake;           /* eventfd; -1: it does not run */
	uint64_t nap;       /* length of the next sleep */
	uint64_t looked_at; /* ns, at timers and at UARs that sleep */
	unsigned yields;    /* since it looked at @switches, */
	long switches;      /* how often it lost the core so far */
	bool rung_beside;   /* since then: by software on another core */
	bool shares;        /* its core with software that runs when it yields, */
	bool hurries;       /* and has no work from elsewhere */

	uint64_t yielded_at; /* ns, by the command thread */
};

/** The caller has the hardware. */
void engine_init(struct engine *e);
/**
 * Starts the thread; the caller is the command thread from now on. @devs and @tracers outlive the engine.
 */
int engine_start(struct engine *e, struct hw_dev *const *devs, unsigned ndevs, struct tracers *tracers);
/** Ends the thread; its caller has the hardware, and keeps it. No effect on one that was not started. */
void engine_stop(struct engine *e);

/** For the command thread, in pairs. To give up the hardware also unmaps what mm.h has released. */
void engine_leave(struct engine *e);
void engine_enter(struct engine *e);
/**
 * After each command, which may have changed anything: wakes the engine. The queues have their turn, and so
 * do programs that share the core.
 */
void engine_between(struct engine *e);

#endif
