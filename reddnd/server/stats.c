/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/stats.h"

#include "reddnd/generation/generation.h"
#include "reddnd/program/program.h"
#include "reddnd/server/devices.h"
#include "reddnd/session/count.h"
#include "reddnd/session/foreign.h"
#include "reddnd/session/session.h"
#include "util/cleanup.h"

#include <string.h>

DEFINE_CLEANUP(struct stats *, stats_free)

static void add_connection(struct stats_session *to, const struct session *s)
{
	const struct offload *o = s->offload;

	to->connections++;
	to->depth += s->queues.env.slot_count;
	to->instances += s->queues.layout.slots;
	to->queue_bytes += s->charge.queue_bytes;
	to->requests += s->progress.done;
	to->unseen += s->counters.unseen;
	to->hits += s->counters.hits;
	to->misses += s->counters.misses;
	to->wqes +=
		s->progress.done * o->outcome.wqes + program_loop_wqes(o->program, s->counters.iterations);
	to->iterations += s->counters.iterations;
	to->bytes_in += s->progress.done * o->img->arg_len + s->counters.payload;
	to->bytes_out += s->counters.bytes_out;
	for (unsigned i = 0; i < VERDICT_KINDS; i++)
		to->verdicts[i] += s->counters.verdicts[i];
	service_times_merge(&to->service, &s->counters.service);
}

static struct stats_session session_stats(
	const struct session *s, const char *device, const struct stats_source *source)
{
	const struct offload *o = s->offload;
	struct stats_session out = {
		.id = session_number(s),
		.device = device,
		.peer = s->client.peer,
		.tenant = s->tenant->name,
		.offload = o->conf->name,
		.current = o->generation == source->generation,
		.note = s->foreign ? s->foreign->why : "",
		.age_us = source->now_us - s->since,
		.rate = s->limits.rate.per_second,
		.burst = s->limits.rate.burst,
		.bytes_rate = s->limits.bytes.per_second,
	};

	SESSION_CONNECTIONS(s, s)
	add_connection(&out, s);
	return out;
}

static struct stats_region region_stats(struct region *r)
{
	struct stats_region out = {.of = r};

	region_is_bad(r, out.bad);
	if (r->memcached)
		memcached_state(r->memcached, &out.cache);
	if (!r->conf->memcached && !r->conf->raw)
		out.alive = region_live(r, &out.live);
	if (r->store)
		held_store_numbers(r->store, &out.numbers);
	return out;
}

/* Room for all of it; at least one element each, so that NULL means that there is no memory */
static bool allocate(struct stats *st, const struct stats_source *source)
{
	unsigned sessions = 0;

	for (unsigned k = 0; k < source->generation->served->n; k++)
		sessions += HASH_CNT(by_id, source->sessions[k]);
	st->sessions = calloc(sessions + 1, sizeof(*st->sessions));
	st->offloads = calloc(source->generation->catalog->noffloads + 1, sizeof(*st->offloads));
	st->regions = calloc(source->generation->catalog->nregions + 1, sizeof(*st->regions));
	return st->sessions && st->offloads && st->regions;
}

/* Offload @i of the first device where clients cannot have it, though they should, or else the CPU executes
 * it, or else it is unrolled, or else of any that is not lost; *@device: its name, "" if it is no worse than
 * others */
static const struct offload *worst(const struct generation *g, unsigned i, const char **device)
{
	const struct offload *found = NULL;
	unsigned most = 0, at = 0, seen = 0;

	for (unsigned k = 0; k < g->served->n; k++) {
		const struct offload *o = &generation_offloads(g, k)[i];
		unsigned bad;

		if (g->lost[k] || (o->elsewhere && !g->lost[0]))
			continue;
		bad = offload_is_disabled(o, NULL) ? 3 : o->cpu ? 2 : !o->recycled;
		seen |= 1u << bad;
		if (found && bad <= most)
			continue;
		found = o;
		most = bad;
		at = k;
	}
	*device = seen & (seen - 1) ? rnic_device_name(g->served->device[at].dev) : "";
	return found;
}

static struct stats_device device_stats(const struct generation *g, unsigned device)
{
	const struct served_device *on = &g->served->device[device];

	return (struct stats_device){
		.name = rnic_device_name(on->dev),
		.no_chains = rnic_device_caps(on->dev)->no_chains,
		.left_out = "",
		.lost = rnic_device_is_lost(on->dev),
		.arena_used = rnic_arena_used(on->arena),
		.arena_size = rnic_arena_size(on->arena),
	};
}

static void add_sessions(struct stats *st, const struct stats_source *source, unsigned device)
{
	for (const struct session *s = source->sessions[device]; s; s = s->by_id.next)
		if (session_is_first(s))
			st->sessions[st->nsessions++] = session_stats(s, st->devices[device].name, source);
}

static void add_device(struct stats *st, const struct stats_source *source, unsigned device)
{
	struct stats_device *d = &st->devices[st->ndevices++];

	*d = device_stats(source->generation, device);
	d->sessions = source->nsessions[device];
	st->status.sessions += d->sessions;
	st->status.arena_used += d->arena_used;
	st->status.arena_size += d->arena_size;
}

static int by_id(const void *a, const void *b)
{
	const struct stats_session *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

void stats_overview(struct stats *st, const struct stats_source *source)
{
	*st = (struct stats){.status = source->status};
	for (unsigned k = 0; k < source->generation->served->n; k++)
		add_device(st, source, k);
	for (unsigned k = 0; k < source->nleft_out; k++)
		st->devices[st->ndevices++] = (struct stats_device){.name = source->left_out[k].name,
			.no_chains = "",
			.left_out = source->left_out[k].why};
}

struct stats *stats_new(const struct stats_source *source)
{
	CLEANUP(stats_freep) struct stats *st = calloc(1, sizeof(*st));
	const struct generation *g = source->generation;

	if (!st)
		return NULL;
	stats_overview(st, source);
	if (!allocate(st, source))
		return NULL;
	for (unsigned k = 0; k < g->served->n; k++)
		add_sessions(st, source, k);
	qsort(st->sessions, st->nsessions, sizeof(*st->sessions), by_id);
	for (; st->noffloads < g->catalog->noffloads; st->noffloads++) {
		struct stats_offload *to = &st->offloads[st->noffloads];

		to->of = worst(g, st->noffloads, &to->device);
		offload_is_disabled(to->of, to->disabled);
	}
	for (; st->nregions < g->catalog->nregions; st->nregions++)
		st->regions[st->nregions] = region_stats(g->regions[st->nregions]);
	st->tenants = source->tenants;
	return steal_ptr(&st);
}

void stats_free(struct stats *st)
{
	free(st->sessions);
	free(st->offloads);
	free(st->regions);
	free(st);
}
