/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - a thread that executes the queues of some devices: a processing unit (hw/pu.h). It sleeps while
 * there is nothing to do.
 *
 * hardware.h has all of them, and what the command thread does beside them.
 */
#ifndef SOFTCX_NIC_ENGINE_H
#define SOFTCX_NIC_ENGINE_H

#include "softcx/hw/pu.h"
#include "softcx/nic/trace.h"

#include <pthread.h>

struct engine {
	struct hw_pu pu; /* first */
	struct hw_dev *devs[HOSTS_MAX_DEVS];
	unsigned ndevs;
	struct tracers *tracers;
	_Atomic(int) cpu; /* where the thread was lately; -1: nowhere yet */

	/* of whoever has the lock */
	bool stop;
	bool naps;        /* and does not know yet that it has been woken */
	bool visited;     /* by another unit, which left work */
	uint64_t busy_at; /* when queues or commands last had something to do */

	/* of the engine's thread */
	pthread_t thread;
	int wake;           /* eventfd; -1: it does not run */
	uint64_t nap;       /* length of the next sleep */
	uint64_t looked_at; /* ns, at UARs that sleep */
	unsigned yields;    /* since it looked at @switches, */
	long switches;      /* how often it lost the core so far */
	bool rung_beside;   /* since then: by software on another core */
	bool shares;        /* its core with software that runs when it yields, */
	bool hurries;       /* and has no work from elsewhere */
};

/**
 * Starts the thread. @e is all 0 but for pu, devs, ndevs and cpu; the caller has its lock. @tracers outlive
 * it.
 */
int engine_start(struct engine *e, struct tracers *tracers);
/** After engine_stop(), without its lock. */
void engine_join(struct engine *e);

/* The caller has the lock: */

/** A pass over its devices. */
enum hw_pass engine_poll(struct engine *e);
void engine_wake(struct engine *e); /* if it naps */
/** Others have executed something for its devices. */
void engine_visited(struct engine *e);
void engine_stop(struct engine *e);

#endif
