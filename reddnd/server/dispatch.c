/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/dispatch.h"

#include "reddnd/server/report.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/faults.h"
#include "reddnd/session/group.h"
#include "reddnd/session/heir.h"
#include "reddnd/session/instances.h"
#include "reddnd/session/posting.h"
#include "reddnd/session/silence.h"
#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>

/* A client can cause events without end: others have their turn after so many */
enum { EVENTS_AT_ONCE = 64, MS = 1000, REPORT_US = 10000000, REPORTED_AT_ONCE = 16 };

struct session *dispatch_find(const struct dispatch *d, uint64_t id)
{
	struct session *s;

	HASH_FIND(by_id, d->sessions, &id, sizeof(id), s);
	return s;
}

static void add(struct dispatch *d, struct session *s)
{
	HASH_ADD(by_id, d->sessions, id, sizeof(s->id), s);
	HASH_ADD(by_queues, d->by_queues, queues.number, sizeof(s->queues.number), s);
	completions_add(&d->completions, s);
}

/* ---- actions: what happens to a session ---- */

static void end_connection(struct dispatch *d, struct session *s, bool intact)
{
	timers_end(s);
	budgets_end(&d->budgets, s);
	session_end(s, intact);
	session_charge_rest(s);
	pacer_forget(&d->pacer, s);
	HASH_DELETE(by_id, d->sessions, s);
	HASH_DELETE(by_queues, d->by_queues, s);
	completions_remove(&d->completions, s);
	TAILQ_INSERT_TAIL(&d->ended, s, link);
}

void dispatch_end(struct dispatch *d, struct session *s, enum reddn_wire_end reason, const char *text)
{
	struct session *first = s->first, *c;
	const struct end_reason_query query = {.session = session_number(first),
		.slot_addr = first->queues.env.slot_addr,
		.slot_rkey = first->queues.env.slot_rkey};
	bool intact = reason == REDDN_WIRE_END_CLIENT;

	if (first->ended)
		return;
	SESSION_CONNECTIONS(c, first)
	{
		executors_remove(d->executors, c);
		accounting_update(&d->accounting, c);
	}
	accounting_ended(&d->accounting, first, report_level(reason) == LOG_WARNING);
	report_ended(d->events, first, reason, text);
	end_reasons_add(&d->record->end_reasons, first->client.address, d->record->enforcement.source_bits,
		&query, reason, text);
	for (c = first->further; c; c = c->further)
		end_connection(d, c, intact);
	end_connection(d, first, intact);
}

void dispatch_limits_changed(struct dispatch *d, struct session *s)
{
	struct session *c;

	session_note(s);
	SESSION_CONNECTIONS(c, s)
	pacer_changed(&d->pacer, c);
	timers_set(&d->timers, s);
}

static void throttle(struct dispatch *d, struct session *s, uint64_t rate, uint64_t until)
{
	uint64_t now = clock_us();

	session_throttle(s, rate, until, now);
	log_at(LOG_INFO, session_number(s), "throttled to %" PRIu64 " requests per second for %" PRIu64 " ms",
		rate, (until - now) / MS);
	dispatch_limits_changed(d, s);
}

static void unthrottle(struct dispatch *d, struct session *s)
{
	session_throttle(s, 0, 0, clock_us());
	log_at(LOG_INFO, session_number(s), "no longer throttled");
	dispatch_limits_changed(d, s);
}

static void act(struct dispatch *d, struct session *s, const struct action *action)
{
	switch (action->kind) {
	case ACTION_NONE:
		break;
	case ACTION_THROTTLE:
		throttle(d, s, action->rate, action->until_us);
		break;
	case ACTION_UNTHROTTLE:
		unthrottle(d, s);
		break;
	case ACTION_END:
		dispatch_end(d, s, action->reason, action->text);
		break;
	}
}

static void judge(struct dispatch *d, struct session *s, const struct verdict *v)
{
	const struct verdict_policy *policy = &s->offload->conf->on_error[v->kind];
	struct action action;

	if (s->ended)
		return;
	accounting_verdict(s, v->kind);
	report_verdict(d->events, s, v, policy->action);
	enforcement_judge(&d->record->enforcement, policy, s->client.address, v, clock_us(), &action);
	act(d, s->first, &action);
}

/* ---- completions ---- */

/* What threads have executed since the last time */
static void take_executed(struct dispatch *d)
{
	struct session *s;
	struct verdict note;

	while ((s = executors_next(d->executors))) {
		const struct verdict *v = session_cpu_broken(s);

		d->completions.taken++;
		accounting_answered(&d->accounting, s, session_count(s));
		completions_rearm_later(&d->completions, s);
		if (session_cpu_note(s, &note))
			judge(d, s, &note);
		if (v)
			judge(d, s, v);
	}
}

/* Takes the completions that are there */
static void drain(struct dispatch *d)
{
	struct session *s;
	struct verdict v;

	take_executed(d);
	while (completions_take(&d->completions, &s, &v))
		judge(d, s, &v);
}

/* The QPN of a queue that is gone may come again with the next session: no CQE of it may be left by then */
void dispatch_reap(struct dispatch *d)
{
	struct session *s;

	while ((s = TAILQ_FIRST(&d->ended))) {
		TAILQ_REMOVE(&d->ended, s, link);
		session_destroy_qps(s);
		drain(d);
		if (!spares_put(&d->spares, s))
			session_free(s);
	}
}

/* A round: takes completions, arms again what finished, frees the sessions that are over. False: there were
 * no completions. */
static bool collect(struct dispatch *d)
{
	struct session *s;
	struct verdict v;
	bool any, broke;

	completions_begin_round(&d->completions);
	drain(d);
	any = d->completions.taken > 0;
	while ((s = completions_rearm(&d->completions, &broke, &v))) {
		if (broke)
			judge(d, s, &v);
		if (!s->ended)
			pacer_post(&d->pacer, s);
	}
	if (any)
		completions_end_round(&d->completions);
	dispatch_reap(d);
	return any;
}

static int schedule_round(struct dispatch *d)
{
	int r = sd_event_source_set_time_relative(d->round_timer, d->completions.round_us);

	return r < 0 ? r : sd_event_source_set_enabled(d->round_timer, SD_EVENT_ONESHOT);
}

static int on_round(sd_event_source *source, uint64_t usec, void *arg)
{
	struct dispatch *d = arg;

	(void)source;
	(void)usec;
	if (collect(d))
		return schedule_round(d);
	cq_pool_arm(&d->completions.pool);
	executors_arm(d->executors);
	return collect(d) ? schedule_round(d) : 0;
}

static int on_executed(void *arg)
{
	collect(arg);
	return schedule_round(arg);
}

/* ---- budgets ---- */

static void check_budget(struct dispatch *d, struct session *s, uint64_t now)
{
	struct verdict v;
	uint64_t done;

	if (s->ended)
		return;
	accounting_update(&d->accounting, s);
	session_loop_feed(s->queues.loop, now);
	done = s->progress.done;
	if (session_exceeds_budget(s, now, &v)) {
		/* If this process was held up, requests may have been answered since the completions were
		 * taken: look again before judging */
		drain(d);
		accounting_update(&d->accounting, s);
		if (s->progress.done == done)
			judge(d, s, &v);
	}
	if (!s->ended)
		budgets_continue(&d->budgets, s);
}

static void on_budgets(void *arg)
{
	struct dispatch *d = arg;
	struct session *s, *next;
	uint64_t now = clock_us();

	drain(d);
	for (s = TAILQ_FIRST(&d->budgets.watched); s; s = next) {
		next = TAILQ_NEXT(s, budgets.link);
		check_budget(d, s, now);
	}
	collect(d);
}

/* ---- events of the device ---- */

static void on_session_event(struct dispatch *d, struct session *s, unsigned cookie)
{
	struct verdict v;

	accounting_update(&d->accounting, s);
	if (session_event(s, cookie, &v))
		judge(d, s, &v);
	if (s->pacing.paced && !s->ended)
		pacer_post(&d->pacer, s);
	if (!s->ended && budgets_begin(&d->budgets, s))
		check_budget(d, s, clock_us());
}

static struct session *find_by_queues(const struct dispatch *d, uint64_t number)
{
	struct session *s;

	HASH_FIND(by_queues, d->by_queues, &number, sizeof(number), s);
	return s;
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
		drain(d);
		if (cookie & CQ_POOL_COOKIE) {
			cq_pool_event(&d->completions.pool, cookie);
			continue;
		}
		s = find_by_queues(d, cookie >> SESSION_COOKIE_BITS);
		if (s)
			on_session_event(d, s, cookie & part);
	}
	if (r < 0)
		return log_errno(r, "%s: cannot read its events", rnic_device_name(d->dev));
	collect(d);
	return schedule_round(d);
}

static int on_async(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct dispatch *d = arg;

	(void)source;
	(void)fd;
	(void)revents;
	if (!rnic_device_read_async(d->dev))
		return 0;
	report_device_lost(d->events, rnic_device_name(d->dev));
	return -ENODEV;
}

/* ---- timers of sessions ---- */

static void on_session_timer(void *arg, struct session *s)
{
	struct dispatch *d = arg;
	struct action action;
	struct session *c;

	drain(d);
	if (!s->ended) {
		SESSION_CONNECTIONS(c, s)
		accounting_update(&d->accounting, c);
		timers_check(&d->timers, s, clock_us(), &action);
		act(d, s, &action);
	}
	if (!s->ended)
		timers_set(&d->timers, s);
	collect(d);
}

static void on_pacer(void *arg, struct session *s)
{
	struct dispatch *d = arg;

	accounting_update(&d->accounting, s);
}

/* ---- refusals that were only counted ---- */

static int on_unlisted(sd_event_source *source, uint64_t usec, void *arg)
{
	struct dispatch *d = arg;
	const unsigned bits = d->record->enforcement.source_bits;
	char why[REFUSALS_WHY];
	struct source of;
	uint64_t more;

	(void)source;
	(void)usec;
	for (unsigned i = 0; i < REPORTED_AT_ONCE && (more = refusals_take(&d->refusals, &of, why)); i++)
		report_unlisted(d->events, &of, bits, more, why);
	more = refusals_take_rest(&d->refusals);
	if (more)
		report_unlisted(d->events, NULL, bits, more, "");
	d->reports_unlisted = false;
	return 0;
}

static void report_unlisted_later(struct dispatch *d)
{
	if (d->reports_unlisted || !d->refusals.pending)
		return;
	d->reports_unlisted = sd_event_source_set_time_relative(d->unlisted_timer, REPORT_US) >= 0 &&
			      sd_event_source_set_enabled(d->unlisted_timer, SD_EVENT_ONESHOT) >= 0;
}

/* ---- connections ---- */

/* NULL: the client has been refused */
static struct session *begin(
	struct dispatch *d, const struct session_client *client, const struct admit_result *admitted)
{
	struct reddn_wire_rej rej;

	if (!admitted->offload->cpu || executors_choose(d->executors, &d->acceptor.parts.plain_events) == 0)
		return accept_begin(&d->acceptor, client, admitted, clock_us());
	request_refuse(&rej, REDDN_REJ_INTERNAL, 0, "the server could not start a thread");
	accept_refuse(&d->acceptor, client, admitted, clock_us(), &rej);
	return NULL;
}

static void on_began(struct dispatch *d, struct session *s)
{
	struct action action;

	accounting_began(s);
	report_began(d->events, s);
	enforcement_begin(&d->record->enforcement, s->client.address, clock_us(), &action);
	act(d, s, &action);
}

static bool on_ready(void *arg, const struct session_client *client, const struct admit_result *admitted)
{
	struct dispatch *d = arg;
	struct session *s = begin(d, client, admitted);
	int r;

	report_unlisted_later(d);
	if (!s)
		return false;
	/* Making the queues takes milliseconds, which are not the client's */
	s->since = clock_us();
	add(d, s);
	if (session_is_first(s))
		on_began(d, s);
	else
		log_at(LOG_INFO, session_number(s), "has %u connections", s->first->connections);
	pacer_post(&d->pacer, s);
	r = timers_begin(&d->timers, s);
	if (r >= 0 && s->cpu)
		r = executors_add(d->executors, s);
	if (r >= 0)
		r = accept_answer(s);
	if (r < 0) {
		dispatch_end(d, s, REDDN_WIRE_END_FAILED, "the client could not be answered");
		dispatch_reap(d);
	}
	return true;
}

static void on_refused(void *arg, const struct session_client *client, const struct admit_result *admitted,
	const struct reddn_wire_rej *rej)
{
	struct dispatch *d = arg;

	accept_refuse(&d->acceptor, client, admitted, clock_us(), rej);
	report_unlisted_later(d);
}

static const struct arrivals_ops arrivals_ops = {.ready = on_ready, .refused = on_refused};

static void on_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	struct session_client client;
	struct admit_result admitted;
	struct dispatch *d = arg;

	if (accept_request(&d->acceptor, conn, data, size, clock_us(), &client, &admitted))
		arrivals_add(&d->arrivals, &client, &admitted);
	else
		rnic_conn_free(conn);
	report_unlisted_later(d);
}

static void on_established(void *arg, uint64_t number)
{
	struct dispatch *d = arg;
	struct session *s = dispatch_find(d, number);

	if (!s)
		return;
	ledger_established(s->slot);
	timers_established(&d->timers, s);
	log_at(LOG_DEBUG, session_number(s), "connected");
}

static void on_gone(void *arg, uint64_t number, const char *why)
{
	struct dispatch *d = arg;
	struct session *s;

	drain(d);
	s = dispatch_find(d, number);
	if (s)
		dispatch_end(d, s, REDDN_WIRE_END_CLIENT, why);
	collect(d);
}

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

const struct rnic_cm_ops dispatch_cm_ops = {
	.request = on_request, .established = on_established, .gone = on_gone};

/* ---- life ---- */

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
		r = sd_event_add_time_relative(e, &d->round_timer, CLOCK_MONOTONIC, 0, 1, on_round, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->round_timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(e, &d->unlisted_timer, CLOCK_MONOTONIC, 0, 0, on_unlisted, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->unlisted_timer, SD_EVENT_OFF);
	for (size_t i = 0; r >= 0 && i < COUNT(sources); i++)
		r = *sources[i] ? sd_event_source_set_exit_on_failure(*sources[i], 1) : r;
	if (r >= 0)
		r = pacer_init(&d->pacer, e, on_pacer, d);
	if (r >= 0)
		r = budgets_init(&d->budgets, e, on_budgets, d);
	return r < 0 ? log_errno(r, "cannot watch the device") : 0;
}

int dispatch_init(struct dispatch *d, const struct dispatch_parts *parts)
{
	int r;

	d->cm = parts->cm;
	d->dev = parts->dev;
	d->events = parts->events;
	d->record = parts->record;
	TAILQ_INIT(&d->ended);
	d->timers = (struct timers){.event = parts->event, .due = on_session_timer, .arg = d};
	d->acceptor = (struct acceptor){
		.parts = {.dev = parts->dev,
			.arena = parts->arena,
			.cq_pool = &d->completions.pool,
			.spares = &d->spares},
		.end_reasons = &d->record->end_reasons,
		.sessions = &d->sessions,
		.enforcement = &d->record->enforcement,
		.refusals = &d->refusals,
		.events = d->events,
		.accounting = &d->accounting,
	};
	r = completions_init(&d->completions, parts->dev, parts->arena, &d->accounting);
	if (r == 0)
		r = watch(d, parts->event);
	if (r == 0)
		r = executors_new(&d->executors, parts->event, parts->dev, on_executed, d);
	if (r == 0)
		r = spares_init(&d->spares, parts->event);
	if (r < 0)
		return r;
	r = arrivals_init(&d->arrivals, parts->event, parts->dev, parts->registrar, &arrivals_ops, d);
	return r < 0 ? log_errno(r, "cannot start threads") : 0;
}

void dispatch_end_arrivals(struct dispatch *d)
{
	arrivals_end(&d->arrivals);
}

void dispatch_deinit(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		dispatch_end(d, s, REDDN_WIRE_END_SHUTDOWN, "the daemon stops");
	if (d->dev)
		dispatch_reap(d);
	spares_deinit(&d->spares);
	executors_free(d->executors);
	budgets_deinit(&d->budgets);
	pacer_deinit(&d->pacer);
	sd_event_source_disable_unref(d->unlisted_timer);
	sd_event_source_disable_unref(d->round_timer);
	sd_event_source_disable_unref(d->async_source);
	sd_event_source_disable_unref(d->queue_source);
	sd_event_source_disable_unref(d->cm_source);
	completions_deinit(&d->completions);
}

/* ---- what a daemon before this one had ---- */

void dispatch_adopt(struct dispatch *d, struct session *s)
{
	add(d, s);
	if (session_number(s) == s->id)
		accounting_adopted(s);
	accounting_update(&d->accounting, s);
	if (timers_begin(&d->timers, s) < 0)
		dispatch_end(d, s, REDDN_WIRE_END_FAILED, "the server has no memory left");
	else if (s->slot->session.established)
		timers_established(&d->timers, s);
}

static void serve_adopted(struct dispatch *d, struct session *s)
{
	struct verdict v;

	s->resuming = false;
	if (!s->ended && session_look(s, &v))
		judge(d, s, &v);
	if (s->ended)
		return;
	if (!s->queues.layout.recycled)
		completions_rearm_later(&d->completions, s);
	pacer_changed(&d->pacer, s);
	if (budgets_begin(&d->budgets, s))
		check_budget(d, s, clock_us());
}

/* A connection joins the first one of its session again */
static void join_adopted(struct dispatch *d, struct session *s)
{
	struct session *first = dispatch_find(d, session_number(s));

	if (first == s)
		return;
	if (first && first->tenant == s->tenant)
		session_join(s, first);
	else /* it began no session: the end of that has been reported */
		end_connection(d, s, false);
}

/* What clients have of a session is all of it or nothing */
static void check_adopted(struct dispatch *d, struct session *s)
{
	if (s->ended || !session_is_first(s))
		return;
	if (session_is_whole(s))
		report_adopted(d->events, s);
	else
		dispatch_end(d, s, REDDN_WIRE_END_SHUTDOWN,
			"the server was restarted, and a connection of the session has ended");
}

int dispatch_serve_adopted(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		join_adopted(d, s);
	HASH_ITER (by_id, d->sessions, s, next)
		check_adopted(d, s);
	drain(d);
	HASH_ITER (by_id, d->sessions, s, next)
		serve_adopted(d, s);
	cq_pool_adopted(&d->completions.pool);
	collect(d);
	return schedule_round(d);
}

void dispatch_end_heir(struct dispatch *d, uint64_t number, const struct end_reason_query *query,
	const uint8_t address[16], const char *peer, const char *why)
{
	report_ended_heir(d->events, number, address, peer, why);
	end_reasons_add(&d->record->end_reasons, address, d->record->enforcement.source_bits, query,
		REDDN_WIRE_END_SHUTDOWN, why);
}

/* ---- for orders ---- */

void dispatch_serve(struct dispatch *d, const struct generation *generation)
{
	d->acceptor.generation = generation;
}

void dispatch_use(struct dispatch *d, const struct catalog *catalog)
{
	struct session *s, *next;

	executors_limit(d->executors, catalog->executors);
	d->timers.connect_timeout = catalog->connect_timeout;
	d->record->enforcement.source_bits = catalog->source_bits;
	refusals_limit(&d->refusals, catalog->refusal_rate, clock_us());
	d->arrivals.connect_timeout = catalog->connect_timeout;
	d->spares.keep_us = catalog->spare_time;
	spares_clear(&d->spares);
	dispatch_tenant_changed(d, NULL);
	HASH_ITER (by_id, d->sessions, s, next)
		timers_restart(&d->timers, s);
}

static void check_regions(struct dispatch *d, struct session *s)
{
	const struct offload *o = s->offload;

	for (unsigned i = 0; i < o->program->nregions; i++) {
		if (o->generation != d->acceptor.generation) /* regions of that one have been checked */
			region_check(o->bound[i].region);
		if (!s->ended && region_is_bad(o->bound[i].region, NULL))
			dispatch_end(d, s, REDDN_WIRE_END_FAILED, "the data of the offload were cut off");
	}
}

void dispatch_check_regions(struct dispatch *d)
{
	const struct generation *g = d->acceptor.generation;
	struct session *s, *next;

	for (unsigned i = 0; i < g->catalog->nregions; i++) {
		const struct catalog_region *conf = &g->catalog->regions[i];

		region_check(g->regions[i]);
		if (region_check_writer(g->regions[i]))
			report_unfinished(d->events, conf->name, conf->path);
	}
	drain(d);
	HASH_ITER (by_id, d->sessions, s, next)
		check_regions(d, s);
	collect(d);
}

void dispatch_tenant_changed(struct dispatch *d, const struct tenant *tenant)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		if (!tenant || s->tenant == tenant)
			pacer_changed(&d->pacer, s);
}

void dispatch_count(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		accounting_update(&d->accounting, s);
}
