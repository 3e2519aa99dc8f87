/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/server.h"
#include "reddnd/generation/loop-size.h"

#include "reddnd/selftest/selftest.h"
#include "reddnd/server/server-impl.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

struct session *server_find(struct server *sv, uint64_t id)
{
	struct session *s;

	HASH_FIND(by_id, sv->by_id, &id, sizeof(id), s);
	return s;
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

/* ---- life
 * ---------------------------------------------------------------------------------------------------- */

static int try_device(struct server *sv)
{
	char why[200];
	int r, unchecked;

	r = master_qp_init(&sv->master, rnic_device_pd(sv->dev), sv->arena);
	if (r < 0)
		return r;
	r = selftest_run(&sv->master, rnic_caps_masked_atomics(rnic_device_caps(sv->dev)), why, sizeof(why));
	if (r < 0) {
		log_error("%s does not run chains as it must: %s", rnic_device_name(sv->dev), why);
		return r;
	}
	r = selftest_fenced_enables(&sv->master);
	if (r < 0)
		return log_errno(
			r, "%s: the fences of SEND_EN could not be tried", rnic_device_name(sv->dev));
	unchecked = selftest_unchecked_wqes(&sv->master);
	if (unchecked < 0)
		return log_errno(unchecked, "%s: whether it checks WQE indices could not be tried",
			rnic_device_name(sv->dev));
	rnic_device_set_observed(sv->dev, r, unchecked);
	log_info("%s: self-test passed; a fence holds back a SEND_EN: %s; index and QPN of a WQE are "
		 "checked: %s",
		rnic_device_name(sv->dev), r ? "yes" : "no, or it could not be told",
		unchecked ? "no, so that operands may stand there" : "yes");
	return 0;
}

static int bind_all(struct server *sv, const struct catalog *c)
{
	int r;

	r = rnic_cm_new(&sv->cm, &door_ops, sv);
	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		r = rnic_cm_bind(sv->cm, c->listen[i].address, c->listen[i].port);
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
	int r = sd_event_add_io(sv->event, &sv->cm_source, rnic_cm_fd(sv->cm), EPOLLIN, cm_ready, sv);

	if (r >= 0)
		r = sd_event_source_set_exit_on_failure(sv->cm_source, 1);
	if (r >= 0)
		r = rounds_attach(sv);
	return r < 0 ? log_errno(r, "cannot watch the device") : 0;
}

DEFINE_CLEANUP(struct catalog *, catalog_free)
DEFINE_CLEANUP(struct server *, server_free)
DEFINE_CLEANUP(struct generation *, generation_unref)

static uint64_t room(const struct server *sv)
{
	return rnic_arena_size(sv->arena) - rnic_arena_used(sv->arena);
}

static int new_generation(struct server *sv, struct generation **generation, struct catalog *catalog)
{
	const struct generation_parts parts = {
		.dev = sv->dev, .arena = sv->arena, .stats = &sv->stats, .tenants = &sv->tenants};

	return generation_new(generation, catalog, &parts);
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
	TAILQ_INIT(&sv->dirty);
	TAILQ_INIT(&sv->ended);
	TAILQ_INIT(&sv->watched);
	r = warden_init(&sv->warden, event, watch_look, sv);
	if (r < 0)
		return r;
	r = rnic_arena_new(&sv->arena, catalog->arena);
	if (r < 0)
		return log_errno(r, "cannot make an arena of %" PRIu64 " bytes", catalog->arena);
	r = bind_all(sv, catalog);
	if (r == 0)
		r = open_device(sv, catalog);
	if (r == 0)
		r = try_device(sv);
	if (r == 0)
		r = cq_pool_init(&sv->cq_pool, sv->dev, sv->arena);
	if (r == 0)
		r = attach(sv);
	if (r == 0)
		r = pace_init(&sv->pacer, sv->event, rounds_count, sv);
	if (r == 0)
		r = new_generation(sv, &sv->generation, steal_ptr(&mine));
	if (r == 0)
		r = generation_check_room(sv->generation, room(sv));
	/* The last: whoever is heard is served */
	if (r == 0)
		r = rnic_cm_listen(sv->cm);
	if (r < 0)
		return r;
	generation_limit(sv->generation, clock_us());
	*out = steal_ptr(&sv);
	return 0;
}

void server_free(struct server *sv)
{
	struct session *s, *next;

	HASH_ITER (by_id, sv->by_id, s, next)
		door_end(sv, s, REDDN_WIRE_END_SHUTDOWN, "the daemon stops");
	if (sv->dev)
		rounds_reap(sv);
	pace_deinit(&sv->pacer);
	rounds_detach(sv);
	sd_event_source_disable_unref(sv->cm_source);
	if (sv->cm)
		rnic_cm_free(sv->cm);
	cq_pool_deinit(&sv->cq_pool);
	if (sv->generation)
		generation_unref(sv->generation);
	offload_stats_free(&sv->stats);
	master_qp_deinit(&sv->master);
	if (sv->dev)
		rnic_device_close(sv->dev);
	if (sv->arena)
		rnic_arena_free(sv->arena);
	warden_deinit(&sv->warden);
	sd_event_unref(sv->event);
	free(sv);
}

/* ---- reload
 * -------------------------------------------------------------------------------------------------- */

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
	CLEANUP(generation_unrefp) struct generation *next = NULL;
	struct session *s, *other;
	char words[100];
	int r;

	r = check_fixed(sv->generation->catalog, catalog);
	if (r == 0)
		r = new_generation(sv, &next, steal_ptr(&mine));
	if (r == 0)
		r = generation_check_room(next, rnic_arena_size(sv->arena));
	if (r < 0)
		return r;
	generation_unref(sv->generation);
	sv->generation = steal_ptr(&next);
	generation_limit(sv->generation, clock_us());
	pace_all(sv, NULL);
	HASH_ITER (by_id, sv->by_id, s, other)
		upkeep_changed(sv, s);
	sv->reloads++;
	snprintf(words, sizeof(words), "%u regions, %u offloads; sessions go on as they began",
		catalog->nregions, catalog->noffloads);
	warden_reloaded(&sv->warden, words);
	return 0;
}

/* ---- what is going on
 * ---------------------------------------------------------------------------------------- */

void server_status(struct server *sv, struct server_status *status)
{
	rounds_count_all(sv);
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

const struct generation *server_generation(struct server *sv)
{
	rounds_count_all(sv);
	return sv->generation;
}

void server_each_session(
	struct server *sv, void (*fn)(void *arg, const struct server_session *session), void *arg)
{
	struct session *s, *next;
	uint64_t now = clock_us();

	rounds_count_all(sv);
	HASH_ITER (by_id, sv->by_id, s, next) {
		const struct server_session info = {
			.id = s->id,
			.peer = rnic_conn_peer(s->client.conn),
			.tenant = s->tenant->name,
			.offload = s->offload->conf->name,
			.current = s->offload->generation == sv->generation,
			.depth = s->queues.env.slot_count,
			.instances = s->queues.layout.slots,
			.queue_bytes = s->queues.layout.size,
			.age_us = now - s->since,
			.requests = s->progress.done,
			.rate = s->limits.rate.per_second,
			.burst = s->limits.rate.burst,
			.bytes_rate = s->limits.bytes.per_second,
			.recycled = s->queues.layout.recycled,
			.hits = s->counters.hits,
			.misses = s->counters.misses,
			.wqes = s->progress.done * s->offload->outcome.wqes +
				loop_size_wqes(s->offload->program, s->counters.iterations),
			.iterations = s->counters.iterations,
			.bytes_in = s->progress.done * s->offload->img->arg_len,
			.bytes_out = s->counters.bytes_out,
			.verdicts = s->counters.verdicts,
		};

		fn(arg, &info);
	}
}

const struct tenant *server_tenants(struct server *sv)
{
	rounds_count_all(sv);
	return sv->tenants;
}

int server_limit_session(struct server *sv, uint64_t id, const struct server_limit *limit)
{
	struct session *s = server_find(sv, id);

	if (!s)
		return -ENOENT;
	upkeep_limit(sv, s, limit);
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
	if (limit->says_rate) {
		limits.rate = limit->rate;
		limits.burst = limit->burst;
	}
	if (limit->says_bytes)
		limits.bytes_rate = limit->bytes_rate;
	tenant_limit(t, &limits, clock_us());
	pace_all(sv, t);
	return 0;
}

int server_kick(struct server *sv, uint64_t id)
{
	struct session *s = server_find(sv, id);

	if (!s)
		return -ENOENT;
	door_end(sv, s, REDDN_WIRE_END_OPERATOR, "the administrator ended it");
	rounds_reap(sv);
	return 0;
}

struct warden *server_warden(struct server *sv)
{
	return &sv->warden;
}
