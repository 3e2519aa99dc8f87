/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/commands.h"

#include "reddnd/generation/tenant.h"
#include "reddnd/policy/offload-stats.h"
#include "util/array.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void family(FILE *f, const char *name, const char *type, const char *unit, const char *help)
{
	fprintf(f, "# TYPE %s %s\n", name, type);
	if (*unit)
		fprintf(f, "# UNIT %s %s\n", name, unit);
	fprintf(f, "# HELP %s %s\n", name, help);
}

/* Counters of offloads. Names are letters, digits, '.', '_' and '-': there is nothing to escape. */
static const struct {
	const char *name, *unit, *help;
	size_t at;
} counters[] = {
	{"reddnd_requests", "", "Requests answered, as far as the daemon has counted them.",
		offsetof(struct offload_stats, requests)},
	{"reddnd_hits", "", "Requests that a conditional WRITE answered.",
		offsetof(struct offload_stats, hits)},
	{"reddnd_misses", "", "Requests that no conditional WRITE answered, though there is one.",
		offsetof(struct offload_stats, misses)},
	{"reddnd_unseen_requests", "",
		"Requests of recycled offloads that are not in hits, misses and bytes of replies.",
		offsetof(struct offload_stats, unseen)},
	{"reddnd_wqes", "", "Work requests of chains and loops that were executed, NOPs included.",
		offsetof(struct offload_stats, wqes)},
	{"reddnd_loop_iterations", "",
		"Iterations of loops without a bound, half a lap of their ring at a time.",
		offsetof(struct offload_stats, iterations)},
	{"reddnd_request_bytes", "bytes", "Bytes of requests.", offsetof(struct offload_stats, bytes_in)},
	{"reddnd_reply_bytes", "bytes", "Bytes of replies to clients.",
		offsetof(struct offload_stats, bytes_out)},
	{"reddnd_failed_sessions", "", "Sessions that the daemon ended because of an error or a broken rule.",
		offsetof(struct offload_stats, failed)},
};

static uint64_t value_at(const void *stats, size_t at)
{
	return *(const uint64_t *)((const char *)stats + at);
}

static const char *name_of(const struct stats_offload *o)
{
	return o->of->conf->name;
}

/* Buckets that end at powers of two, which are ends of the daemon's: from 1.024 us to 1.07 s */
static void service_times(FILE *f, const struct stats_offload *o)
{
	enum { FIRST = 10, LAST = 30 };
	const struct service_times *service = &o->of->stats->service;
	uint64_t n = 0;
	unsigned power = FIRST;

	for (unsigned i = 0; i < SERVICE_BUCKETS; i++) {
		n += service->count[i];
		if (power <= LAST && service_times_top(i) == (UINT64_C(1) << power) - 1)
			fprintf(f, "reddnd_service_seconds_bucket{offload=\"%s\",le=\"%.10g\"} %" PRIu64 "\n",
				name_of(o), (double)(UINT64_C(1) << power++) * 1e-9, n);
	}
	fprintf(f, "reddnd_service_seconds_bucket{offload=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name_of(o), n);
	fprintf(f, "reddnd_service_seconds_count{offload=\"%s\"} %" PRIu64 "\n", name_of(o), n);
	fprintf(f, "reddnd_service_seconds_sum{offload=\"%s\"} %.9f\n", name_of(o),
		(double)service->sum_ns * 1e-9);
}

static void by_offload(FILE *f, const struct stats *st)
{
	const struct stats_offload *all = st->offloads;

	for (size_t c = 0; c < COUNT(counters); c++) {
		family(f, counters[c].name, "counter", counters[c].unit, counters[c].help);
		for (unsigned i = 0; i < st->noffloads; i++)
			fprintf(f, "%s_total{offload=\"%s\"} %" PRIu64 "\n", counters[c].name,
				name_of(&all[i]), value_at(all[i].of->stats, counters[c].at));
	}
	family(f, "reddnd_service_seconds", "histogram", "seconds",
		"From the arrival of a request to the acknowledgement of its reply; of recycled offloads, of "
		"those that the daemon has seen.");
	for (unsigned i = 0; i < st->noffloads; i++)
		service_times(f, &all[i]);
	family(f, "reddnd_verdicts", "counter", "", "What was wrong with sessions.");
	for (unsigned i = 0; i < st->noffloads; i++)
		for (unsigned k = 0; k < VERDICT_KINDS; k++)
			fprintf(f, "reddnd_verdicts_total{offload=\"%s\",verdict=\"%s\"} %" PRIu64 "\n",
				name_of(&all[i]), verdict_kind_name(k), all[i].of->stats->verdicts[k]);
	family(f, "reddnd_engine", "gauge", "", "1: what executes the offload.");
	for (unsigned i = 0; i < st->noffloads; i++)
		fprintf(f, "reddnd_engine{offload=\"%s\",engine=\"%s\"} 1\n", name_of(&all[i]),
			all[i].of->cpu ? "cpu" : "nic");
	family(f, "reddnd_mode", "gauge", "",
		"1: who arms chains of the offload again, recycled: the NIC; of offloads that the NIC "
		"executes.");
	for (unsigned i = 0; i < st->noffloads; i++)
		if (!all[i].of->cpu)
			fprintf(f, "reddnd_mode{offload=\"%s\",mode=\"%s\"} 1\n", name_of(&all[i]),
				all[i].of->recycled ? "recycled" : "unrolled");
	family(f, "reddnd_sessions", "gauge", "", "Clients connected.");
	for (unsigned i = 0; i < st->noffloads; i++)
		fprintf(f, "reddnd_sessions{offload=\"%s\"} %u\n", name_of(&all[i]),
			all[i].of->stats->sessions);
}

static const struct {
	const char *name, *unit, *help;
	size_t at;
} tenant_counters[] = {
	{"reddnd_tenant_requests", "", "Requests of clients of the tenant.",
		offsetof(struct tenant, requests)},
	{"reddnd_tenant_accepted_sessions", "", "Clients of the tenant that were accepted.",
		offsetof(struct tenant, accepted)},
	{"reddnd_tenant_refused_sessions", "", "Clients of the tenant that were refused.",
		offsetof(struct tenant, refused)},
	{"reddnd_tenant_failed_sessions", "",
		"Sessions of the tenant that ended because of an error or a broken rule.",
		offsetof(struct tenant, failed)},
};

/* What a tenant uses of something, and its quota. Its address and key are not shown here. */
enum { SESSIONS, DEPTH, QUEUE_BYTES, SLOT_BYTES, EXTENT_BYTES, USES };

static const struct {
	const char *name, *unit, *help;
} uses[USES] = {
	[SESSIONS] = {"sessions", "", "Clients of the tenant connected."},
	[DEPTH] = {"depth", "", "Requests that clients of the tenant may have outstanding."},
	[QUEUE_BYTES] = {"queue_bytes", "bytes", "Memory for queues of the tenant."},
	[SLOT_BYTES] = {"slot_bytes", "bytes",
		"Memory that clients of the tenant have registered for replies."},
	[EXTENT_BYTES] = {"extent_bytes", "bytes",
		"Memory of stores that sessions of the tenant hold for what their clients put."},
};

static uint64_t used(const struct tenant *t, unsigned use)
{
	return (const uint64_t[USES]){
		t->sessions, t->depth, t->queue_bytes, t->slot_bytes, t->extent_bytes}[use];
}

/* 0: none */
static uint64_t quota(const struct tenant *t, unsigned use)
{
	const struct catalog_limits *l = &t->limits;

	return (const uint64_t[USES]){
		l->sessions, l->depth, l->queue_bytes, l->slot_bytes, l->extent_bytes}[use];
}

static void tenant_use(FILE *f, const struct stats *st, unsigned use)
{
	char name[64];

	snprintf(name, sizeof(name), "reddnd_tenant_%s", uses[use].name);
	family(f, name, "gauge", uses[use].unit, uses[use].help);
	for (const struct tenant *t = st->tenants; t; t = t->hh.next)
		fprintf(f, "%s{tenant=\"%s\"} %" PRIu64 "\n", name, t->name, used(t, use));
	snprintf(name, sizeof(name), "reddnd_tenant_quota_%s", uses[use].name);
	family(f, name, "gauge", uses[use].unit, "The most that is allowed; of tenants with such a limit.");
	for (const struct tenant *t = st->tenants; t; t = t->hh.next)
		if (quota(t, use))
			fprintf(f, "%s{tenant=\"%s\"} %" PRIu64 "\n", name, t->name, quota(t, use));
}

static void by_tenant(FILE *f, const struct stats *st)
{
	for (size_t c = 0; c < COUNT(tenant_counters); c++) {
		family(f, tenant_counters[c].name, "counter", tenant_counters[c].unit,
			tenant_counters[c].help);
		for (const struct tenant *t = st->tenants; t; t = t->hh.next)
			fprintf(f, "%s_total{tenant=\"%s\"} %" PRIu64 "\n", tenant_counters[c].name, t->name,
				value_at(t, tenant_counters[c].at));
	}
	for (unsigned use = 0; use < USES; use++)
		tenant_use(f, st, use);
}

static void by_table(FILE *f, const struct stats *st)
{
	const struct stats_region *all = st->regions;

	family(f, "reddnd_region_entries", "gauge", "", "Entries of the table of the region.");
	for (unsigned i = 0; i < st->nregions; i++)
		if (all[i].alive)
			fprintf(f, "reddnd_region_entries{region=\"%s\"} %" PRIu64 "\n",
				all[i].of->conf->name, all[i].live.entries);
	family(f, "reddnd_region_as_of_seconds", "gauge", "seconds",
		"As of when the table has all changes of the source that it follows, since 1970.");
	for (unsigned i = 0; i < st->nregions; i++)
		if (all[i].alive && (all[i].live.state & REDDN_TABLE_FOLLOWS) && all[i].live.as_of_host)
			fprintf(f, "reddnd_region_as_of_seconds{region=\"%s\"} %.6f\n", all[i].of->conf->name,
				(double)all[i].live.as_of_host / 1e9);
	family(f, "reddnd_region_complete", "gauge", "",
		"1 if the table has all keys of the source that it follows.");
	for (unsigned i = 0; i < st->nregions; i++)
		if (all[i].alive && (all[i].live.state & REDDN_TABLE_FOLLOWS))
			fprintf(f, "reddnd_region_complete{region=\"%s\"} %d\n", all[i].of->conf->name,
				(all[i].live.state & REDDN_TABLE_COMPLETE) != 0);
}

/* Of regions that are stores and can be served */
static bool has_numbers(const struct stats_region *r)
{
	return r->of->conf->store && !*r->bad;
}

static const struct {
	const char *name, *type, *help;
	struct {
		const char *state; /* NULL: there is one number alone */
		size_t at;
	} numbers[3];
} store_numbers_of[] = {
	{"reddnd_store_buckets", "gauge",
		"Buckets of the store: with a record, of a deleted one, of none yet.",
		{{"used", offsetof(struct store_numbers, entries)},
			{"deleted", offsetof(struct store_numbers, tombstones)},
			{"fresh", offsetof(struct store_numbers, fresh)}}},
	{"reddnd_store_moves", "counter", "Entries that were moved to their other bucket.",
		{{NULL, offsetof(struct store_numbers, moves)}}},
	{"reddnd_store_contradictions", "counter",
		"Outcomes of requests that contradict what the store has: a fault of the daemon or the "
		"device.",
		{{NULL, offsetof(struct store_numbers, contradictions)}}},
	{"reddnd_store_chunks", "gauge",
		"Chunks of the heap of the store, and those of them without an extent.",
		{{"all", offsetof(struct store_numbers, chunks)},
			{"free", offsetof(struct store_numbers, chunks_free)}}},
};

static void store_number(FILE *f, const struct stats *st, size_t of)
{
	const char *const name = store_numbers_of[of].name, *const total = strcmp(store_numbers_of[of].type,
										   "counter") == 0
										   ? "_total"
										   : "";

	family(f, name, store_numbers_of[of].type, "", store_numbers_of[of].help);
	for (unsigned i = 0; i < st->nregions; i++)
		for (unsigned k = 0; has_numbers(&st->regions[i]) && k < COUNT(store_numbers_of[of].numbers);
			k++) {
			const char *state = store_numbers_of[of].numbers[k].state;
			uint64_t n = value_at(&st->regions[i].numbers, store_numbers_of[of].numbers[k].at);

			if (state)
				fprintf(f, "%s%s{region=\"%s\",state=\"%s\"} %" PRIu64 "\n", name, total,
					st->regions[i].of->conf->name, state, n);
			else if (k == 0)
				fprintf(f, "%s%s{region=\"%s\"} %" PRIu64 "\n", name, total,
					st->regions[i].of->conf->name, n);
		}
}

static void store_extents_of(FILE *f, const struct stats_region *r)
{
	for (unsigned i = 0; i < r->numbers.classes; i++) {
		const struct store_extents *e = &r->numbers.extents[i];
		const struct {
			const char *state;
			uint64_t n;
		} all[] = {{"free", e->free}, {"held", e->held}, {"used", e->used}, {"resting", e->resting}};

		for (size_t k = 0; k < COUNT(all); k++)
			fprintf(f,
				"reddnd_store_extents{region=\"%s\",bytes=\"%u\",state=\"%s\"} %" PRIu64 "\n",
				r->of->conf->name, e->bytes, all[k].state, all[k].n);
	}
}

static void by_store(FILE *f, const struct stats *st)
{
	for (size_t of = 0; of < COUNT(store_numbers_of); of++)
		store_number(f, st, of);
	family(f, "reddnd_store_extents", "gauge", "",
		"Extents of the store by size: free, held by sessions, used by entries, not free again yet.");
	for (unsigned i = 0; i < st->nregions; i++)
		if (has_numbers(&st->regions[i]))
			store_extents_of(f, &st->regions[i]);
	family(f, "reddnd_store_full", "gauge", "", "1 if there was no room for the last new key.");
	for (unsigned i = 0; i < st->nregions; i++)
		if (has_numbers(&st->regions[i]))
			fprintf(f, "reddnd_store_full{region=\"%s\"} %d\n", st->regions[i].of->conf->name,
				st->regions[i].numbers.full);
	family(f, "reddnd_conflicts", "counter", "",
		"Requests whose publish found that another client had replaced what they had read.");
	for (unsigned i = 0; i < st->noffloads; i++)
		if (st->offloads[i].of->img->publish.there)
			fprintf(f, "reddnd_conflicts_total{offload=\"%s\"} %" PRIu64 "\n",
				name_of(&st->offloads[i]), st->offloads[i].of->stats->conflicts);
}

static bool has_memcached(const struct stats *st)
{
	for (unsigned i = 0; i < st->nregions; i++)
		if (st->regions[i].of->conf->memcached)
			return true;
	return false;
}

static void by_memcached(FILE *f, const struct stats *st)
{
	const struct stats_region *all = st->regions;

	if (!has_memcached(st))
		return;
	family(f, "reddnd_memcached_up", "gauge", "",
		"1 if the memcached of the region runs, and is proved.");
	for (unsigned i = 0; i < st->nregions; i++)
		if (all[i].of->conf->memcached)
			fprintf(f, "reddnd_memcached_up{region=\"%s\"} %d\n", all[i].of->conf->name,
				all[i].cache.proved && !all[i].cache.dead_us && !*all[i].bad);
	family(f, "reddnd_memcached_items", "gauge", "", "Items that it had when it was last asked.");
	for (unsigned i = 0; i < st->nregions; i++)
		if (all[i].of->conf->memcached)
			fprintf(f, "reddnd_memcached_items{region=\"%s\"} %" PRIu64 "\n",
				all[i].of->conf->name, all[i].cache.items);
}

static void by_device(FILE *f, const struct stats *st)
{
	const struct stats_device *all = st->devices;

	family(f, "reddnd_device_up", "gauge", "",
		"1 unless the device is lost, or was left out when the daemon began.");
	for (unsigned i = 0; i < st->ndevices; i++)
		fprintf(f, "reddnd_device_up{device=\"%s\"} %d\n", all[i].name,
			!all[i].lost && !*all[i].left_out);
	family(f, "reddnd_device_sessions", "gauge", "", "Clients connected by the device.");
	for (unsigned i = 0; i < st->ndevices; i++)
		fprintf(f, "reddnd_device_sessions{device=\"%s\"} %u\n", all[i].name, all[i].sessions);
	family(f, "reddnd_arena_bytes", "gauge", "bytes", "Memory for queues.");
	for (unsigned i = 0; i < st->ndevices; i++) {
		fprintf(f, "reddnd_arena_bytes{device=\"%s\",state=\"used\"} %" PRIu64 "\n", all[i].name,
			all[i].arena_used);
		fprintf(f, "reddnd_arena_bytes{device=\"%s\",state=\"free\"} %" PRIu64 "\n", all[i].name,
			all[i].arena_size - all[i].arena_used);
	}
}

static void counter(FILE *f, const char *name, const char *help, uint64_t n)
{
	family(f, name, "counter", "", help);
	fprintf(f, "%s_total %" PRIu64 "\n", name, n);
}

static void whole(FILE *f, const struct stats_status *s)
{
	uint64_t cpu = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000;

	counter(f, "reddnd_accepted_sessions", "Clients accepted.", s->sessions_total);
	counter(f, "reddnd_refused_sessions", "Clients refused.", s->counts.refused);
	counter(f, "reddnd_unlisted_refusals", "Of these, clients that the audit counts and does not list.",
		s->counts.unlisted);
	counter(f, "reddnd_reloads", "Configurations put in force while running.", s->counts.reloads);
	family(f, "reddnd_configuration_refused", "gauge", "",
		"1 if the configuration has mistakes, and an earlier one is in force.");
	fprintf(f, "reddnd_configuration_refused %d\n", *s->configuration_refused != '\0');
	family(f, "reddnd_disabled_offloads", "gauge", "", "Offloads whose data cannot be served.");
	fprintf(f, "reddnd_disabled_offloads %u\n", s->disabled);
	family(f, "reddnd_moved_files", "gauge", "",
		"Regions whose file was removed or replaced while it is served.");
	fprintf(f, "reddnd_moved_files %u\n", s->moved);
	family(f, "reddnd_unfinished_moves", "gauge", "",
		"Tables whose writer died in the middle of a move.");
	fprintf(f, "reddnd_unfinished_moves %u\n", s->unfinished);
	family(f, "reddnd_cpu_seconds", "counter", "seconds", "CPU time of the daemon.");
	fprintf(f, "reddnd_cpu_seconds_total %" PRIu64 ".%06" PRIu64 "\n", cpu / 1000000, cpu % 1000000);
	family(f, "reddnd_uptime_seconds", "gauge", "seconds", "Time since the daemon began to serve.");
	fprintf(f, "reddnd_uptime_seconds %" PRIu64 ".%06" PRIu64 "\n", s->uptime_us / 1000000,
		s->uptime_us % 1000000);
}

char *metrics_text(const struct stats *stats)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	by_offload(f, stats);
	by_tenant(f, stats);
	by_table(f, stats);
	by_store(f, stats);
	by_memcached(f, stats);
	by_device(f, stats);
	whole(f, &stats->status);
	fputs("# EOF\n", f);
	fclose(f);
	return text;
}

/* Lines of OpenMetrics that are others in the text format 0.0.4. @counter: the family is one */
static void prometheus_line(FILE *f, const char *line, size_t len, bool *counter)
{
	enum { WORD = sizeof("# TYPE ") - 1 };
	const char *name = line + WORD, *end;

	if (strncmp(line, "# UNIT ", WORD) == 0 || strncmp(line, "# EOF", 5) == 0)
		return;
	if (strncmp(line, "# TYPE ", WORD) == 0)
		*counter = len > strlen(" counter") &&
			   strncmp(line + len - strlen(" counter"), " counter", strlen(" counter")) == 0;
	else if (strncmp(line, "# HELP ", WORD) != 0)
		name = NULL;
	end = name && *counter ? memchr(name, ' ', len - WORD) : NULL;
	if (end)
		fprintf(f, "%.*s_total%.*s\n", (int)(end - line), line, (int)(line + len - end), end);
	else
		fprintf(f, "%.*s\n", (int)len, line);
}

char *metrics_prometheus(const char *openmetrics)
{
	bool counter = false;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	while (*openmetrics) {
		size_t len = strcspn(openmetrics, "\n");

		prometheus_line(f, openmetrics, len, &counter);
		openmetrics += len + (openmetrics[len] == '\n');
	}
	fclose(f);
	return text;
}
