/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/load.h"

#include "tools/common/records.h"
#include "tools/common/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* EMPTY_ROUNDS: without an answer, before others may run; a system call after each would make answers late */
enum { RESULTS = 64, ABSENT_KEY = 24, EMPTY_ROUNDS = 4 };

/* No answer for this long ends the run: servers do not keep silent. */
static const uint64_t SILENCE_NS = 10000000000u;

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* One request under way; its number is the cookie. */
struct flight {
	uint64_t started;
	size_t key; /* index, or SIZE_MAX: an absent one */
	uint32_t next;
	char absent[ABSENT_KEY + 1];
};

struct client {
	struct load_way way;
	struct flight *flights;
	uint32_t free;
};

struct load {
	const struct load_options *opt;
	struct keyset set;
	struct client *clients;
	struct histogram latency;
	uint64_t random;
	uint64_t started, ended, last_answer, cpu; /* ns */
	uint64_t asked, answered, hits, misses, wrong, errors, unverified;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t measured_ns(const struct load *b)
{
	return b->opt->now ? b->opt->now() : now_ns();
}

/* xorshift64*: keys in an order that a seed repeats. */
static uint64_t random_next(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1dull;
}

static int connect_all(struct load *b, load_open_fn *open)
{
	b->clients = calloc(b->opt->clients, sizeof(*b->clients));
	if (!b->clients)
		return tool_complain("%s", strerror(ENOMEM));
	for (unsigned i = 0; i < b->opt->clients; i++) {
		struct client *c = &b->clients[i];
		int r = open(&c->way, &b->opt->connect);

		if (r)
			return r;
		c->flights = calloc(c->way.depth, sizeof(*c->flights));
		if (!c->flights)
			return tool_complain("%s", strerror(ENOMEM));
		for (uint32_t k = 0; k < c->way.depth; k++)
			c->flights[k].next = k + 1 < c->way.depth ? k + 1 : UINT32_MAX;
	}
	return 0;
}

static size_t next_key(struct load *b)
{
	if (b->opt->in_order)
		return b->asked % b->set.count;
	return random_next(&b->random) % b->set.count;
}

/* What to ask for in the next request. */
static struct load_op next_op(struct load *b, struct flight *f)
{
	const struct keyset_key *k;

	if (random_next(&b->random) % 100 < b->opt->absent) {
		f->key = SIZE_MAX;
		snprintf(f->absent, sizeof(f->absent), "\x01 no %016" PRIx64 "key", random_next(&b->random));
		return (struct load_op){.key = f->absent, .key_len = ABSENT_KEY};
	}
	f->key = next_key(b);
	k = &b->set.keys[f->key];
	return (struct load_op){.key = keyset_key(&b->set, f->key),
		.key_len = k->key_len,
		.value = b->opt->set ? keyset_value(&b->set, f->key) : NULL,
		.value_len = b->opt->set ? k->val_len : 0};
}

/* Fill the connection. */
static void submit_all(struct load *b, struct client *c)
{
	while (c->free != UINT32_MAX && (!b->opt->count || b->asked < b->opt->count + b->opt->warmup)) {
		struct flight *f = &c->flights[c->free];
		uint64_t random = b->random;
		struct load_op op = next_op(b, f);
		int r;

		f->started = measured_ns(b);
		r = c->way.submit(c->way.conn, &op, c->free);
		if (r == -EAGAIN) {
			b->random = random;
			return;
		}
		b->asked++;
		if (r < 0) {
			b->errors++;
			b->answered++;
			/* A key that this table cannot hold is one error; a lost connection is told by the
			 * next poll. */
			if (r != -EMSGSIZE && r != -EINVAL)
				return;
			continue;
		}
		c->free = f->next;
	}
}

static void describe_wrong(const struct load *b, const struct keyset_key *k, const char *what)
{
	if (b->wrong > 5)
		return;
	fprintf(stderr, "wrong answer, %s, for key ", what);
	if (k)
		records_write(stderr, RECORDS_TSV,
			&(struct record_text){.key = b->set.bytes + k->at, .key_len = k->key_len});
	else
		fputs("that is absent\n", stderr);
}

static void judge(struct load *b, const struct flight *f, const struct reddn_result *res)
{
	const struct keyset_key *k = f->key == SIZE_MAX ? NULL : &b->set.keys[f->key];

	b->answered++;
	if (res->status < 0) {
		if (b->errors++ < 5)
			tool_complain("a request failed: %s", strerror(-res->status));
		return;
	}
	if (res->status == REDDN_MISS) {
		b->misses++;
		if (b->opt->verify && k) {
			b->wrong++;
			describe_wrong(b, k, "not found");
		}
		return;
	}
	b->hits++;
	if (!b->opt->verify || b->opt->set)
		return;
	if (!k) {
		b->wrong++;
		describe_wrong(b, k, "found");
	} else if (!k->known) {
		b->unverified++;
	} else if (res->length != k->val_len ||
		   memcmp(res->value, keyset_value(&b->set, f->key), k->val_len) != 0) {
		b->wrong++;
		describe_wrong(b, k, "another value");
	}
}

static void spend(uint64_t ns)
{
	struct timespec t;
	uint64_t end = 0, now;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
		end = end ? end : now + ns;
	} while (now < end);
}

/* False: the connection is lost. */
static bool collect(struct load *b, struct client *c, bool *any)
{
	struct reddn_result res[RESULTS];
	int n = c->way.poll(c->way.conn, res, RESULTS);
	uint64_t now;

	if (n < 0)
		return false;
	if (!n)
		return true;
	*any = true;
	b->last_answer = now_ns();
	now = measured_ns(b);
	for (int i = 0; i < n; i++) {
		struct flight *f = &c->flights[res[i].cookie];

		if (res[i].status >= 0)
			histogram_add(&b->latency, now - f->started);
		judge(b, f, &res[i]);
		f->next = c->free;
		c->free = (uint32_t)res[i].cookie;
		if (b->answered == b->opt->warmup) {
			memset(&b->latency, 0, sizeof(b->latency));
			b->started = now;
		}
	}
	c->way.release(c->way.conn);
	if (b->opt->work)
		spend((uint64_t)n * b->opt->work);
	return true;
}

/* 0, or 2 when a connection ended. */
static int drive(struct load *b)
{
	uint64_t end = b->opt->count ? UINT64_MAX : 0;
	unsigned empty = 0;

	b->last_answer = now_ns();
	b->started = measured_ns(b);
	if (!b->opt->count)
		end = b->last_answer + (uint64_t)(b->opt->seconds * 1e9);
	for (;;) {
		bool any = false, more;
		uint64_t now = now_ns();

		more = !stopped && now < end && (!b->opt->count || b->asked < b->opt->count + b->opt->warmup);
		for (unsigned i = 0; i < b->opt->clients; i++) {
			struct client *c = &b->clients[i];

			if (more)
				submit_all(b, c);
			if (!collect(b, c, &any))
				return tool_complain("%s", c->way.errmsg(c->way.conn));
		}
		if (b->answered == b->asked && !more)
			break;
		if (any) {
			empty = 0;
		} else if (++empty == EMPTY_ROUNDS) {
			if (now - b->last_answer > SILENCE_NS && now > b->last_answer)
				return tool_complain("no answer for 10 seconds");
			empty = 0;
			sched_yield();
		}
	}
	return 0;
}

static void report(const struct load *b)
{
	double seconds = (double)(b->ended - b->started) / 1e9;
	uint64_t counted = b->answered - (b->answered < b->opt->warmup ? b->answered : b->opt->warmup);
	double rate = seconds > 0 ? (double)counted / seconds : 0;
	double p50 = (double)histogram_at(&b->latency, 0.5) / 1000,
	       p99 = (double)histogram_at(&b->latency, 0.99) / 1000;
	double p90 = (double)histogram_at(&b->latency, 0.9) / 1000,
	       p999 = (double)histogram_at(&b->latency, 0.999) / 1000;
	double max = (double)b->latency.max / 1000;
	uint64_t moved = 0, overtaken = 0;

	for (unsigned i = 0; i < b->opt->clients; i++) {
		struct load_way *w = &b->clients[i].way;
		struct reddn_info info;

		if (!w->info)
			continue;
		w->info(w->conn, &info);
		moved += info.retries_moved;
		overtaken += info.retries_overtaken;
	}
	if (b->opt->json) {
		printf("{\"gets\": %" PRIu64 ", \"began_us\": %.3f, \"seconds\": %.9f, \"gets_per_s\": %.1f, "
		       "\"p50_us\": %.3f, \"p99_us\": %.3f"
		       ", \"p90_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, \"client_cpu_s\": %.6f, "
		       "\"hits\": %" PRIu64 ", \"misses\": %" PRIu64 ", \"errors\": %" PRIu64
		       ", \"unanswered\": %" PRIu64 ", \"retries_moved\": %" PRIu64
		       ", \"retries_overtaken\": %" PRIu64,
			counted, (double)b->started / 1000, seconds, rate, p50, p99, p90, p999, max,
			(double)b->cpu / 1e9, b->hits, b->misses, b->errors, b->asked - b->answered, moved,
			overtaken);
		if (b->opt->verify)
			printf(", \"wrong\": %" PRIu64 ", \"unverified\": %" PRIu64, b->wrong, b->unverified);
		puts("}");
		return;
	}
	printf("gets        %" PRIu64 " in %.3f s, %.0f/s\n"
	       "latency     p50 %.1f us, p99 %.1f us, max %.1f us\n"
	       "hits        %" PRIu64 "\n"
	       "misses      %" PRIu64 "\n"
	       "errors      %" PRIu64 "\n",
		counted, seconds, rate, p50, p99, max, b->hits, b->misses, b->errors);
	if (b->asked != b->answered)
		printf("unanswered  %" PRIu64 "\n", b->asked - b->answered);
	if (b->opt->verify)
		printf("wrong       %" PRIu64 "\n", b->wrong);
	if (b->unverified)
		printf("unverified  %" PRIu64 " (no value known)\n", b->unverified);
	if (moved || overtaken)
		printf("sent again  %" PRIu64 " (entries moved), %" PRIu64 " (record overtaken)\n", moved,
			overtaken);
}

int load_run(const struct load_options *opt, load_open_fn *open)
{
	struct sigaction act = {.sa_handler = on_signal};
	bool values = opt->verify || opt->set;
	struct load *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return tool_complain("%s", strerror(ENOMEM));
	b->opt = opt;
	b->random = opt->seed * 2 + 1;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	r = opt->table ? keyset_load_table(&b->set, opt->table, values)
		       : keyset_load_text(&b->set, opt->keys, values);
	if (r == 0 && !b->set.count && opt->absent < 100)
		r = tool_complain("%s: no keys in it", opt->table ? opt->table : opt->keys);
	if (r == 0)
		r = connect_all(b, open);
	if (r == 0) {
		if (opt->connected)
			opt->connected();
		b->cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		r = drive(b);
		b->ended = measured_ns(b);
		b->cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - b->cpu;
		report(b);
	}
	if (r == 0 && (b->wrong || b->errors || b->asked != b->answered))
		r = 1;
	for (unsigned i = 0; b->clients && i < opt->clients; i++) {
		if (b->clients[i].way.conn)
			b->clients[i].way.close(b->clients[i].way.conn);
		free(b->clients[i].flights);
	}
	free(b->clients);
	keyset_deinit(&b->set);
	free(b);
	return r;
}
