/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/commands.h"

#include "protocol/redis-slots.h"
#include "reddnd/generation/tenant.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/program/program.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/json.h"

#include <errno.h>
#include <stdio.h>

static const char *device_state(const struct stats_device *d)
{
	if (*d->left_out)
		return "left out";
	return d->lost ? "lost" : "serving";
}

static struct json_object *device_json(const struct stats_device *d)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "device", d->name);
	json_add_text(o, "state", device_state(d));
	json_add_text(o, "left_out", d->left_out);
	json_add_text(o, "no_chains", d->no_chains);
	json_add_count(o, "sessions", d->sessions);
	json_add_count(o, "arena_used", d->arena_used);
	json_add_count(o, "arena_size", d->arena_size);
	return o;
}

/* Their names, for people, and each with what it has */
static void add_devices(struct json_object *o, const struct stats *st)
{
	struct json_object *list = json_object_new_array();
	char names[CATALOG_DEVICES_MAX * (CATALOG_DEVICE_BYTES + 16)];
	size_t n = 0;

	for (unsigned i = 0; i < st->ndevices; i++) {
		const struct stats_device *d = &st->devices[i];

		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s%s", i ? ", " : "", d->name,
			*d->left_out ? " (left out)"
			: d->lost    ? " (lost)"
				     : "");
		json_object_array_add(list, device_json(d));
	}
	json_add_text(o, "device", names);
	json_object_object_add(o, "devices", list);
}

struct json_object *state_status(const struct stats *st)
{
	struct json_object *o = json_object_new_object();
	const struct stats_status *s = &st->status;

	json_add_text(o, "version", REDDND_VERSION);
	add_devices(o, st);
	json_add_count(o, "uptime_us", s->uptime_us);
	json_add_count(o, "cpu_us", clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000);
	json_add_count(o, "sessions", s->sessions);
	json_add_count(o, "sessions_total", s->sessions_total);
	json_add_count(o, "refused", s->counts.refused);
	json_add_count(o, "unlisted", s->counts.unlisted);
	json_add_count(o, "requests", s->counts.requests);
	json_add_count(o, "failed_sessions", s->counts.failed);
	json_add_count(o, "reloads", s->counts.reloads);
	json_add_text(o, "configuration_refused", s->configuration_refused);
	json_add_count(o, "disabled", s->disabled);
	json_add_count(o, "moved_files", s->moved);
	json_add_count(o, "unfinished_moves", s->unfinished);
	json_add_count(o, "arena_used", s->arena_used);
	json_add_count(o, "arena_size", s->arena_size);
	return o;
}

static struct json_object *verdicts_json(const uint64_t *counts)
{
	struct json_object *o = json_object_new_object();

	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		json_add_count(o, verdict_kind_name(k), counts[k]);
	return o;
}

static uint64_t sum_verdicts(const uint64_t *counts)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		sum += counts[k];
	return sum;
}

/* The buckets that are not empty */
static struct json_object *service_json(const struct service_times *t)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < SERVICE_BUCKETS; i++) {
		struct json_object *o;

		if (!t->count[i])
			continue;
		o = json_object_new_object();
		json_add_count(o, "to_ns", service_times_top(i));
		json_add_count(o, "requests", t->count[i]);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *session_json(const struct stats_session *s)
{
	struct json_object *o = json_object_new_object();

	json_add_count(o, "session", s->id);
	json_add_text(o, "peer", s->peer);
	json_add_text(o, "device", s->device);
	json_add_text(o, "tenant", s->tenant);
	json_add_text(o, "offload", s->offload);
	json_object_object_add(o, "current", json_object_new_boolean(s->current));
	json_add_text(o, "note", s->note);
	json_add_count(o, "connections", s->connections);
	json_add_count(o, "depth", s->depth);
	json_add_count(o, "instances", s->instances);
	json_add_count(o, "queue_bytes", s->queue_bytes);
	json_add_count(o, "age_us", s->age_us);
	json_add_count(o, "requests", s->requests);
	json_add_count(o, "rate", s->rate);
	json_add_count(o, "burst", s->rate ? s->burst : 0);
	json_add_count(o, "bytes_rate", s->bytes_rate);
	json_add_count(o, "hits", s->hits);
	json_add_count(o, "misses", s->misses);
	json_add_count(o, "unseen", s->unseen);
	json_add_count(o, "wqes", s->wqes);
	json_add_count(o, "iterations", s->iterations);
	json_add_count(o, "bytes_in", s->bytes_in);
	json_add_count(o, "bytes_out", s->bytes_out);
	json_add_count(o, "verdicts", sum_verdicts(s->verdicts));
	json_object_object_add(o, "verdicts_by_kind", verdicts_json(s->verdicts));
	json_object_object_add(o, "service", service_json(&s->service));
	return o;
}

static struct json_object *args_json(const struct program *p)
{
	static const char *const kinds[] = {
		[PROGRAM_NUMBER] = "number", [PROGRAM_STRING] = "bytes", [PROGRAM_WINDOW] = "offset"};
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < p->nargs; i++) {
		struct json_object *o = json_object_new_object();

		json_add_text(o, "name", p->args[i].name);
		json_add_text(o, "kind", kinds[p->args[i].kind]);
		json_add_count(o, "bytes", p->args[i].bytes);
		json_object_array_add(list, o);
	}
	return list;
}

static void add_counters(struct json_object *o, const struct offload *f)
{
	const struct offload_stats *t = f->stats;

	json_add_count(o, "sessions", t->sessions);
	json_add_count(o, "failed_sessions", t->failed);
	json_add_count(o, "requests", t->requests);
	json_add_count(o, "hits", t->hits);
	json_add_count(o, "misses", t->misses);
	json_add_count(o, "unseen", t->unseen);
	if (f->img->publish.there)
		json_add_count(o, "conflicts", t->conflicts);
	json_add_count(o, "wqes", t->wqes);
	json_add_count(o, "iterations", t->iterations);
	json_add_count(o, "bytes_in", t->bytes_in);
	json_add_count(o, "bytes_out", t->bytes_out);
	json_object_object_add(o, "verdicts", verdicts_json(t->verdicts));
	json_object_object_add(o, "service", service_json(&t->service));
}

static struct json_object *offload_json(const struct stats_offload *s)
{
	struct json_object *o = json_object_new_object();
	const struct offload *f = s->of;

	json_add_text(o, "offload", f->conf->name);
	json_add_text(o, "program", f->program->name);
	json_add_text(o, "shape", program_shape_name(f->program->shape));
	json_add_text(o, "file", f->conf->path);
	json_add_text(o, "mode", f->recycled ? "recycled" : "unrolled");
	json_add_text(o, "engine", f->cpu ? "cpu" : "nic");
	json_add_text(o, "state", *s->disabled ? "disabled" : "serving");
	json_add_text(o, "device", s->device);
	json_add_text(o, "why", *s->disabled ? s->disabled : f->reason);
	json_object_object_add(o, "args", args_json(f->program));
	json_add_count(o, "depth_max", f->conf->depth_max);
	json_add_count(o, "request_bytes", f->img->arg_len);
	json_add_count(o, "reply_bytes", f->outcome.longest);
	json_add_count(o, "copies", f->img->n_copy);
	json_add_count(o, "atomics", f->img->n_atomic);
	json_add_count(o, "waits_enables", f->img->n_sync);
	json_add_count(o, "wqes_per_request", f->outcome.wqes);
	add_counters(o, f);
	json_add_text(o, "where", f->conf->where);
	return o;
}

static void add_region_why(struct json_object *o, const struct stats_region *r)
{
	CLEANUP(cleanup_free) char *text = NULL;
	const char *why = r->bad;

	if (!*why && r->numbers.full)
		why = "full: there was no room for a new key";
	if (!*why && r->cache.dead_us)
		why = "memcached has ended; its items are served on";
	if (!*why && r->of->moved)
		why = r->of->moved == -ESTALE ? "file replaced: the one before is served until a reload"
					      : "file removed: it is served until a reload";
	if (r->of->unfinished &&
		asprintf(&text, "unfinished move: reddn-table repair %s", r->of->conf->path) < 0)
		text = NULL;
	json_add_text(o, "why", text ? text : why);
}

static void add_memcached(struct json_object *o, const struct stats_region *r)
{
	const struct memcached_state *m = &r->cache;

	json_add_text(o, "server", r->of->conf->server);
	json_object_object_add(o, "proved", json_object_new_boolean(m->proved));
	if (!*m->proof.version)
		return;
	json_add_text(o, "version", m->proof.version);
	json_add_count(o, "pid", m->proof.pid);
	json_add_text(o, "hash", cache_hash_name(m->proof.hash));
	json_add_count(o, "power", m->power);
	json_add_count(o, "items", m->items);
	json_add_count(o, "dead_us", m->dead_us ? clock_us() - m->dead_us : 0);
}

/* How new a table is that follows a source */
static void add_as_of(struct json_object *o, const struct reddn_table_live *live)
{
	if (!(live->state & REDDN_TABLE_FOLLOWS))
		return;
	json_add_text(o, "source", live->state & REDDN_TABLE_COMPLETE ? "complete" : "incomplete");
	json_add_count(o, "source_epoch", live->state >> REDDN_TABLE_EPOCH);
	json_add_count(o, "slot", redis_slots_first(live->slots));
	json_add_count(o, "slots", redis_slots_count(live->slots));
	if (!live->as_of_host)
		return;
	json_add_count(o, "as_of_source", live->as_of_source);
	json_add_count(o, "age_us", (uint64_t)(clock_age_s(live->as_of_host) * 1e6));
}

static struct json_object *extents_json(const struct store_extents *e)
{
	struct json_object *o = json_object_new_object();

	json_add_count(o, "bytes", e->bytes);
	json_add_count(o, "free", e->free);
	json_add_count(o, "held", e->held);
	json_add_count(o, "used", e->used);
	json_add_count(o, "resting", e->resting);
	return o;
}

static void add_store(struct json_object *o, const struct store_numbers *n)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < n->classes; i++)
		json_object_array_add(list, extents_json(&n->extents[i]));
	json_object_object_add(o, "full", json_object_new_boolean(n->full));
	json_add_count(o, "deleted", n->tombstones);
	json_add_count(o, "fresh", n->fresh);
	json_add_count(o, "moves", n->moves);
	json_add_count(o, "evicted", n->evicted);
	json_add_count(o, "expired", n->expired);
	json_add_count(o, "contradictions", n->contradictions);
	json_add_count(o, "chunks", n->chunks);
	json_add_count(o, "chunks_free", n->chunks_free);
	json_object_object_add(o, "extents", list);
}

static const char *kind_of(const struct catalog_region *r)
{
	return r->raw ? "raw" : r->memcached ? "memcached" : r->store ? "store" : "table";
}

static struct json_object *region_json(const struct stats_region *s)
{
	struct json_object *o = json_object_new_object();
	const struct region *r = s->of;
	const struct catalog_region *conf = r->conf;
	const struct table_geometry *g = &r->table.geometry;

	json_add_text(o, "region", conf->name);
	json_add_text(o, "kind", kind_of(conf));
	json_add_text(o, "path", conf->path);
	json_add_count(o, "bytes", region_size(r));
	json_add_text(o, "state", *s->bad ? "bad" : "serving");
	add_region_why(o, s);
	json_object_object_add(o, "moved", json_object_new_boolean(r->moved != 0));
	if (conf->memcached) {
		add_memcached(o, s);
	} else if (conf->raw) {
		json_object_object_add(o, "writable", json_object_new_boolean(conf->writable));
		json_add_count(o, "offset", conf->offset);
	} else {
		json_object_object_add(o, "unfinished_move", json_object_new_boolean(r->unfinished));
		json_add_count(o, "buckets", g->buckets);
		json_add_count(o, "heap_bytes", g->heap_size);
		json_add_count(o, "max_key", g->max_key);
		json_add_count(o, "max_value", g->max_value);
		if (s->alive)
			json_add_count(o, "entries", s->live.entries);
		if (s->alive && !conf->store)
			add_as_of(o, &s->live);
		if (conf->store)
			add_store(o, &s->numbers);
	}
	json_add_text(o, "where", conf->where);
	return o;
}

static struct json_object *tenant_json(const struct tenant *t)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "tenant", t->name);
	json_add_count(o, "sessions", t->sessions);
	json_add_count(o, "sessions_max", t->limits.sessions);
	json_add_count(o, "depth", t->depth);
	json_add_count(o, "depth_max", t->limits.depth);
	json_add_count(o, "queue_bytes", t->queue_bytes);
	json_add_count(o, "queue_bytes_max", t->limits.queue_bytes);
	json_add_count(o, "slot_bytes", t->slot_bytes);
	json_add_count(o, "slot_bytes_max", t->limits.slot_bytes);
	json_add_count(o, "extent_bytes", t->extent_bytes);
	json_add_count(o, "extent_bytes_max", t->limits.extent_bytes);
	json_add_count(o, "rate", t->limits.rate);
	json_add_count(o, "burst", t->limits.burst);
	json_add_count(o, "session_rate", t->limits.session_rate);
	json_add_count(o, "session_burst", t->limits.session_burst);
	json_add_count(o, "bytes_rate", t->limits.bytes_rate);
	json_add_count(o, "session_bytes_rate", t->limits.session_bytes_rate);
	json_add_count(o, "connect_rate", t->limits.connect_rate);
	json_add_count(o, "connect_burst", t->limits.connect_burst);
	json_add_count(o, "idle_timeout_us", t->limits.idle_timeout);
	json_add_count(o, "accepted", t->accepted);
	json_add_count(o, "refused", t->refused);
	json_add_count(o, "failed_sessions", t->failed);
	json_add_count(o, "requests", t->requests);
	json_object_object_add(o, "service", service_json(&t->service));
	return o;
}

/* ---- answers ---- */

struct json_object *state_sessions(const struct stats *st)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < st->nsessions; i++)
		json_object_array_add(list, session_json(&st->sessions[i]));
	return list;
}

struct json_object *state_offloads(const struct stats *st)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < st->noffloads; i++)
		json_object_array_add(list, offload_json(&st->offloads[i]));
	return list;
}

struct json_object *state_regions(const struct stats *st)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < st->nregions; i++)
		json_object_array_add(list, region_json(&st->regions[i]));
	return list;
}

struct json_object *state_tenants(const struct stats *st)
{
	struct json_object *list = json_object_new_array();

	for (const struct tenant *t = st->tenants; t; t = t->hh.next)
		json_object_array_add(list, tenant_json(t));
	return list;
}
