/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/server.h"

#include "reddnd/session/selftest.h"
#include "reddnd/session/session.h"
#include "reddnd/util/cleanup.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

/* While there is traffic, completions are collected in rounds; the event of the device is asked for again only when a
 * round found none. The time between rounds follows the client that is nearest to running out of armed instances:
 * shorter when it has used a quarter of them since the last round, longer below an eighth. */
enum { ROUND_MIN_US = 25, ROUND_MAX_US = 200 };

struct server {
	const struct catalog *catalog;
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct starter starter;
	struct audit audit;
	struct table *tables;
	struct offload *offloads;
	struct rnic_cm *cm;
	struct session *by_id, *by_qpn;
	TAILQ_HEAD(, session) dirty;
	TAILQ_HEAD(, session) ended;
	uint64_t next_id, refused, requests;
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

static void end(struct server *sv, struct session *s, int level, const char *why)
{
	if (s->ended)
		return;
	log_at(level, s->id, "ends after %" PRIu64 " requests: %s", s->done, why);
	session_end(s);
	HASH_DELETE(by_id, sv->by_id, s);
	HASH_DELETE(by_qpn, sv->by_qpn, s);
	if (s->dirty)
		TAILQ_REMOVE(&sv->dirty, s, dirty_link);
	s->dirty = false;
	TAILQ_INSERT_TAIL(&sv->ended, s, dirty_link);
}

/* ---- audit: what is finished is counted and armed again ------------------------------------------------------ */

static unsigned drain(struct server *sv)
{
	struct session *s = NULL;
	struct rnic_cqe cqe;
	char why[200];
	unsigned n = 0;

	while (audit_next(&sv->audit, &cqe)) {
		n++;
		if (!s || s->qpn != cqe.qpn || s->ended)
			HASH_FIND(by_qpn, sv->by_qpn, &cqe.qpn, sizeof cqe.qpn, s);
		if (!s) /* flushed by a queue that has ended */
			continue;
		if (session_completed(s, &cqe, why, sizeof why)) {
			end(sv, s, LOG_WARNING, why);
			s = NULL;
			continue;
		}
		sv->requests++;
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
	char why[200];

	while ((s = TAILQ_FIRST(&sv->dirty))) {
		TAILQ_REMOVE(&sv->dirty, s, dirty_link);
		s->dirty = false;
		if (session_used(s) > used)
			used = session_used(s);
		if (session_rearm(s, why, sizeof why))
			end(sv, s, LOG_WARNING, why);
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
	char why[200];
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
		if (s && session_alarm(s, cookie & ((1u << SESSION_COOKIE_BITS) - 1), why, sizeof why))
			end(sv, s, LOG_WARNING, why);
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
	return rnic_device_failed(sv->dev) ? -ENODEV : 0;
}

/* ---- connections --------------------------------------------------------------------------------------------- */

static void refuse(struct server *sv, struct rnic_conn *conn, const struct reddn_wire_rej *rej)
{
	sv->refused++;
	log_notice("client %s refused: %s", rnic_conn_peer(conn), rej->text);
	if (rnic_conn_reject(conn, rej, sizeof *rej) < 0)
		log_debug("client %s has gone before it was refused", rnic_conn_peer(conn));
	rnic_conn_free(conn);
}

static const struct offload *offload_named(const struct server *sv, const char *name)
{
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		if (strcmp(sv->catalog->offloads[i].name, name) == 0)
			return &sv->offloads[i];
	return NULL;
}

static bool admit(struct server *sv, struct rnic_conn *conn, const void *data, size_t size,
	struct session_request *request, const struct offload **offload, struct reddn_wire_rej *rej)
{
	if (!session_request_parse(data, size, request, rej))
		return false;
	if (strcmp(rnic_conn_device(conn), rnic_device_name(sv->dev)) != 0) {
		session_refuse(rej, REDDN_REJ_RESOURCES, 0, "the request came in on %s; this server uses %s",
			rnic_conn_device(conn), rnic_device_name(sv->dev));
		return false;
	}
	*offload = offload_named(sv, request->offload);
	if (!*offload) {
		session_refuse(rej, REDDN_REJ_OFFLOAD, 0, "there is no offload %s", request->offload);
		return false;
	}
	return session_request_check(request, (*offload)->conf->depth_max, (*offload)->slot_need, rej);
}

static void cm_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	struct server *sv = arg;
	const struct session_parts parts = {
		.dev = sv->dev, .arena = sv->arena, .audit = &sv->audit, .starter = &sv->starter};
	const struct offload *offload = NULL;
	struct session_request request;
	struct reddn_wire_rej rej;
	struct reddn_wire_rep rep;
	struct session *s;
	int r;

	if (!admit(sv, conn, data, size, &request, &offload, &rej)) {
		refuse(sv, conn, &rej);
		return;
	}
	r = session_new(&s, ++sv->next_id, &parts, offload, &request, conn);
	if (r == -ENOSPC || r == -ENOMEM) {
		session_refuse(&rej, REDDN_REJ_RESOURCES, 0, "the server has no memory left for queues");
		refuse(sv, conn, &rej);
		return;
	}
	if (r < 0) {
		session_refuse(&rej, REDDN_REJ_INTERNAL, 0, "the server could not make the queues: %s",
			strerror(-r));
		refuse(sv, conn, &rej);
		return;
	}
	HASH_ADD(by_id, sv->by_id, id, sizeof s->id, s);
	HASH_ADD(by_qpn, sv->by_qpn, qpn, sizeof s->qpn, s);
	log_at(LOG_INFO, s->id, "client %s, offload %s, depth %u, %u instances, %" PRIu64 " bytes of queues",
		rnic_conn_peer(conn), request.offload, request.depth, s->layout.slots, s->layout.size);
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

static int open_catalog(struct server *sv)
{
	const struct catalog *c = sv->catalog;
	int r;

	sv->tables = calloc(c->nregions + 1, sizeof *sv->tables);
	sv->offloads = calloc(c->noffloads + 1, sizeof *sv->offloads);
	if (!sv->tables || !sv->offloads)
		return -ENOMEM;
	for (unsigned i = 0; i < c->nregions; i++) {
		r = table_open(
			&sv->tables[i], sv->dev, c->regions[i].path, i * TABLE_WINDOWS, c->regions[i].where);
		if (r < 0)
			return r;
	}
	for (unsigned i = 0; i < c->noffloads; i++) {
		r = offload_open(&sv->offloads[i], &c->offloads[i], &sv->tables[c->offloads[i].region],
			rnic_device_caps(sv->dev));
		if (r < 0)
			return r;
	}
	return 0;
}

/* A client that asks for all that depth_max allows must find room at least while it is alone */
static int check_room(const struct server *sv)
{
	uint64_t room = rnic_arena_size(sv->arena) - rnic_arena_used(sv->arena);

	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		if (sv->offloads[i].session_max > room) {
			log_error("%s: offload %s: the queues of one client take %" PRIu64
				  " bytes, the arena has room for %" PRIu64
				  "; lower depth_max or instances, or raise \"arena\"",
				sv->catalog->offloads[i].where, sv->catalog->offloads[i].name,
				sv->offloads[i].session_max, room);
			return -ENOSPC;
		}
	return 0;
}

static int try_device(struct server *sv)
{
	char why[200];
	int r;

	r = starter_init(&sv->starter, sv->dev, sv->arena);
	if (r < 0)
		return r;
	r = selftest_run(&sv->starter, why, sizeof why);
	if (r < 0) {
		log_error("%s does not run chains as it must: %s", rnic_device_name(sv->dev), why);
		return r;
	}
	log_info("%s: self-test passed", rnic_device_name(sv->dev));
	return 0;
}

static int listen_all(struct server *sv)
{
	static const struct rnic_cm_ops ops = {
		.request = cm_request, .established = cm_established, .gone = cm_gone};
	const struct catalog *c = sv->catalog;
	int r;

	r = rnic_cm_new(&sv->cm, &ops, sv);
	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		r = rnic_cm_listen(sv->cm, c->listen[i].address, c->listen[i].port);
	return r;
}

static int open_device(struct server *sv)
{
	const char *name = sv->catalog->device, *bound = rnic_cm_device(sv->cm);

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

DEFINE_CLEANUP(struct server *, server_free)

int server_new(struct server **out, const struct catalog *catalog, sd_event *event)
{
	CLEANUP(server_freep) struct server *sv = calloc(1, sizeof *sv);
	int r;

	if (!sv)
		return -ENOMEM;
	sv->catalog = catalog;
	sv->round_us = ROUND_MIN_US;
	sv->event = sd_event_ref(event);
	TAILQ_INIT(&sv->dirty);
	TAILQ_INIT(&sv->ended);
	r = rnic_arena_new(&sv->arena, catalog->arena);
	if (r < 0)
		return log_errno(r, "cannot make an arena of %" PRIu64 " bytes", catalog->arena);
	r = listen_all(sv);
	if (r == 0)
		r = open_device(sv);
	if (r == 0)
		r = try_device(sv);
	if (r == 0)
		r = open_catalog(sv);
	if (r == 0)
		r = audit_init(&sv->audit, sv->dev, sv->arena, 0);
	if (r == 0)
		r = check_room(sv);
	if (r == 0)
		r = attach(sv);
	if (r < 0)
		return r;
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
	sd_event_source_disable_unref(sv->timer);
	sd_event_source_disable_unref(sv->async_source);
	sd_event_source_disable_unref(sv->queue_source);
	sd_event_source_disable_unref(sv->cm_source);
	if (sv->cm)
		rnic_cm_free(sv->cm);
	audit_deinit(&sv->audit);
	for (unsigned i = 0; sv->offloads && i < sv->catalog->noffloads; i++)
		offload_close(&sv->offloads[i]);
	for (unsigned i = 0; sv->tables && i < sv->catalog->nregions; i++)
		table_close(&sv->tables[i]);
	free(sv->offloads);
	free(sv->tables);
	starter_deinit(&sv->starter);
	if (sv->dev)
		rnic_device_close(sv->dev);
	if (sv->arena)
		rnic_arena_free(sv->arena);
	sd_event_unref(sv->event);
	free(sv);
}

void server_status(const struct server *sv, struct server_status *status)
{
	*status = (struct server_status){
		.sessions = HASH_CNT(by_id, sv->by_id),
		.sessions_total = sv->next_id,
		.refused = sv->refused,
		.requests = sv->requests,
		.arena_used = rnic_arena_used(sv->arena),
		.arena_size = rnic_arena_size(sv->arena),
	};
}

void server_log_sessions(const struct server *sv)
{
	struct session *s, *next;

	HASH_ITER (by_id, sv->by_id, s, next)
		log_at(LOG_NOTICE, s->id, "client %s, offload %s: %" PRIu64 " requests",
			rnic_conn_peer(s->conn), s->offload->conf->name, s->done);
}
