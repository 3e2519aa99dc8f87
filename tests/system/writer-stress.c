/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writer-stress - a writer that inserts, replaces, moves and deletes at full speed while clients get.
 *   writer-stress make FILE                  make the table
 *   writer-stress write FILE STATE           write until "stop" (see struct state)
 *   writer-stress ask HOST PORT OFFLOAD STATE DEPTH GETS SEED
 *   writer-stress stop STATE                 stop the writer, print its counters
 * Part of writer-stress.sh. Writer and clients share the file STATE, where the writer counts what it does to
 * each key, so that a client knows which answers are right.
 */
#include "libclient/reddn-table.h"
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	BUCKETS = 4096,
	STABLE = 1200, /* keys that are never deleted */
	KEYS = 2300,   /* with half of the others present, 43 % of the buckets: inserts need moves */
	MAX_VALUE = 1024,
	MAX_DEPTH = 4096,
};

/*
 * Operations on a key have numbers from 1; what number n does follows from key and n. Operation `begun` may
 * have happened, operation `ended` has. A get sees the key after one of the operations from `ended` as of its
 * start to `begun` as of its end.
 */
struct state {
	atomic_uint stop;
	atomic_ulong operations, moves, full;
	struct {
		atomic_uint begun, ended;
	} key[KEYS];
};

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s >> 11;
}

static struct state *map_state(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct state *s;

	if (fd < 0 || ftruncate(fd, sizeof(*s)) < 0)
		die("%s: %s", file, strerror(errno));
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		die("%s: %s", file, strerror(errno));
	close(fd);
	return s;
}

/* True if operation n deletes the key: one of four does. */
static bool deletes(uint32_t key, uint32_t n)
{
	return key >= STABLE && n % 4 == 0;
}

/* The value after operation n. Each word contains key and n, so that a mixture is visible. */
static size_t value_of(uint32_t key, uint32_t n, uint32_t *val)
{
	size_t words = 2 + (key * 31 + n * 17) % (n % 8 ? 14 : MAX_VALUE / 4 - 2);

	for (size_t i = 0; i < words; i++)
		val[i] = i % 2 ? n ^ (uint32_t)i << 20 : key;
	return 4 * words;
}

static int operate(struct reddn_table *t, uint32_t key, uint32_t n)
{
	uint32_t val[MAX_VALUE / 4];
	size_t len;

	if (deletes(key, n))
		return reddn_table_delete(t, &key, sizeof(key));
	len = value_of(key, n, val);
	return reddn_table_put(t, &key, sizeof(key), val, len);
}

static void make(const char *file)
{
	/* In a small heap memory is soon reused. */
	struct reddn_table_options opt = {.buckets = BUCKETS,
		.heap_size = 360 * 1024,
		.max_key = 8,
		.max_value = MAX_VALUE,
		.seed = 4711};
	struct reddn_table *t;
	char err[256];

	if (reddn_table_create(&t, file, &opt, err, sizeof(err)) < 0)
		die("%s", err);
	reddn_table_close(t);
}

static void write_all(const char *file, struct state *s)
{
	struct reddn_table *t;
	struct reddn_table_stat st;
	uint64_t rng = 88172645463325252ull;
	char err[256];

	if (reddn_table_open(&t, file, REDDN_TABLE_WRITE, err, sizeof(err)) < 0)
		die("%s", err);
	for (uint32_t k = 0; k < STABLE; k++) {
		if (operate(t, k, 1) < 0)
			die("key %u cannot be put", k);
		atomic_store(&s->key[k].begun, 1);
		atomic_store(&s->key[k].ended, 1);
	}
	puts("ready");
	fflush(stdout);
	for (uint64_t i = 0; !atomic_load(&s->stop); i++) {
		/* Inserts and with them moves in half of the time: a miss is certain only when nothing moves.
		 */
		bool calm = i / 20000 % 2;
		uint32_t k = (uint32_t)(rnd(&rng) % (calm ? STABLE : KEYS)),
			 n = atomic_load(&s->key[k].ended) + 1;
		int r;

		atomic_store(&s->key[k].begun, n);
		r = operate(t, k, n);
		if (r < 0 && r != -ENOSPC)
			die("operation %u on key %u: %s", n, k, strerror(-r));
		if (r == -ENOSPC) {
			atomic_fetch_add(&s->full, 1);
			/* The operation failed: its number is used again. */
			atomic_store(&s->key[k].begun, n - 1);
			continue;
		}
		atomic_store(&s->key[k].ended, n);
		atomic_fetch_add(&s->operations, 1);
	}
	reddn_table_stat(t, &st);
	atomic_store(&s->moves, st.moves / 2);
	reddn_table_close(t);
}

/* ---- clients -------------------------------------------------------------------------------- */

struct flight {
	uint32_t key;
	uint32_t ended; /* when it was submitted */
	uint32_t next;
};

struct counts {
	unsigned long asked, hits, misses, uncertain;
};

static void judge(
	const struct state *s, const struct flight *f, const struct reddn_result *res, struct counts *n)
{
	uint32_t begun = atomic_load(&s->key[f->key].begun), want[MAX_VALUE / 4], op;
	const uint32_t *val = res->value;

	if (res->status == 0) {
		if (res->length < 8)
			die("key %u: a value of %zu bytes", f->key, res->length);
		op = val[1] ^ 1u << 20;
		if (op < f->ended || op > begun || deletes(f->key, op))
			die("key %u: the value of operation %u, which was due from %u to %u", f->key, op,
				f->ended, begun);
		if (res->length != value_of(f->key, op, want) || memcmp(val, want, res->length) != 0)
			die("key %u: a torn value of operation %u", f->key, op);
		n->hits++;
		return;
	}
	/* A stable key must be found; only other keys may have no certain answer. */
	if (res->status < 0 && res->status != -EAGAIN)
		die("key %u: %s", f->key, strerror(-res->status));
	if (f->key < STABLE)
		die("key %u, always present: %s", f->key,
			res->status == REDDN_MISS ? "not found" : strerror(-res->status));
	if (res->status == -EAGAIN) {
		n->uncertain++;
		return;
	}
	for (op = f->ended; op <= begun; op++)
		if (op == 0 || deletes(f->key, op))
			break;
	if (op > begun)
		die("key %u: not found, but present throughout operations %u to %u", f->key, f->ended, begun);
	n->misses++;
}

static void ask(const char *host, uint16_t port, const char *offload, const struct state *s, unsigned depth,
	unsigned long gets, uint64_t seed)
{
	struct reddn_options opt = {.host = host,
		.port = port,
		.offload = offload,
		.depth = (uint16_t)depth,
		.timeout_ms = 100000,
		.retry_ms = 20};
	static struct flight flights[MAX_DEPTH];
	uint64_t rng = seed * 0x9e3779b97f4a7c15ull | 1;
	struct reddn_result res[64];
	struct reddn_info info;
	struct counts n = {0};
	uint32_t unused = 0, busy = 0;
	struct reddn *c;
	char err[256];

	if (depth < 1 || depth > MAX_DEPTH)
		die("depth %u", depth);
	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		die("cannot connect: %s", err);
	for (uint32_t i = 0; i < depth; i++)
		flights[i].next = i + 1;
	while (n.asked < gets || busy) {
		int r;

		while (unused < depth && n.asked < gets) {
			struct flight *f = &flights[unused];

			/* Mostly keys that must be found. */
			f->key = (uint32_t)(rnd(&rng) % (rnd(&rng) % 4 ? STABLE : KEYS));
			f->ended = atomic_load(&s->key[f->key].ended);
			r = reddn_get_submit(c, &f->key, sizeof(f->key), unused);
			if (r == -EAGAIN)
				break;
			if (r < 0)
				die("submit: %s; %s", strerror(-r), reddn_errmsg(c));
			unused = f->next;
			n.asked++;
			busy++;
		}
		r = reddn_wait(c, res, 64, 20000);
		if (r < 0)
			die("%s: %s", strerror(-r), reddn_errmsg(c));
		if (r == 0)
			die("no answer in 20 seconds to %u requests", busy);
		for (int i = 0; i < r; i++) {
			struct flight *f = &flights[res[i].cookie];

			judge(s, f, &res[i], &n);
			f->next = unused;
			unused = (uint32_t)res[i].cookie;
			busy--;
		}
		reddn_release(c);
	}
	reddn_get_info(c, &info);
	reddn_close(c);
	printf("%s depth %u: %lu gets, %lu hits, %lu misses, %lu uncertain; again %lu moved, %lu overtaken\n",
		offload, depth, n.asked, n.hits, n.misses, n.uncertain, (unsigned long)info.retries_moved,
		(unsigned long)info.retries_overtaken);
	if (n.hits < gets / 2)
		die("too few hits");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "make")) {
		make(argv[2]);
	} else if (argc == 4 && !strcmp(argv[1], "write")) {
		write_all(argv[2], map_state(argv[3]));
	} else if (argc == 3 && !strcmp(argv[1], "stop")) {
		struct state *s = map_state(argv[2]);

		atomic_store(&s->stop, 1);
		printf("%lu operations so far, %lu refused for lack of room\n", atomic_load(&s->operations),
			atomic_load(&s->full));
	} else if (argc == 9 && !strcmp(argv[1], "ask")) {
		ask(argv[2], (uint16_t)arg_number(argv[3], UINT16_MAX), argv[4], map_state(argv[5]),
			(unsigned)arg_number(argv[6], UINT_MAX), arg_number(argv[7], ULONG_MAX),
			arg_number(argv[8], UINT64_MAX));
	} else {
		die("usage: writer-stress make FILE | write FILE STATE | ask HOST PORT OFFLOAD STATE DEPTH "
		    "GETS SEED | stop STATE");
	}
	return 0;
}
