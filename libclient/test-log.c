/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A log, against a server in memory. All interleavings of some who append, each work request of
 * log-append.rdn a step, and one who reads are explored; each rule of log.h is left out once, and what it
 * prevents is found.
 */
#include "libclient/log.h"

#include "libclient/test-offload.h"
#include "util/array.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

/* ---- in place of a session --------------------------------------------------------------------- */

enum { SIZE = 256, ROOM = SIZE - REDDN_LOG_HEADER, ENTRIES = REDDN_LOG_RING / SIZE };

static struct {
	uint64_t tail, size;
	uint8_t entry[SIZE];
	uint64_t at;
	unsigned refuses;
	int fails;
} server;

static void put(uint8_t *p, unsigned bytes, uint64_t n)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(n >> 8 * i);
}

static int execute_append(const struct reddn_arg *args, uint8_t *reply)
{
	if (server.fails)
		return server.fails;
	put(server.entry + 5, 3, args[0].number);
	memcpy(server.entry + 8, args[1].bytes, ROOM);
	put(reply, 8, server.tail++ * SIZE);
	put(reply + 8, 8, server.refuses ? UINT64_MAX : 7);
	put(reply + 16, 8, server.size);
	server.refuses -= server.refuses > 0;
	return 0;
}

static int execute_read(const struct reddn_arg *args, uint8_t *reply)
{
	if (server.fails)
		return server.fails;
	server.at = args[0].number;
	put(reply, 8, server.tail * SIZE);
	put(reply + 8, 8, server.size);
	memcpy(reply + 16, server.entry, 8);
	memcpy(reply + 24, server.entry, SIZE);
	return 0;
}

static int setup_append(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	server.size = SIZE;
	test_offload_begin(&(struct test_offload){
		.arg = {{REDDN_NUMBER, 3}, {REDDN_BYTES, ROOM}},
		.nargs = 2,
		.reply_max = REDDN_LOG_REPLY,
		.execute = execute_append,
	});
	return 0;
}

static int setup_read(void **state)
{
	setup_append(state);
	test_offload_begin(&(struct test_offload){
		.arg = {{REDDN_OFFSET, 3}},
		.nargs = 1,
		.reply_max = REDDN_LOG_REPLY + SIZE,
		.execute = execute_read,
	});
	return 0;
}

/* Entry @number, as it is after @laps, with the bytes "ab" */
static void has_entry(uint64_t number, uint64_t laps)
{
	memset(server.entry, 0, sizeof(server.entry));
	put(server.entry, 5, laps);
	put(server.entry + 5, 3, 2);
	memcpy(server.entry + 8, "ab", 2);
	if (server.tail <= number)
		server.tail = number + 1;
}

/* ---- who appends ------------------------------------------------------------------------------- */

static void appends(void **state)
{
	struct reddn_result res = test_offload_result();
	uint64_t number = 0;
	uint8_t value[ROOM + 1];

	(void)state;
	memset(value, 5, sizeof(value));
	server.tail = 1ull << 50;
	assert_int_equal(reddn_append(&client, "xyz", 3, &number), 0);
	assert_true(number == 1ull << 50 && server.entry[5] == 3);
	assert_memory_equal(server.entry + 8, "xyz\0", 4);
	assert_int_equal(reddn_append(&client, NULL, 0, &number), 0);
	assert_int_equal(reddn_append(&client, value, ROOM, &number), 0);
	assert_int_equal(reddn_append(&client, value, ROOM + 1, &number), -EMSGSIZE);
	assert_int_equal(reddn_append_submit(&client, value, ROOM + 1, 0), -EMSGSIZE);
	assert_int_equal(test_offload.calls, 3);
	assert_int_equal(reddn_append_submit(&client, "xyz", 3, 0), 0);
	assert_int_equal(reddn_append_result(&res, &number), 0);
	assert_true(number == (1ull << 50) + 3);
	res.status = -EINPROGRESS;
	assert_int_equal(reddn_append_result(&res, &number), -EINPROGRESS);
}

/* An entry that cannot be filled costs a request more */
static void appends_again(void **state)
{
	struct reddn_result res = test_offload_result();
	uint64_t number;

	(void)state;
	server.refuses = 2;
	assert_int_equal(reddn_append(&client, "x", 1, &number), 0);
	assert_true(number == 2 && test_offload.calls == 3);
	server.refuses = 1;
	assert_int_equal(reddn_append_submit(&client, "x", 1, 0), 0);
	assert_int_equal(reddn_append_result(&res, &number), REDDN_AGAIN);
	client.connector.opt.timeout_ms = 0;
	server.refuses = 1;
	assert_int_equal(reddn_append(&client, "x", 1, &number), -EAGAIN);
	server.fails = -EINPROGRESS;
	assert_int_equal(reddn_append(&client, "x", 1, &number), -EINPROGRESS);
}

static void refuses_other_offloads(void **state)
{
	struct reddn_log l = {0};
	uint64_t number;
	uint8_t buf[1];
	size_t len;

	setup_append(state);
	assert_int_equal(reddn_log_next(&client, &l, buf, 1, &len, 0), -EINVAL);
	test_offload.arg[0].bytes = 2;
	assert_int_equal(reddn_append(&client, "x", 1, &number), -EINVAL);
	setup_append(state);
	test_offload.reply_max++;
	assert_int_equal(reddn_append(&client, "x", 1, &number), -EINVAL);
	setup_append(state);
	server.size = 0;
	assert_int_equal(reddn_append(&client, "x", 1, &number), -EPROTO);
	setup_append(state);
	client.connector.opt.flags = REDDN_REPEATABLE;
	assert_int_equal(reddn_append(&client, "x", 1, &number), -EINVAL);
	setup_read(state);
	assert_int_equal(reddn_append(&client, "x", 1, &number), -EINVAL);
	server.size = SIZE / 2;
	assert_int_equal(reddn_log_next(&client, &l, buf, 1, &len, 0), -EPROTO);
	test_offload.reply_max--;
	assert_int_equal(reddn_log_next(&client, &l, buf, 1, &len, 0), -EINVAL);
	test_offload.reply_max = 8;
	assert_int_equal(reddn_log_next(&client, &l, buf, 1, &len, 0), -EINVAL);
}

/* ---- who reads --------------------------------------------------------------------------------- */

static void reads(void **state)
{
	struct reddn_log l = {.next = 3ull * ENTRIES + 5};
	uint8_t buf[ROOM];
	size_t len = 0;

	(void)state;
	has_entry(l.next, 4);
	assert_int_equal(reddn_log_next(&client, &l, buf, 1, &len, 0), -EMSGSIZE);
	assert_true(len == 2 && l.next == 3ull * ENTRIES + 5);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), 0);
	assert_true(len == 2 && l.next == 3ull * ENTRIES + 6 && server.at == 5 * SIZE);
	assert_memory_equal(buf, "ab", 2);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 1), -EAGAIN);
	has_entry(l.next, 4);
	put(server.entry + 5, 3, ROOM + 1);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EBADMSG);
	assert_true(l.next == 3ull * ENTRIES + 7);
	server.tail--;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -ESTALE);
	/* so it is for one who has the number from before, and has read nothing yet */
	l.passed = 0;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -ESTALE);
	server.fails = -ENOTCONN;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -ENOTCONN);
}

/* As those do who poll */
static void reads_in_steps(void **state)
{
	struct reddn_result res = test_offload_result();
	struct reddn_log l = {.next = ENTRIES + 5};

	(void)state;
	has_entry(l.next, 2);
	assert_int_equal(reddn_log_submit(&client, &l, 0), 0);
	assert_true(server.at == 5 * SIZE && l.asked);
	assert_int_equal(reddn_log_result(&l, &res), 0);
	assert_true(l.next == ENTRIES + 6 && l.passed == 1 && res.length == 2);
	assert_memory_equal(res.value, "ab", 2);
	res = test_offload_result();
	assert_int_equal(reddn_log_submit(&client, &l, 0), 0);
	assert_int_equal(reddn_log_result(&l, &res), -EAGAIN);
	server.tail += 2 * ENTRIES;
	assert_int_equal(reddn_log_submit(&client, &l, 0), 0);
	assert_int_equal(reddn_log_result(&l, &res), REDDN_AGAIN);
	/* of another server, or of another request */
	for (res.length = 0; res.length < 2 * REDDN_LOG_ENTRY_MAX; res.length++)
		if (res.length < REDDN_LOG_REPLY + 16 || res.length > REDDN_LOG_REPLY + REDDN_LOG_ENTRY_MAX)
			assert_int_equal(reddn_log_result(&l, &res), -EPROTO);
	res.status = -ECONNRESET;
	assert_int_equal(reddn_log_result(&l, &res), -ECONNRESET);
	test_offload.reply_max++;
	assert_int_equal(reddn_log_submit(&client, &l, 0), -EINVAL);
}

static void begins_at_the_end(void **state)
{
	struct reddn_log l = {.next = REDDN_LOG_END};
	uint8_t buf[ROOM];
	size_t len;

	(void)state;
	server.tail = 77;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
	assert_int_equal(l.next, 77);
	has_entry(77, 1);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), 0);
	assert_true(l.next == 78 && !l.lost && !l.skipped);
}

/* The entry may be a lap later already, or not: its number is no proof */
static void is_overtaken(void **state)
{
	struct reddn_log l = {.next = 10};
	uint8_t buf[ROOM];
	size_t len;

	(void)state;
	has_entry(10, 1);
	server.tail = 10 + ENTRIES;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), 0);
	server.tail += 2;
	has_entry(12 + ENTRIES / 8, 1);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), 0);
	assert_true(l.next == 13 + ENTRIES / 8 && l.lost == 1 + ENTRIES / 8 && l.passed == 1);
}

static void gives_up(void **state)
{
	struct reddn_log l = {.next = ENTRIES + 1, .patience_ms = 1000000};
	uint8_t buf[ROOM];
	size_t len;

	(void)state;
	has_entry(l.next, 1); /* that of a lap ago is there */
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 2), -EAGAIN);
	l.since -= 1000000000000ull;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
	assert_true(l.skipped == 1 && l.next == ENTRIES + 2 && !l.since);
	/* those that were drawn when it began to wait have no patience of their own, and others have */
	server.tail = ENTRIES + 4;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
	l.since -= 1000000000000ull;
	server.tail++;
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
	assert_true(l.skipped == 3 && l.next == ENTRIES + 4 && l.since);
	l = (struct reddn_log){.next = ENTRIES + 2, .patience_ms = 1000000, .skipped = 1};
	server.tail = 0;
	/* neither is that of a lap ago, which this reader has not passed */
	has_entry(l.next, 0);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
	assert_true(l.skipped == 1 && l.since);
	l.passed = ENTRIES; /* now it has */
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
	assert_true(l.skipped == 2);
}

/* It ends, also if the end of the log goes further all the time */
static void server_lies(void **state)
{
	struct reddn_log l = {.passed = UINT64_MAX / 2, .patience_ms = 1};
	uint8_t buf[ROOM];
	size_t len;

	(void)state;
	client.connector.opt.timeout_ms = 3;
	server.tail = UINT64_MAX / SIZE;
	l.next = server.tail - ENTRIES / 2;
	put(server.entry, 5, 1);
	assert_int_equal(reddn_log_next(&client, &l, buf, sizeof(buf), &len, 0), -EAGAIN);
}

/* ---- all interleavings ------------------------------------------------------------------------- */

/* A ring of two entries; a value has two halves, each of which is the number of its entry, and one more */
enum { WRITERS = 4, RING = 2, NUMBERS = WRITERS, ENTRY = REDDN_LOG_RING / RING };

enum rule {
	ALL_RULES,
	LAP_AGO_FILLED,
	COUNT_LAST,
	COUNT_FIRST_READ,
	TAIL_LAST_READ,
	PATIENCE_FROM_ASKED,
	DRAWN_BEFORE,
	PASSED_A_LAP,
	RULES
};

static const char *const rule_words[RULES] = {"all rules", "an entry is filled only if that of a lap ago is",
	"the lap is counted after the entry is filled", "the laps are read before the entry",
	"the tail is read after the entry", "patience ends before a reply is asked for",
	"who has waited knows that the number was drawn then",
	"who does not wait has passed the number of a lap ago"};

enum act { DRAW, LOOK, FILL, FILL_MORE, COUNT_LAP, OVER };
enum look { ASK, READ_LAPS, READ_HALF, READ_REST, READ_TAIL, LEARN };

struct world {
	struct writer {
		uint32_t act, number;
	} w[WRITERS];
	struct {
		uint64_t laps, half[2];
	} slot[RING];
	struct reddn_log l;
	uint64_t tail, seen_laps, seen_half[2], seen_tail;
	uint32_t look, hopeless;
	/* a bit for each number */
	uint32_t appended, skipped;
};

static struct {
	enum rule without;
	uint64_t *seen; /* hashes of worlds */
	size_t room, states, delivered, given_up;
	const char *violated;
} search;

static bool is_new(const struct world *w)
{
	uint64_t hash = XXH3_64bits(w, sizeof(*w)) | 1;
	size_t i = hash % search.room;

	while (search.seen[i] && search.seen[i] != hash)
		i = (i + 1) % search.room;
	if (search.seen[i])
		return false;
	search.seen[i] = hash;
	assert_true(++search.states < search.room / 2);
	return true;
}

static void fill(struct world *w, const struct writer *p, unsigned half)
{
	uint64_t *at = &w->slot[p->number % RING].half[half];

	if (*at > p->number + 1)
		search.violated = "a newer entry is overwritten";
	*at = p->number + 1;
}

static void count_lap(struct world *w, const struct writer *p)
{
	w->slot[p->number % RING].laps++;
	w->appended |= 1u << p->number;
	if (w->skipped & 1u << p->number)
		search.violated = "what a reader has skipped is appended";
}

static void write_step(struct world *w, struct writer *p)
{
	switch ((enum act)p->act) {
	case DRAW:
		p->number = (uint32_t)w->tail++;
		break;
	case LOOK:
		if (w->slot[p->number % RING].laps != p->number / RING && search.without != LAP_AGO_FILLED)
			p->act = COUNT_LAP; /* nothing is appended */
		break;
	case FILL:
		fill(w, p, 0);
		if (search.without == COUNT_LAST)
			count_lap(w, p);
		break;
	case FILL_MORE:
		fill(w, p, 1);
		break;
	case COUNT_LAP:
		if (search.without != COUNT_LAST)
			count_lap(w, p);
		break;
	case OVER:
		break;
	}
	p->act++;
}

/* A request takes less than the patience of a reader: if that is over, so are those that had drawn before */
static bool patience_is_over(const struct world *w)
{
	for (unsigned i = 0; i < WRITERS; i++)
		if (w->w[i].act != DRAW && w->w[i].act != OVER && w->w[i].number < w->l.drawn)
			return false;
	return w->l.since;
}

static void learn(struct world *w)
{
	const uint64_t number = w->l.next, skipped = w->l.skipped, since = w->l.since;
	uint8_t reply[REDDN_LOG_REPLY];
	int r;

	put(reply, 8, w->seen_tail * ENTRY);
	put(reply + 8, 8, ENTRY);
	put(reply + 16, 8, w->seen_laps);
	if (search.without == PASSED_A_LAP)
		w->l.passed = RING;
	w->l.asked = w->hopeless ? since + 1000000 : since;
	r = reddn_log_learn(&w->l, reply, ENTRY, 1);
	w->l.asked = 0;
	if (r == 0) {
		search.delivered++;
		if (w->seen_half[0] != number + 1 || w->seen_half[1] != number + 1)
			search.violated = "an entry is torn, or another one";
		reddn_log_pass(&w->l);
	}
	if (search.without == DRAWN_BEFORE)
		w->l.since |= since;
	if (w->l.skipped != skipped) {
		search.given_up++;
		w->skipped |= 1u << number;
		if (w->appended & w->skipped)
			search.violated = "what is appended is skipped";
	}
	w->l.skipped = w->l.lost = 0;
	if (w->l.passed > RING)
		w->l.passed = RING;
	w->seen_laps = w->seen_tail = w->seen_half[0] = w->seen_half[1] = 0;
}

static void read_laps(struct world *w)
{
	w->seen_laps = w->slot[w->l.next % RING].laps;
}

static void read_step(struct world *w)
{
	const unsigned place = w->l.next % RING;

	switch ((enum look)w->look) {
	case ASK:
		w->hopeless = patience_is_over(w);
		break;
	case READ_LAPS:
		if (search.without == TAIL_LAST_READ)
			w->seen_tail = w->tail;
		if (search.without != COUNT_FIRST_READ)
			read_laps(w);
		break;
	case READ_HALF:
		w->seen_half[0] = w->slot[place].half[0];
		break;
	case READ_REST:
		w->seen_half[1] = w->slot[place].half[1];
		if (search.without == COUNT_FIRST_READ)
			read_laps(w);
		break;
	case READ_TAIL:
		if (search.without != TAIL_LAST_READ)
			w->seen_tail = w->tail;
		break;
	case LEARN:
		if (search.without == PATIENCE_FROM_ASKED)
			w->hopeless = patience_is_over(w);
		learn(w);
		w->hopeless = 0;
		w->look = ASK;
		return;
	}
	w->look++;
}

static void explore(const struct world *w)
{
	struct world next;

	if (search.violated || !is_new(w))
		return;
	for (unsigned i = 0; i < WRITERS && !search.violated; i++) {
		if (w->w[i].act == OVER || (i && w->w[i].act == DRAW && w->w[i - 1].act == DRAW))
			continue; /* they differ in nothing, so one draws after the other */
		next = *w;
		write_step(&next, &next.w[i]);
		explore(&next);
		if (w->w[i].act == DRAW || search.violated)
			continue;
		next = *w;
		next.w[i].act = OVER; /* its queue has stopped */
		explore(&next);
	}
	if (w->l.next < NUMBERS && !search.violated) {
		next = *w;
		read_step(&next);
		explore(&next);
	}
}

static void all_interleavings(void **state)
{
	(void)state;
	search.room = 1 << 23;
	for (unsigned rule = 0; rule < RULES; rule++) {
		search.without = rule;
		search.violated = NULL;
		search.states = search.delivered = search.given_up = 0;
		search.seen = calloc(search.room, sizeof(*search.seen));
		assert_non_null(search.seen);
		for (unsigned first = 0; first <= RING; first += RING)
			explore(&(struct world){.l = {.next = first, .patience_ms = 1}});
		free(search.seen);
		printf("%s%s%s: %zu states, %s\n", rule ? "without \"" : "", rule_words[rule],
			rule ? "\"" : "", search.states,
			search.violated ? search.violated : "nothing is wrong");
		assert_true(!rule == !search.violated);
		assert_true(rule || (search.delivered && search.given_up));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(appends, setup_append),
		cmocka_unit_test_setup(appends_again, setup_append),
		cmocka_unit_test(refuses_other_offloads),
		cmocka_unit_test_setup(reads, setup_read),
		cmocka_unit_test_setup(reads_in_steps, setup_read),
		cmocka_unit_test_setup(begins_at_the_end, setup_read),
		cmocka_unit_test_setup(is_overtaken, setup_read),
		cmocka_unit_test_setup(gives_up, setup_read),
		cmocka_unit_test_setup(server_lies, setup_read),
		cmocka_unit_test(all_interleavings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
