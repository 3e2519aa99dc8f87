/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/hardware.h"

#include "softcx/nic/mm.h"
#include "util/clock.h"

#include <sched.h>
#include <signal.h>

#define TURN 50000  /* ns of commands, before others may run */
enum { AHEAD = 8 }; /* passes before a command */

/* ---- commands --------------------------------------------------------------------------- */

void hardware_enter(struct hardware *h)
{
	hw_pu_take_all(h->pu);
}

/* An engine's thread does this by itself if it runs. */
static bool runs_beside(const struct engine *e)
{
	return atomic_load_explicit(&e->cpu, memory_order_relaxed) != sched_getcpu() && !e->naps;
}

/* True if they had something to do. */
static bool look_at_queues(struct hardware *h)
{
	bool busy = false;

	for (unsigned i = 0; i < h->n; i++)
		busy |= !runs_beside(&h->engine[i]) && engine_poll(&h->engine[i]);
	/* of one device for another */
	for (unsigned i = 0; busy && h->n > 1 && i < h->n; i++)
		engine_visited(&h->engine[i]);
	return busy;
}

void hardware_catch_up(struct hardware *h)
{
	for (unsigned i = 0; i < h->n; i++)
		for (unsigned n = 0; n < AHEAD && engine_poll(&h->engine[i]); n++)
			;
}

static void yield(struct hardware *h)
{
	sched_yield();
	h->yielded_at = clock_ns();
}

/* Software that shares a core with this process gets it as soon as it has something to look at. */
void hardware_leave(struct hardware *h)
{
	bool busy = look_at_queues(h);

	for (struct mm_released *gone; (gone = mm_take_released());) {
		hw_pu_give_all(h->pu);
		mm_unmap(gone);
		hardware_enter(h);
		busy |= look_at_queues(h);
	}
	hw_pu_give_all(h->pu);
	if (busy)
		yield(h);
}

/* Nor does it wait for as long as commands keep coming. */
void hardware_between(struct hardware *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		h->engine[i].busy_at = clock_ns();
		engine_wake(&h->engine[i]);
	}
	hardware_leave(h);
	if (clock_ns() - h->yielded_at >= TURN)
		yield(h);
	hardware_enter(h);
}

/* ---- life ------------------------------------------------------------------------------- */

void hardware_init(struct hardware *h, unsigned n)
{
	*h = (struct hardware){.n = n};
	for (unsigned i = 0; i < n; i++) {
		h->engine[i] = (struct engine){.cpu = -1, .wake = -1};
		h->pu[i] = &h->engine[i].pu;
	}
	hw_pu_init(h->pu, n);
	hardware_enter(h);
}

/* Ends the first @n threads. */
static void stop(struct hardware *h, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		engine_stop(&h->engine[i]);
	hw_pu_give_all(h->pu);
	for (unsigned i = 0; i < n; i++)
		engine_join(&h->engine[i]);
	hardware_enter(h);
}

static void deal(struct hardware *h, struct hw_dev *const *devs, const struct hosts *hosts)
{
	unsigned order[HOSTS_MAX_DEVS];

	hosts_deal(hosts, order);
	for (unsigned i = 0; i < hosts->ndevs; i++) {
		struct engine *e = &h->engine[i % h->n];

		e->devs[e->ndevs++] = devs[order[i]];
		if (h->n > 1)
			hw_dev_set_pu(devs[order[i]], &e->pu);
	}
}

int hardware_start(
	struct hardware *h, struct hw_dev *const *devs, const struct hosts *hosts, struct tracers *tracers)
{
	sigset_t mine, before;
	unsigned started = 0;
	int rc = 0;

	deal(h, devs, hosts);
	/* The command thread takes the signals that end the process: they wake it */
	sigemptyset(&mine);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGINT);
	pthread_sigmask(SIG_BLOCK, &mine, &before);
	while (started < h->n && rc == 0) {
		rc = engine_start(&h->engine[started], tracers);
		started += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc < 0)
		stop(h, started);
	h->runs = rc == 0;
	return rc;
}

void hardware_stop(struct hardware *h)
{
	if (h->runs)
		stop(h, h->n);
	h->runs = false;
}
