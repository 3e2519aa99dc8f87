/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/engine.h"

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
#define SPINS (100 * USEC)  /* after work, before it naps */
#define TURN (50 * USEC)    /* of commands, before others may run */
#define HANDOVER (2 * USEC) /* until a thread that runs has noticed that the hardware is free */
#define ROUND (25 * USEC)   /* of passes, before others may run: with many queues a pass takes microseconds */

enum {
	EMPTY_POLLS = 16, /* passes that find nothing, before others may run */
	YIELDS = 16,      /* between two looks at whether others ran then */
	TRIES = 1000,     /* to take the hardware, before its owner may need a core */
};

/* ---- who has the hardware ---------------------------------------------------------------- */

/* It is never kept for long, so waiting is looking again. @owner: where the other thread was lately. */
static void take(struct engine *e, const _Atomic(int) *owner)
{
	for (unsigned n = 1; atomic_exchange_explicit(&e->taken, true, memory_order_acquire); n++)
		if (n % TRIES == 0 || atomic_load_explicit(owner, memory_order_relaxed) == sched_getcpu())
			sched_yield();
}

static void take_for_queues(struct engine *e)
{
	take(e, &e->command_cpu);
	atomic_store_explicit(&e->cpu, sched_getcpu(), memory_order_relaxed);
}

static void give(struct engine *e)
{
	atomic_store_explicit(&e->taken, false, memory_order_release);
}

static bool wanted(struct engine *e)
{
	return atomic_load_explicit(&e->wanted, memory_order_relaxed);
}

/* Without a pause it would be taken again before the other thread has noticed. */
static void give_way(struct engine *e)
{
	uint64_t until;

	if (!wanted(e))
		return;
	give(e);
	if (atomic_load_explicit(&e->command_cpu, memory_order_relaxed) == sched_getcpu()) {
		sched_yield();
	} else {
		until = clock_ns() + HANDOVER;
		while (wanted(e) && clock_ns() < until)
			;
	}
	take_for_queues(e);
}

/* ---- queues ----------------------------------------------------------------------------- */

static enum hw_pass poll_hardware(struct engine *e)
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
	bool polls = false, asleep = false;
	uint64_t nap;

	if (quiet < SPINS)
		e->nap = 20 * USEC;
	if (quiet < SPINS && now - e->looked_at < MSEC && spins(e))
		return 0;
	e->looked_at = now;
	for (unsigned i = 0; i < e->ndevs; i++) {
		uint64_t due = hw_next_timer(e->devs[i]);

		timer = due < timer ? due : timer;
		asleep |= hw_uar_check_asleep(e->devs[i]);
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

/** Gives the hardware up and sleeps up to @ns (UINT64_MAX: for ever), or until a command has been executed.
 */
static void sleep_for(struct engine *e, uint64_t ns)
{
	struct pollfd p = {.fd = e->wake, .events = POLLIN};
	struct timespec ts = {(time_t)(ns / SEC), (long)(ns % SEC)};
	eventfd_t n;

	e->naps = true;
	give(e);
	if (ppoll(&p, 1, ns == UINT64_MAX ? NULL : &ts, NULL) > 0)
		eventfd_read(e->wake, &n);
	take_for_queues(e);
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
		enum hw_pass pass = poll_hardware(e);

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
		give_way(e);
	}
	return busy;
}

static void *run(void *arg)
{
	struct engine *e = arg;

	take_for_queues(e);
	while (!e->stop) {
		bool busy = run_round(e);
		uint64_t timer =
			tracers_flush(e->tracers) ? MSEC : UINT64_MAX; /* their connections are full */
		uint64_t now = clock_ns(), nap = 0;

		if (busy)
			e->busy_at = now;
		else
			nap = nap_length(e, now, timer);
		if (nap) {
			sleep_for(e, nap);
		} else {
			give(e);
			let_others_run(e);
			take_for_queues(e);
		}
	}
	give(e);
	return NULL;
}

/* ---- commands --------------------------------------------------------------------------- */

void engine_enter(struct engine *e)
{
	atomic_store_explicit(&e->command_cpu, sched_getcpu(), memory_order_relaxed);
	atomic_store_explicit(&e->wanted, true, memory_order_relaxed);
	take(e, &e->cpu);
	atomic_store_explicit(&e->wanted, false, memory_order_relaxed);
}

/* True if they had something to do. The engine's thread does this by itself if it runs. */
static bool look_at_queues(struct engine *e)
{
	bool beside = atomic_load_explicit(&e->cpu, memory_order_relaxed) != sched_getcpu() && !e->naps;

	return !beside && poll_hardware(e);
}

static void yield(struct engine *e)
{
	sched_yield();
	e->yielded_at = clock_ns();
}

/* Software that shares a core with this process gets it as soon as it has something to look at. */
void engine_leave(struct engine *e)
{
	bool busy = look_at_queues(e);

	for (struct mm_released *gone; (gone = mm_take_released());) {
		give(e);
		mm_unmap(gone);
		engine_enter(e);
		busy |= look_at_queues(e);
	}
	give(e);
	if (busy)
		yield(e);
}

/* Nor does it wait for as long as commands keep coming. */
void engine_between(struct engine *e)
{
	e->busy_at = clock_ns();
	if (e->naps)
		eventfd_write(e->wake, 1);
	engine_leave(e);
	if (clock_ns() - e->yielded_at >= TURN)
		yield(e);
	engine_enter(e);
}

/* ---- life ------------------------------------------------------------------------------- */

void engine_init(struct engine *e)
{
	*e = (struct engine){.taken = true, .cpu = -1, .command_cpu = -1, .wake = -1};
}

int engine_start(struct engine *e, struct hw_dev *const *devs, unsigned ndevs, struct tracers *tracers)
{
	sigset_t mine, before;
	int rc;

	e->devs = devs;
	e->ndevs = ndevs;
	e->tracers = tracers;
	e->busy_at = clock_ns();
	e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wake < 0)
		return -errno;
	/* The command thread takes the signals that end the process: they wake it */
	sigemptyset(&mine);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGINT);
	pthread_sigmask(SIG_BLOCK, &mine, &before);
	rc = pthread_create(&e->thread, NULL, run, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		close(e->wake);
		e->wake = -1;
	}
	return -rc;
}

void engine_stop(struct engine *e)
{
	if (e->wake < 0)
		return;
	e->stop = true;
	eventfd_write(e->wake, 1);
	give(e);
	pthread_join(e->thread, NULL);
	engine_enter(e);
	close(e->wake);
	e->wake = -1;
}
