/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/load.h"

#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ranks by Zipf's law: rank r, from 0, comes with a probability in proportion to 1 / (r + 1)^s. */

struct zipf {
	double *until; /* the probability of ranks up to this one */
	size_t n;
};

/* @n ranks, one at least, with exponent @s. -ENOMEM. */
static int zipf_init(struct zipf *z, size_t n, double s)
{
	double sum = 0;

	z->n = n;
	z->until = malloc(n * sizeof(*z->until));
	if (!z->until)
		return -ENOMEM;
	for (size_t r = 0; r < n; r++)
		z->until[r] = sum += pow((double)(r + 1), -s);
	for (size_t r = 0; r < n; r++)
		z->until[r] /= sum;
	return 0;
}

static void zipf_deinit(struct zipf *z)
{
	free(z->until);
	*z = (struct zipf){0};
}

/* The rank for 64 random bits. */
static size_t zipf_rank(const struct zipf *z, uint64_t random)
{
	double u = (double)(random >> 11) / (double)(1ull << 53);
	size_t low = 0, high = z->n - 1;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (z->until[middle] > u)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* EMPTY_ROUNDS: rounds without an answer before it yields the CPU. A system call in each round would delay
 * answers. */
enum { RESULTS = 64, ABSENT_KEY = 24, EMPTY_ROUNDS = 4, PAUSE_US = 200, REST_US = 2000, SPIN_MS = 1 };

/* A run without an answer for so long fails, unless one request may take longer */
static const uint64_t SILENCE_MS = 10000;

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* One outstanding request; its index is the cookie. */
struct flight {
	uint64_t started;
	size_t key; /* index in the key set, or SIZE_MAX: an absent key */
	uint32_t next;
	enum load_kind write, now; /* what it is to do, and what it does: a LOAD_PUT_IF gets first */
	uint64_t version;
	char absent[ABSENT_KEY + 1];
};

struct client {
	struct load_way way;
	struct flight *flights;
	uint32_t free, again; /* again: those that have another request to send */
};

struct load {
	const struct load_options *opt;
	struct keyset set;
	struct client *clients;
	struct zipf zipf;
	struct histogram latency, writes; /* of gets, and of all others */
	/* of options.present: keys that a put was sent for, and those that are there for certain */
	size_t sent, there;
	bool *put; /* of each key */
	uint64_t random;
	uint64_t started, ended, last_answer, cpu; /* ns */
	uint64_t began;                            /* the same, of CLOCK_MONOTONIC */
	uint64_t asked, answered, hits, misses, wrong, errors, unverified, conflicts;
};

static uint64_t measured_ns(const struct load *b)
{
	return b->opt->now ? b->opt->now() : clock_ns();
}

/* xorshift64*: the same seed gives the same order of keys. */
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
		c->again = UINT32_MAX;
	}
	return 0;
}

static size_t next_key(struct load *b, enum load_kind write)
{
	size_t of = b->opt->present ? b->opt->present : b->set.count, n;

	if (b->opt->in_order)
		return b->asked % b->set.count;
	if (b->opt->present && write)
		return b->sent++;
	n = b->opt->zipf > 0 ? zipf_rank(&b->zipf, random_next(&b->random)) : random_next(&b->random) % of;
	return b->opt->present ? b->there - 1 - n : n;
}

/* The request that a flight sends now. */
static struct load_op op_of(const struct load *b, const struct flight *f)
{
	const struct keyset_key *k = &b->set.keys[f->key];
	bool puts = f->now == LOAD_PUT || f->now == LOAD_PUT_IF;

	return (struct load_op){.key = keyset_key(&b->set, f->key),
		.key_len = k->key_len,
		.value = puts ? keyset_value(&b->set, f->key) : NULL,
		.value_len = puts ? k->val_len : 0,
		.kind = f->now,
		.version = f->version};
}

/* The next request. */
static struct load_op next_op(struct load *b, struct flight *f)
{
	f->write = f->now = LOAD_GET;
	if (random_next(&b->random) % 100 < b->opt->absent) {
		f->key = SIZE_MAX;
		snprintf(f->absent, sizeof(f->absent), "\x01 no %016" PRIx64 "key", random_next(&b->random));
		return (struct load_op){.key = f->absent, .key_len = ABSENT_KEY};
	}
	if (b->opt->writes == 100 || (b->opt->writes && random_next(&b->random) % 100 < b->opt->writes))
		f->write = b->opt->write;
	f->now = f->write == LOAD_PUT_IF ? LOAD_GET : f->write;
	f->key = next_key(b, f->write);
	return op_of(b, f);
}

/* Submit what flights have to send besides their first request. False: the connection takes no more now. */
static bool submit_again(struct load *b, struct client *c)
{
	while (c->again != UINT32_MAX) {
		struct flight *f = &c->flights[c->again];
		struct load_op op = op_of(b, f);
		uint32_t next = f->next;
		int r;

		f->started = measured_ns(b);
		r = c->way.submit(c->way.conn, &op, c->again);
		if (r == -EAGAIN)
			return false;
		if (r < 0) {
			b->errors++;
			b->answered++;
			f->next = c->free;
			c->free = c->again;
		}
		c->again = next;
	}
	return true;
}

/* True if keys are left for what is to be put. */
static bool has_keys(const struct load *b)
{
	return !b->opt->present || b->sent < b->set.count;
}

/* True if one more request is not too early. */
static bool is_due(const struct load *b)
{
	return !b->opt->rate ||
	       (double)b->asked <= (double)(clock_ns() - b->began) * 1e-9 * (double)b->opt->rate;
}

/* Submit requests until the connection takes no more. */
static void submit_all(struct load *b, struct client *c)
{
	while (c->free != UINT32_MAX && (!b->opt->count || b->asked < b->opt->count + b->opt->warmup) &&
		has_keys(b) && is_due(b)) {
		struct flight *f = &c->flights[c->free];
		uint64_t random = b->random;
		size_t sent = b->sent;
		struct load_op op = next_op(b, f);
		int r;

		f->started = measured_ns(b);
		r = c->way.submit(c->way.conn, &op, c->free);
		if (r == -EAGAIN) {
			b->random = random;
			b->sent = sent;
			return;
		}
		b->asked++;
		if (r < 0) {
			b->errors++;
			b->answered++;
			/* A key that this table cannot hold is one error; whether time is over is looked at
			 * before the next one. The next poll reports a lost connection. */
			return;
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
	if (f->now == LOAD_PUT && b->put) {
		b->put[f->key] = true;
		while (b->there < b->set.count && b->put[b->there])
			b->there++;
	}
	if (!b->opt->verify || f->now != LOAD_GET)
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

/* Use so much CPU time. */
static void spend(uint64_t ns)
{
	uint64_t end = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/* True if the flight has another request to send after this result. */
static bool goes_on(struct load *b, struct flight *f, const struct reddn_result *res)
{
	if (f->write != LOAD_PUT_IF ||
		(f->now == LOAD_GET ? res->status != 0 : res->status != REDDN_CONFLICT))
		return false;
	if (f->now == LOAD_PUT_IF)
		b->conflicts++;
	f->now = f->now == LOAD_GET ? LOAD_PUT_IF : LOAD_GET;
	f->version = res->version;
	return true;
}

/* Collect the results of one connection. False: it is lost. */
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
	b->last_answer = clock_ns();
	now = measured_ns(b);
	for (int i = 0; i < n; i++) {
		struct flight *f = &c->flights[res[i].cookie];

		if (res[i].status >= 0)
			histogram_add(f->now == LOAD_GET ? &b->latency : &b->writes, now - f->started);
		if (goes_on(b, f, &res[i])) {
			f->next = c->again;
			c->again = (uint32_t)res[i].cookie;
			continue;
		}
		judge(b, f, &res[i]);
		f->next = c->free;
		c->free = (uint32_t)res[i].cookie;
		if (b->answered == b->opt->warmup) {
			memset(&b->latency, 0, sizeof(b->latency));
			memset(&b->writes, 0, sizeof(b->writes));
			b->started = now;
		}
	}
	c->way.release(c->way.conn);
	if (b->opt->work)
		spend((uint64_t)n * b->opt->work);
	return true;
}

/* Sleep until the rate allows the next request; not so long that the end of a run comes late. */
static void await_due(const struct load *b, uint64_t now)
{
	double due_us = 0;

	if (b->opt->rate)
		due_us = (double)b->asked * 1e6 / (double)b->opt->rate - (double)(now - b->began) * 1e-3;
	usleep(due_us < PAUSE_US ? PAUSE_US : due_us < REST_US ? (useconds_t)due_us : REST_US);
}

/* Submit and collect until the end of the run. 0, or 2 if a connection was lost. */
static int drive(struct load *b)
{
	uint64_t end = b->opt->count ? UINT64_MAX : 0;
	const uint64_t timeout_ms = b->opt->connect.timeout_ms;
	const uint64_t silence_ms = timeout_ms > SILENCE_MS ? timeout_ms : SILENCE_MS;
	uint64_t asked = 0, active;
	unsigned empty = 0;

	b->began = b->last_answer = active = clock_ns();
	b->started = measured_ns(b);
	if (!b->opt->count)
		end = b->last_answer +
		      (uint64_t)((b->opt->seconds > 0 ? b->opt->seconds : LOAD_SECONDS) * 1e9);
	for (;;) {
		bool any = false, more;
		uint64_t now = clock_ns();

		more = !stopped && now < end && has_keys(b) &&
		       (!b->opt->count || b->asked < b->opt->count + b->opt->warmup);
		for (unsigned i = 0; i < b->opt->clients; i++) {
			struct client *c = &b->clients[i];

			if (submit_again(b, c) && more)
				submit_all(b, c);
			if (!collect(b, c, &any))
				return tool_complain("%s", c->way.errmsg(c->way.conn));
		}
		if (b->answered == b->asked && !more)
			break;
		if (any || b->asked != asked) {
			empty = 0;
			asked = b->asked;
			active = now;
		} else if (b->answered == b->asked) {
			await_due(b, now);
		} else if (++empty == EMPTY_ROUNDS) {
			if (now > b->last_answer && (now - b->last_answer) / 1000000 > silence_ms)
				return tool_complain("no answer for %" PRIu64 " seconds", silence_ms / 1000);
			empty = 0;
			/* Whoever takes so long has died, or is stopped. */
			if (now - active > SPIN_MS * 1000000ull)
				usleep(PAUSE_US);
			else
				sched_yield();
		}
	}
	return 0;
}

/* ---- results ---- */

enum { LOAD_HOSTS = 64 }; /* more are not reported: a handle of libreddn without shards has up to 16 */

/* What the clients report, together */
struct sums {
	uint64_t retries_moved, retries_overtaken, retries_conflict, retries_absent, reconnects;
	/* where the requests went, if there are several hosts; else no host */
	struct reddn_host_info host[LOAD_HOSTS];
	unsigned nhosts;
	bool may_use_tcp; /* some way has another path */
	uint64_t over_tcp;
};

/* Requests are gets, perhaps with puts and deletes among them; else they are puts */
static bool has_gets(const struct load *b)
{
	return b->opt->writes < 100 || b->opt->write == LOAD_PUT_IF;
}

static const struct histogram *latency(const struct load *b)
{
	return has_gets(b) ? &b->latency : &b->writes;
}

static bool has_writes(const struct load *b)
{
	return has_gets(b) && b->writes.count;
}

static uint64_t unanswered(const struct load *b)
{
	return b->asked - b->answered;
}

/* Answered, without the warm-up */
static uint64_t measured(const struct load *b)
{
	return b->answered > b->opt->warmup ? b->answered - b->opt->warmup : 0;
}

static double seconds(const struct load *b)
{
	return (double)(b->ended - b->started) / 1e9;
}

static double rate(const struct load *b)
{
	return seconds(b) > 0 ? (double)measured(b) / seconds(b) : 0;
}

static double at_us(const struct histogram *h, double part)
{
	return (double)histogram_at(h, part) / 1000;
}

/* Add what a client did at one of its hosts */
static void add_host(struct sums *r, const struct reddn_host_info *of)
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

static void hosts_json(const struct sums *r)
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

/* One JSON object on a line; reddn(1) lists its members */
static void report_json(const struct load *b, const struct sums *r)
{
	printf("{\"gets\": %" PRIu64 ", \"began_us\": %.3f, \"seconds\": %.9f, \"gets_per_s\": %.1f, "
	       "\"p50_us\": %.3f, \"p99_us\": %.3f, \"p90_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, "
	       "\"client_cpu_s\": %.6f, ",
		measured(b), (double)b->started / 1000, seconds(b), rate(b), at_us(latency(b), 0.5),
		at_us(latency(b), 0.99), at_us(latency(b), 0.9), at_us(latency(b), 0.999),
		(double)latency(b)->max / 1000, (double)b->cpu / 1e9);
	printf("\"hits\": %" PRIu64 ", \"misses\": %" PRIu64 ", \"errors\": %" PRIu64
	       ", \"unanswered\": %" PRIu64 ", \"retries_moved\": %" PRIu64
	       ", \"retries_overtaken\": %" PRIu64 ", \"retries_conflict\": %" PRIu64
	       ", \"retries_absent\": %" PRIu64 ", \"reconnects\": %" PRIu64,
		b->hits, b->misses, b->errors, unanswered(b), r->retries_moved, r->retries_overtaken,
		r->retries_conflict, r->retries_absent, r->reconnects);
	if (r->nhosts)
		hosts_json(r);
	if (r->may_use_tcp)
		printf(", \"over_tcp\": %" PRIu64, r->over_tcp);
	if (has_writes(b))
		printf(", \"writes\": %" PRIu64 ", \"write_p50_us\": %.3f, \"write_p99_us\": %.3f"
		       ", \"conflicts\": %" PRIu64,
			b->writes.count, at_us(&b->writes, 0.5), at_us(&b->writes, 0.99), b->conflicts);
	if (b->there)
		printf(", \"present\": %zu", b->there);
	if (b->opt->verify)
		printf(", \"wrong\": %" PRIu64 ", \"unverified\": %" PRIu64, b->wrong, b->unverified);
	puts("}");
}

static void report_text(const struct load *b, const struct sums *r)
{
	printf("%s        %" PRIu64 " in %.3f s, %.0f/s\n"
	       "latency     p50 %.1f us, p99 %.1f us, max %.1f us\n"
	       "hits        %" PRIu64 "\n"
	       "misses      %" PRIu64 "\n"
	       "errors      %" PRIu64 "\n",
		has_gets(b) ? "gets" : "puts", measured(b), seconds(b), rate(b), at_us(latency(b), 0.5),
		at_us(latency(b), 0.99), (double)latency(b)->max / 1000, b->hits, b->misses, b->errors);
	if (has_writes(b))
		printf("writes      %" PRIu64 " of them, p50 %.1f us, p99 %.1f us\n", b->writes.count,
			at_us(&b->writes, 0.5), at_us(&b->writes, 0.99));
	if (r->may_use_tcp)
		printf("over TCP    %" PRIu64 "\n", r->over_tcp);
	if (unanswered(b))
		printf("unanswered  %" PRIu64 "\n", unanswered(b));
	if (b->opt->verify)
		printf("wrong       %" PRIu64 "\n", b->wrong);
	if (b->unverified)
		printf("unverified  %" PRIu64 " (no value known)\n", b->unverified);
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

static void report(const struct load *b)
{
	struct sums r = {0};

	for (unsigned i = 0; i < b->opt->clients; i++) {
		struct load_way *w = &b->clients[i].way;
		struct reddn_host_info host;
		struct reddn_info info;

		if (w->over_tcp) {
			r.may_use_tcp = true;
			r.over_tcp += w->over_tcp(w->conn);
		}
		for (unsigned k = 0; w->host && w->host(w->conn, k, &host) == 0; k++)
			add_host(&r, &host);
		if (!w->info)
			continue;
		w->info(w->conn, &info);
		r.retries_moved += info.retries_moved;
		r.retries_overtaken += info.retries_overtaken;
		r.retries_conflict += info.retries_conflict;
		r.retries_absent += info.retries_absent;
		r.reconnects += info.reconnects;
	}
	if (b->opt->json)
		report_json(b, &r);
	else
		report_text(b, &r);
}

int load_run(const struct load_options *opt, load_open_fn *open)
{
	struct sigaction act = {.sa_handler = on_signal};
	bool values = opt->verify || opt->writes;
	size_t known;
	struct load *b;
	int r;

	if (opt->count && opt->seconds > 0)
		return tool_complain("either --count or --seconds ends a run");
	b = calloc(1, sizeof(*b));
	if (!b)
		return tool_complain("%s", strerror(ENOMEM));
	b->opt = opt;
	b->random = opt->seed * 2 + 1;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	r = opt->table ? keyset_load_table(&b->set, opt->table, values)
		       : keyset_load_text(&b->set, opt->keys, values);
	if (r == 0 && !b->set.count && opt->absent < 100)
		r = tool_complain("%s: no keys", opt->table ? opt->table : opt->keys);
	known = opt->present ? opt->present : b->set.count;
	if (r == 0 && opt->present > b->set.count)
		r = tool_complain("there are only %zu keys", b->set.count);
	b->sent = b->there = opt->present;
	if (r == 0 && opt->present && !(b->put = calloc(b->set.count, sizeof(*b->put))))
		r = tool_complain("%s", strerror(ENOMEM));
	if (r == 0 && opt->zipf > 0 && known && zipf_init(&b->zipf, known, opt->zipf) < 0)
		r = tool_complain("%s", strerror(ENOMEM));
	if (r == 0)
		r = connect_all(b, open);
	if (r == 0) {
		if (opt->connected)
			opt->connected();
		b->cpu = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
		r = drive(b);
		b->ended = measured_ns(b);
		b->cpu = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - b->cpu;
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
	zipf_deinit(&b->zipf);
	free(b->put);
	keyset_deinit(&b->set);
	free(b);
	return r;
}

static bool read_seconds(const char *text, double *to)
{
	char *end;

	*to = strtod(text, &end);
	return end != text && !*end && *to > 0 && *to < 1e9;
}

static bool number(struct load_options *l, int letter, const char *text)
{
	static const uint64_t max[] = {['p'] = UINT16_MAX,
		['d'] = UINT16_MAX,
		['n'] = 65536,
		['c'] = UINT64_MAX,
		['R'] = UINT32_MAX};
	uint64_t v;

	if (number_parse(text, 1, max[letter], &v))
		return false;
	switch (letter) {
	case 'p':
		l->connect.port = (uint16_t)v;
		return true;
	case 'd':
		l->connect.depth = (uint16_t)v;
		return true;
	case 'n':
		l->clients = (unsigned)v;
		return true;
	case 'c':
		l->count = v;
		return true;
	default:
		l->rate = v;
		return true;
	}
}

bool load_set_option(struct load_options *l, int letter, const char *text)
{
	switch (letter) {
	case 'K':
		l->connect.token_file = text;
		return true;
	case 'j':
		l->json = true;
		return true;
	case 'k':
		l->keys = text;
		return true;
	case 'V':
		l->verify = true;
		return true;
	case 's':
		return read_seconds(text, &l->seconds);
	case 'S':
		return number_parse(text, 0, UINT64_MAX, &l->seed) == 0;
	case 'p':
	case 'd':
	case 'n':
	case 'c':
	case 'R':
		return number(l, letter, text);
	default:
		return false;
	}
}
