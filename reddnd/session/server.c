/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/server.h"

#include "reddnd/session/pace.h"
#include "reddnd/session/selftest.h"
#include "reddnd/session/service.h"
#include "reddnd/session/session.h"
#include "reddnd/session/warden.h"
#include "reddnd/util/cleanup.h"
#include "reddnd/util/clock.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

/* While there is traffic, completions are collected in rounds; the event of the device is asked for again only when a
 * round found none. The time between rounds follows the client that is nearest to running out of armed instances:
 * shorter when it has used a quarter of them since the last round, longer below an eighth. */
enum { ROUND_MIN_US = 25, ROUND_MAX_US = 200 };

struct server {
	struct service *service; /* what new clients get */
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct starter starter;
	struct audit audit;
	struct warden warden;
	struct rnic_cm *cm;
	struct session *by_id, *by_qpn;
	TAILQ_HEAD(, session) dirty;
	TAILQ_HEAD(, session) ended;
	uint64_t next_id, refused, requests, failed, reloads, since;
	struct totals *totals;
	struct tenant *tenants;
	struct pacer pacer;
	uint64_t round_us;
	sd_event *event;
	sd_event_source *cm_source, *queue_source, *async_source, *timer;
};

static struct session *find(struct server *sv, uint64_t id)
{
	struct session *s;

	HASH_FIND(by_id, sv->by_id, &id, sizeof id, s);
	return s;
}

static void count_requests(struct server *sv, struct session *s, uint64_t n)
{
	struct totals *t = s->offload->totals;

	sv->requests += n;
	t->requests += n;
	s->tenant->requests += n;
	t->wqes += n * s->offload->outcome.wqes;
	t->bytes_in += n * s->offload->img->arg_len;
}

/* What recycled sessions have done since the last time: they tell nobody. And what became of the requests of others */
static void count(void *arg, struct session *s)
{
	struct server *sv = arg;

	count_requests(sv, s, session_count(s));
	session_look(s);
}

static void count_all(struct server *sv)
{
	struct session *s, *next;

	HASH_ITER (by_id, sv->by_id, s, next)
		count(sv, s);
}

/* LOG_WARNING: it failed */
static void end(struct server *sv, struct session *s, int level, const char *why)
{
	if (s->ended)
		return;
	count(sv, s);
	s->offload->totals->sessions--;
	if (level == LOG_WARNING) {
		sv->failed++;
		s->offload->totals->failed++;
		s->tenant->failed++;
	}
	pace_forget(&sv->pacer, s);
	warden_ended(&sv->warden, s, level, why);
	session_end(s);
	HASH_DELETE(by_id, sv->by_id, s);
	HASH_DELETE(by_qpn, sv->by_qpn, s);
	if (s->dirty)
		TAILQ_REMOVE(&sv->dirty, s, dirty_link);
	s->dirty = false;
	TAILQ_INSERT_TAIL(&sv->ended, s, dirty_link);
}

static void judge(struct server *sv, struct session *s, const struct verdict *v)
{
	if (!s->ended && warden_judge(&sv->warden, s, v))
		end(sv, s, LOG_WARNING, v->text);
}

/* ---- audit: what is finished is counted and armed again ------------------------------------------------------ */

static unsigned drain(struct server *sv)
{
	struct session *s = NULL;
	struct rnic_cqe cqe;
	struct verdict v;
	unsigned n = 0;

	while (audit_next(&sv->audit, &cqe)) {
		n++;
		if (!s || s->qpn != cqe.qpn || s->ended)
			HASH_FIND(by_qpn, sv->by_qpn, &cqe.qpn, sizeof cqe.qpn, s);
		if (!s) /* flushed by a queue that has ended */
			continue;
		if (session_completed(s, &cqe, &v)) {
			judge(sv, s, &v);
			s = NULL;
			continue;
		}
		count_requests(sv, s, 1);
		if (!s->dirty) {
			s->dirty = true;
			TAILQ_INSERT_TAIL(&sv->dirty, s, dirty_link);
		}
	}
	if (n)
		audit_update(&sv->audit);
	return n;
}

/* The number of a queue that is gone may come again with the next session: no CQE of it may be left by then */
static void reap(struct server *sv)
{
	struct session *s;

	while ((s = TAILQ_FIRST(&sv->ended))) {
		TAILQ_REMOVE(&sv->ended, s, dirty_link);
		session_stop_queues(s);
		drain(sv);
		session_free(s);
	}
}

static void adapt(struct server *sv, unsigned eighths)
{
	if (eighths >= 2 && sv->round_us > ROUND_MIN_US)
		sv->round_us /= 2;
	else if (eighths == 0 && sv->round_us < ROUND_MAX_US)
		sv->round_us *= 2;
}

static unsigned collect(struct server *sv)
{
	unsigned n = drain(sv), used = 0;
	struct session *s;
	struct verdict v;

	while ((s = TAILQ_FIRST(&sv->dirty))) {
		TAILQ_REMOVE(&sv->dirty, s, dirty_link);
		s->dirty = false;
		if (session_used(s) > used)
			used = session_used(s);
		if (session_rearm(s, &v))
			judge(sv, s, &v);
		if (!s->ended)
			pace_session(&sv->pacer, s);
	}
	if (n)
		adapt(sv, used);
	reap(sv);
	return n;
}

static int schedule_round(struct server *sv)
{
	int r = sd_event_source_set_time_relative(sv->timer, sv->round_us);

	return r < 0 ? r : sd_event_source_set_enabled(sv->timer, SD_EVENT_ONESHOT);
}

static int round_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct server *sv = arg;

	(void)source;
	(void)usec;
	if (collect(sv))
		return schedule_round(sv);
	audit_arm(&sv->audit);
	return collect(sv) ? schedule_round(sv) : 0;
}

static int queue_ready(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct server *sv = arg;
	struct verdict v;
	uint64_t cookie;
	int r;

	(void)source;
	(void)fd;
	(void)revents;
	while ((r = rnic_device_next_event(sv->dev, &cookie)) > 0) {
		struct session *s;

		/* An error of the reply comes first, and explains the flushed RECVs that raise this event */
		drain(sv);
		s = find(sv, cookie >> SESSION_COOKIE_BITS);
		if (s)
			count(sv, s);
		if (s && session_alarm(s, cookie & ((1u << SESSION_COOKIE_BITS) - 1), &v))
			judge(sv, s, &v);
		if (s && s->paced && !s->ended)
			pace_session(&sv->pacer, s);
	}
	if (r < 0)
		return log_errno(r, "%s: cannot read its events", rnic_device_name(sv->dev));
	collect(sv);
	return schedule_round(sv);
}

static int device_ready(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct server *sv = arg;

	(void)source;
	(void)fd;
	(void)revents;
	if (!rnic_device_failed(sv->dev))
		return 0;
	warden_device_lost(&sv->warden, rnic_device_name(sv->dev));
	return -ENODEV;
}

/* Time budgets: no work request tells that none came */
static void look(void *arg, uint64_t now)
{
	struct server *sv = arg;
	struct session *s, *next;
	struct verdict v;

	drain(sv);
	HASH_ITER (by_id, sv->by_id, s, next) {
		if (!s->offload->conf->time_budget)
			continue;
		count(sv, s);
		warden_watch(&sv->warden, s->offload->conf->time_budget);
		if (session_watch(s, now, &v))
			judge(sv, s, &v);
	}
	collect(sv);
}

/* ---- connections --------------------------------------------------------------------------------------------- */

static void refuse(
	struct server *sv, struct rnic_conn *conn, const struct admitted *a, const struct reddn_wire_rej *rej)
{
	sv->refused++;
	if (a->tenant)
		a->tenant->refused++;
	warden_refused(&sv->warden, rnic_conn_peer(conn), a->tenant ? a->tenant->name : "",
		a->request.offload, rej->text);
	if (rnic_conn_reject(conn, rej, sizeof *rej) < 0)
		log_debug("client %s has gone before it was refused", rnic_conn_peer(conn));
	rnic_conn_free(conn);
}

static void cm_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	struct server *sv = arg;
	const struct session_parts parts = {.dev = sv->dev, .arena = sv->arena, .audit = &sv->audit};
	uint8_t address[16];
	const struct admit_from from = {
		.data = data, .size = size, .address = address, .now = (uint64_t)time(NULL)};
	struct reddn_wire_rej rej;
	struct reddn_wire_rep rep;
	struct admitted a = {0};
	struct session *s;
	char words[100];
	int r;

	rnic_conn_address(conn, address);
	if (strcmp(rnic_conn_device(conn), rnic_device_name(sv->dev)) != 0) {
		session_refuse(&rej, REDDN_REJ_RESOURCES, 0, "the request came in on %s; this server uses %s",
			rnic_conn_device(conn), rnic_device_name(sv->dev));
		refuse(sv, conn, &a, &rej);
		return;
	}
	if (!warden_lets_in(&sv->warden, rnic_conn_peer(conn), &rej) ||
		!admit(sv->service, &from, &a, &rej)) {
		refuse(sv, conn, &a, &rej);
		return;
	}
	r = session_new(&s, ++sv->next_id, &parts, &a, conn, clock_us());
	if (r < 0) {
		tenant_refund(a.tenant, &a.charge);
		if (r == -ENOSPC || r == -ENOMEM)
			session_refuse(
				&rej, REDDN_REJ_RESOURCES, 0, "the server has no memory left for queues");
		else
			session_refuse(&rej, REDDN_REJ_INTERNAL, 0,
				"the server could not make the queues: %s", strerror(-r));
		refuse(sv, conn, &a, &rej);
		return;
	}
	HASH_ADD(by_id, sv->by_id, id, sizeof s->id, s);
	HASH_ADD(by_qpn, sv->by_qpn, qpn, sizeof s->qpn, s);
	s->since = clock_us();
	s->tenant->accepted++;
	s->offload->totals->sessions++;
	snprintf(words, sizeof words, "depth %u, %u instances, %" PRIu64 " bytes of queues", a.request.depth,
		s->layout.slots, s->layout.size);
	warden_began(&sv->warden, s, words);
	warden_watch(&sv->warden, s->offload->conf->time_budget);
	pace_session(&sv->pacer, s);
	session_describe(s, &rep);
	r = rnic_conn_accept(conn, &s->qp[0], &rep, sizeof rep);
	if (r < 0) {
		end(sv, s, LOG_WARNING, "the client could not be answered");
		reap(sv);
	}
}

static void cm_established(void *arg, struct rnic_conn *conn)
{
	struct session *s = rnic_conn_user(conn);

	(void)arg;
	s->established = true;
	log_at(LOG_DEBUG, s->id, "connected");
}

static void cm_gone(void *arg, struct rnic_conn *conn, const char *why)
{
	struct server *sv = arg;
	struct session *s = rnic_conn_user(conn);

	drain(sv);
	end(sv, s, LOG_INFO, why);
	collect(sv);
}

static int cm_ready(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct server *sv = arg;
	int r;

	(void)source;
	(void)fd;
	(void)revents;
	r = rnic_cm_dispatch(sv->cm);
	return r < 0 ? log_errno(r, "the RDMA connection manager cannot be read") : 0;
}

/* ---- life ---------------------------------------------------------------------------------------------------- */

static int try_device(struct server *sv)
{
	char why[200];
	int r;

	r = starter_init(&sv->starter, rnic_device_pd(sv->dev), sv->arena);
	if (r < 0)
		return r;
	r = selftest_run(&sv->starter, rnic_caps_masked_atomics(rnic_device_caps(sv->dev)), why, sizeof why);
	if (r < 0) {
		log_error("%s does not run chains as it must: %s", rnic_device_name(sv->dev), why);
		return r;
	}
	r = selftest_fenced_enables(&sv->starter);
	if (r < 0)
		return log_errno(
			r, "%s: the fences of SEND_EN could not be tried", rnic_device_name(sv->dev));
	rnic_device_found(sv->dev, r);
	log_info("%s: self-test passed; a fence holds back a SEND_EN: %s", rnic_device_name(sv->dev),
		r ? "yes" : "no, or it could not be told");
	return 0;
}

static int listen_all(struct server *sv, const struct catalog *c)
{
	static const struct rnic_cm_ops ops = {
		.request = cm_request, .established = cm_established, .gone = cm_gone};
	int r;

	r = rnic_cm_new(&sv->cm, &ops, sv);
	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		r = rnic_cm_listen(sv->cm, c->listen[i].address, c->listen[i].port);
	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		log_info("listening on %s port %u", c->listen[i].address, c->listen[i].port);
	return r;
}

static int open_device(struct server *sv, const struct catalog *c)
{
	const char *name = c->device, *bound = rnic_cm_device(sv->cm);

	if (*name && bound && strcmp(name, bound) != 0) {
		log_error("\"device\" is %s, but an address of \"listen\" belongs to %s; make them agree",
			name, bound);
		return -EINVAL;
	}
	return rnic_device_open(&sv->dev, *name ? name : bound ? bound : "");
}

static int attach(struct server *sv)
{
	int r;

	r = sd_event_add_io(sv->event, &sv->cm_source, rnic_cm_fd(sv->cm), EPOLLIN, cm_ready, sv);
	if (r >= 0)
		r = sd_event_add_io(sv->event, &sv->queue_source, rnic_device_event_fd(sv->dev), EPOLLIN,
			queue_ready, sv);
	if (r >= 0)
		r = sd_event_add_io(sv->event, &sv->async_source, rnic_device_async_fd(sv->dev), EPOLLIN,
			device_ready, sv);
	/* Accuracy 1: by default sd-event would let a round wait for others to share its wake-up */
	if (r >= 0)
		r = sd_event_add_time_relative(sv->event, &sv->timer, CLOCK_MONOTONIC, 0, 1, round_due, sv);
	if (r >= 0)
		r = sd_event_source_set_enabled(sv->timer, SD_EVENT_OFF);
	for (size_t i = 0; r >= 0 && i < 4; i++)
		r = sd_event_source_set_exit_on_failure((sd_event_source *[]){sv->cm_source, sv->queue_source,
								sv->async_source, sv->timer}[i],
			1);
	return r < 0 ? log_errno(r, "cannot watch the device") : 0;
}

DEFINE_CLEANUP(struct catalog *, catalog_free)
DEFINE_CLEANUP(struct server *, server_free)
DEFINE_CLEANUP(struct service *, service_unref)

static uint64_t room(const struct server *sv)
{
	return rnic_arena_size(sv->arena) - rnic_arena_used(sv->arena);
}

static int new_service(struct server *sv, struct service **service, struct catalog *catalog)
{
	const struct service_parts parts = {
		.dev = sv->dev, .arena = sv->arena, .totals = &sv->totals, .tenants = &sv->tenants};

	return service_new(service, catalog, &parts);
}

int server_new(struct server **out, struct catalog *catalog, sd_event *event)
{
	CLEANUP(catalog_freep) struct catalog *mine = catalog;
	CLEANUP(server_freep) struct server *sv = calloc(1, sizeof *sv);
	int r;

	if (!sv)
		return -ENOMEM;
	sv->round_us = ROUND_MIN_US;
	sv->since = clock_us();
	sv->event = sd_event_ref(event);
	TAILQ_INIT(&sv->dirty);
	TAILQ_INIT(&sv->ended);
	r = warden_init(&sv->warden, event, look, sv);
	if (r < 0)
		return r;
	r = rnic_arena_new(&sv->arena, catalog->arena);
	if (r < 0)
		return log_errno(r, "cannot make an arena of %" PRIu64 " bytes", catalog->arena);
	r = listen_all(sv, catalog);
	if (r == 0)
		r = open_device(sv, catalog);
	if (r == 0)
		r = try_device(sv);
	if (r == 0)
		r = audit_init(&sv->audit, sv->dev, sv->arena, 0);
	if (r == 0)
		r = attach(sv);
	if (r == 0)
		r = pace_init(&sv->pacer, sv->event, count, sv);
	if (r == 0)
		r = new_service(sv, &sv->service, steal_ptr(&mine));
	if (r == 0)
		r = service_check_room(sv->service, room(sv));
	if (r < 0)
		return r;
	service_limit(sv->service, clock_us());
	*out = steal_ptr(&sv);
	return 0;
}

void server_free(struct server *sv)
{
	struct session *s, *next;

	HASH_ITER (by_id, sv->by_id, s, next)
		end(sv, s, LOG_INFO, "the daemon stops");
	if (sv->dev)
		reap(sv);
	pace_deinit(&sv->pacer);
	sd_event_source_disable_unref(sv->timer);
	sd_event_source_disable_unref(sv->async_source);
	sd_event_source_disable_unref(sv->queue_source);
	sd_event_source_disable_unref(sv->cm_source);
	if (sv->cm)
		rnic_cm_free(sv->cm);
	audit_deinit(&sv->audit);
	if (sv->service)
		service_unref(sv->service);
	totals_free(&sv->totals);
	starter_deinit(&sv->starter);
	if (sv->dev)
		rnic_device_close(sv->dev);
	if (sv->arena)
		rnic_arena_free(sv->arena);
	warden_deinit(&sv->warden);
	sd_event_unref(sv->event);
	free(sv);
}

/* ---- reload -------------------------------------------------------------------------------------------------- */

static bool same_listen(const struct catalog *a, const struct catalog *b)
{
	bool same = a->nlisten == b->nlisten;

	for (unsigned i = 0; i < a->nlisten && same; i++)
		same = a->listen[i].port == b->listen[i].port &&
		       strcmp(a->listen[i].address, b->listen[i].address) == 0;
	return same;
}

/* After a limit of @tenant, or of any if it is NULL, has changed */
static void pace_all(struct server *sv, const struct tenant *tenant)
{
	struct session *s, *next;

	HASH_ITER (by_id, sv->by_id, s, next)
		if (!tenant || s->tenant == tenant)
			pace_changed(&sv->pacer, s);
}

/* What sessions stand on cannot change under them */
static int check_fixed(const struct catalog *now, const struct catalog *next)
{
	const char *what = !same_listen(now, next)                  ? "listen"
			   : strcmp(now->device, next->device) != 0 ? "device"
			   : now->serves_metrics != next->serves_metrics ||
					   now->metrics.port != next->metrics.port ||
					   strcmp(now->metrics.address, next->metrics.address) != 0
				   ? "metrics"
			   : now->arena != next->arena ? "arena"
						       : NULL;

	if (!what)
		return 0;
	log_error("\"%s\" cannot change while the daemon runs; restart it, or leave the setting as it was",
		what);
	return -EBUSY;
}

int server_reload(struct server *sv, struct catalog *catalog)
{
	CLEANUP(catalog_freep) struct catalog *mine = catalog;
	CLEANUP(service_unrefp) struct service *next = NULL;
	char words[100];
	int r;

	r = check_fixed(sv->service->catalog, catalog);
	if (r == 0)
		r = new_service(sv, &next, steal_ptr(&mine));
	if (r == 0)
		r = service_check_room(next, rnic_arena_size(sv->arena));
	if (r < 0)
		return r;
	service_unref(sv->service);
	sv->service = steal_ptr(&next);
	service_limit(sv->service, clock_us());
	pace_all(sv, NULL);
	sv->reloads++;
	snprintf(words, sizeof words, "%u regions, %u offloads; sessions go on as they began",
		catalog->nregions, catalog->noffloads);
	warden_reloaded(&sv->warden, words);
	return 0;
}

/* ---- what is going on ---------------------------------------------------------------------------------------- */

void server_status(struct server *sv, struct server_status *status)
{
	count_all(sv);
	*status = (struct server_status){
		.device = rnic_device_name(sv->dev),
		.uptime_us = clock_us() - sv->since,
		.sessions = HASH_CNT(by_id, sv->by_id),
		.failed = sv->failed,
		.sessions_total = sv->next_id,
		.refused = sv->refused,
		.requests = sv->requests,
		.reloads = sv->reloads,
		.arena_used = rnic_arena_used(sv->arena),
		.arena_size = rnic_arena_size(sv->arena),
	};
}

const struct service *server_service(struct server *sv)
{
	count_all(sv);
	return sv->service;
}

void server_each_session(
	struct server *sv, void (*fn)(void *arg, const struct server_session *session), void *arg)
{
	struct session *s, *next;
	uint64_t now = clock_us();

	count_all(sv);
	HASH_ITER (by_id, sv->by_id, s, next) {
		const struct server_session info = {
			.id = s->id,
			.peer = rnic_conn_peer(s->conn),
			.tenant = s->tenant->name,
			.offload = s->offload->conf->name,
			.current = s->offload->service == sv->service,
			.depth = s->env.slot_count,
			.instances = s->layout.slots,
			.queue_bytes = s->layout.size,
			.age_us = now - s->since,
			.requests = s->done,
			.rate = s->rate.per_second,
			.burst = s->rate.burst,
			.recycled = s->layout.recycled,
			.hits = s->hits,
			.misses = s->misses,
			.wqes = s->done * s->offload->outcome.wqes,
			.bytes_in = s->done * s->offload->img->arg_len,
			.bytes_out = s->bytes_out,
			.verdicts = s->verdicts,
		};

		fn(arg, &info);
	}
}

const struct tenant *server_tenants(struct server *sv)
{
	count_all(sv);
	return sv->tenants;
}

int server_limit_session(struct server *sv, uint64_t id, uint64_t rate, uint64_t burst)
{
	struct session *s = find(sv, id);

	if (!s)
		return -ENOENT;
	rate_set(&s->rate, rate, burst, clock_us());
	pace_changed(&sv->pacer, s);
	return 0;
}

int server_limit_tenant(struct server *sv, const char *name, uint64_t rate, uint64_t burst)
{
	struct catalog_limits limits;
	struct tenant *t;

	HASH_FIND_STR(sv->tenants, name, t);
	if (!t)
		return -ENOENT;
	limits = t->limits;
	limits.rate = rate;
	limits.burst = burst;
	tenant_limit(t, &limits, clock_us());
	pace_all(sv, t);
	return 0;
}

int server_kick(struct server *sv, uint64_t id)
{
	struct session *s = find(sv, id);

	if (!s)
		return -ENOENT;
	end(sv, s, LOG_NOTICE, "the administrator ended it");
	reap(sv);
	return 0;
}

struct warden *server_warden(struct server *sv)
{
	return &sv->warden;
}
