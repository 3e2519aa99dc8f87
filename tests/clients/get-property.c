/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * get-property - random tables, and gets whose answers must equal the table.
 *   get-property make KIND SEED FILE     make and fill a table: small, sizes, long-keys, full or tiny
 *   get-property ask HOST PORT OFFLOAD FILE DEPTH GETS SEED
 * Part of get-property.sh.
 */
#include "libclient/reddn-table.h"
#include "libclient/reddn.h"
#include "tests/lib/die.h"
#include "tests/lib/random.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 65536, RESULTS = 7, MANY = 40 };

static const struct kind {
	const char *name;
	struct reddn_table_options opt;
	unsigned entries;
	uint32_t key_max; /* of the keys that are put */
} kinds[] = {
	{"small", {.buckets = 4096, .max_key = 24, .max_value = 29}, 1500, 24},
	{"sizes", {.buckets = 256, .max_key = 64, .heap_size = 8 << 20}, 100, 64},
	{"long-keys", {.buckets = 64, .max_value = 100, .heap_size = 4 << 20}, 24, KEY_MAX},
	{"full", {.buckets = 8192, .max_key = 12, .max_value = 64}, 1 << 20, 12},
	{"tiny", {.buckets = 2, .max_key = 8, .max_value = 8}, 2, 8},
};

/* Sizes at boundaries: nothing, one WQE segment, a page, the limits. */
static uint32_t value_size(uint32_t max)
{
	static const uint32_t sizes[] = {0, 1, 27, 28, 29, 4096, 65535, 65536};
	uint32_t size = rnd(3) ? sizes[rnd(sizeof(sizes) / sizeof(sizes[0]))] : (uint32_t)rnd(max + 1);

	return size < max ? size : max;
}

static void fill(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rnd(256);
}

static int make(const char *name, const char *file)
{
	static uint8_t key[KEY_MAX], val[65536];
	const struct kind *k = NULL;
	struct reddn_table_options opt;
	struct reddn_table_stat st;
	struct reddn_table *t;
	char err[256];
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			k = &kinds[i];
	if (!k)
		die("no kind \"%s\"", name);
	opt = k->opt;
	opt.seed = rng;
	if (reddn_table_create(&t, file, &opt, err, sizeof(err)) < 0)
		die("%s", err);
	reddn_table_stat(t, &st);
	for (; n < k->entries; n++) {
		uint32_t key_len = 1 + (uint32_t)rnd(k->key_max), val_len = value_size(st.max_value);
		int r;

		fill(key, key_len);
		fill(val, val_len);
		r = reddn_table_put(t, key, key_len, val, val_len);
		/* Only the kind "full" may be full. */
		if (r == -ENOSPC && n > st.buckets * 4 / 10)
			break;
		if (r < 0)
			die("%s: entry %u: %s", file, n, strerror(-r));
	}
	reddn_table_stat(t, &st);
	printf("%s: %lu entries in %lu buckets, %lu moves\n", name, (unsigned long)st.entries,
		(unsigned long)st.buckets, (unsigned long)st.moves / 2);
	reddn_table_close(t);
	return 0;
}

/* ---- asking -------------------------------------------------------------------------------- */

struct key {
	uint8_t *bytes;
	uint32_t len;
};

struct ask {
	struct reddn *c;
	struct reddn_table *t;
	struct reddn_info info;
	struct key *keys; /* of the table */
	size_t nkeys;
	struct key *flights; /* by cookie; len 0: none */
	unsigned busy;
	unsigned long asked, hits, misses;
};

static void load_keys(struct ask *a)
{
	struct reddn_table_entry e;
	struct reddn_table_stat st;
	uint64_t pos = 0;

	reddn_table_stat(a->t, &st);
	a->keys = calloc(st.entries + 1, sizeof(*a->keys));
	while (reddn_table_next(a->t, &pos, &e) == 0) {
		struct key *k = &a->keys[a->nkeys++];

		k->len = (uint32_t)e.key_len;
		k->bytes = malloc(e.key_len);
		memcpy(k->bytes, e.key, e.key_len);
	}
	if (a->nkeys != st.entries)
		die("%zu of %lu keys found", a->nkeys, (unsigned long)st.entries);
}

/* A key of the table, a key that differs little from one, or any key. */
static void choose(struct ask *a, struct key *k)
{
	const struct key *of = &a->keys[rnd(a->nkeys)];

	memcpy(k->bytes, of->bytes, of->len);
	k->len = of->len;
	switch (rnd(8)) {
	case 0:
		k->bytes[rnd(k->len)] ^= (uint8_t)(1 << rnd(8));
		break;
	case 1:
		if (k->len < a->info.max_key)
			k->bytes[k->len++] = 0;
		break;
	case 2:
		if (k->len > 1)
			k->len--;
		break;
	case 3:
		k->len = 1 + (uint32_t)rnd(a->info.max_key);
		fill(k->bytes, k->len);
		break;
	}
}

static void check(struct ask *a, const struct key *k, int status, const void *val, size_t len)
{
	const void *want;
	size_t want_len;
	int r = reddn_table_get(a->t, k->bytes, k->len, &want, &want_len);

	if (r < 0)
		die("reddn_table_get: %s", strerror(-r));
	if (status < 0)
		die("get %lu, key of %u bytes: %s; %s", a->asked, k->len, strerror(-status),
			reddn_errmsg(a->c));
	if (status != (r == REDDN_TABLE_MISS ? REDDN_MISS : 0))
		die("get %lu, key of %u bytes: %s, but the table %s it", a->asked, k->len,
			status ? "a miss" : "a hit", status ? "has" : "lacks");
	if (status) {
		a->misses++;
		return;
	}
	if (len != want_len || memcmp(val, want, len) != 0)
		die("get %lu, key of %u bytes: a wrong value of %zu bytes, expected %zu bytes", a->asked,
			k->len, len, want_len);
	a->hits++;
}

static void collect(struct ask *a, bool wait)
{
	struct reddn_result res[RESULTS];
	int n = wait ? reddn_wait(a->c, res, 1 + (int)rnd(RESULTS), 10000)
		     : reddn_poll(a->c, res, 1 + (int)rnd(RESULTS));

	if (n < 0)
		die("%s: %s", strerror(-n), reddn_errmsg(a->c));
	if (wait && n == 0 && a->busy)
		die("no answer in 10 seconds, %u requests are outstanding", a->busy);
	for (int i = 0; i < n; i++) {
		struct key *k = &a->flights[res[i].cookie];

		check(a, k, res[i].status, res[i].value, res[i].length);
		k->len = 0;
		a->busy--;
	}
}

static void ask_one(struct ask *a, uint8_t *buf)
{
	struct key k = {.bytes = malloc(KEY_MAX)};
	size_t len;
	int r;

	choose(a, &k);
	r = reddn_get(a->c, k.bytes, k.len, buf, a->info.max_value, &len);
	a->asked++;
	check(a, &k, r, buf, len);
	free(k.bytes);
}

/* Some keys at once, also more than a request takes */
static void ask_several(struct ask *a)
{
	struct reddn_mget keys[MANY];
	struct key k[MANY];
	unsigned n = 1 + (unsigned)rnd(MANY);
	int r;

	for (unsigned i = 0; i < n; i++) {
		k[i].bytes = malloc(KEY_MAX);
		choose(a, &k[i]);
		keys[i] = (struct reddn_mget){.key = k[i].bytes,
			.key_len = k[i].len,
			.buf = malloc(a->info.max_value + 1),
			.buf_len = a->info.max_value};
	}
	r = reddn_mget(a->c, keys, n);
	if (r < 0)
		die("mget: %s; %s", strerror(-r), reddn_errmsg(a->c));
	a->asked += n;
	for (unsigned i = 0; i < n; i++) {
		check(a, &k[i], keys[i].status, keys[i].buf, keys[i].len);
		free(keys[i].buf);
		free(k[i].bytes);
	}
}

static int ask(const char *host, uint16_t port, const char *offload, const char *file, unsigned depth,
	unsigned long gets)
{
	struct reddn_options opt = {.host = host,
		.port = port,
		.offload = offload,
		.depth = (uint16_t)depth,
		.timeout_ms = 100000};
	struct ask a = {0};
	char err[256];
	uint8_t *buf;

	if (reddn_table_open(&a.t, file, 0, err, sizeof(err)) < 0)
		die("%s", err);
	load_keys(&a);
	if (reddn_connect(&a.c, &opt, err, sizeof(err)) < 0)
		die("cannot connect: %s", err);
	reddn_get_info(a.c, &a.info);
	buf = malloc(a.info.max_value + 1);
	a.flights = calloc(depth, sizeof(*a.flights));
	for (unsigned i = 0; i < depth; i++)
		a.flights[i].bytes = malloc(KEY_MAX);
	while (a.asked < gets) {
		unsigned i = (unsigned)rnd(depth);
		int r;

		if (!a.busy && rnd(4) == 0)
			ask_one(&a, buf);
		if (!a.busy && a.info.keys > 1)
			ask_several(&a);
		for (unsigned k = 0; k < depth && a.flights[i].len; k++)
			i = (i + 1) % depth;
		if (!a.flights[i].len) {
			choose(&a, &a.flights[i]);
			r = reddn_get_submit(a.c, a.flights[i].bytes, a.flights[i].len, i);
			if (r < 0 && r != -EAGAIN)
				die("submit: %s; %s", strerror(-r), reddn_errmsg(a.c));
			if (r == 0) {
				a.asked++;
				a.busy++;
				continue;
			}
			a.flights[i].len = 0;
		}
		collect(&a, rnd(2));
	}
	while (a.busy)
		collect(&a, true);
	reddn_get_info(a.c, &a.info);
	printf("%s depth %u: %lu gets, %lu hits, %lu misses, %lu sent\n", offload, depth, a.asked, a.hits,
		a.misses, (unsigned long)a.info.sent);
	if (!a.hits || !a.misses)
		die("the test did not see both hits and misses");
	reddn_close(a.c);
	reddn_table_close(a.t);
	for (unsigned i = 0; i < depth; i++)
		free(a.flights[i].bytes);
	for (size_t i = 0; i < a.nkeys; i++)
		free(a.keys[i].bytes);
	free(a.flights);
	free(a.keys);
	free(buf);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "make")) {
		random_seed(strtoull(argv[3], NULL, 10));
		return make(argv[2], argv[4]);
	}
	if (argc == 9 && !strcmp(argv[1], "ask")) {
		random_seed(strtoull(argv[8], NULL, 10));
		return ask(argv[2], (uint16_t)atoi(argv[3]), argv[4], argv[5], (unsigned)atoi(argv[6]),
			strtoul(argv[7], NULL, 10));
	}
	die("usage: get-property make KIND SEED FILE | ask HOST PORT OFFLOAD FILE DEPTH GETS SEED");
}
