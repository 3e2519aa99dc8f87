/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth-client write TABLE ENTRIES PUTS_PER_S STATE - puts ENTRIES new keys, and for each a new value of one
 *     that is there; 0: as fast as it can
 * growth-client read HOST PORT OFFLOAD STATE SEED - gets keys at random, one after the other, until the
 * writer is done
 *
 * Both print a JSON object of what they saw. STATE is a file that they share: it has the numbers of what was
 * put, so that a reader knows which answers are right, and when the table grew, so that it knows what its
 * longest gets met. It is made by the first, as long as it must be.
 */
#include "libclient/reddn-table.h"
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"
#include "tools/load/histogram.h"
#include "util/clock.h"
#include "util/xorshift.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* LONG_NS: gets that take so long are sorted by what they met */
enum {
	MOST_KEYS = 1 << 24,
	MOST_GROWTHS = 32,
	MOST_LONG = 65536,
	LONG_NS = 1000000,
	KEY = 16,
	TIMEOUT_MS = 60000,
	BATCH = 64
};

/* The value of a key: how often it has been put, and what follows from that and from the key */
struct value {
	uint32_t version, key;
	uint64_t sum[2];
};

/* ns (clock_ns) */
struct span {
	uint64_t begin, end;
};

/* The puts in which the larger file was made, and in which it took the name */
struct growth {
	struct span made, published;
};

/* Key i has version[i], at least, once that is there. Keys from `n` on have not been put. The growths are
 * complete when it is `done`. */
struct state {
	_Atomic uint32_t n, done;
	uint32_t growths;
	struct growth growth[MOST_GROWTHS];
	_Atomic uint32_t version[MOST_KEYS];
};

static struct value value_of(uint32_t key, uint32_t version)
{
	uint64_t sum = (key + 1) * 0x9e3779b97f4a7c15 ^ version * 0xbf58476d1ce4e5b9;

	return (struct value){version, key, {sum, ~sum}};
}

static size_t key_of(uint32_t i, char key[KEY])
{
	return (size_t)snprintf(key, KEY, "key-%08x", i);
}

static uint64_t next(uint64_t *rnd)
{
	return xorshift(rnd);
}

static struct state *open_state(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct state *s;

	if (fd < 0 || ftruncate(fd, sizeof(*s)) < 0)
		die("%s: %m", path);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (s == MAP_FAILED)
		die("%s: %m", path);
	return s;
}

/* ---- the writer ---- */

static bool grows(struct reddn_table *t)
{
	char err[256];
	int r = reddn_table_grow_step(t, 0, err, sizeof(err));

	if (r < 0)
		die("%s", err);
	return r == 0;
}

/* What a put has begun or ended */
static void note_growth(struct reddn_table *t, struct state *s, const struct span *put)
{
	struct growth *g = &s->growth[s->growths];

	if (s->growths == MOST_GROWTHS)
		die("it grew more than %d times", MOST_GROWTHS);
	if (grows(t) == !!g->made.begin)
		return;
	if (!g->made.begin) {
		g->made = *put;
	} else {
		g->published = *put;
		s->growths++;
	}
}

static void put(struct reddn_table *t, struct state *s, uint32_t i, uint64_t *longest)
{
	uint32_t version = s->version[i] + 1;
	struct value v = value_of(i, version);
	uint64_t begin = clock_ns(), took;
	char key[KEY];
	int r = reddn_table_put(t, key, key_of(i, key), &v, sizeof(v));

	if (r < 0)
		die("put of key %u: %s", i, strerror(-r));
	took = clock_ns() - begin;
	*longest = took > *longest ? took : *longest;
	note_growth(t, s, &(struct span){begin, begin + took});
	atomic_store_explicit(&s->version[i], version, memory_order_release);
}

static void wait_for(uint64_t begin, uint64_t puts, uint64_t per_s)
{
	uint64_t due = per_s ? begin + puts * 1000000000 / per_s : 0, now = clock_ns();

	if (due > now)
		nanosleep(&(struct timespec){(time_t)((due - now) / 1000000000),
				  (long)((due - now) % 1000000000)},
			NULL);
}

static void write_all(const char *path, uint32_t entries, uint64_t per_s, struct state *s)
{
	uint64_t begin = clock_ns(), rnd = 1, longest = 0;
	struct reddn_table *t;
	char err[256];
	double seconds;

	if (reddn_table_open(&t, path, REDDN_TABLE_WRITE, err, sizeof(err)) < 0)
		die("%s: %s", path, err);
	for (uint32_t i = 0; i < entries; i++) {
		put(t, s, i, &longest);
		atomic_store_explicit(&s->n, i + 1, memory_order_release);
		put(t, s, (uint32_t)(next(&rnd) % (i + 1)), &longest);
		if (i % BATCH == 0)
			wait_for(begin, 2ull * i, per_s);
	}
	seconds = (double)(clock_ns() - begin) / 1e9;
	s->done = 1;
	reddn_table_close(t);
	printf("{\"puts\": %u, \"puts_per_s\": %.0f, \"longest_put_ms\": %.3f}\n", 2 * entries,
		2.0 * entries / seconds, (double)longest / 1e6);
}

/* ---- a reader ---- */

/* What a get met: nothing; the larger file was made, or filled; or that took the name, so that the handle
 * went over to another session */
enum phase { BETWEEN, MADE, FILLED, REPLACED, PHASES };

static const char *const phases[PHASES] = {"between", "made", "filled", "replaced"};

static struct {
	struct histogram ns;
	uint64_t wrong, old, false_misses, errors;
	char why[256];
	struct long_get {
		struct span span;
		bool moved; /* to another session */
	} longs[MOST_LONG];
	uint32_t nlongs, sessions;
} seen;

static uint32_t sessions_of(struct reddn *c)
{
	struct reddn_info info;

	reddn_get_info(c, &info);
	return (uint32_t)info.reconnects + 1;
}

/* What has no room is reported by the longest of all */
static void keep_long(struct reddn *c, uint64_t begin, uint64_t end)
{
	uint32_t sessions = sessions_of(c);

	if (seen.nlongs < MOST_LONG)
		seen.longs[seen.nlongs++] = (struct long_get){{begin, end}, sessions != seen.sessions};
	seen.sessions = sessions;
}

static bool meets(const struct span *a, const struct span *b)
{
	return a->begin < b->end && b->begin < a->end;
}

static enum phase phase_of(const struct state *s, const struct long_get *l)
{
	enum phase met = BETWEEN;

	if (l->moved)
		return REPLACED;
	for (uint32_t i = 0; i <= s->growths && i < MOST_GROWTHS; i++) {
		const struct growth *g = &s->growth[i];
		const uint64_t end = g->published.end ? g->published.end : UINT64_MAX;

		if (!g->made.begin)
			continue;
		if (meets(&l->span, &g->made))
			return MADE;
		if (meets(&l->span, &(struct span){g->made.end, end}))
			met = FILLED;
	}
	return met;
}

/* {"phase": {"n": gets of LONG_NS and more, "longest_ms": M}, ...} */
static void print_phases(const struct state *s)
{
	uint64_t n[PHASES] = {0}, longest[PHASES] = {0};

	for (uint32_t i = 0; i < seen.nlongs; i++) {
		const struct long_get *l = &seen.longs[i];
		enum phase p = phase_of(s, l);
		uint64_t ns = l->span.end - l->span.begin;

		n[p]++;
		longest[p] = ns > longest[p] ? ns : longest[p];
	}
	for (unsigned p = 0; p < PHASES; p++)
		printf("%s\"%s\": {\"n\": %llu, \"longest_ms\": %.3f}", p ? ", " : "\"phases\": {", phases[p],
			(unsigned long long)n[p], (double)longest[p] / 1e6);
	printf("}, ");
}

static void look_at(const struct value *v, size_t len, uint32_t key, uint32_t version)
{
	struct value right = value_of(key, v->version);

	if (len != sizeof(*v) || memcmp(v, &right, sizeof(*v)) != 0)
		seen.wrong++;
	else if ((int32_t)(v->version - version) < 0)
		seen.old++;
}

static void get(struct reddn *c, struct state *s, uint32_t i)
{
	uint32_t version = atomic_load_explicit(&s->version[i], memory_order_acquire);
	uint64_t begin = clock_ns(), end;
	struct value v = {0};
	char key[KEY];
	size_t len = 0;
	int r = reddn_get(c, key, key_of(i, key), &v, sizeof(v), &len);

	end = clock_ns();
	histogram_add(&seen.ns, end - begin);
	if (end - begin >= LONG_NS)
		keep_long(c, begin, end);
	if (r < 0) {
		seen.errors++;
		snprintf(seen.why, sizeof(seen.why), "%s: %s", strerror(-r), reddn_errmsg(c));
	} else if (r == REDDN_MISS) {
		seen.false_misses++;
	} else {
		look_at(&v, len, i, version);
	}
}

static void read_until_done(struct reddn *c, struct state *s, uint64_t rnd)
{
	uint32_t n;

	seen.sessions = sessions_of(c);
	while (!s->done) {
		n = atomic_load_explicit(&s->n, memory_order_acquire);
		if (n)
			get(c, s, (uint32_t)(next(&rnd) % n));
	}
	printf("{");
	print_phases(s);
	printf("\"gets\": %llu, \"p50_us\": %.2f, \"p99_us\": %.2f, \"longest_ms\": %.3f, \"wrong\": %llu, "
	       "\"old\": %llu, "
	       "\"false_misses\": %llu, \"errors\": %llu, \"sessions\": %llu, \"why\": \"%s\"}\n",
		(unsigned long long)seen.ns.count, (double)histogram_at(&seen.ns, 0.5) / 1e3,
		(double)histogram_at(&seen.ns, 0.99) / 1e3, (double)seen.ns.max / 1e6,
		(unsigned long long)seen.wrong, (unsigned long long)seen.old,
		(unsigned long long)seen.false_misses, (unsigned long long)seen.errors,
		(unsigned long long)sessions_of(c), seen.why);
}

static void read_all(const char *host, const char *port, const char *offload, struct state *s, uint64_t seed)
{
	struct reddn_options opt = {.host = host,
		.port = (uint16_t)arg_number(port, UINT16_MAX),
		.offload = offload,
		.timeout_ms = TIMEOUT_MS};
	struct reddn *c;
	char err[256];

	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		die("%s", err);
	puts("connected");
	fflush(stdout);
	read_until_done(c, s, seed * 0x9e3779b97f4a7c15 + 1);
	reddn_close(c);
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "write") == 0)
		write_all(argv[2], (uint32_t)arg_number(argv[3], MOST_KEYS), arg_number(argv[4], 100000000),
			open_state(argv[5]));
	else if (argc == 7 && strcmp(argv[1], "read") == 0)
		read_all(argv[2], argv[3], argv[4], open_state(argv[5]), arg_number(argv[6], UINT32_MAX));
	else
		die("write TABLE ENTRIES PUTS_PER_S STATE | read HOST PORT OFFLOAD STATE SEED");
	return 0;
}
