/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hardware.h - the threads that execute queues, beside the thread that executes commands
 * (server.c).
 *
 * Devices are dealt out to engines, first those that are the first of their hosts (hosts_deal()): a client
 * and a server that use mlx5_0 have an engine each, if there are two. What is of a device is executed with
 * the lock of its engine. All other state of the process belongs to the thread that has the *hardware*, the
 * locks of all engines: files, connections, readers of traces, and what devices share. The command thread has
 * it while it runs a handler, and gives it up around system calls: they take most of the time of a command (a
 * handler takes about 1 us, an answer that wakes its process 10 us, taking a mapping of a queue away 20 us).
 * The engines have their locks otherwise, for as long as nobody asks for them.
 *
 * Where the command thread shares a core with an engine, that cannot run while the command thread does. So
 * the command thread looks at its queues itself each time that it gives the hardware up.
 *
 * Which choices the seed makes depends on the order of commands and passes, as it does on when programs ring,
 * and with several engines on how their passes lie in time.
 */
#ifndef SOFTCX_NIC_HARDWARE_H
#define SOFTCX_NIC_HARDWARE_H

#include "softcx/hw/pu.h"
#include "softcx/nic/trace.h"
#include "softcx/proto/hosts.h"

#include <pthread.h>

/*
 * A thread that executes the queues of some devices: a processing unit (hw/pu.h). It sleeps while
 * there is nothing to do.
 */
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

struct hardware {
	struct engine engine[HOSTS_MAX_DEVS];
	struct hw_pu *pu[HOSTS_MAX_DEVS];
	unsigned n;
	bool runs;
	uint64_t yielded_at; /* ns, by the command thread */
};

/** @n engines, HOSTS_MAX_DEVS at most. The caller has the hardware. */
void hardware_init(struct hardware *h, unsigned n);
/**
 * Starts the threads; the caller is the command thread from now on. @devs, those of @hosts, of which there
 * are not fewer than engines, and @tracers outlive them. 0 or a negative errno: none runs.
 */
int hardware_start(
	struct hardware *h, struct hw_dev *const *devs, const struct hosts *hosts, struct tracers *tracers);
/** Ends the threads; the caller has the hardware, and keeps it. No effect if they do not run. */
void hardware_stop(struct hardware *h);

/** For the command thread, in pairs. To give up the hardware also unmaps what mm.h has released. */
void hardware_leave(struct hardware *h);
void hardware_enter(struct hardware *h);
/**
 * Before a command: executes what software rang before it. On PCIe a ring is ahead of the command, as a
 * posted write overtakes no other (PCI Express Base, 2.4.1), and a command takes firmware longer than a
 * message takes the queues. Bounded: of queues that have much to do, the command still finds something.
 */
void hardware_catch_up(struct hardware *h);
/**
 * After each command, which may have changed anything: wakes the engines. The queues have their turn, and so
 * do programs that share the core.
 */
void hardware_between(struct hardware *h);

#endif
