/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exists - asks which keys exist, and gets them, while it changes them, and judges each answer by what was
 * there from the question to the answer.
 *   exists table HOST PORT OFFLOAD FILE REQUESTS SEED      is the writer of the table FILE
 *   exists store HOST PORT OFFLOAD PUTS REQUESTS SEED      puts and deletes by the offload PUTS
 * A request is a call for 1 to 64 keys that are submitted together, or for up to 100 that are waited for.
 * Part of exists.sh.
 */
#include "libclient/reddn-table.h"
#include "libclient/reddn.h"
#include "protocol/table-hash.h"
#include "tests/lib/die.h"
#include "tests/lib/random.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first STABLE keys are always there, but while a table is replaced by an empty one. Others are those of
 * numbers above KEYS, which are never there. */
enum { STABLE = 60, KEYS = 240, KEY_MAX = 32, VALUE_MAX = 64 };
/* Requests are submitted up to the depth of the handle; it may cut one in pieces for smaller parts. */
enum { DEPTH = 16, TOGETHER = 64, MANY = 100, WAIT_MS = 600000 };
/* Requests to one table; the daemon takes longer to serve another one than to answer them. */
enum { OF_A_TABLE = 10000 };

struct asked {
	bool busy, gets; /* gets: what the key has is asked for, and not only if it exists */
	uint32_t key;
	uint64_t clock, oldest; /* of changes: the latest one, and the first whose value may be the answer */
};

static struct {
	struct reddn *c;
	const char *file;      /* of a table, */
	struct reddn_table *t; /* which this process writes; NULL: it is a store, */
	struct reddn *puts;    /* which is changed by this */
	bool exact;            /* the server compares whole fingerprints */
	struct {
		bool there;
		uint64_t since, put; /* clock: of being there or not; of its value */
	} key[KEYS];
	uint64_t clock; /* changes */
	uint32_t fresh; /* the next key that is never there */
	struct asked asked[DEPTH][TOGETHER];
	unsigned left[DEPTH], busy; /* keys without an answer, of each request and of all */
	/* by which the answers since the last one may have been judged by the library */
	struct reddn_info info, before;
	unsigned long requests, replace_at, exist, missing, never, chance, replaced, values;
} test;

static size_t key_of(uint32_t k, char key[KEY_MAX])
{
	return (size_t)snprintf(key, KEY_MAX, "%*u", (int)(1 + k % 24), k);
}

static uint32_t choose(void)
{
	if (rnd(2))
		return rnd(KEYS);
	return KEYS + test.fresh++;
}

static struct asked question(uint32_t k, bool gets)
{
	struct asked a = {.gets = gets, .key = k, .clock = test.clock, .oldest = test.clock + 1};

	if (k < KEYS && test.key[k].there)
		a.oldest = test.key[k].put;
	return a;
}

/* ---- the judge ---------------------------------------------------------------------------------- */

/* Not inlined: gcc would see what the hash does with lengths that no key here has */
static __attribute__((noinline)) struct reddn_place hash(
	const struct reddn_info *info, const char *key, size_t len)
{
	return reddn_hash_key(info->hash_seed, info->buckets, key, len);
}

static struct reddn_place place_of(uint32_t k, const struct reddn_info *info)
{
	char key[KEY_MAX];
	size_t len = key_of(k, key);

	return hash(info, key, len);
}

/* Two bytes of its fingerprint are those of a key that was in one of its buckets, or of an empty one. */
static bool is_chance(const struct asked *a, const struct reddn_info *info)
{
	const struct reddn_place p = place_of(a->key, info);

	/* an entry without a record */
	if (test.exact)
		return !test.t && a->key < KEYS;
	if (test.t && !(p.fp & 0xffff))
		return true;
	for (uint32_t k = 0; k < KEYS; k++) {
		const struct reddn_place o = place_of(k, info);

		if ((o.fp ^ p.fp) & 0xffff || (!test.key[k].there && test.key[k].since <= a->clock))
			continue;
		for (int i = 0; i < 4; i++)
			if (o.bucket[i / 2] == p.bucket[i % 2])
				return true;
	}
	return false;
}

/* A value names its key, and the change that put it. */
static void judge_value(const struct asked *a, const char *value, size_t len)
{
	char text[VALUE_MAX + 1] = "";
	uint64_t put;
	unsigned k;

	if (len <= VALUE_MAX)
		memcpy(text, value, len);
	if (sscanf(text, "%u %" SCNu64 ".", &k, &put) != 2 || k != a->key)
		die("key %u has %zu bytes, \"%s\"", a->key, len, text);
	if (put < a->oldest || put > test.key[k].put)
		die("key %u has the value of change %" PRIu64 ", and had those of %" PRIu64 " to %" PRIu64, k,
			put, a->oldest, test.key[k].put);
	test.values++;
}

static void judge(const struct asked *a, int status)
{
	const bool never = a->key >= KEYS, same = never || test.key[a->key].since <= a->clock;
	const bool there = !never && test.key[a->key].there;

	if (status < 0)
		die("key %u: %s; %s", a->key, strerror(-status), reddn_errmsg(test.c));
	if (status != 0 && status != REDDN_MISS)
		die("key %u: status %d", a->key, status);
	test.exist += !status;
	test.missing += status == REDDN_MISS;
	test.never += never && !a->gets;
	if (same && there && status)
		die("key %u is missing, and was there since change %lu of %lu", a->key,
			(unsigned long)test.key[a->key].since, (unsigned long)test.clock);
	if (!same || there || status)
		return;
	if (a->gets || (!is_chance(a, &test.info) && !is_chance(a, &test.before)))
		die("key %u exists, and was not there, at change %lu", a->key, (unsigned long)test.clock);
	test.chance += never;
}

/* Answers that have just come were judged with this geometry, or the one before. */
static void look(void)
{
	struct reddn_info now;

	reddn_get_info(test.c, &now);
	if (now.hash_seed != test.info.hash_seed || now.buckets != test.info.buckets)
		test.before = test.info;
	test.info = now;
}

/* ---- questions ---------------------------------------------------------------------------------- */

static void collect(bool wait)
{
	struct reddn_result res[1 + MANY];
	int n = wait ? reddn_wait(test.c, res, 1 + (int)rnd(MANY), WAIT_MS)
		     : reddn_poll(test.c, res, 1 + (int)rnd(MANY));

	if (n < 0 || (wait && n == 0))
		die("no answer: %s; %s", strerror(-n), reddn_errmsg(test.c));
	look();
	for (int i = 0; i < n; i++) {
		const uint64_t request = res[i].cookie / TOGETHER;
		struct asked *a = &test.asked[request][res[i].cookie % TOGETHER];

		if (!a->busy || (!a->gets && (res[i].value || res[i].length || res[i].version)) ||
			(a->gets && !res[i].status != !!res[i].value))
			die("a result that is none of a question");
		judge(a, res[i].status);
		if (res[i].value)
			judge_value(a, res[i].value, res[i].length);
		a->busy = false;
		test.left[request]--;
		test.busy--;
	}
}

static void submit(void)
{
	char bytes[TOGETHER][KEY_MAX];
	struct reddn_key keys[TOGETHER];
	const bool gets = test.info.shape == REDDN_TABLE && rnd(2);
	const unsigned n = 1 + rnd(gets ? test.info.keys : test.info.exists_keys);
	unsigned request = 0;
	struct asked *a;
	int r;

	while (request < DEPTH && test.left[request])
		request++;
	if (request == DEPTH)
		return;
	a = test.asked[request];
	for (unsigned i = 0; i < n; i++) {
		a[i] = question(i && rnd(8) == 0 ? a[i - 1].key : choose(), gets);
		keys[i] = (struct reddn_key){bytes[i], key_of(a[i].key, bytes[i])};
	}
	if (!gets)
		r = reddn_exists_submit(test.c, keys, n, request * TOGETHER);
	else if (n == 1 && rnd(2))
		r = reddn_get_submit(test.c, keys[0].key, keys[0].key_len, request * TOGETHER);
	else
		r = reddn_mget_submit(test.c, keys, n, request * TOGETHER);
	if (r < 0 && r != -EAGAIN)
		die("submit: %s; %s", strerror(-r), reddn_errmsg(test.c));
	if (r < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		a[i].busy = true;
	test.left[request] = n;
	test.busy += n;
	test.requests++;
}

/* As many as no request takes, or none; among them some that no table has */
static void ask_many(void)
{
	struct reddn_exists keys[MANY];
	struct asked asked[MANY];
	char bytes[MANY][KEY_MAX];
	size_t n = rnd(MANY + 1), first = n;
	const bool to_first = rnd(2);
	int r;

	for (size_t i = 0; i < n; i++) {
		/* most of a prefix are there */
		uint32_t k = to_first && rnd(8) ? rnd(STABLE) : choose();

		asked[i] = question(k, false);
		keys[i] = (struct reddn_exists){.key = bytes[i], .key_len = key_of(k, bytes[i])};
		if (rnd(64) == 0)
			keys[i].key_len = test.info.max_key + 1;
	}
	r = to_first ? reddn_first_missing(test.c, keys, n, &first) : reddn_exists(test.c, keys, n);
	if (r < 0)
		die("%zu keys: %s; %s", n, strerror(-r), reddn_errmsg(test.c));
	test.requests += n > 0;
	look();
	if (first < n && !keys[first].status)
		die("key %zu is the first that is missing, and exists", first);
	for (size_t i = 0; i < n && i <= first; i++) {
		bool too_long = keys[i].key_len > KEY_MAX;

		if (too_long && keys[i].status != -EMSGSIZE)
			die("a key that is too long has status %d", keys[i].status);
		if (i < first && to_first && keys[i].status)
			die("key %zu is missing, and not the first one", i);
		if (!too_long)
			judge(&asked[i], keys[i].status);
	}
}

/* The same of what they have */
static void get_many(void)
{
	struct reddn_mget keys[MANY];
	struct asked asked[MANY];
	char bytes[MANY][KEY_MAX], values[MANY][VALUE_MAX];
	const size_t n = rnd(MANY + 1);
	int r;

	for (size_t i = 0; i < n; i++) {
		uint32_t k = choose();

		asked[i] = question(k, true);
		keys[i] = (struct reddn_mget){.key = bytes[i],
			.key_len = key_of(k, bytes[i]),
			.buf = values[i],
			.buf_len = sizeof(values[i])};
	}
	r = reddn_mget(test.c, keys, n);
	if (r < 0)
		die("%zu gets: %s; %s", n, strerror(-r), reddn_errmsg(test.c));
	test.requests += n > 0;
	look();
	for (size_t i = 0; i < n; i++) {
		judge(&asked[i], keys[i].status);
		if (keys[i].status == 0)
			judge_value(&asked[i], values[i], keys[i].len);
	}
}

/* ---- changes ------------------------------------------------------------------------------------ */

static void set(uint32_t k, bool there)
{
	test.clock++;
	if (test.key[k].there != there)
		test.key[k].since = test.clock;
	if (there)
		test.key[k].put = test.clock;
	test.key[k].there = there;
}

static int write_key(uint32_t k, bool there)
{
	char key[KEY_MAX], value[VALUE_MAX] = "";
	size_t len = key_of(k, key),
	       value_len = (size_t)snprintf(value, sizeof(value), "%u %" PRIu64 ".", k, test.clock + 1);

	value_len += rnd(sizeof(value) - value_len + 1);
	if (test.t)
		return there ? reddn_table_put(test.t, key, len, value, value_len)
			     : reddn_table_delete(test.t, key, len);
	return there ? reddn_put(test.puts, key, len, value, value_len) : reddn_delete(test.puts, key, len);
}

static void change(uint32_t k, bool there)
{
	int r = write_key(k, there);

	if (r < 0 && r != -ENOSPC)
		die("key %u cannot be changed: %s", k, strerror(-r));
	if (r == 0)
		set(k, there);
	if (r == -ENOSPC && k < STABLE)
		die("no room for key %u", k);
}

/* What another process has left */
static void clear(void)
{
	for (uint32_t k = 0; k < KEYS; k++)
		change(k, false);
}

static void fill(void)
{
	for (uint32_t k = 0; k < KEYS; k++)
		if (k < STABLE || rnd(2))
			change(k, true);
}

static void empty(const struct reddn_table_options *opt)
{
	char err[256];

	reddn_table_close(test.t);
	if (reddn_table_create(&test.t, test.file, opt, err, sizeof(err)) < 0)
		die("%s", err);
	for (uint32_t k = 0; k < KEYS; k++)
		if (test.key[k].there)
			set(k, false);
}

/* By an empty one, or by one that has the same keys in other buckets */
static void replace(void)
{
	const struct reddn_table_options opt = {.buckets = rnd(2) ? 512 : 1024,
		.max_key = KEY_MAX,
		.max_value = VALUE_MAX,
		.heap_size = 1 << 17,
		.replace = 1};
	char err[256];
	int r;

	test.replaced++;
	if (rnd(2)) {
		empty(&opt);
		return;
	}
	if (reddn_table_grow(test.t, &opt, err, sizeof(err)) < 0)
		die("%s", err);
	do {
		collect(false);
		r = reddn_table_grow_step(test.t, 64, err, sizeof(err));
	} while (r == 0);
	if (r != REDDN_TABLE_END)
		die("%s", err);
}

static void step(void)
{
	switch (rnd(8)) {
	case 0:
	case 1:
	case 2:
		submit();
		break;
	case 3:
	case 4:
		for (unsigned n = rnd(4); n; n--) {
			uint32_t k = rnd(KEYS);

			change(k, k < STABLE || rnd(2));
		}
		break;
	case 5:
		if (test.t && test.requests >= test.replace_at) {
			replace();
			fill();
			test.replace_at += OF_A_TABLE;
		}
		break;
	case 6:
		if (rnd(16))
			break;
		while (test.busy)
			collect(true);
		if (test.info.shape == REDDN_TABLE && rnd(4) == 0)
			get_many();
		else
			ask_many();
		break;
	default:
		collect(test.busy && rnd(2));
	}
}

static struct reddn *connect_to(const char *host, const char *port, const char *offload)
{
	const struct reddn_options opt = {.host = host,
		.port = (uint16_t)atoi(port),
		.offload = offload,
		.depth = DEPTH,
		.timeout_ms = WAIT_MS,
		.retry_ms = WAIT_MS};
	struct reddn *c;
	char err[256];
	int r;

	/* On a busy machine the daemon may take long to open a table that has replaced another. */
	do
		r = reddn_connect(&c, &opt, err, sizeof(err));
	while (r == -ETIMEDOUT || r == -EHOSTUNREACH);
	if (r < 0)
		die("cannot connect to %s: %s", offload, err);
	return c;
}

/* How many keys that never were there may exist: of each probe, see libclient/reddn.h */
static double expected(void)
{
	return (double)test.never * 2 * 258 * 258 / 65536 / 65536;
}

static void report(const char *offload)
{
	printf("%s: %lu requests, %lu answers, 0 wrong, %lu exist, %lu values, %lu never there, %lu of them "
	       "exist by chance, %.1f expected at most, %lu changes, %lu replacements, %lu reconnects, "
	       "%lu repeated after a move\n",
		offload, test.requests, test.exist + test.missing, test.exist, test.values, test.never,
		test.chance, expected(), (unsigned long)test.clock, test.replaced,
		(unsigned long)test.info.reconnects, (unsigned long)test.info.retries_moved);
	fflush(stdout);
	if (!test.exist || !test.missing || !test.clock)
		die("that tests nothing");
	/* far beyond what chance does */
	if ((double)test.chance > expected() + 16 &&
		((double)test.chance - expected()) * ((double)test.chance - expected()) > 36 * expected())
		die("too many exist by chance");
}

int main(int argc, char **argv)
{
	unsigned long requests;
	char err[256];

	if (argc != 8 || (strcmp(argv[1], "table") != 0 && strcmp(argv[1], "store") != 0))
		die("usage: exists table HOST PORT OFFLOAD FILE REQUESTS SEED | exists store HOST PORT "
		    "OFFLOAD PUTS REQUESTS SEED");
	requests = strtoul(argv[6], NULL, 10);
	if (!requests)
		die("REQUESTS is a number from 1 on");
	random_seed(strtoull(argv[7], NULL, 10));
	if (argv[1][0] == 't') {
		test.file = argv[5];
		if (reddn_table_open(&test.t, test.file, REDDN_TABLE_WRITE, err, sizeof(err)) < 0)
			die("%s", err);
	} else {
		test.puts = connect_to(argv[2], argv[3], argv[5]);
	}
	clear();
	fill();
	test.replace_at = rnd(requests < OF_A_TABLE ? requests : OF_A_TABLE);
	test.c = connect_to(argv[2], argv[3], argv[4]);
	test.exact = strstr(argv[4], "exact");
	look();
	while (test.requests < requests)
		step();
	while (test.busy)
		collect(true);
	look();
	report(argv[4]);
	reddn_close(test.c);
	reddn_close(test.puts);
	reddn_table_close(test.t);
	return 0;
}
