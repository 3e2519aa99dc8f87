/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * into - gets values into registered memory while it changes them, and judges each by what was there from the
 * request to the result. Nothing may be written but in places of outstanding requests.
 *   into table HOST PORT OFFLOAD FILE GETS SEED      as the writer of the table FILE, which has none of its
 * keys into store HOST PORT OFFLOAD PUTS GETS SEED      puts and deletes by the offload PUTS into late HOSTS
 * PORT OFFLOAD GETS                of two hosts with the same values, whose replies come late now and then: a
 * place that was given back stays as it is Part of into.sh.
 */
#include "libclient/reddn-table.h"
#include "libclient/reddn.h"
#include "tests/lib/die.h"
#include "tests/lib/random.h"
#include "util/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* MOST: bytes of the longest value. PLACE: of a place and the gap behind it. FRESH_MS: longer than a late
 * reply is */
enum {
	KEYS = 60,
	KEY_MAX = 32,
	DEPTH = 8,
	MOST = 20000,
	PLACE = 20096,
	GAP = 0x5a,
	WAIT_MS = 60000,
	FRESH_MS = 300
};

static struct {
	struct reddn *c;
	struct reddn_table *t; /* which this process writes; NULL: a store, */
	struct reddn *puts;    /* which is changed by this */
	struct {
		uint32_t version; /* of its value; an odd one: it is absent */
	} key[KEYS];
	struct {
		bool busy;
		uint32_t key, version, room;
		uint8_t *at;
	} asked[DEPTH];
	unsigned busy;
	unsigned long hits, misses, long_ones, bytes;
} test;

static uint8_t memory[DEPTH * PLACE + PLACE];

static size_t key_of(uint32_t k, char key[KEY_MAX])
{
	return (size_t)snprintf(key, KEY_MAX, "%*u", (int)(2 + k % 24), k);
}

static uint32_t length_of(uint32_t k, uint32_t version)
{
	return version % 8 == 0 && k % 8 == 0 ? MOST : 8 + (k * 7919 + version * 104729) % 3000;
}

static void value_of(uint32_t k, uint32_t version, uint8_t *value, uint32_t len)
{
	const uint32_t words[2] = {k, version};

	for (uint32_t i = 0; i < len; i++)
		value[i] =
			i < sizeof(words) ? ((const uint8_t *)words)[i] : (uint8_t)(k + version * 31 + i * 7);
}

/* ---- the writer --------------------------------------------------------------------------------- */

static void must(int r, const char *what)
{
	if (r < 0)
		die("%s: %s; %s", what, strerror(-r), test.c ? reddn_errmsg(test.c) : "");
}

static void change(uint32_t k)
{
	const uint32_t version = test.key[k].version + 1, len = length_of(k, version);
	uint8_t value[MOST];
	char key[KEY_MAX];
	size_t key_len = key_of(k, key);

	value_of(k, version, value, len);
	if (version % 2)
		must(test.t ? reddn_table_delete(test.t, key, key_len)
			    : reddn_delete(test.puts, key, key_len),
			"delete");
	else
		must(test.t ? reddn_table_put(test.t, key, key_len, value, len)
			    : reddn_put(test.puts, key, key_len, value, len),
			"put");
	test.key[k].version = version;
}

/* ---- the reader --------------------------------------------------------------------------------- */

static void gaps(void)
{
	const uint8_t *busy_to = memory;

	for (unsigned i = 0; i <= DEPTH; i++) {
		const uint8_t *to = i < DEPTH && test.asked[i].busy ? test.asked[i].at : memory + i * PLACE;

		for (const uint8_t *p = busy_to; p < to; p++)
			if (*p != GAP)
				die("byte %zu was written outside of the places", (size_t)(p - memory));
		if (i < DEPTH && test.asked[i].busy)
			busy_to = to + test.asked[i].room;
		else if (i < DEPTH)
			busy_to = to;
	}
}

static void judge(unsigned i, const struct reddn_result *res)
{
	const uint32_t k = test.asked[i].key, from = test.asked[i].version, to = test.key[k].version;
	const uint32_t room = test.asked[i].room;
	uint8_t value[MOST];
	uint32_t words[2];

	if (res->status == REDDN_MISS) {
		if (from == to && from % 2 == 0)
			die("key %u is missing, and was there in version %u", k, from);
		test.misses++;
	} else if (res->status == -EMSGSIZE) {
		bool can = false;

		for (uint32_t version = from; version <= to; version++)
			can |= version % 2 == 0 && length_of(k, version) == res->length;
		if (!can || res->length <= room)
			die("key %u has no value of %zu bytes, with room for %u", k, res->length, room);
		test.long_ones++;
	} else if (res->status < 0) {
		die("key %u: %s; %s", k, strerror(-res->status), reddn_errmsg(test.c));
	} else {
		if (res->value != test.asked[i].at || res->length > room || res->length < sizeof(words))
			die("key %u: %zu bytes at %p", k, res->length, res->value);
		memcpy(words, res->value, sizeof(words));
		value_of(k, words[1], value, (uint32_t)res->length);
		if (words[0] != k || words[1] < from || words[1] > to || words[1] % 2 ||
			res->length != length_of(k, words[1]) || memcmp(value, res->value, res->length) != 0)
			die("key %u: a wrong value, of key %u version %u; %u to %u were there", k, words[0],
				words[1], from, to);
		test.hits++;
		test.bytes += res->length;
	}
	memset(test.asked[i].at, GAP, room);
	test.asked[i].busy = false;
	test.busy--;
}

static void take(void)
{
	struct reddn_result res[DEPTH];
	int n = reddn_wait(test.c, res, DEPTH, WAIT_MS);

	must(n, "wait");
	if (!n)
		die("no result in %d s", WAIT_MS / 1000);
	gaps();
	for (int i = 0; i < n; i++)
		judge((unsigned)res[i].cookie, &res[i]);
}

static void ask(void)
{
	unsigned i = 0;
	char key[KEY_MAX];
	int r;

	while (test.asked[i].busy)
		i++;
	test.asked[i].key = rnd(KEYS);
	test.asked[i].version = test.key[test.asked[i].key].version;
	test.asked[i].at = memory + i * PLACE + rnd(64);
	test.asked[i].room = rnd(3) ? MOST : rnd(2000);
	r = reddn_get_into_submit(
		test.c, key, key_of(test.asked[i].key, key), test.asked[i].at, test.asked[i].room, i);
	must(r, "submit");
	test.asked[i].busy = true;
	test.busy++;
}

static struct reddn *connect_to(const char *host, const char *port, const char *offload, unsigned flags)
{
	struct reddn_options opt = {.host = host,
		.port = (uint16_t)atoi(port),
		.offload = offload,
		.depth = DEPTH,
		.timeout_ms = WAIT_MS,
		.flags = (uint16_t)flags};
	struct reddn *c;
	char err[512];

	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		die("%s: %s", offload, err);
	return c;
}

/* What a caller may do wrong, which loses nothing */
/* A NIC that takes no dmabuf, and nothing that could be one */
static void refuses_dmabuf(void)
{
	const int fd = memfd_create("none", MFD_CLOEXEC);

	if (reddn_register_dmabuf(test.c, memory, 0, fd, 0) != -EINVAL)
		die("no bytes of a dmabuf");
	if (reddn_register_dmabuf(test.c, memory, 4096, fd, 0) != -EOPNOTSUPP ||
		!strstr(reddn_errmsg(test.c), "takes no dmabuf"))
		die("no word about a dmabuf: %s", reddn_errmsg(test.c));
	close(fd);
	if (reddn_register_dmabuf(test.c, memory, 4096, fd, 0) != -EBADF ||
		!strstr(reddn_errmsg(test.c), "descriptor"))
		die("no word about a descriptor: %s", reddn_errmsg(test.c));
}

static void misuse(const char *host, const char *port, const char *offload)
{
	struct reddn_options opt = {
		.host = host, .port = (uint16_t)atoi(port), .offload = offload, .timeout_ms = WAIT_MS};
	struct reddn_into into = {.key = "k", .key_len = 1, .at = memory, .room = sizeof(memory) + 1};
	struct reddn_result res;
	char pieces[16];
	struct reddn *c;
	char err[512];
	size_t len;

	if (reddn_connect(&c, &opt, err, sizeof(err)) != -EOPNOTSUPP || !strstr(err, "REDDN_INTO"))
		die("without REDDN_INTO: %s", err);
	if (reddn_get_submit(test.c, "k", 1, 0) != -EINVAL || reddn_register(test.c, memory, 0) != -EINVAL)
		die("what such a handle does not take");
	if (reddn_mget_into(test.c, &into, 1) != -EFAULT ||
		reddn_get_into(test.c, "k", 1, pieces, sizeof(pieces), &len) != -EFAULT ||
		reddn_get_into(test.c, "k", 1, NULL, 0, &len) != -EFAULT)
		die("a place that is not registered");
	refuses_dmabuf();
	for (int i = 1; i < 16; i++)
		must(reddn_register(test.c, &pieces[i], 1), "register");
	if (reddn_register(test.c, pieces, 1) != -ENOSPC)
		die("17 pieces");
	must(reddn_get_into_submit(test.c, "none", 4, memory, 0, 0), "submit");
	if (reddn_unregister(test.c, &pieces[1]) != -EBUSY)
		die("a piece with a request");
	if (reddn_wait(test.c, &res, 1, WAIT_MS) != 1 || res.status != REDDN_MISS)
		die("a key that is absent, without room: %s; %s", strerror(-res.status),
			reddn_errmsg(test.c));
	for (int i = 1; i < 16; i++)
		must(reddn_unregister(test.c, &pieces[i]), "unregister");
	if (reddn_unregister(test.c, &pieces[1]) != -ENOENT)
		die("a piece that is not there");
}

static int changes(char **argv)
{
	const bool is_table = strcmp(argv[1], "table") == 0;
	unsigned long gets = strtoul(argv[6], NULL, 10), asked = 0;
	char err[256];

	random_seed(strtoull(argv[7], NULL, 10));
	if (is_table && reddn_table_open(&test.t, argv[5], REDDN_TABLE_WRITE, err, sizeof(err)) < 0)
		die("%s", err);
	test.c = connect_to(argv[2], argv[3], argv[4], REDDN_INTO);
	if (!is_table)
		test.puts = connect_to(argv[2], argv[3], argv[5], 0);
	for (uint32_t k = 0; k < KEYS; k++) {
		change(k);
		if (k % 4)
			change(k);
	}
	memset(memory, GAP, sizeof(memory));
	must(reddn_register(test.c, memory, sizeof(memory)), "register");
	misuse(argv[2], argv[3], argv[4]);
	while (asked < gets || test.busy) {
		if (rnd(4) == 0)
			change(rnd(KEYS));
		else if (asked < gets && test.busy < DEPTH)
			ask(), asked++;
		else
			take();
	}
	if (!test.hits || !test.misses || !test.long_ones)
		die("that tests nothing: %lu hits, %lu misses, %lu too long", test.hits, test.misses,
			test.long_ones);
	printf("%lu gets: %lu hits of %lu bytes, %lu misses, %lu too long\n", asked, test.hits, test.bytes,
		test.misses, test.long_ones);
	reddn_close(test.puts);
	reddn_close(test.c);
	reddn_table_close(test.t);
	return 0;
}

/* ---- late replies ------------------------------------------------------------------------------- */

static void stays(const uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != GAP)
			die("byte %zu was written behind the result", i);
}

static int late(char **argv)
{
	unsigned long gets = strtoul(argv[5], NULL, 10);
	struct reddn_host_info host[2];
	uint64_t since;
	size_t len;

	test.c = connect_to(argv[2], argv[3], argv[4], REDDN_INTO);
	must(reddn_register(test.c, memory, sizeof(memory)), "register");
	for (unsigned long n = 0; n < gets; n++) {
		uint8_t *at = memory + n % DEPTH * PLACE;
		int r = reddn_get_into(test.c, "alice", 5, at, MOST, &len);

		if (r || len != 5 || memcmp(at, "value", 5) != 0)
			die("get %lu: %d, %zu bytes; %s", n, r, len, reddn_errmsg(test.c));
		memset(memory, GAP, sizeof(memory));
		for (since = clock_ms(); clock_ms() - since < FRESH_MS;) {
			struct reddn_result res;

			must(reddn_poll(test.c, &res, 1), "poll");
			stays(memory, sizeof(memory));
		}
		must(reddn_get_host(test.c, 0, &host[0]), "host");
		must(reddn_get_host(test.c, 1, &host[1]), "host");
		printf("late %lu\n", (unsigned long)(host[0].late + host[1].late));
		fflush(stdout);
	}
	reddn_close(test.c);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "late") == 0)
		return late(argv);
	if (argc != 8)
		die("usage: into table|store HOST PORT OFFLOAD FILE|PUTS GETS SEED; into late HOSTS PORT "
		    "OFFLOAD GETS");
	return changes(argv);
}
