/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/metrics.h"

#include "reddnd/generation/generation.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static void family(FILE *f, const char *name, const char *type, const char *unit, const char *help)
{
	fprintf(f, "# TYPE %s %s\n", name, type);
	if (*unit)
		fprintf(f, "# UNIT %s %s\n", name, unit);
	fprintf(f, "# HELP %s %s\n", name, help);
}

/* Counters of offloads: names are letters, digits, '.', '_' and '-', nothing to escape */
static const struct {
	const char *name, *unit, *help;
	size_t at;
	bool seen; /* by the daemon when it arms an instance again: not of recycled offloads */
} counters[] = {
	{"reddnd_requests", "", "Requests answered, as far as the daemon has counted them.",
		offsetof(struct offload_stats, requests), false},
	{"reddnd_hits", "", "Requests of unrolled offloads that a conditional WRITE answered.",
		offsetof(struct offload_stats, hits), true},
	{"reddnd_misses", "",
		"Requests of unrolled offloads that no conditional WRITE answered, though there is one.",
		offsetof(struct offload_stats, misses), true},
	{"reddnd_wqes", "", "Work requests of chains and loops that were executed, NOPs included.",
		offsetof(struct offload_stats, wqes), false},
	{"reddnd_loop_iterations", "",
		"Iterations of loops without a bound, half a lap of their ring at a time.",
		offsetof(struct offload_stats, iterations), false},
	{"reddnd_request_bytes", "bytes", "Bytes of requests.", offsetof(struct offload_stats, bytes_in),
		false},
	{"reddnd_reply_bytes", "bytes", "Bytes written to clients by unrolled offloads.",
		offsetof(struct offload_stats, bytes_out), true},
	{"reddnd_failed_sessions", "", "Sessions that the daemon ended because of an error or a broken rule.",
		offsetof(struct offload_stats, failed), false},
};

static void by_offload(FILE *f, const struct generation *sv)
{
	for (size_t c = 0; c < sizeof(counters) / sizeof(*counters); c++) {
		family(f, counters[c].name, "counter", counters[c].unit, counters[c].help);
		for (unsigned i = 0; i < sv->catalog->noffloads; i++)
			if (!(counters[c].seen && sv->offloads[i].conf->recycled))
				fprintf(f, "%s_total{offload=\"%s\"} %" PRIu64 "\n", counters[c].name,
					sv->offloads[i].conf->name,
					*(const uint64_t *)((const char *)sv->offloads[i].stats +
							    counters[c].at));
	}
	family(f, "reddnd_verdicts", "counter", "", "What was wrong with sessions.");
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		for (unsigned k = 0; k < VERDICT_KINDS; k++)
			fprintf(f, "reddnd_verdicts_total{offload=\"%s\",verdict=\"%s\"} %" PRIu64 "\n",
				sv->offloads[i].conf->name, verdict_kind_name(k),
				sv->offloads[i].stats->verdicts[k]);
	family(f, "reddnd_sessions", "gauge", "", "Clients connected.");
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		fprintf(f, "reddnd_sessions{offload=\"%s\"} %u\n", sv->offloads[i].conf->name,
			sv->offloads[i].stats->sessions);
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

/* What a tenant uses of something, and its quota. Whose address and key it has is nobody's business here */
struct use {
	const char *name, *unit, *help;
	uint64_t used, quota; /* quota 0: none */
};

enum { USES = 4 };

static void uses_of(const struct tenant *t, struct use u[static USES])
{
	u[0] = (struct use){
		"sessions", "", "Clients of the tenant connected.", t->sessions, t->limits.sessions};
	u[1] = (struct use){"depth", "", "Requests that clients of the tenant may have outstanding.",
		t->depth, t->limits.depth};
	u[2] = (struct use){"queue_bytes", "bytes", "Memory for queues of the tenant.", t->queue_bytes,
		t->limits.queue_bytes};
	u[3] = (struct use){"slot_bytes", "bytes",
		"Memory that clients of the tenant have registered for replies.", t->slot_bytes,
		t->limits.slot_bytes};
}

static void tenant_use(FILE *f, const struct tenant *all, unsigned i)
{
	struct use u[USES];
	char name[64];

	uses_of(all, u);
	snprintf(name, sizeof(name), "reddnd_tenant_%s", u[i].name);
	family(f, name, "gauge", u[i].unit, u[i].help);
	for (const struct tenant *t = all; t; t = t->hh.next) {
		uses_of(t, u);
		fprintf(f, "%s{tenant=\"%s\"} %" PRIu64 "\n", name, t->name, u[i].used);
	}
	snprintf(name, sizeof(name), "reddnd_tenant_quota_%s", u[i].name);
	family(f, name, "gauge", u[i].unit, "The most that is allowed; of tenants with such a limit.");
	for (const struct tenant *t = all; t; t = t->hh.next) {
		uses_of(t, u);
		if (u[i].quota)
			fprintf(f, "%s{tenant=\"%s\"} %" PRIu64 "\n", name, t->name, u[i].quota);
	}
}

static void by_tenant(FILE *f, const struct tenant *all)
{
	for (size_t c = 0; c < sizeof(tenant_counters) / sizeof(*tenant_counters); c++) {
		family(f, tenant_counters[c].name, "counter", tenant_counters[c].unit,
			tenant_counters[c].help);
		for (const struct tenant *t = all; t; t = t->hh.next)
			fprintf(f, "%s_total{tenant=\"%s\"} %" PRIu64 "\n", tenant_counters[c].name, t->name,
				*(const uint64_t *)((const char *)t + tenant_counters[c].at));
	}
	for (unsigned i = 0; i < USES; i++)
		tenant_use(f, all, i);
}

static void counter(FILE *f, const char *name, const char *help, uint64_t n)
{
	family(f, name, "counter", "", help);
	fprintf(f, "%s_total %" PRIu64 "\n", name, n);
}

static void whole(FILE *f, const struct server_status *s)
{
	struct timespec cpu;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	counter(f, "reddnd_accepted_sessions", "Clients accepted.", s->sessions_total);
	counter(f, "reddnd_refused_sessions", "Clients refused.", s->refused);
	counter(f, "reddnd_reloads", "Configurations put in force while running.", s->reloads);
	family(f, "reddnd_arena_bytes", "gauge", "bytes", "Memory for queues.");
	fprintf(f, "reddnd_arena_bytes{state=\"used\"} %" PRIu64 "\n", s->arena_used);
	fprintf(f, "reddnd_arena_bytes{state=\"free\"} %" PRIu64 "\n", s->arena_size - s->arena_used);
	family(f, "reddnd_cpu_seconds", "counter", "seconds", "CPU time of the daemon.");
	fprintf(f, "reddnd_cpu_seconds_total %jd.%06ld\n", (intmax_t)cpu.tv_sec, cpu.tv_nsec / 1000);
	family(f, "reddnd_uptime_seconds", "gauge", "seconds", "Time since the daemon began to serve.");
	fprintf(f, "reddnd_uptime_seconds %" PRIu64 ".%06" PRIu64 "\n", s->uptime_us / 1000000,
		s->uptime_us % 1000000);
}

char *metrics_text(struct server *server)
{
	struct server_status s;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	server_status(server, &s);
	by_offload(f, server_generation(server));
	by_tenant(f, server_tenants(server));
	whole(f, &s);
	fputs("# EOF\n", f);
	fclose(f);
	return text;
}
