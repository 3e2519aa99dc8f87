/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/hardware.h"

#include "softcx/nic/mm.h"
#include "util/clock.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define USEC 1000ULL
#define MSEC 1000000ULL
#define SEC 1000000000ULL
#define SPINS (100 * USEC) /* after work, before it naps */
#define LOOKS (10 * MSEC)  /* from one check of pages that sleep to the next: each page is a system call */
#define ROUND (25 * USEC)  /* of passes, before others may run: with many queues a pass takes microseconds */

enum {
	EMPTY_POLLS = 16, /* passes that find nothing, before others may run */
	YIELDS = 16,      /* between two looks at whether others ran then */
};

static void take(struct engine *e)
{
	hw_pu_take(&e->pu);
	atomic_store_explicit(&e->cpu, sched_getcpu(), memory_order_relaxed);
}

/* ---- queues ----------------------------------------------------------------------------- */

/* A pass over its devices. */
static enum hw_pass engine_poll(struct engine *e)
{
	enum hw_pass all = HW_PASS_NOTHING;

	for (unsigned i = 0; i < e->ndevs; i++) {
		enum hw_pass pass = hw_poll(e->devs[i]);

		all = pass > all ? pass : all;
	}
	if (all)
		tracers_flush(e->tracers);
	return all;
}

/*
 * Lets others run, and learns whether somebody does: the kernel counts how often another thread got the core
 * while this one could have gone on. Software on this core rings before the engine looks; a ring that comes
 * while it looks is from another core.
 */
static void let_others_run(struct engine *e)
{
	struct rusage used;

	sched_yield();
	if (++e->yields < YIELDS)
		return;
	getrusage(RUSAGE_THREAD, &used);
	e->shares = used.ru_nivcsw - e->switches >= YIELDS / 2;
	e->hurries = e->shares && !e->rung_beside;
	e->switches = used.ru_nivcsw;
	e->rung_beside = false;
	e->yields = 0;
}

/* Software that rings may ring again at once. */
static bool spins(const struct engine *e)
{
	for (unsigned i = 0; i < e->ndevs; i++)
		if (hw_must_poll(e->devs[i]))
			return true;
	return false;
}

/**
 * How long to sleep. Soon after work: not at all; then ever longer, up to the delay that a doorbell may have
 * which only polling finds. That limit grows with the time since the last ring.
 */
static uint64_t nap_length(struct engine *e, uint64_t now, uint64_t timer)
{
	uint64_t quiet = now - e->busy_at;
	uint64_t most = quiet < SEC ? 150 * USEC : quiet < 10 * SEC ? 500 * USEC : 2 * MSEC;
	const bool looks = now - e->looked_at >= LOOKS;
	bool polls = false, asleep = false;
	uint64_t nap;

	if (quiet < SPINS)
		e->nap = 20 * USEC;
	if (quiet < SPINS && !looks && spins(e))
		return 0;
	if (looks)
		e->looked_at = now;
	for (unsigned i = 0; i < e->ndevs; i++) {
		uint64_t due = hw_next_timer(e->devs[i]);

		timer = due < timer ? due : timer;
		asleep |= looks ? hw_uar_check_asleep(e->devs[i]) : hw_uar_any_asleep(e->devs[i]);
		polls |= hw_must_poll(e->devs[i]);
	}
	if (asleep && timer > 100 * MSEC)
		timer = 100 * MSEC; /* for the stores that no guard notices */
	if (!polls)
		return timer;
	if (quiet < SPINS)
		return 0;
	nap = e->nap;
	e->nap = nap + nap / 2 < most ? nap + nap / 2 : most;
	return nap < timer ? nap : timer;
}

/** Gives its lock up and sleeps up to @ns (UINT64_MAX: for ever), or until something is done for it. */
static void sleep_for(struct engine *e, uint64_t ns)
{
	struct pollfd p = {.fd = e->wake, .events = POLLIN};
	struct timespec ts = {(time_t)(ns / SEC), (long)(ns % SEC)};
	eventfd_t n;

	e->naps = true;
	hw_pu_give(&e->pu);
	if (ppoll(&p, 1, ns == UINT64_MAX ? NULL : &ts, NULL) > 0)
		eventfd_read(e->wake, &n);
	take(e);
	e->naps = false;
}

static uint64_t rings(const struct engine *e)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < e->ndevs; i++)
		all += hw_rings(e->devs[i]);
	return all;
}

static bool run_round(struct engine *e)
{
	const bool hurries = e->hurries && e->yields > 0;
	uint64_t end = clock_ns() + ROUND;
	bool busy = false;

	for (int empty = 0; empty < EMPTY_POLLS && clock_ns() < end;) {
		const uint64_t before = rings(e);
		enum hw_pass pass = engine_poll(e);

		/* timers, and what was rung before, are no sign of others */
		e->rung_beside |= empty > 0 && rings(e) != before;
		busy |= pass != HW_PASS_NOTHING;
		if (pass == HW_PASS_ANSWERED && e->shares)
			break;
		if (pass >= HW_PASS_WORKED || (pass == HW_PASS_LOOKED && !e->hurries)) {
			empty = 0;
		} else if (pass == HW_PASS_NOTHING && (hurries || !spins(e))) {
			break;
		} else {
			empty++;
		}
		hw_pu_give_way(&e->pu);
	}
	return busy;
}

static void *run(void *arg)
{
	struct engine *e = arg;

	take(e);
	while (!e->stop) {
		bool busy = run_round(e);
		uint64_t timer =
			tracers_flush(e->tracers) ? MSEC : UINT64_MAX; /* their connections are full */
		uint64_t now = clock_ns(), nap = 0;

		if (busy || e->visited)
			e->busy_at = now;
		else
			nap = nap_length(e, now, timer);
		e->visited = false;
		if (nap) {
			sleep_for(e, nap);
		} else {
			hw_pu_give(&e->pu);
			let_others_run(e);
			take(e);
		}
	}
	hw_pu_give(&e->pu);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------- */

/* if it naps */
static void engine_wake(struct engine *e)
{
	if (e->naps)
		eventfd_write(e->wake, 1);
}

/* Others have executed something for its devices. */
static void engine_visited(struct engine *e)
{
	if (e->visited) /* and woken */
		return;
	for (unsigned i = 0; i < e->ndevs; i++)
		e->visited |= hw_has_work(e->devs[i]);
	if (e->visited)
		engine_wake(e);
}

static void on_return(struct hw_pu *pu)
{
	engine_visited((struct engine *)pu);
}

/*
 * Starts the thread. @e is all 0 but for pu, devs, ndevs and cpu; the caller has its lock. @tracers outlive
 * it.
 */
static int engine_start(struct engine *e, struct tracers *tracers)
{
	int rc;

	e->pu.on_return = on_return;
	e->tracers = tracers;
	e->busy_at = clock_ns();
	e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wake < 0)
		return -errno;
	rc = pthread_create(&e->thread, NULL, run, e);
	if (rc) {
		close(e->wake);
		e->wake = -1;
	}
	return -rc;
}

static void engine_stop(struct engine *e)
{
	e->stop = true;
	eventfd_write(e->wake, 1); /* it may be about to sleep */
}

/* After engine_stop(), without its lock. */
static void engine_join(struct engine *e)
{
	pthread_join(e->thread, NULL);
	close(e->wake);
	e->wake = -1;
}

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
