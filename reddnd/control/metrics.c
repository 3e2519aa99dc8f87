/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/metrics.h"

#include "reddnd/session/service.h"

#include <inttypes.h>
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

/* Counters of totals by offload: names are letters, digits, '.', '_' and '-', nothing to escape */
static const struct {
	const char *name, *unit, *help;
	size_t at;
} counters[] = {
	{"reddnd_requests", "", "Requests answered, as far as the daemon has counted them.",
		offsetof(struct totals, requests)},
	{"reddnd_hits", "", "Requests of unrolled offloads that a conditional WRITE answered.",
		offsetof(struct totals, hits)},
	{"reddnd_misses", "",
		"Requests of unrolled offloads that no conditional WRITE answered, though there is one.",
		offsetof(struct totals, misses)},
	{"reddnd_wqes", "", "Work requests of chains that were executed, NOPs included.",
		offsetof(struct totals, wqes)},
	{"reddnd_request_bytes", "bytes", "Bytes of requests.", offsetof(struct totals, bytes_in)},
	{"reddnd_reply_bytes", "bytes", "Bytes written to clients by unrolled offloads.",
		offsetof(struct totals, bytes_out)},
	{"reddnd_failed_sessions", "", "Sessions that the daemon ended because of an error or a broken rule.",
		offsetof(struct totals, failed)},
};

static void by_offload(FILE *f, const struct service *sv)
{
	for (size_t c = 0; c < sizeof counters / sizeof *counters; c++) {
		family(f, counters[c].name, "counter", counters[c].unit, counters[c].help);
		for (unsigned i = 0; i < sv->catalog->noffloads; i++)
			fprintf(f, "%s_total{offload=\"%s\"} %" PRIu64 "\n", counters[c].name,
				sv->offloads[i].conf->name,
				*(const uint64_t *)((const char *)sv->offloads[i].totals + counters[c].at));
	}
	family(f, "reddnd_verdicts", "counter", "", "What was wrong with sessions.");
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		for (unsigned k = 0; k < VERDICT_KINDS; k++)
			fprintf(f, "reddnd_verdicts_total{offload=\"%s\",verdict=\"%s\"} %" PRIu64 "\n",
				sv->offloads[i].conf->name, verdict_kind_name(k),
				sv->offloads[i].totals->verdicts[k]);
	family(f, "reddnd_sessions", "gauge", "", "Clients connected.");
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		fprintf(f, "reddnd_sessions{offload=\"%s\"} %u\n", sv->offloads[i].conf->name,
			sv->offloads[i].totals->sessions);
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
	by_offload(f, server_service(server));
	whole(f, &s);
	fputs("# EOF\n", f);
	fclose(f);
	return text;
}
