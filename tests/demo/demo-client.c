/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demo-client - asks a server's NIC for keys with known answers: "demo-client HOST PORT OFFLOAD DEPTH DATA PRESENT ABSENT
 * SEED". Keeps DEPTH gets of the workload in flight, checks each answer against DATA (workload.h) and prints the results.
 * Exits 0 when every get was answered and every answer was right.
 */
#include "libclient/reddn.h"
#include "tests/bench/workload.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64 };

static int ask(struct reddn *c, struct workload *w, size_t *next)
{
	while (*next < w->ngets) {
		const struct workload_get *g = &w->gets[*next];
		int r;

		workload_start(w, *next);
		r = reddn_get_submit(c, g->key, g->key_len, *next);
		if (r == -EAGAIN)
			return 0;
		if (r < 0) {
			fprintf(stderr, "%.*s: %s %s\n", (int)g->key_len, g->key, strerror(-r),
				reddn_errmsg(c));
			return r;
		}
		++*next;
	}
	return 0;
}

/* Number of answers, or a negative errno. */
static int collect(struct reddn *c, struct workload *w)
{
	struct reddn_result res[BATCH];
	int n = reddn_poll(c, res, BATCH);

	for (int i = 0; i < n; i++) {
		const struct workload_get *g = &w->gets[res[i].cookie];

		if (res[i].status < 0)
			fprintf(stderr, "%.*s: no answer: %s\n", (int)g->key_len, g->key,
				strerror(-res[i].status));
		else
			workload_answer(w, res[i].cookie, res[i].status == 0, res[i].value, res[i].length);
	}
	if (n < 0)
		fprintf(stderr, "the connection is lost: %s\n", reddn_errmsg(c));
	return n;
}

static int run(struct reddn *c, struct workload *w)
{
	size_t next = 0, done = 0;

	while (done < w->ngets) {
		int n, r = ask(c, w, &next);

		if (r < 0)
			return r;
		n = collect(c, w);
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
	struct reddn_options opt = {.timeout_ms = 20000};
	struct workload *w;
	struct reddn_info info;
	struct reddn *c;
	char err[256];
	bool good;
	int r;

	if (argc != 9) {
		fprintf(stderr, "usage: demo-client HOST PORT OFFLOAD DEPTH DATA PRESENT ABSENT SEED\n");
		return 2;
	}
	if (workload_load(&w, argv[5], strtoul(argv[6], NULL, 10), strtoul(argv[7], NULL, 10),
		    strtoull(argv[8], NULL, 10)))
		return 1;
	opt.host = argv[1];
	opt.port = (uint16_t)strtoul(argv[2], NULL, 10);
	opt.offload = argv[3];
	opt.depth = (uint16_t)strtoul(argv[4], NULL, 10);
	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0) {
		fprintf(stderr, "cannot connect to %s: %s\n", opt.host, err);
		return 1;
	}
	r = run(c, w);
	reddn_get_info(c, &info);
	good = workload_report(w) && r == 0;
	printf("sent %llu\nagain %llu\n", (unsigned long long)info.sent,
		(unsigned long long)(info.again_moved + info.again_overtaken));
	reddn_close(c);
	workload_free(w);
	return good ? 0 : 1;
}
