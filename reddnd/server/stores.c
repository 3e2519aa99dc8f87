/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/stores.h"

#include "reddnd/generation/held-store.h"
#include "reddnd/server/fd-store.h"
#include "reddnd/session/count.h"
#include "reddnd/session/extents.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* SHARE: turns take no more than one part of so many of the CPU time of the thread; a turn in which others
 * had the CPU, or nobody, is no longer. LOOK_US: the clock is looked at at least so often for what expires,
 * because it may be set. HELD_UP_US: if two looks at a grace are further apart, this process was held up, and
 * requests that need it may have been as well */
enum {
	PAUSE_MIN_US = 20,
	PAUSE_MAX_US = 2000,
	PATIENCE_US = 2000000,
	HELD_UP_US = 100000,
	LOOK_US = 60000000,
	SHARE = 8,
	GRACES_AT_ONCE = 8,
};

/* A connection whose requests are not over up to number @to */
struct awaited {
	uint64_t id, to;
	bool late;
};

struct served_store {
	struct held_store *store;
	uint64_t number;
	char name[CATALOG_NAME_MAX + 1]; /* of a region that has it */
	bool full;
	uint64_t contradictions;
	bool in_grace;
	/* Of the grace: when it began, and was looked at last; and for how long sessions could have ended it
	 */
	uint64_t began_us, looked_us, waited_us;
	struct awaited *awaited;
	size_t n, room;
	bool failed;       /* there was no memory to count them */
	uint64_t returned; /* as of held_store_returned(), when waiting sessions were armed last */
	uint64_t sweep_ms; /* as in struct store_numbers */
	SLIST_ENTRY(served_store) link;
};

/* ---- graces ------------------------------------------------------------------------------------ */

/* A session of an offload that this daemon does not have reads what the one before knew */
static bool has_store(const struct session *s, const struct held_store *h)
{
	const struct offload *o = s->offload;

	if (s->foreign)
		return true;
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (o->bound[i].region->store == h)
			return true;
	return false;
}

/* Requests that are over, and of which the store knows what came of them */
static uint64_t over(struct session *s)
{
	if (!s->extents.at)
		return s->progress.done;
	session_extents_settle(s);
	return s->extents.settled;
}

struct visit {
	struct stores *stores;
	struct served_store *of;
};

/* The NIC goes on with one that it arms itself, and may use the CQE again that was looked at: then more are
 * over than had come, and are counted again */
static uint64_t count_received(struct stores *st, struct session *s)
{
	uint64_t received;

	do {
		st->ops->count(st->arg, s);
		received = session_received(s);
		if (!s->engine->is_silent)
			break;
		st->ops->count(st->arg, s);
	} while (received < s->progress.done);
	return received;
}

static void await(void *to, struct session *s)
{
	const struct visit *v = to;
	struct served_store *t = v->of;
	uint64_t received;

	if (!has_store(s, t->store))
		return;
	received = count_received(v->stores, s);
	if (received <= over(s))
		return;
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		struct awaited *more = reallocarray(t->awaited, room, sizeof(*more));

		t->failed |= !more;
		if (!more)
			return;
		t->awaited = more;
		t->room = room;
	}
	t->awaited[t->n++] = (struct awaited){s->id, received, false};
}

static void begin_grace(struct stores *st, struct served_store *t)
{
	t->n = 0;
	t->failed = false;
	t->began_us = t->looked_us = clock_us();
	t->waited_us = 0;
	held_store_grace_begins(t->store);
	/* Whoever reads a mark, or a locator, from before it was changed has a CQE that is seen now: a load
	 * must not be done before these stores */
	atomic_thread_fence(memory_order_seq_cst);
	st->ops->each(st->arg, await, &(struct visit){st, t});
	t->in_grace = true;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool is_over(struct stores *st, struct served_store *t, struct awaited *a, uint64_t now)
{
	struct session *s = st->ops->find(st->arg, a->id);

	if (!s)
		return true;
	st->ops->count(st->arg, s);
	if (over(s) >= a->to)
		return true;
	if (!a->late && t->waited_us > later(st->patience_us, s->offload->conf->time_budget)) {
		a->late = true;
		st->ops->late(st->arg, s, t->name, now - t->began_us);
	}
	return false;
}

/* Without memory to count them all again, it begins anew: nothing rests meanwhile but for longer */
static void look(struct stores *st, struct served_store *t)
{
	uint64_t now = clock_us(), since = now - t->looked_us;
	size_t left = 0;

	t->looked_us = now;
	t->waited_us += since < HELD_UP_US ? since : HELD_UP_US;
	for (size_t i = 0; i < t->n; i++)
		if (!is_over(st, t, &t->awaited[i], now))
			t->awaited[left++] = t->awaited[i];
	t->n = left;
	if (left)
		return;
	if (t->failed) {
		begin_grace(st, t);
		return;
	}
	t->in_grace = false;
	held_store_grace_over(t->store);
}

/* ---- turns ------------------------------------------------------------------------------------- */

static void arm_waiting(void *to, struct session *s)
{
	const struct visit *v = to;

	if (s->extents.waits && s->extents.store == v->of->store)
		v->stores->ops->rearm(v->stores->arg, s);
}

/* Where no request is under way, a grace is over as soon as it begins */
static void serve(struct stores *st, struct served_store *t)
{
	uint64_t returned;

	for (unsigned n = 0; n < GRACES_AT_ONCE; n++) {
		if (t->in_grace)
			look(st, t);
		if (t->in_grace || !held_store_work(t->store))
			break;
		begin_grace(st, t);
	}
	returned = held_store_returned(t->store);
	if (returned == t->returned)
		return;
	t->returned = returned;
	st->ops->each(st->arg, arm_waiting, &(struct visit){st, t});
}

static void forget(struct served_store *t)
{
	fd_store_drop_locked(t->number);
	held_store_unref(t->store);
	free(t->awaited);
	free(t);
}

/* The last region that had it is closed */
static void forget_unused(struct stores *st)
{
	struct served_store *t, *next;

	for (t = SLIST_FIRST(&st->all); t; t = next) {
		next = SLIST_NEXT(t, link);
		if (held_store_is_shared(t->store))
			continue;
		SLIST_REMOVE(&st->all, t, served_store, link);
		forget(t);
	}
}

static void set_timer(struct stores *st, uint64_t at)
{
	st->due = sd_event_source_set_time(st->timer, at) >= 0 &&
		  sd_event_source_set_enabled(st->timer, SD_EVENT_ONESHOT) >= 0;
	if (!st->due)
		log_error("the timer of stores cannot be set");
}

static void report(struct served_store *t)
{
	struct store_numbers n;

	held_store_numbers(t->store, &n);
	if (n.contradictions > t->contradictions)
		log_error("region %s: what requests have done contradicts what the store has, %" PRIu64
			  " times: another program writes it, or this is a fault of the daemon or the device",
			t->name, n.contradictions);
	t->contradictions = n.contradictions;
	t->sweep_ms = n.sweep_ms;
	if (n.full == t->full)
		return;
	t->full = n.full;
	if (n.full)
		log_warning("region %s: the store is full: there is no room for a new key", t->name);
	else
		log_notice("region %s: the store has room for new keys again", t->name);
}

/* Until a session has changed something, or a store has something to do by itself */
static void rest(struct stores *st, uint64_t now)
{
	const uint64_t clock = clock_read_ns(CLOCK_REALTIME) / 1000000;
	struct served_store *t;
	uint64_t at = UINT64_MAX;

	SLIST_FOREACH (t, &st->all, link) {
		uint64_t left = t->sweep_ms > clock ? t->sweep_ms - clock : 0;

		if (!t->sweep_ms)
			continue;
		left = left < LOOK_US / 1000 ? left * 1000 : LOOK_US;
		at = now + left < at ? now + left : at;
	}
	if (at == UINT64_MAX)
		return;
	set_timer(st, later(at, st->not_before));
	st->due = false;
}

static uint64_t cpu_us(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

void stores_turn(struct stores *st)
{
	struct served_store *t;
	uint64_t began = cpu_us(), now;
	bool waits = false;

	st->due = false;
	st->ops->drain(st->arg);
	forget_unused(st);
	SLIST_FOREACH (t, &st->all, link) {
		serve(st, t);
		report(t);
		waits |= t->in_grace;
	}
	now = clock_us();
	st->not_before = now + SHARE * (cpu_us() - began);
	st->pause_us = !waits ? PAUSE_MIN_US : st->pause_us < PAUSE_MAX_US ? 2 * st->pause_us : PAUSE_MAX_US;
	if (waits)
		set_timer(st, later(now + st->pause_us, st->not_before));
	else
		rest(st, now);
}

static int on_due(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	stores_turn(arg);
	return 0;
}

void stores_wake(struct stores *st)
{
	if (!st->due && !SLIST_EMPTY(&st->all))
		set_timer(st, st->not_before);
}

/* ---- life -------------------------------------------------------------------------------------- */

/* What was left goes on to be kept under the number that it has. Under another one it would not be kept: to
 * systemd, one open file is one descriptor (service_add_fd_store()) */
static void keep_locked(struct stores *st, struct served_store *t)
{
	CLEANUP(cleanup_close) int fd = -1;

	t->number = held_store_lock_number(t->store);
	if (t->number)
		return;
	t->number = ++st->served;
	fd = held_store_lock(t->store);
	if (fd >= 0)
		fd_store_put_locked(t->number, fd);
	else
		log_errno(fd, "region %s: other programs may write the store when this daemon is killed",
			t->name);
}

static struct served_store *find(const struct stores *st, const struct held_store *h)
{
	struct served_store *t;

	SLIST_FOREACH (t, &st->all, link)
		if (t->store == h)
			break;
	return t;
}

void stores_serve(struct stores *st, const struct generation *g)
{
	for (unsigned i = 0; i < g->catalog->nregions; i++) {
		struct held_store *h = g->regions[i]->store;
		struct served_store *t;

		if (!h || find(st, h))
			continue;
		t = calloc(1, sizeof(*t));
		if (!t) {
			log_errno(-ENOMEM, "the store of region %s has no turns: nothing is inserted there",
				g->regions[i]->conf->name);
			continue;
		}
		t->store = held_store_ref(h);
		memcpy(t->name, g->regions[i]->conf->name, sizeof(t->name));
		keep_locked(st, t);
		SLIST_INSERT_HEAD(&st->all, t, link);
	}
	stores_wake(st);
}

int stores_init(struct stores *st, sd_event *event, const struct stores_ops *ops, void *arg)
{
	int r;

	*st = (struct stores){.ops = ops, .arg = arg, .pause_us = PAUSE_MIN_US, .patience_us = PATIENCE_US};
	SLIST_INIT(&st->all);
	r = sd_event_add_time(event, &st->timer, CLOCK_MONOTONIC, 0, 1, on_due, st);
	return r < 0 ? r : sd_event_source_set_enabled(st->timer, SD_EVENT_OFF);
}

void stores_deinit(struct stores *st)
{
	struct served_store *t;

	while ((t = SLIST_FIRST(&st->all))) {
		SLIST_REMOVE_HEAD(&st->all, link);
		forget(t);
	}
	st->timer = sd_event_source_disable_unref(st->timer);
}
