/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/bench.h"
#include "libclient/histogram.h"
#include "libclient/records.h"
#include "libclient/reddn-table.h"
#include "libclient/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RESULTS = 64, ABSENT_KEY = 24 };

/* No answer for this long ends the run: servers do not keep silent. */
static const uint64_t SILENCE_NS = 10000000000u;

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* Keys, and values where they are known, one after the other in `bytes`. */
struct key {
	size_t at;
	uint32_t key_len, val_len;
	bool known;
};

struct keyset {
	struct key *keys;
	size_t count, room;
	uint8_t *bytes;
	size_t used, size;
};

/* One get under way; its number is the cookie. */
struct flight {
	uint64_t started;
	size_t key; /* index, or SIZE_MAX: an absent one */
	uint32_t next;
};

struct client {
	struct reddn *conn;
	struct flight *flights;
	uint32_t free;
};

struct bench {
	const struct bench_options *opt;
	struct keyset set;
	struct client *clients;
	struct histogram latency;
	uint64_t random;
	uint64_t started, ended, last_answer;
	uint64_t asked, answered, hits, misses, wrong, errors, unverified;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* xorshift64*: keys in an order that a seed repeats. */
static uint64_t random_next(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1dull;
}

static int keyset_add(
	struct keyset *k, const void *key, size_t key_len, const void *val, size_t val_len, bool known)
{
	if (k->count == k->room) {
		size_t room = k->room ? 2 * k->room : 1024;
		struct key *p = realloc(k->keys, room * sizeof(*p));

		if (!p)
			return -ENOMEM;
		k->keys = p;
		k->room = room;
	}
	if (key_len + val_len > k->size - k->used) {
		size_t size = (k->size + key_len + val_len) * 2;
		uint8_t *p = realloc(k->bytes, size);

		if (!p)
			return -ENOMEM;
		k->bytes = p;
		k->size = size;
	}
	memcpy(k->bytes + k->used, key, key_len);
	if (val_len)
		memcpy(k->bytes + k->used + key_len, val, val_len);
	k->keys[k->count++] = (struct key){
		.at = k->used, .key_len = (uint32_t)key_len, .val_len = (uint32_t)val_len, .known = known};
	k->used += key_len + val_len;
	return 0;
}

static int load_table(struct keyset *k, const char *name, bool values)
{
	struct reddn_table *t;
	struct reddn_table_entry e;
	uint64_t pos = 0;
	char err[512];
	int r;

	if (reddn_table_open(&t, name, 0, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	while ((r = reddn_table_next(t, &pos, &e)) == 0) {
		r = keyset_add(k, e.key, e.key_len, e.val, values ? e.val_len : 0, values);
		if (r < 0)
			break;
	}
	reddn_table_close(t);
	return r < 0 ? tool_complain("%s: %s", name, strerror(-r)) : 0;
}

static int load_keys(struct keyset *k, const char *name, bool values)
{
	FILE *f = fopen(name, "re");
	struct records_reader reader;
	struct record_text rec;
	int r;

	if (!f)
		return tool_complain("%s: %s", name, strerror(errno));
	records_init(&reader, f, RECORDS_TSV);
	while ((r = records_next(&reader, &rec)) == 0) {
		r = keyset_add(k, rec.key, rec.key_len, rec.val, values ? rec.val_len : 0, values && rec.val);
		if (r < 0)
			break;
	}
	if (r < 0)
		fprintf(stderr, "reddn: %s:%" PRIu64 ": %s\n", name, reader.line,
			r == -EBADMSG ? reader.why : strerror(-r));
	records_deinit(&reader);
	fclose(f);
	return r < 0 ? 2 : 0;
}

static int connect_all(struct bench *b)
{
	char err[256];

	b->clients = calloc(b->opt->clients, sizeof(*b->clients));
	if (!b->clients)
		return tool_complain("%s", strerror(ENOMEM));
	for (unsigned i = 0; i < b->opt->clients; i++) {
		struct client *c = &b->clients[i];
		struct reddn_info info;

		if (reddn_connect(&c->conn, &b->opt->connect, err, sizeof(err)) < 0)
			return tool_complain("%s", err);
		reddn_get_info(c->conn, &info);
		if (info.shape != REDDN_TABLE)
			return tool_complain("%s: not a table", b->opt->connect.offload);
		c->flights = calloc(info.depth, sizeof(*c->flights));
		if (!c->flights)
			return tool_complain("%s", strerror(ENOMEM));
		for (uint32_t k = 0; k < info.depth; k++)
			c->flights[k].next = k + 1 < info.depth ? k + 1 : UINT32_MAX;
	}
	return 0;
}

/* Fill the connection. */
static void submit_all(struct bench *b, struct client *c)
{
	while (c->free != UINT32_MAX && (!b->opt->count || b->asked < b->opt->count)) {
		struct flight *f = &c->flights[c->free];
		char absent[ABSENT_KEY + 1];
		const void *key = absent;
		size_t len = ABSENT_KEY;
		int r;

		f->key = SIZE_MAX;
		if (random_next(&b->random) % 100 >= b->opt->absent) {
			f->key = random_next(&b->random) % b->set.count;
			key = b->set.bytes + b->set.keys[f->key].at;
			len = b->set.keys[f->key].key_len;
		} else {
			snprintf(
				absent, sizeof(absent), "\x01 no %016" PRIx64 "key", random_next(&b->random));
		}
		f->started = now_ns();
		r = reddn_get_submit(c->conn, key, len, c->free);
		if (r == -EAGAIN)
			return;
		b->asked++;
		if (r < 0) {
			b->errors++;
			b->answered++;
			/* A key that this table cannot hold is one error; a lost connection is told by the next poll. */
			if (r != -EMSGSIZE && r != -EINVAL)
				return;
			continue;
		}
		c->free = f->next;
	}
}

static void describe_wrong(const struct bench *b, const struct key *k, const char *what)
{
	if (b->wrong > 5)
		return;
	fprintf(stderr, "reddn: wrong answer, %s, for key ", what);
	if (k)
		records_write(stderr, RECORDS_TSV,
			&(struct record_text){.key = b->set.bytes + k->at, .key_len = k->key_len});
	else
		fputs("that is absent\n", stderr);
}

static void judge(struct bench *b, const struct flight *f, const struct reddn_result *res)
{
	const struct key *k = f->key == SIZE_MAX ? NULL : &b->set.keys[f->key];

	b->answered++;
	if (res->status < 0) {
		if (b->errors++ < 5)
			fprintf(stderr, "reddn: a get failed: %s\n", strerror(-res->status));
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
	if (!b->opt->verify)
		return;
	if (!k) {
		b->wrong++;
		describe_wrong(b, k, "found");
	} else if (!k->known) {
		b->unverified++;
	} else if (res->length != k->val_len ||
		   memcmp(res->value, b->set.bytes + k->at + k->key_len, k->val_len) != 0) {
		b->wrong++;
		describe_wrong(b, k, "another value");
	}
}

/* False: the connection is lost. */
static bool collect(struct bench *b, struct client *c, bool *any)
{
	struct reddn_result res[RESULTS];
	int n = reddn_poll(c->conn, res, RESULTS);
	uint64_t now;

	if (n < 0)
		return false;
	if (!n)
		return true;
	*any = true;
	now = now_ns();
	b->last_answer = now;
	for (int i = 0; i < n; i++) {
		struct flight *f = &c->flights[res[i].cookie];

		if (res[i].status >= 0)
			histogram_add(&b->latency, now - f->started);
		judge(b, f, &res[i]);
		f->next = c->free;
		c->free = (uint32_t)res[i].cookie;
	}
	reddn_release(c->conn);
	return true;
}

/* 0, or 2 when a connection ended. */
static int drive(struct bench *b)
{
	uint64_t end = b->opt->count ? UINT64_MAX : 0;

	b->started = b->last_answer = now_ns();
	if (!b->opt->count)
		end = b->started + (uint64_t)(b->opt->seconds * 1e9);
	for (;;) {
		bool any = false, more;
		uint64_t now = now_ns();

		more = !stopped && now < end && (!b->opt->count || b->asked < b->opt->count);
		for (unsigned i = 0; i < b->opt->clients; i++) {
			struct client *c = &b->clients[i];

			if (more)
				submit_all(b, c);
			if (!collect(b, c, &any))
				return tool_complain("%s", reddn_errmsg(c->conn));
		}
		if (b->answered == b->asked && !more)
			break;
		if (!any) {
			if (now - b->last_answer > SILENCE_NS && now > b->last_answer)
				return tool_complain("no answer for 10 seconds");
			sched_yield();
		}
	}
	return 0;
}

static void report(const struct bench *b)
{
	double seconds = (double)(b->ended - b->started) / 1e9;
	double rate = seconds > 0 ? (double)b->answered / seconds : 0;
	double p50 = (double)histogram_at(&b->latency, 0.5) / 1000,
	       p99 = (double)histogram_at(&b->latency, 0.99) / 1000;
	double max = (double)b->latency.max / 1000;
	uint64_t moved = 0, overtaken = 0;

	for (unsigned i = 0; i < b->opt->clients; i++) {
		struct reddn_info info;

		reddn_get_info(b->clients[i].conn, &info);
		moved += info.again_moved;
		overtaken += info.again_overtaken;
	}
	if (b->opt->json) {
		printf("{\"gets\": %" PRIu64
		       ", \"seconds\": %.6f, \"gets_per_s\": %.1f, \"p50_us\": %.3f, \"p99_us\": %.3f"
		       ", \"max_us\": %.3f, \"hits\": %" PRIu64 ", \"misses\": %" PRIu64
		       ", \"errors\": %" PRIu64 ", \"unanswered\": %" PRIu64 ", \"again_moved\": %" PRIu64
		       ", \"again_overtaken\": %" PRIu64,
			b->answered, seconds, rate, p50, p99, max, b->hits, b->misses, b->errors,
			b->asked - b->answered, moved, overtaken);
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
		b->answered, seconds, rate, p50, p99, max, b->hits, b->misses, b->errors);
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

int bench_run(const struct bench_options *opt)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct bench *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return tool_complain("%s", strerror(ENOMEM));
	b->opt = opt;
	b->random = opt->seed * 2 + 1;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	r = opt->table ? load_table(&b->set, opt->table, opt->verify)
		       : load_keys(&b->set, opt->keys, opt->verify);
	if (r == 0 && !b->set.count && opt->absent < 100)
		r = tool_complain("%s: no keys in it", opt->table ? opt->table : opt->keys);
	if (r == 0)
		r = connect_all(b);
	if (r == 0) {
		r = drive(b);
		b->ended = now_ns();
		report(b);
	}
	if (r == 0 && (b->wrong || b->errors || b->asked != b->answered))
		r = 1;
	for (unsigned i = 0; b->clients && i < opt->clients; i++) {
		reddn_close(b->clients[i].conn);
		free(b->clients[i].flights);
	}
	free(b->clients);
	free(b->set.keys);
	free(b->set.bytes);
	free(b);
	return r;
}
