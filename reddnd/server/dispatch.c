/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/dispatch.h"

#include "reddnd/generation/generation.h"
#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/server/events.h"
#include "reddnd/server/live.h"
#include "reddnd/session/count.h"
#include "reddnd/session/heir.h"
#include "reddnd/session/queues.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <sys/epoll.h>

/* A client can cause events without end: others have their turn after so many */
enum { EVENTS_AT_ONCE = 64 };
/* Clients that ask learn from a table that it was replaced. The sessions of others end so long after that,
 * and so many at once: clients of the next table are served in between */
enum { IDLE_US = 5000000, IDLE_AT_ONCE = 16 };

#define OVERTAKEN "a program stores what the session takes for its owner's: connect again"
#define REPLACED "another table has replaced the one of this session: connect again"

/* ---- budgets ---- */

void dispatch_check_budget(struct dispatch *d, struct session *s, uint64_t now)
{
	struct verdict v;
	uint64_t done;

	if (session_is_over(s))
		return;
	accounting_update(&d->shared->accounting, s);
	if (session_loop_feed(s->queues.loop, &s->first->loops, s->first->connections, now))
		budgets_fed(&d->budgets, s);
	done = s->progress.done;
	if (session_exceeds_budget(s, now, &v)) {
		/* If this process was held up, requests may have been answered since the completions were
		 * taken: look again before judging */
		collect_drain(d);
		accounting_update(&d->shared->accounting, s);
		if (s->progress.done == done)
			actions_judge(d, s, &v);
	}
	if (!session_is_over(s))
		budgets_continue(&d->budgets, s);
}

static void on_budgets(void *arg)
{
	struct dispatch *d = arg;
	struct session *s, *next;
	uint64_t now = clock_us();
	unsigned n = 0;

	collect_drain(d);
	TAILQ_FOREACH (s, &d->budgets.watched, budgets.link) {
		s->first->loops.sharers.turns = s->first->loops.sharers.waiting;
		n++;
	}
	for (s = TAILQ_FIRST(&d->budgets.watched); s && n > 0; s = next, n--) { /* each once */
		next = TAILQ_NEXT(s, budgets.link);
		dispatch_check_budget(d, s, now);
	}
	collect_round(d);
}

/* ---- events of the device ---- */

static void on_session_event(struct dispatch *d, struct session *s, unsigned cookie)
{
	struct verdict v;

	accounting_update(&d->shared->accounting, s);
	if (session_event(s, cookie, &v))
		actions_judge(d, s, &v);
	collect_watch(d, s);
	if (session_is_paced(s) && !session_is_over(s))
		pacer_post(&d->shared->pacer, s);
	if (!session_is_over(s) && budgets_begin(&d->budgets, s))
		dispatch_check_budget(d, s, clock_us());
}

static int lose(struct dispatch *d)
{
	report_device_lost(d->shared->events, rnic_device_name(d->dev));
	return d->lost(d->arg);
}

static int on_queues(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	const uint64_t part = (1u << SESSION_COOKIE_BITS) - 1;
	struct dispatch *d = arg;
	uint64_t cookie;
	int r = 0;

	(void)source;
	(void)fd;
	(void)revents;
	for (unsigned n = 0; n < EVENTS_AT_ONCE && (r = rnic_device_next_event(d->dev, &cookie)) > 0; n++) {
		struct session *s;

		/* An error of the reply comes first, and explains the flushed RECVs that raise this event */
		collect_drain(d);
		if (cookie & CQ_POOL_COOKIE) {
			cq_pool_event(&d->completions.pool, cookie);
			continue;
		}
		s = live_find(d, cookie >> SESSION_COOKIE_BITS);
		if (s)
			on_session_event(d, s, cookie & part);
	}
	if (r < 0)
		log_errno(r, "%s: cannot read its events", rnic_device_name(d->dev));
	/* When a device is removed this comes before DEVICE_FATAL: a file's objects are destroyed newest
	 * first (Linux core/rdma_core.c, __uverbs_cleanup_ufile; hw/mlx5/devx.c, devx_async_event_read) */
	if (r == -EIO && !rnic_device_is_lost(d->dev)) {
		rnic_device_lose(d->dev);
		return lose(d);
	}
	if (r < 0)
		return r;
	collect_round(d);
	return collect_schedule(d);
}

static int on_async(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct dispatch *d = arg;

	(void)source;
	(void)fd;
	(void)revents;
	if (!rnic_device_read_async(d->dev))
		return 0;
	return lose(d);
}

/* ---- timers of sessions ---- */

static void on_session_timer(void *arg, struct session *s)
{
	struct dispatch *d = arg;
	struct action action;
	struct session *c;

	collect_drain(d);
	if (!session_is_over(s)) {
		SESSION_CONNECTIONS(c, s)
		accounting_update(&d->shared->accounting, c);
		timers_check(&d->timers, s, clock_us(), &action);
		actions_take(d, s, &action);
	}
	if (!session_is_over(s))
		timers_set(&d->timers, s);
	collect_round(d);
}

/* ---- life ---- */

static int on_cm(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct dispatch *d = arg;
	int r;

	(void)source;
	(void)fd;
	(void)revents;
	r = rnic_cm_dispatch(d->cm);
	return r < 0 ? log_errno(r, "the RDMA connection manager cannot be read") : 0;
}

/* An error of any of these ends the loop */
static int watch(struct dispatch *d, sd_event *e)
{
	sd_event_source **const sources[] = {
		&d->cm_source, &d->queue_source, &d->async_source, &d->round_timer};
	int r = sd_event_add_io(e, &d->cm_source, rnic_cm_fd(d->cm), EPOLLIN, on_cm, d);

	if (r >= 0 && rnic_device_event_fd(d->dev) >= 0)
		r = sd_event_add_io(e, &d->queue_source, rnic_device_event_fd(d->dev), EPOLLIN, on_queues, d);
	if (r >= 0)
		r = sd_event_add_io(e, &d->async_source, rnic_device_async_fd(d->dev), EPOLLIN, on_async, d);
	/* Accuracy 1: by default sd-event would let a round wait for others to share its wake-up */
	if (r >= 0)
		r = sd_event_add_time_relative(e, &d->round_timer, CLOCK_MONOTONIC, 0, 1, collect_due, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->round_timer, SD_EVENT_OFF);
	for (size_t i = 0; r >= 0 && i < COUNT(sources); i++)
		r = *sources[i] ? sd_event_source_set_exit_on_failure(*sources[i], 1) : r;
	if (r >= 0)
		r = budgets_init(&d->budgets, e, on_budgets, d);
	return r < 0 ? log_errno(r, "cannot watch the device") : 0;
}

int dispatch_init(struct dispatch *d, const struct dispatch_parts *parts)
{
	int r;

	d->cm = parts->cm;
	d->dev = parts->dev;
	d->shared = parts->shared;
	d->lost = parts->lost;
	d->retired = parts->retired;
	d->arg = parts->arg;
	TAILQ_INIT(&d->ended);
	d->timers = (struct timers){.event = parts->event, .due = on_session_timer, .arg = d};
	d->parts = (struct session_parts){.dev = parts->dev,
		.device = parts->device,
		.arena = parts->arena,
		.cq_pool = &d->completions.pool};
	r = collect_init(d);
	if (r == 0)
		r = watch(d, parts->event);
	if (r == 0)
		r = cpu_threads_new(&d->threads, parts->event, parts->dev, collect_executed, d);
	if (r < 0)
		return r;
	d->parts.threads = d->threads;
	r = connects_init(&d->connects, parts->event, parts->registrar);
	return r < 0 ? log_errno(r, "cannot start threads") : 0;
}

void dispatch_deinit(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		actions_end(d, s, REDDN_WIRE_END_SHUTDOWN, "the daemon stops");
	if (d->dev)
		collect_reap(d);
	cpu_threads_free(d->threads);
	budgets_deinit(&d->budgets);
	sd_event_source_disable_unref(d->round_timer);
	sd_event_source_disable_unref(d->async_source);
	sd_event_source_disable_unref(d->queue_source);
	sd_event_source_disable_unref(d->cm_source);
	cq_pool_deinit(&d->completions.pool);
}

/* ---- for orders ---- */

static bool is_overtaken(const struct dispatch *d, const struct session *s)
{
	return s->foreign && !session_is_over(s) &&
	       session_is_overtaken(rnic_device_ledger(d->dev), s->slot, d->generation);
}

/* What a foreign session reads is only in the ledger */
static bool has_another_store(const struct dispatch *d, const struct session *s, const struct generation *g)
{
	if (!s->foreign)
		return generation_replaces(g, s->offload);
	return session_store_is_replaced(
		d->dev, s->slot, generation_offload(g, d->parts.device, s->offload->conf->name));
}

void dispatch_end_stores(struct dispatch *d, const struct generation *generation)
{
	struct session *s, *next;

	collect_drain(d);
	HASH_ITER (by_id, d->sessions, s, next)
		if (!session_is_over(s) && has_another_store(d, s, generation))
			actions_end(d, s, REDDN_WIRE_END_OPERATOR, REPLACED);
	collect_reap(d);
}

void dispatch_serve(struct dispatch *d, const struct generation *generation)
{
	struct session *s, *next;

	d->generation = generation;
	d->nolder = 0;
	HASH_ITER (by_id, d->sessions, s, next)
		d->nolder += live_is_older(d, s);
	HASH_ITER (by_id, d->sessions, s, next)
		if (is_overtaken(d, s))
			actions_end(d, s, REDDN_WIRE_END_OPERATOR, OVERTAKEN);
	collect_reap(d);
}

void dispatch_use(struct dispatch *d, const struct catalog *catalog)
{
	struct session *s, *next;

	cpu_threads_limit(d->threads, catalog->executors);
	d->timers.connect_timeout = catalog->connect_timeout;
	d->shared->record->enforcement.source_bits = catalog->source_bits;
	refusals_limit(&d->shared->refusals, catalog->refusal_rate, clock_us());
	d->connects.timeout_us = catalog->connect_timeout;
	dispatch_tenant_changed(d, NULL);
	HASH_ITER (by_id, d->sessions, s, next)
		timers_restart(&d->timers, s);
}

void dispatch_inspect(struct dispatch *d, struct inspection *in)
{
	struct session *s, *next;

	if (d->nolder)
		HASH_ITER (by_id, d->sessions, s, next)
			for (unsigned i = 0; live_is_older(d, s) && i < s->offload->program->nregions; i++)
				inspection_add(in, s->offload->bound[i].region);
}

static bool was_replaced_long_ago(const struct offload *o)
{
	uint64_t now = clock_us();

	for (unsigned i = 0; i < o->program->nregions; i++) {
		const struct region *r = o->bound[i].region;

		if (r->retired_us && now - r->retired_us >= IDLE_US)
			return true;
	}
	return false;
}

/* A client that is idle does not learn it from the table, and the memory stays pinned for it */
static bool is_left_behind(const struct dispatch *d, const struct session *s)
{
	return !session_is_over(s) && live_is_older(d, s) && was_replaced_long_ago(s->offload);
}

static void end_bad(struct dispatch *d, struct session *s)
{
	const struct offload *o = s->offload;

	for (unsigned i = 0; i < o->program->nregions; i++)
		if (!session_is_over(s) && region_is_bad(o->bound[i].region, NULL))
			actions_end(d, s, REDDN_WIRE_END_FAILED,
				"the data of the offload were cut off or overwritten");
	if (!session_is_over(s) && offload_loses(o))
		actions_end(d, s, REDDN_WIRE_END_FAILED,
			"the file of the store was removed or replaced: what is put would be lost");
}

bool dispatch_end_bad(struct dispatch *d)
{
	struct generation_regions n;
	struct session *s, *next;
	unsigned idle = 0;

	collect_drain(d);
	n = generation_count_regions(d->generation);
	/* else no session has a region that is bad, or a store that is lost */
	if (d->nolder || n.bad || n.moved)
		HASH_ITER (by_id, d->sessions, s, next) {
			if (is_left_behind(d, s) && idle++ < IDLE_AT_ONCE)
				actions_end(d, s, REDDN_WIRE_END_OPERATOR, REPLACED);
			end_bad(d, s);
		}
	collect_round(d);
	return idle > IDLE_AT_ONCE;
}

static bool is_replaced(const struct session *s)
{
	const struct offload *o = s->offload;

	for (unsigned i = 0; i < o->program->nregions; i++)
		if (o->bound[i].region->replaced)
			return true;
	return false;
}

void dispatch_end_replaced(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		if (!session_is_over(s) && live_is_older(d, s) && is_replaced(s))
			actions_end(d, s, REDDN_WIRE_END_OPERATOR, REPLACED);
	collect_reap(d);
}

void dispatch_tenant_changed(struct dispatch *d, const struct tenant *tenant)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		if (!tenant || s->tenant == tenant)
			pacer_changed(&d->shared->pacer, s);
}

void dispatch_lose(struct dispatch *d)
{
	struct session *s, *next;

	d->async_source = sd_event_source_disable_unref(d->async_source);
	d->queue_source = sd_event_source_disable_unref(d->queue_source);
	HASH_ITER (by_id, d->sessions, s, next)
		actions_end(d, s, REDDN_WIRE_END_FAILED, "the server has lost its device");
	collect_reap(d);
}

void dispatch_count(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		accounting_update(&d->shared->accounting, s);
}
