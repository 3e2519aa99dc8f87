/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-churn [RATE [SEED [DAYS]]] - a store that evicts, filled to the brim for DAYS (1) with RATE (2) puts
 * per second. Sizes drift from the smallest to the largest and back in each day; hours differ in how much is
 * deleted, and sessions come and go. No put may fail, or wait for more than a bounded number of graces, and
 * no get may find another value than the last one, or none. After each day, all puts are of one size for a
 * while: the share of the heap that this size does not get is lost by fragmentation.
 */
#include "reddnd/store/test-rig.h"
#include "util/number.h"
#include "util/xorshift.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { DEPTH = 8, KEYS = 120000, FLIGHT = 64, HOURS = 24, WAIT_MOST = 2000 };

static const uint32_t sizes[] = {128, 448, 1088, 2112, 4160, 8128};
enum { SIZES = sizeof(sizes) / sizeof(*sizes), LARGEST = SIZES - 1 };

struct session {
	uint64_t at[DEPTH];
	unsigned n;
};

struct day {
	struct rig rig;
	struct store *store;
	struct session session[SIZES]; /* one for each size */
	uint64_t random;
	uint64_t value[KEYS]; /* that was put last; 0: none */
	uint64_t puts, deletes, gets, hits, last;
	uint64_t since; /* operations since the grace began */
	bool grace;
	uint64_t waits, longest; /* graces that puts have waited for */
};

static uint64_t rnd(struct day *d, uint64_t n)
{
	return (xorshift(&d->random) >> 32) % n;
}

/* ---- the daemon ---- */

static void begin_or_end_grace(struct day *d)
{
	if (d->grace) {
		store_grace_over(d->store);
		d->grace = false;
	} else if (store_work(d->store)) {
		store_grace_begins(d->store);
		d->grace = true;
		d->since = 0;
	}
}

/* A grace takes as long as what is in flight when it begins */
static void turn(struct day *d)
{
	if (!d->grace || d->since++ >= FLIGHT)
		begin_or_end_grace(d);
}

static void fill(struct day *d, struct session *s, uint32_t bytes)
{
	while (s->n < DEPTH && store_take(d->store, bytes, &s->at[s->n]) == 0)
		s->n++;
}

static void session_ends(struct day *d, struct session *s)
{
	while (s->n > 0)
		store_give(d->store, s->at[--s->n]);
}

/* ---- clients ---- */

/* Waits as a put that found no extent, or no bucket: in graces */
static void wait(struct day *d, uint64_t *waited, unsigned size)
{
	if (d->rig.h->live.state & REDDN_TABLE_FULL)
		fail_msg("a put of %u bytes ends with ENOSPC", sizes[size]);
	if (++*waited > WAIT_MOST)
		fail_msg("a put of %u bytes waits for ever", sizes[size]);
	begin_or_end_grace(d);
}

static void change(struct day *d, uint32_t key, unsigned size, uint64_t value)
{
	struct session *s = &d->session[size];
	uint64_t waited = 0, at;
	uint32_t bytes = d->rig.header;

	for (fill(d, s, sizes[size]); !s->n; fill(d, s, sizes[size]))
		wait(d, &waited, size);
	/* Not the one that was taken last: sessions put in the order of their slots */
	at = s->at[0];
	memmove(&s->at[0], &s->at[1], --s->n * sizeof(s->at[0]));
	if (value)
		bytes = rig_record(&d->rig, d->rig.heap + at + d->rig.header, key, value, 8);
	while (value && rig_bucket(&d->rig, key) < 0) {
		assert_true(store_unplaced(d->store, at, bytes));
		wait(d, &waited, size);
	}
	if (rig_bucket(&d->rig, key) >= 0) {
		assert_true(rig_publish(d->store, &d->rig, at, key, bytes));
		d->value[key] = value;
		*(value ? &d->puts : &d->deletes) += 1;
	} else {
		store_give(d->store, at);
	}
	d->waits += waited;
	d->longest = waited > d->longest ? waited : d->longest;
	turn(d);
}

/* It never waits: what it finds is the last value, or nothing if that was evicted */
static void get(struct day *d, uint32_t key)
{
	int64_t b = rig_bucket(&d->rig, key);
	uint64_t locator = b < 0 ? d->rig.null : d->rig.words[2 * b], value;
	uint8_t want[RIG_MESSAGE];

	d->gets++;
	if (reddn_locator_len(locator) == d->rig.header)
		return;
	memcpy(&value,
		d->rig.heap + reddn_locator_off(locator) + d->rig.header + sizeof(struct reddn_record) +
			sizeof(key),
		sizeof(value));
	assert_int_equal(value, d->value[key]);
	rig_record(&d->rig, want, key, value, 8);
	assert_memory_equal(want, d->rig.heap + reddn_locator_off(locator) + d->rig.header,
		reddn_record_size(sizeof(key), 8));
	d->hits++;
}

/* ---- a day ---- */

/* One of the three around that of the hour. @part: of the day, of 1000 */
static unsigned size_at(struct day *d, unsigned part)
{
	unsigned most = part < 500 ? part : 1000 - part,
		 size = (most * LARGEST + 250) / 500 + (unsigned)rnd(d, 3);

	return size < 1 ? 0 : size - 1 < LARGEST ? size - 1 : LARGEST;
}

static void sessions_change(struct day *d)
{
	for (unsigned i = 0; i < SIZES; i++)
		if (rnd(d, 4) == 0)
			session_ends(d, &d->session[i]);
}

static void hours(struct day *d, uint64_t rate)
{
	const uint64_t puts = HOURS * 3600 * rate;
	unsigned deletes = 5;

	for (uint64_t i = 0; i < puts; i++) {
		if (i % (puts / HOURS + 1) == 0) {
			static const unsigned percent[] = {0, 5, 5, 50, 90};

			sessions_change(d);
			deletes = percent[rnd(d, sizeof(percent) / sizeof(*percent))];
		}
		change(d, (uint32_t)rnd(d, KEYS), size_at(d, (unsigned)(i * 1000 / puts)), ++d->last);
		if (rnd(d, 100) < deletes)
			change(d, (uint32_t)rnd(d, KEYS), (unsigned)rnd(d, SIZES), 0);
		get(d, (uint32_t)rnd(d, KEYS));
	}
}

/* Chunks that extents of a size do not get, however long nothing else is put */
static uint64_t lost(struct day *d, unsigned size)
{
	const uint64_t slots = (d->rig.chunk - REDDN_STORE_CHUNK_LINE) / sizes[size];
	struct store_numbers n;
	uint64_t have = 0;

	for (uint64_t i = 0; i < 8 * slots * d->rig.chunks; i++)
		change(d, (uint32_t)rnd(d, KEYS), size, ++d->last);
	store_numbers(d->store, &n);
	assert_int_equal(n.contradictions, 0);
	for (unsigned i = 0; i < n.classes; i++)
		if (n.extents[i].bytes == sizes[size])
			have = n.extents[i].free + n.extents[i].held + n.extents[i].used +
			       n.extents[i].resting;
	return d->rig.chunks - have / slots;
}

/* Those that others hold keep their chunks */
static uint64_t pinned(const struct day *d, unsigned size)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SIZES; i++)
		n += i == size ? 0 : d->session[i].n;
	return n;
}

static uint64_t arg_rate = 2, arg_seed = 1, arg_days = 1;

static void test_days(void **state)
{
	static struct day d;

	d.rig = (struct rig){.buckets = 1 << 18,
		.chunk = 65536,
		.chunks = 1024,
		.evict = true,
		.header = 17,
		.max_key = 16,
		.max_value = 8000};
	d.random = arg_seed;
	rig_make(&d.rig);
	d.store = rig_open(&d.rig);
	for (uint64_t day = 1; day <= arg_days; day++) {
		uint64_t chunks;

		hours(&d, arg_rate);
		chunks = lost(&d, LARGEST);
		print_message(
			"day %" PRIu64 ": %" PRIu64 " puts, %" PRIu64 " deletes, %" PRIu64 " of %" PRIu64
			" gets found a value; a put waited for %.3f graces, and one for %" PRIu64 "; %" PRIu64
			" chunks of %" PRIu64 " are lost, and %" PRIu64 " extents keep one\n",
			day, d.puts, d.deletes, d.hits, d.gets, (double)d.waits / (double)d.puts, d.longest,
			chunks, d.rig.chunks, pinned(&d, LARGEST));
		/* A few are of no use to any size, or have not been drained yet */
		assert_true(chunks <= pinned(&d, LARGEST) + d.rig.chunks / 100);
	}
	for (unsigned i = 0; i < SIZES; i++)
		session_ends(&d, &d.session[i]);
	store_close(d.store);
	free(d.rig.file);
}

static uint64_t number(const char *text)
{
	uint64_t n;

	if (number_parse(text, 1, UINT32_MAX, &n) < 0)
		fail_msg("\"%s\" is not a number", text);
	return n;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_days)};

	arg_rate = argc > 1 ? number(argv[1]) : arg_rate;
	arg_seed = argc > 2 ? number(argv[2]) : arg_seed;
	arg_days = argc > 3 ? number(argv[3]) : arg_days;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
