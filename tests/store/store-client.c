/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store-client - puts, deletes and gets keys of a store at random, also on conditions, and records what
 * became of that, for history.py:
 *
 *	store-client HOST PORT OFFLOAD FILE CLIENT SEED KEYS HOT OPS
 *
 * A condition is that the key has the version that this client has seen last there, or none. CLIENT is a
 * number of its own: one with an odd number puts from registered memory, which it overwrites as soon as it
 * has the result. Of KEYS keys the first HOT are asked for as often as all others. The file is mapped, so
 * that it has what was done before the client was killed: an operation is in it before it is submitted, and
 * its end when there is one. SIGTERM ends it early.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"
#include "util/clock.h"
#include "util/xorshift.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* PLACES: of values; requests of two sessions that put are outstanding, at most */
enum { DEPTH = 8, PLACES = 2 * DEPTH, RESULTS = 16, VALUE_MOST = 900, PATIENCE_S = 100, RETRY_MS = 20000 };

enum kind { NONE, PUT, DELETE, GET, PUT_IF, DELETE_IF };

/* What history.py reads. All zero: not used */
struct record {
	uint64_t start, end; /* ns, CLOCK_MONOTONIC; end 0: there was none */
	uint64_t value;      /* that was put, or that a get has seen; 0: none, TORN: no value of any client */
	uint64_t version;    /* of what a get has seen, or a condition that did not hold */
	uint64_t wanted;     /* version of a condition */
	int32_t status;      /* of the result */
	uint32_t key;
	_Atomic uint8_t kind;
	uint8_t reserved[7];
};
_Static_assert(sizeof(struct record) == 56, "as history.py has it");

#define TORN UINT64_MAX

static struct reddn *store;
static uint64_t *seen; /* by key: the version that was there when this client looked last */
static struct {
	uint64_t by; /* cookie of its request + 1; 0: it is free */
	uint8_t value[VALUE_MOST];
} places[PLACES + 1]; /* the last one: for what finds no room */
static struct record *records;
static uint64_t rng, client, nkeys, hot, ops, used, ended;
static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static uint32_t rnd(void)
{
	return (uint32_t)(xorshift(&rng) >> 32);
}

static size_t key_of(uint32_t k, char key[32])
{
	return (size_t)snprintf(key, 32, "key-%u", k);
}

/* The bytes and the length of a value follow from its number. */
static size_t value_of(uint64_t value, uint8_t bytes[VALUE_MOST])
{
	uint64_t mix = value * 0x9e3779b97f4a7c15ull;
	size_t len = sizeof(value) + (mix >> 32) % (VALUE_MOST - sizeof(value));

	memcpy(bytes, &value, sizeof(value));
	for (size_t i = sizeof(value); i < len; i++)
		bytes[i] = (uint8_t)((mix >> 40) + i * 7);
	return len;
}

static uint64_t read_value(const void *bytes, size_t len)
{
	uint8_t want[VALUE_MOST];
	uint64_t value = 0;

	if (len < sizeof(value))
		return TORN;
	memcpy(&value, bytes, sizeof(value));
	return value_of(value, want) == len && memcmp(want, bytes, len) == 0 ? value : TORN;
}

static unsigned place_of(uint64_t by)
{
	unsigned i = 0;

	while (i < PLACES && places[i].by != by)
		i++;
	return i;
}

static void leave_place(uint64_t cookie)
{
	unsigned i = place_of(cookie + 1);

	if (i < PLACES)
		memset(&places[i], 0, sizeof(places[i]));
}

static int submit(const struct record *r, uint64_t cookie)
{
	uint8_t *value = places[place_of(0)].value;
	char key[32];
	size_t key_len = key_of(r->key, key);

	if (r->kind == GET)
		return reddn_get_submit(store, key, key_len, cookie);
	if (r->kind == DELETE)
		return reddn_delete_submit(store, key, key_len, cookie);
	if (r->kind == PUT_IF)
		return reddn_put_if_submit(
			store, key, key_len, value, value_of(r->value, value), r->wanted, cookie);
	if (r->kind == DELETE_IF)
		return reddn_delete_if_submit(store, key, key_len, r->wanted, cookie);
	return reddn_put_submit(store, key, key_len, value, value_of(r->value, value), cookie);
}

/* False: it was not, for now. */
static bool begin(enum kind kind)
{
	struct record *r = &records[used];

	r->key = (uint32_t)(rnd() % 2 ? rnd() % hot : rnd() % nkeys);
	r->value = kind == PUT || kind == PUT_IF ? client << 40 | (used + 1) : 0;
	r->wanted = kind == PUT_IF || kind == DELETE_IF ? seen[r->key] : 0;
	if (kind == DELETE_IF && !r->wanted)
		return false;
	r->start = clock_ns();
	atomic_store(&r->kind, (uint8_t)kind);
	if (submit(r, used) == 0) {
		if (r->value)
			places[place_of(0)].by = used + 1;
		used++;
		return true;
	}
	atomic_store(&r->kind, (uint8_t)NONE);
	return false;
}

static void take(const struct reddn_result *res)
{
	struct record *r = &records[res->cookie];

	leave_place(res->cookie);
	r->status = res->status;
	if (r->kind == GET && res->status == 0) {
		r->value = read_value(res->value, res->length);
	}
	r->version = res->version;
	if (r->kind == GET || r->kind == PUT_IF || r->kind == DELETE_IF)
		seen[r->key] = res->version;
	r->end = clock_ns();
	ended++;
}

static bool collect(struct reddn *c)
{
	struct reddn_result res[RESULTS];
	int n = reddn_poll(c, res, RESULTS);

	for (int i = 0; i < n; i++)
		take(&res[i]);
	reddn_release(c);
	return n > 0;
}

static void run(void)
{
	static const enum kind kinds[] = {
		GET, GET, GET, GET, PUT, PUT, PUT, DELETE, PUT_IF, PUT_IF, PUT_IF, DELETE_IF};
	uint64_t last = clock_ns();

	while (ended < used || (used < ops && !stopped)) {
		bool any = used < ops && !stopped && begin(kinds[rnd() % (sizeof(kinds) / sizeof(*kinds))]);

		any |= collect(store);
		if (any)
			last = clock_ns();
		else
			sched_yield();
		if (clock_ns() - last > PATIENCE_S * 1000000000ull)
			die("%llu of %llu requests have no result", (unsigned long long)(used - ended),
				(unsigned long long)used);
	}
}

static struct reddn *connect_to(const char *host, uint16_t port, const char *offload)
{
	const struct reddn_options opt = {.host = host,
		.port = port,
		.offload = offload,
		.depth = DEPTH,
		.timeout_ms = PATIENCE_S * 1000,
		.retry_ms = RETRY_MS};
	const uint64_t end = clock_ns() + PATIENCE_S * 1000000000ull;
	char err[256];
	struct reddn *c;
	int r;

	/* A daemon that has just begun has no extents yet */
	while ((r = reddn_connect(&c, &opt, err, sizeof(err))) == -EBUSY && clock_ns() < end)
		sched_yield();
	if (r < 0)
		die("%s", err);
	return c;
}

int main(int argc, char **argv)
{
	struct reddn_info info;
	int fd;

	if (argc != 10)
		die("usage: store-client HOST PORT OFFLOAD FILE CLIENT SEED KEYS HOT OPS");
	client = arg_number(argv[5], 1 << 20);
	rng = (arg_number(argv[6], UINT32_MAX) << 20 | client) * 0x9e3779b97f4a7c15ull;
	nkeys = arg_number(argv[7], UINT32_MAX);
	hot = arg_number(argv[8], UINT32_MAX);
	ops = arg_number(argv[9], UINT32_MAX);
	fd = open(argv[4], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, (off_t)(ops * sizeof(*records))) < 0)
		die("%s: %s", argv[4], strerror(errno));
	records = mmap(NULL, ops * sizeof(*records), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (records == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	signal(SIGTERM, on_signal);
	store = connect_to(argv[1], (uint16_t)arg_number(argv[2], UINT16_MAX), argv[3]);
	if (client % 2 && reddn_register(store, places, PLACES * sizeof(*places)) < 0)
		die("no registered memory: %s", reddn_errmsg(store));
	seen = calloc(nkeys, sizeof(*seen));
	if (!seen)
		die("no memory");
	run();
	reddn_get_info(store, &info);
	printf("%llu operations, %llu conflicts, %llu without an entry, %llu reconnects\n",
		(unsigned long long)ended, (unsigned long long)info.retries_conflict,
		(unsigned long long)info.retries_absent, (unsigned long long)info.reconnects);
	reddn_close(store);
	free(seen);
	return 0;
}
