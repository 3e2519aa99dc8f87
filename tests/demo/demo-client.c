/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demo-client - gets keys with known answers: "demo-client WAY HOST PORT OFFLOAD DEPTH DATA PRESENT
 * ABSENT SEED", where WAY is reddn or onesided. Keeps DEPTH gets of the workload in flight, checks each
 * answer against DATA (workload.h) and prints the results. Exits 0 when every get was answered and every
 * answer was right.
 */
#include "tests/bench/ways/ways.h"
#include "tests/bench/workload.h"
#include "tests/lib/arg.h"
#include "tools/load/load.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64 };

static int ask(struct load_way *way, struct workload *w, size_t *next)
{
	while (*next < w->ngets) {
		const struct workload_get *g = &w->gets[*next];
		struct load_op op = {.key = g->key, .key_len = g->key_len};
		int r;

		workload_start(w, *next);
		r = way->submit(way->conn, &op, *next);
		if (r == -EAGAIN)
			return 0;
		if (r < 0) {
			fprintf(stderr, "%.*s: %s %s\n", (int)g->key_len, g->key, strerror(-r),
				way->errmsg(way->conn));
			return r;
		}
		++*next;
	}
	return 0;
}

/* Returns the number of answers or a negative errno. */
static int collect(struct load_way *way, struct workload *w)
{
	struct reddn_result res[BATCH];
	int n = way->poll(way->conn, res, BATCH);

	for (int i = 0; i < n; i++) {
		const struct workload_get *g = &w->gets[res[i].cookie];

		if (res[i].status < 0)
			fprintf(stderr, "%.*s: no answer: %s\n", (int)g->key_len, g->key,
				strerror(-res[i].status));
		else
			workload_answer(w, res[i].cookie, res[i].status == 0, res[i].value, res[i].length);
	}
	if (n < 0)
		fprintf(stderr, "the connection is lost: %s\n", way->errmsg(way->conn));
	return n;
}

static int run(struct load_way *way, struct workload *w)
{
	size_t next = 0, done = 0;

	while (done < w->ngets) {
		int n, r = ask(way, w, &next);

		if (r < 0)
			return r;
		n = collect(way, w);
		if (n < 0)
			return n;
		if (n == 0)
			sched_yield();
		done += (size_t)n;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct reddn_options opt = {.timeout_ms = 100000};
	struct load_way way = {0};
	struct workload *w;
	bool good;
	int r;

	if (argc != 10) {
		fprintf(stderr, "usage: demo-client reddn|onesided HOST PORT OFFLOAD DEPTH DATA PRESENT "
				"ABSENT SEED\n");
		return 2;
	}
	if (workload_load(&w, argv[6], arg_number(argv[7], ULONG_MAX), arg_number(argv[8], ULONG_MAX),
		    arg_number(argv[9], UINT64_MAX)))
		return 1;
	opt.host = argv[2];
	opt.port = (uint16_t)arg_number(argv[3], UINT16_MAX);
	opt.offload = argv[4];
	opt.depth = (uint16_t)arg_number(argv[5], UINT16_MAX);
	r = strcmp(argv[1], "onesided") == 0 ? way_onesided_open(&way, &opt) : load_reddn_open(&way, &opt);
	if (r == 0)
		r = run(&way, w);
	good = workload_report(w) && r == 0;
	if (way.info) {
		struct reddn_info info;

		way.info(way.conn, &info);
		printf("sent %llu\nagain %llu\n", (unsigned long long)info.sent,
			(unsigned long long)(info.retries_moved + info.retries_overtaken));
	}
	if (way.conn)
		way.close(way.conn);
	workload_free(w);
	return good ? 0 : 1;
}
