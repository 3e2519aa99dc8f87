/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * puts ADDRESS PORT SEED [more]: puts, deletes and gets of the offload "users", one at a time, of keys that
 * it alone changes and of keys that all clients change. Each value describes itself. What is compared:
 *
 *   - of its own keys a get finds what was put last, or nothing after a delete; if it does not know whether
 *     the last one took place, because a session was lost, what was there before or that. Versions grow.
 *   - of others a value is whole, and no older one of a client follows a later one of the same.
 *
 * "more": own keys are new ones all the time, and the oldest are deleted, so that the server makes entries
 * and collects them. Goes on until SIGTERM, also when a session is lost. Then it gets all of its own keys,
 * and prints what was done.
 */
#include "libclient/reddn.h"
#include "util/xorshift.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 24, WINDOW = 8, SHARED = 6, CLIENTS = 64, LONGEST = 300, PATIENCE_MS = 60000 };

/* Of an own key: numbers of values, 0: none */
struct own {
	uint64_t number, had, has; /* .had is what it may have as well */
	uint64_t version;
};

static struct reddn *store;
static uint64_t seed, next = 1;
static struct own own[KEYS];
static uint64_t latest[SHARED][CLIENTS]; /* values seen, by client */
static struct {
	unsigned puts, deletes, hits, misses, unknown, full, none;
} did;
static volatile sig_atomic_t stopped;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "puts %" PRIu64 ": ", seed);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t state;

	if (!state)
		state = seed * 0x9e3779b97f4a7c15 + 1;
	return xorshift(&state) % n;
}

/* ---- values: who put it, his number of it, and bytes that follow from both ---- */

static size_t make_value(char *value, uint64_t client, uint64_t number)
{
	size_t n = (size_t)sprintf(value, "%" PRIu64 " %" PRIu64 " ", client, number);
	const size_t len = n + (client * 31 + number * 17) % (LONGEST - n);

	for (; n < len; n++)
		value[n] = (char)('a' + (client + number + n) % 26);
	return len;
}

static void read_value(const char *key, const struct reddn_result *r, uint64_t *client, uint64_t *number)
{
	char text[LONGEST + 1] = "", right[LONGEST + 1];

	if (r->length <= LONGEST)
		memcpy(text, r->value, r->length);
	if (sscanf(text, "%" SCNu64 " %" SCNu64 " ", client, number) != 2 || *client >= CLIENTS ||
		make_value(right, *client, *number) != r->length || memcmp(right, text, r->length) != 0)
		die("%s has a value of %zu bytes that nobody put: %s", key, r->length, text);
}

/* ---- requests ---- */

static struct reddn *connect_to(const char *address, const char *port, const char *offload)
{
	const struct reddn_options opt = {.host = address,
		.port = (uint16_t)strtoul(port, NULL, 10),
		.offload = offload,
		.depth = 4,
		.timeout_ms = PATIENCE_MS,
		.retry_ms = PATIENCE_MS};
	char err[256];
	struct reddn *c;

	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		die("%s: %s", offload, err);
	return c;
}

/* The value stays until the next one */
static struct reddn_result get_key(const char *key)
{
	struct reddn_result r;
	int n = reddn_get_submit(store, key, strlen(key), 0);

	if (n == 0)
		n = reddn_wait(store, &r, 1, PATIENCE_MS);
	if (n != 1)
		die("get %s: %s", key, n < 0 ? strerror(-n) : "no result");
	if (r.status < 0)
		die("get %s: %s", key, strerror(-r.status));
	did.hits += r.status == 0;
	did.misses += r.status != 0;
	return r;
}

/* False: it did not take place, or nobody knows */
static bool is_done(const char *what, const char *key, int r, bool *unknown)
{
	*unknown = r == -EINPROGRESS;
	did.unknown += *unknown;
	did.full += r == -ENOSPC;
	if (r < 0 && r != -EINPROGRESS && r != -ENOSPC)
		die("%s %s: %s", what, key, strerror(-r));
	return r >= 0;
}

static bool put_key(const char *key, uint64_t number, bool *unknown)
{
	char value[LONGEST + 1];
	const size_t len = make_value(value, seed, number);
	const bool done = is_done("put", key, reddn_put(store, key, strlen(key), value, len), unknown);

	did.puts += done;
	return done;
}

/* What nobody knows the end of may still take place, while gets go on: until another session answers, which a
 * daemon accepts when the queues of those before are stopped. Then it has, or never will */
static void settle(void)
{
	bool unknown = true;
	char key[32];

	sprintf(key, "never %" PRIu64, seed);
	while (unknown)
		is_done("delete", key, reddn_delete(store, key, strlen(key)), &unknown);
}

/* ---- own keys ---- */

static void name_own(const struct own *o, char key[32])
{
	sprintf(key, "own %" PRIu64 " %" PRIu64, seed, o->number);
}

static void check_own(struct own *o)
{
	uint64_t client = seed, number = 0;
	struct reddn_result r;
	char key[32];

	name_own(o, key);
	r = get_key(key);
	if (r.status == 0)
		read_value(key, &r, &client, &number);
	if (client != seed || (number != o->has && number != o->had))
		die("%s has %" PRIu64 " of client %" PRIu64 ", not %" PRIu64 " or %" PRIu64, key, number,
			client, o->has, o->had);
	if (number && r.version <= o->version && number != o->had)
		die("%s: version %" PRIu64 " follows %" PRIu64, key, r.version, o->version);
	o->had = o->has = number;
	if (number)
		o->version = r.version - 1; /* the same may come again */
}

static void put_own(struct own *o)
{
	const uint64_t number = next++;
	bool unknown;
	char key[32];

	name_own(o, key);
	if (put_key(key, number, &unknown))
		o->had = o->has = number;
	else if (unknown)
		o->has = number;
	if (unknown) {
		settle();
		check_own(o);
	}
}

static void delete_own(struct own *o)
{
	bool unknown;
	char key[32];
	int r;

	name_own(o, key);
	r = reddn_delete(store, key, strlen(key));
	if (r == REDDN_MISS && o->has && o->had)
		die("%s is absent, and had %" PRIu64, key, o->has);
	did.none += r == REDDN_MISS;
	if (is_done("delete", key, r, &unknown))
		o->had = 0;
	did.deletes += r == 0;
	o->has = 0;
	if (unknown) {
		settle();
		check_own(o);
	}
}

static void other_key(struct own *o)
{
	const uint64_t number = o->number + KEYS;

	delete_own(o);
	*o = (struct own){.number = number};
}

/* ---- shared keys ---- */

static void check_shared(unsigned k)
{
	uint64_t client, number;
	struct reddn_result r;
	char key[32];

	sprintf(key, "shared %u", k);
	r = get_key(key);
	if (r.status != 0)
		return;
	read_value(key, &r, &client, &number);
	if (number < latest[k][client])
		die("%s: value %" PRIu64 " of client %" PRIu64 " follows %" PRIu64, key, number, client,
			latest[k][client]);
	latest[k][client] = number;
}

/* Whatever another client puts comes after that */
static void put_shared(unsigned k)
{
	const uint64_t number = next++;
	bool unknown;
	char key[32];

	sprintf(key, "shared %u", k);
	if (put_key(key, number, &unknown))
		latest[k][seed] = number;
	check_shared(k);
}

static void delete_shared(unsigned k)
{
	bool unknown;
	char key[32];
	int r;

	sprintf(key, "shared %u", k);
	r = reddn_delete(store, key, strlen(key));
	is_done("delete", key, r, &unknown);
	did.deletes += r == 0;
	did.none += r == REDDN_MISS;
}

/* ---- all ---- */

static void step(bool more)
{
	struct own *o = &own[random_below(KEYS)];
	const unsigned k = (unsigned)random_below(SHARED);

	switch (random_below(10)) {
	case 0:
	case 1:
	case 2:
		put_own(o);
		return;
	case 3:
		if (more)
			other_key(o);
		else
			delete_own(o);
		return;
	case 4:
	case 5:
	case 6:
		check_own(o);
		return;
	case 7:
		put_shared(k);
		return;
	case 8:
		check_shared(k);
		return;
	default:
		delete_shared(k);
	}
}

static void on_term(int sig)
{
	(void)sig;
	stopped = 1;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		die("usage: puts ADDRESS PORT SEED [more]");
	seed = strtoull(argv[3], NULL, 10);
	signal(SIGTERM, on_term);
	store = connect_to(argv[1], argv[2], "users");
	for (unsigned i = 0; i < KEYS; i++)
		own[i].number = i;
	while (!stopped)
		step(argc > 4);
	for (unsigned i = 0; i < KEYS; i++)
		check_own(&own[i]);
	printf("%u puts, %u deletes, %u of nothing, %u hits, %u misses, %u unknown, %u full\n", did.puts,
		did.deletes, did.none, did.hits, did.misses, did.unknown, did.full);
	reddn_close(store);
	return 0;
}
