/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/server.h"

#include "reddnd/server/device.h"
#include "reddnd/server/dispatch.h"
#include "reddnd/server/reload.h"
#include "reddnd/server/report.h"
#include "reddnd/session/posting.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>

struct server {
	uint64_t since;
	sd_event *event;
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct master_qp master;
	struct rnic_cm *cm;
	struct generation *generation; /* what new clients get */
	struct offload_stats *stats;
	struct tenant *tenants;
	struct events *events;
	struct dispatch dispatch;
};

DEFINE_CLEANUP(struct catalog *, catalog_free)
DEFINE_CLEANUP(struct server *, server_free)
DEFINE_CLEANUP(struct generation *, generation_unref)

/* ---- life ---- */

static int bind_all(struct server *sv, const struct catalog *c)
{
	int r = rnic_cm_new(&sv->cm, &dispatch_cm_ops, &sv->dispatch);

	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		r = rnic_cm_bind(sv->cm, c->listen[i].address, c->listen[i].port);
	return r;
}

static int open_device(struct server *sv, const struct catalog *c)
{
	int r = rnic_arena_new(&sv->arena, c->arena);

	if (r < 0)
		return log_errno(r, "cannot make an arena of %" PRIu64 " bytes", c->arena);
	r = bind_all(sv, c);
	if (r == 0)
		r = device_open(&sv->dev, c->device, sv->cm);
	if (r == 0)
		r = master_qp_init(&sv->master, rnic_device_pd(sv->dev), sv->arena);
	return r == 0 ? device_test(sv->dev, &sv->master) : r;
}

static int begin_dispatch(struct server *sv)
{
	const struct dispatch_parts parts = {
		.event = sv->event, .cm = sv->cm, .dev = sv->dev, .arena = sv->arena, .events = sv->events};

	return dispatch_init(&sv->dispatch, &parts);
}

static int new_generation(struct server *sv, struct generation **generation, struct catalog *catalog)
{
	const struct generation_parts parts = {
		.dev = sv->dev, .arena = sv->arena, .stats = &sv->stats, .tenants = &sv->tenants};

	return generation_new(generation, catalog, &parts);
}

static void put_in_force(struct server *sv, struct generation *generation)
{
	if (sv->generation)
		generation_unref(sv->generation);
	sv->generation = generation;
	generation_limit(generation, clock_us());
	dispatch_use(&sv->dispatch, generation);
}

static int serve(struct server *sv, struct catalog *catalog)
{
	CLEANUP(generation_unrefp) struct generation *first = NULL;
	int r = new_generation(sv, &first, catalog);

	if (r == 0)
		r = generation_check_room(first, rnic_arena_size(sv->arena) - rnic_arena_used(sv->arena));
	if (r < 0)
		return r;
	put_in_force(sv, steal_ptr(&first));
	/* The last step: a client that is heard is served */
	return rnic_cm_listen(sv->cm);
}

int server_new(struct server **out, struct catalog *catalog, sd_event *event)
{
	CLEANUP(catalog_freep) struct catalog *mine = catalog;
	CLEANUP(server_freep) struct server *sv = calloc(1, sizeof(*sv));
	int r;

	if (!sv)
		return -ENOMEM;
	sv->since = clock_us();
	sv->event = sd_event_ref(event);
	sv->events = events_new();
	r = sv->events ? open_device(sv, catalog) : -ENOMEM;
	if (r == 0)
		r = begin_dispatch(sv);
	if (r == 0)
		r = serve(sv, steal_ptr(&mine));
	if (r < 0)
		return r;
	*out = steal_ptr(&sv);
	return 0;
}

void server_free(struct server *sv)
{
	dispatch_deinit(&sv->dispatch);
	if (sv->cm)
		rnic_cm_free(sv->cm);
	if (sv->generation)
		generation_unref(sv->generation);
	offload_stats_free(&sv->stats);
	master_qp_deinit(&sv->master);
	if (sv->dev)
		rnic_device_close(sv->dev);
	if (sv->arena)
		rnic_arena_free(sv->arena);
	events_free(sv->events);
	sd_event_unref(sv->event);
	free(sv);
}

/* ---- orders ---- */

int server_reload(struct server *sv, struct catalog *catalog)
{
	CLEANUP(catalog_freep) struct catalog *mine = catalog;
	CLEANUP(generation_unrefp) struct generation *next = NULL;
	const char *fixed = reload_conflict(sv->generation->catalog, catalog);
	int r;

	if (fixed) {
		log_error("\"%s\" cannot change while the daemon runs; restart it, or leave the setting as "
			  "it was",
			fixed);
		return -EBUSY;
	}
	r = new_generation(sv, &next, steal_ptr(&mine));
	if (r == 0)
		r = generation_check_room(next, rnic_arena_size(sv->arena));
	if (r < 0)
		return r;
	put_in_force(sv, steal_ptr(&next));
	sv->dispatch.accounting.reloads++;
	report_reloaded(sv->events, catalog->nregions, catalog->noffloads);
	return 0;
}

int server_limit_session(struct server *sv, uint64_t id, const struct server_limit *limit)
{
	struct session *s = dispatch_find(&sv->dispatch, id);

	if (!s)
		return -ENOENT;
	if (limit->has_rate)
		session_limit_requests(s, limit->rate, limit->burst, clock_us());
	if (limit->has_bytes)
		session_limit_bytes(s, limit->bytes_rate, clock_us());
	dispatch_limits_changed(&sv->dispatch, s);
	return 0;
}

int server_limit_tenant(struct server *sv, const char *name, const struct server_limit *limit)
{
	struct catalog_limits limits;
	struct tenant *t;

	HASH_FIND_STR(sv->tenants, name, t);
	if (!t)
		return -ENOENT;
	limits = t->limits;
	if (limit->has_rate) {
		limits.rate = limit->rate;
		limits.burst = limit->burst;
	}
	if (limit->has_bytes)
		limits.bytes_rate = limit->bytes_rate;
	tenant_limit(t, &limits, clock_us());
	dispatch_tenant_changed(&sv->dispatch, t);
	return 0;
}

int server_kick(struct server *sv, uint64_t id)
{
	struct session *s = dispatch_find(&sv->dispatch, id);

	if (!s)
		return -ENOENT;
	dispatch_end(&sv->dispatch, s, REDDN_WIRE_END_OPERATOR, "the administrator ended it");
	dispatch_reap(&sv->dispatch);
	return 0;
}

/* ---- state ---- */

const struct catalog *server_catalog(const struct server *sv)
{
	return sv->generation->catalog;
}

struct events *server_events(struct server *sv)
{
	return sv->events;
}

static struct stats_status status(const struct server *sv, uint64_t now)
{
	const struct dispatch *d = &sv->dispatch;

	return (struct stats_status){
		.device = rnic_device_name(sv->dev),
		.uptime_us = now - sv->since,
		.sessions = HASH_CNT(by_id, d->sessions),
		.sessions_total = d->acceptor.last_id,
		.failed = d->accounting.failed,
		.refused = d->accounting.refused,
		.unlisted = d->accounting.unlisted,
		.requests = d->accounting.requests,
		.reloads = d->accounting.reloads,
		.arena_used = rnic_arena_used(sv->arena),
		.arena_size = rnic_arena_size(sv->arena),
	};
}

struct stats *server_snapshot(struct server *sv)
{
	uint64_t now = clock_us();

	dispatch_count(&sv->dispatch);
	return stats_new(&(struct stats_source){
		.status = status(sv, now),
		.sessions = sv->dispatch.sessions,
		.generation = sv->generation,
		.tenants = sv->tenants,
		.now_us = now,
	});
}
