/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endless make DIR - writes regions for programs with unbounded loops.
 * endless ask HOST PORT OFFLOAD DIR DEPTH COUNT SEED - calls the offload of one of them through
 * libreddn and compares each answer with plain C. COUNT 0: until the session ends; then it prints the reason.
 * endless one HOST PORT OFFLOAD ARGUMENT... - calls once with these numbers and waits without a limit.
 * endless each HOST PORT OFFLOAD CONNECTIONS ARGUMENT... - the same on each of so many connections of a
 * session. endless beside ... - the same as each, but the first one looks for what it does not find; the
 * first answer of the others counts. endless hold HOST PORT OFFLOAD ARGUMENT... - as one, and stays
 * connected.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/random.h"
#include "tests/programs/turing.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ELEMENTS = 6000,
	ELEMENT = 8,
	NODES = 5000,
	NODE = 19,
	HEAP = 65536,
	VALUE_AT = 64,
	CELLS = 8192,
	MACHINE = 100, /* cells for one machine with an empty tape */
	DEPTH_MAX = 16,
	TIMEOUT_MS = 100000,
};

static const char busy_beaver[] = "1RB1LB_1LA0LC_1RH1LD_1RD0RA";

static void put_be(uint8_t *p, unsigned bytes, uint64_t v)
{
	for (; bytes--; v >>= 8)
		p[bytes] = (uint8_t)v;
}

static uint64_t get_be(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static uint64_t get_le(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* ---- files ----------------------------------------------------------------------------------------------
 */

static uint8_t *map(const char *dir, const char *name, size_t size)
{
	char path[1000];
	struct stat st;
	uint8_t *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, size ? O_RDWR | O_CREAT : O_RDWR, 0600);
	if (fd < 0 || (size && ftruncate(fd, (off_t)size)) || fstat(fd, &st))
		err(1, "%s", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	return p;
}

static uint64_t value_of(unsigned element)
{
	return element * 1000ull + 7;
}

static uint64_t key_of(unsigned node)
{
	return node * 0x10001ull;
}

/* A list through all nodes in random order, with node 0 at its end, and behind it a circular list */
static void make_nodes(uint8_t *nodes)
{
	static unsigned order[NODES];

	for (unsigned i = 1; i < NODES; i++)
		order[i] = i;
	for (unsigned i = NODES - 1; i > 1; i--) {
		unsigned k = 1 + (unsigned)rnd(i), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (unsigned i = 1; i < NODES; i++) {
		uint8_t *n = nodes + order[i] * (size_t)NODE;

		put_be(n, 5, i + 1 < NODES ? order[i + 1] * (uint64_t)NODE : 0);
		for (unsigned b = 0; b < 6; b++)
			n[5 + b] = (uint8_t)(key_of(order[i]) >> 8 * b);
		put_be(n + 11, 3, 1 + rnd(800));
		put_be(n + 14, 5, rnd(HEAP - 1024));
	}
	put_be(nodes, 5, order[1] * (uint64_t)NODE); /* the head */
	for (unsigned i = NODES; i < NODES + 10; i++)
		put_be(nodes + i * (size_t)NODE, 5, (NODES + (i + 1 - NODES) % 10) * (uint64_t)NODE);
}

static int make(const char *dir)
{
	uint8_t *array = map(dir, "array", ELEMENTS * ELEMENT), *heap = map(dir, "heap", HEAP);

	for (unsigned i = 0; i < ELEMENTS; i++)
		for (unsigned b = 0; b < 6; b++)
			array[i * ELEMENT + b] = (uint8_t)(value_of(i) >> 8 * b);
	for (unsigned i = 0; i < HEAP; i++)
		heap[i] = (uint8_t)rnd(256);
	make_nodes(map(dir, "nodes", (NODES + 10) * (size_t)NODE));
	turing_rules(map(dir, "rules", TURING_RULES), busy_beaver);
	map(dir, "tape", TURING_RULES);
	turing_links(map(dir, "links", (size_t)CELLS * TURING_LINKS), CELLS);
	return 0;
}

/* ---- requests and their expected answers --------------------------------------------------------
 */

struct question {
	struct reddn_arg arg[2];
	unsigned nargs;
	uint64_t at, value; /* the answer has @value at @at, */
	unsigned bytes;
	const uint8_t *record; /* and these bytes at VALUE_AT */
	size_t record_len;
	unsigned start; /* start of a machine */
};

struct world {
	uint8_t *array, *nodes, *heap, *tape;
	unsigned machines;
	struct turing_reference machine;
};

static void ask_array(struct world *w, struct question *q)
{
	unsigned from = (unsigned)rnd(ELEMENTS), at = from + (unsigned)rnd(ELEMENTS - from);

	(void)w;
	*q = (struct question){.nargs = 2, .bytes = 8, .value = (at + 1ull) * ELEMENT};
	q->arg[0].number = value_of(at);
	q->arg[1].number = from * (uint64_t)ELEMENT;
}

/* Mostly from the beginning of the list; sometimes with a key that is not in the list */
static void ask_list(struct world *w, struct question *q)
{
	uint64_t key = key_of(1 + (unsigned)rnd(NODES - 1) + (rnd(8) ? 0 : NODES)), at;

	*q = (struct question){.nargs = 2, .bytes = 1};
	at = rnd(4) ? get_be(w->nodes, 5) : (1 + rnd(NODES - 1)) * NODE;
	q->arg[0].number = at;
	q->arg[1].number = key;
	for (; at; at = get_be(w->nodes + at, 5))
		if (get_le(w->nodes + at + 5, 6) == key) {
			q->value = 1;
			q->record = w->heap + get_be(w->nodes + at + 14, 5);
			q->record_len = get_be(w->nodes + at + 11, 3);
			return;
		}
}

static void ask_machine(struct world *w, struct question *q)
{
	unsigned start = MACHINE / 2 + w->machines++ * MACHINE;

	if (start + MACHINE > CELLS)
		errx(1, "no empty tape is left");
	turing_refer(&w->machine, busy_beaver, start, 1000);
	*q = (struct question){.nargs = 1, .bytes = 8, .value = w->machine.steps, .start = start};
	q->arg[0].number = turing_from(start);
}

static void check_tape(struct world *w, unsigned start)
{
	unsigned ones = 0;

	turing_refer(&w->machine, busy_beaver, start, 1000);
	if (w->machine.steps != 107 || w->machine.ones != 13)
		errx(1, "the machine in C: %" PRIu64 " steps, %u ones", w->machine.steps, w->machine.ones);
	for (unsigned x = start - MACHINE / 2; x < start + MACHINE / 2; x++) {
		ones += w->tape[x] == TURING_ONE;
		if (w->tape[x] != w->machine.tape[x] * TURING_ONE)
			errx(1, "cell %u is %#x", x, w->tape[x]);
	}
	if (ones != 13)
		errx(1, "%u ones on the tape", ones);
}

static const struct {
	const char *name;
	void (*ask)(struct world *w, struct question *q);
} kinds[] = {{"while-recycled", ask_array}, {"list-endless", ask_list}, {"turing", ask_machine}};

/* ---- calls ------------------------------------------------------------------------------------------------
 */

static struct reddn *connect_to(char **args, uint16_t depth, unsigned connections)
{
	const struct reddn_options opt = {.host = args[0],
		.port = (uint16_t)arg_number(args[1], UINT16_MAX),
		.offload = args[2],
		.depth = depth,
		.connections = (uint16_t)connections,
		.timeout_ms = TIMEOUT_MS,
		.flags = REDDN_NO_RECONNECT};
	struct reddn *c;
	char why[300];

	if (reddn_connect(&c, &opt, why, sizeof(why)))
		errx(2, "%s", why);
	return c;
}

static int lost(struct reddn *c, uint64_t answered)
{
	int how = reddn_end_reason(c);

	printf("lost after %" PRIu64 " answers, %d: %s\n", answered, how, reddn_errmsg(c));
	return 3;
}

static void check(struct world *w, const struct question *q, const struct reddn_result *res)
{
	const uint8_t *reply = res->value;

	if (res->status || res->length < q->bytes || get_le(reply + q->at, q->bytes) != q->value)
		errx(1, "status %d, answer %#" PRIx64 " instead of %#" PRIx64, res->status,
			res->status ? 0 : get_le(reply + q->at, q->bytes), q->value);
	if (q->record_len && memcmp(reply + VALUE_AT, q->record, q->record_len) != 0)
		errx(1, "a wrong record");
	if (q->start)
		check_tape(w, q->start);
}

static int ask(char **args)
{
	const uint16_t depth = (uint16_t)arg_number(args[4], UINT16_MAX);
	const uint64_t count = arg_number(args[5], UINT64_MAX);
	struct world w = {.array = map(args[3], "array", 0),
		.nodes = map(args[3], "nodes", 0),
		.heap = map(args[3], "heap", 0),
		.tape = map(args[3], "tape", 0)};
	static struct question asked[DEPTH_MAX];
	uint64_t sent = 0, answered = 0;
	unsigned kind = 0;
	struct reddn *c;

	random_seed(arg_number(args[6], UINT64_MAX));
	while (kind < 2 && strncmp(args[2], kinds[kind].name, strlen(kinds[kind].name)) != 0)
		kind++;
	if (depth < 1 || depth > DEPTH_MAX)
		errx(2, "the depth is out of range");
	c = connect_to(args, depth, 1);
	while (!count || answered < count) {
		struct reddn_result res;
		int n;

		for (; sent - answered < depth && (!count || sent < count); sent++) {
			struct question *q = &asked[sent % depth];

			kinds[kind].ask(&w, q);
			if (reddn_call_submit(c, q->arg, q->nargs, sent))
				return lost(c, answered);
		}
		n = reddn_wait(c, &res, 1, TIMEOUT_MS);
		if (n == 0)
			errx(1, "no answer to request %" PRIu64, answered);
		if (n < 0 || res.status < 0)
			return lost(c, answered);
		if (res.cookie != answered)
			errx(1, "answer %" PRIu64 " instead of %" PRIu64, res.cookie, answered);
		check(&w, &asked[answered % depth], &res);
		answered++;
		if (answered == 1)
			printf("running\n");
		fflush(stdout);
		reddn_release(c);
	}
	reddn_close(c);
	printf("%" PRIu64 " answers\n", answered);
	return 0;
}

enum how { ONCE, HOLD, BESIDE };

/* @args: those of a connection; @call: those of the call */
static int one(char **args, unsigned connections, char **call, enum how how)
{
	struct reddn *c = connect_to(args, 1, connections);
	struct reddn_arg arg[4] = {0};
	struct reddn_info info;
	struct reddn_result res;
	unsigned n = 0;

	for (; call[n] && n < 4; n++)
		arg[n].number = arg_number(call[n], UINT64_MAX);
	reddn_get_info(c, &info);
	for (unsigned i = 0; i < connections; i++) {
		struct reddn_arg own[4];

		memcpy(own, arg, sizeof(own));
		if (how == BESIDE && i == 0)
			own[0].number = (UINT64_C(1) << 48) - 1;
		if (reddn_call_submit(c, own, n, i))
			errx(1, "%s", reddn_errmsg(c));
	}
	printf("session %" PRIu64 "\n", info.session);
	fflush(stdout);
	if (reddn_wait(c, &res, 1, -1) < 0 || res.status < 0)
		return lost(c, 0);
	for (size_t i = 0; i < res.length; i++)
		printf("%02x", ((const uint8_t *)res.value)[i]);
	putchar('\n');
	fflush(stdout);
	while (how == HOLD)
		pause();
	reddn_close(c);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "make") == 0)
		return make(argv[2]);
	if (argc == 9 && strcmp(argv[1], "ask") == 0)
		return ask(argv + 2);
	if (argc > 4 && strcmp(argv[1], "one") == 0)
		return one(argv + 2, 1, argv + 5, ONCE);
	if (argc > 4 && strcmp(argv[1], "hold") == 0)
		return one(argv + 2, 1, argv + 5, HOLD);
	if (argc > 6 && strcmp(argv[1], "each") == 0)
		return one(argv + 2, (unsigned)arg_number(argv[5], 16), argv + 6, ONCE);
	if (argc > 6 && strcmp(argv[1], "beside") == 0)
		return one(argv + 2, (unsigned)arg_number(argv[5], 16), argv + 6, BESIDE);
	errx(2, "the usage is at the beginning of endless.c");
}
