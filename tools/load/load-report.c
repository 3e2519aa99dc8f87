/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/load-report.h"

#include "util/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double seconds(const struct load_report *r)
{
	return (double)(r->ended_ns - r->started_ns) / 1e9;
}

static double rate(const struct load_report *r)
{
	return seconds(r) > 0 ? (double)r->gets / seconds(r) : 0;
}

static double at_us(const struct histogram *h, double part)
{
	return (double)histogram_at(h, part) / 1000;
}

void load_report_add_host(struct load_report *r, const struct reddn_host_info *of)
{
	struct reddn_host_info *to = r->host;

	while (to < r->host + r->nhosts && (to->port != of->port || strcmp(to->name, of->name) != 0))
		to++;
	if (to == r->host + LOAD_HOSTS)
		return;
	if (to == r->host + r->nhosts) {
		r->nhosts++;
		*to = (struct reddn_host_info){.name = of->name, .port = of->port};
	}
	to->sessions += of->sessions;
	to->sent += of->sent;
	to->late += of->late;
}

static void hosts_json(const struct load_report *r)
{
	printf(", \"hosts\": [");
	for (const struct reddn_host_info *h = r->host; h < r->host + r->nhosts; h++) {
		struct json_object *name = json_text(h->name);

		printf("%s{\"host\": %s, \"port\": %u, \"sessions\": %u, \"sent\": %" PRIu64
		       ", \"late\": %" PRIu64 "}",
			h == r->host ? "" : ", ", json_object_to_json_string(name), h->port, h->sessions,
			h->sent, h->late);
		json_object_put(name);
	}
	printf("]");
}

void load_report_json(const struct load_report *r)
{
	printf("{\"gets\": %" PRIu64 ", \"began_us\": %.3f, \"seconds\": %.9f, \"gets_per_s\": %.1f, "
	       "\"p50_us\": %.3f, \"p99_us\": %.3f, \"p90_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, "
	       "\"client_cpu_s\": %.6f, ",
		r->gets, (double)r->started_ns / 1000, seconds(r), rate(r), at_us(r->latency, 0.5),
		at_us(r->latency, 0.99), at_us(r->latency, 0.9), at_us(r->latency, 0.999),
		(double)r->latency->max / 1000, (double)r->cpu_ns / 1e9);
	printf("\"hits\": %" PRIu64 ", \"misses\": %" PRIu64 ", \"errors\": %" PRIu64
	       ", \"unanswered\": %" PRIu64 ", \"retries_moved\": %" PRIu64
	       ", \"retries_overtaken\": %" PRIu64 ", \"retries_conflict\": %" PRIu64
	       ", \"retries_absent\": %" PRIu64 ", \"reconnects\": %" PRIu64,
		r->hits, r->misses, r->errors, r->unanswered, r->retries_moved, r->retries_overtaken,
		r->retries_conflict, r->retries_absent, r->reconnects);
	if (r->nhosts)
		hosts_json(r);
	if (r->may_use_tcp)
		printf(", \"over_tcp\": %" PRIu64, r->over_tcp);
	if (r->writes)
		printf(", \"writes\": %" PRIu64 ", \"write_p50_us\": %.3f, \"write_p99_us\": %.3f"
		       ", \"conflicts\": %" PRIu64,
			r->writes->count, at_us(r->writes, 0.5), at_us(r->writes, 0.99), r->conflicts);
	if (r->present)
		printf(", \"present\": %" PRIu64, r->present);
	if (r->verified)
		printf(", \"wrong\": %" PRIu64 ", \"unverified\": %" PRIu64, r->wrong, r->unverified);
	puts("}");
}

void load_report_text(const struct load_report *r)
{
	printf("%s        %" PRIu64 " in %.3f s, %.0f/s\n"
	       "latency     p50 %.1f us, p99 %.1f us, max %.1f us\n"
	       "hits        %" PRIu64 "\n"
	       "misses      %" PRIu64 "\n"
	       "errors      %" PRIu64 "\n",
		r->puts ? "puts" : "gets", r->gets, seconds(r), rate(r), at_us(r->latency, 0.5),
		at_us(r->latency, 0.99), (double)r->latency->max / 1000, r->hits, r->misses, r->errors);
	if (r->writes)
		printf("writes      %" PRIu64 " of them, p50 %.1f us, p99 %.1f us\n", r->writes->count,
			at_us(r->writes, 0.5), at_us(r->writes, 0.99));
	if (r->may_use_tcp)
		printf("over TCP    %" PRIu64 "\n", r->over_tcp);
	if (r->unanswered)
		printf("unanswered  %" PRIu64 "\n", r->unanswered);
	if (r->verified)
		printf("wrong       %" PRIu64 "\n", r->wrong);
	if (r->unverified)
		printf("unverified  %" PRIu64 " (no value known)\n", r->unverified);
	if (r->reconnects)
		printf("reconnects  %" PRIu64 "\n", r->reconnects);
	for (const struct reddn_host_info *h = r->host; h < r->host + r->nhosts; h++)
		printf("at %s port %u: %" PRIu64 " requests, %" PRIu64 " late, %u sessions\n", h->name,
			h->port, h->sent, h->late, h->sessions);
	if (r->retries_moved || r->retries_overtaken)
		printf("repeated    %" PRIu64 " (entries moved), %" PRIu64 " (record overtaken)\n",
			r->retries_moved, r->retries_overtaken);
	if (r->retries_conflict || r->retries_absent)
		printf("repeated    %" PRIu64 " (another was first), %" PRIu64 " (no entry yet)\n",
			r->retries_conflict, r->retries_absent);
}
