/* SPDX-License-Identifier: BSD-2-Clause */
/* What is sent for a put, and what its answers mean. */
#include "libclient/put.h"

#include "util/array.h"

#include <limits.h>

#include "tests/lib/cmocka.h"

static const struct reddn_geometry geo = {.seed = 77,
	.buckets = 4096,
	.max_key = 100,
	.max_value = 1000,
	.offset_len = 4,
	.keys = 1,
	.header = 17,
	.room = 500};

/* The arguments end where the record begins. */
static void test_message(void **state)
{
	/* 17 of the header, 16 and 8 of the record, 7 of padding */
	_Alignas(8) uint8_t memory[REDDN_PUT_RECORD + 16 + 8 + 7];
	const struct reddn_place p = reddn_hash_key(geo.seed, geo.buckets, "key", 3);

	memset(memory, 1, sizeof(memory));
	assert_int_equal(reddn_put_size(&geo, 3, 5), sizeof(memory));
	reddn_put_compose(&geo, memory, "key", 3, "value", 5, false);
	for (unsigned probe = 0; probe < 2; probe++) {
		const struct reddn_put put = {.probe = (uint8_t)probe, .asked = probe ? 0xabcdef0123456 : 0};
		const uint8_t *at = reddn_put_address(&geo, memory, &put);
		uint64_t fp = 0, offset = 0, version = 0;

		assert_ptr_equal(at, memory + REDDN_PUT_RECORD - 17);
		for (unsigned i = 0; i < 6; i++)
			fp = fp << 8 | at[i];
		for (unsigned i = 6; i < 10; i++)
			offset = offset << 8 | at[i];
		for (unsigned i = 10; i < 17; i++)
			version = version << 8 | at[i];
		assert_int_equal(fp, p.fp);
		assert_int_equal(offset, p.bucket[probe] * sizeof(struct reddn_bucket));
		assert_int_equal(version, put.asked);
		/* whatever was asked before */
		assert_memory_equal(reddn_put_record(memory)->bytes, "keyvalue\0\0\0\0\0\0", 8 + 7);
		assert_int_equal(reddn_put_record(memory)->key_len, 3);
		assert_int_equal(reddn_put_record(memory)->val_len, 5);
		assert_int_equal(reddn_put_record(memory)->sum, reddn_record_sum(reddn_put_record(memory)));
	}
}

/* What was padded for one store, for another: more and less, and not a byte of the value is another. */
static void test_pad(void **state)
{
	_Alignas(8) uint8_t memory[REDDN_PUT_RECORD + 64];
	struct reddn_geometry other = geo;

	for (other.header = 15; other.header <= 20; other.header++) {
		uint64_t size = reddn_put_size(&other, 3, 5), end = REDDN_PUT_RECORD + 16 + 8;

		reddn_put_compose(&geo, memory, "key", 3, "value", 5, false);
		memset(memory + end, 1, sizeof(memory) - end);
		assert_int_equal(reddn_put_pad(&other, memory), size);
		assert_true(reddn_store_length_ok(other.header, other.header + size - REDDN_PUT_RECORD));
		assert_memory_equal(reddn_put_record(memory)->bytes, "keyvalue", 8);
		for (uint64_t i = end; i < sizeof(memory); i++)
			assert_int_equal(memory[i], i >= size);
	}
}

static void test_fits(void **state)
{
	assert_true(reddn_put_fits(&geo, 100, 379, false));
	assert_false(reddn_put_fits(&geo, 100, 380, false));
	assert_false(reddn_put_fits(&geo, 101, 0, false));
	assert_false(reddn_put_fits(&geo, 101, 0, true));
	assert_true(reddn_put_fits(&geo, 100, 0, true));
	assert_false(reddn_put_fits(
		&(struct reddn_geometry){.max_key = 9, .max_value = 9, .room = 500}, 1, 10, false));
	/* no sum of lengths wraps */
	assert_false(reddn_put_fits(&geo, 1, SIZE_MAX - 8, false));
}

enum { MOVES = 10 };

/* An answer: @was and @expected are lengths, 0: absent. */
static struct reddn_wire_put answer(uint64_t expected, uint64_t was, uint64_t moves, uint64_t state)
{
	return (struct reddn_wire_put){.expected = htobe64(reddn_locator(64, expected)),
		.was = was ? htole64(reddn_locator(64, was)) : REDDN_PUT_ABSENT,
		.moves = htole64(moves),
		.state = htole64(state)};
}

static enum reddn_put_state learn(struct reddn_put *p, bool is_delete, struct reddn_wire_put now)
{
	return reddn_put_learn(p, &geo, is_delete, &now);
}

static void test_answers(void **state)
{
	struct reddn_put p = {0};

	assert_int_equal(learn(&p, false, answer(40, 40, MOVES, 0)), REDDN_PUT_DONE);
	assert_int_equal(learn(&p, true, answer(40, 40, MOVES, 0)), REDDN_PUT_DONE);
	/* there was no record */
	assert_int_equal(learn(&p, false, answer(17, 17, MOVES, 0)), REDDN_PUT_DONE);
	assert_int_equal(learn(&p, true, answer(17, 17, MOVES, 0)), REDDN_PUT_NOTHING);
	assert_int_equal(learn(&p, false, answer(40, 48, MOVES, 0)), REDDN_PUT_CONFLICT);
	assert_int_equal(learn(&p, true, answer(40, 17, MOVES, 0)), REDDN_PUT_CONFLICT);
	/* the other bucket is asked, and asked again after a conflict */
	assert_int_equal(learn(&p, false, answer(40, 0, MOVES, 0)), REDDN_PUT_OTHER);
	assert_int_equal(p.probe, 1);
	assert_int_equal(learn(&p, false, answer(40, 48, MOVES, 0)), REDDN_PUT_CONFLICT);
	assert_int_equal(p.probe, 1);
	assert_int_equal(learn(&p, false, answer(40, 0, MOVES, 0)), REDDN_PUT_OTHER);
	assert_int_equal(p.probe, 0);
	assert_int_equal(learn(&p, false, answer(40, 0, MOVES, 0)), REDDN_PUT_NO_ENTRY);
}

static void in_neither(struct reddn_put *p, uint64_t state, enum reddn_put_state is)
{
	assert_int_equal(learn(p, false, answer(1, 0, MOVES, state)), REDDN_PUT_OTHER);
	assert_int_equal(learn(p, false, answer(1, 0, MOVES, state)), is);
}

/* A put needs an entry. A server that was full for another key may be about to make it. */
static void test_absent_put(void **state)
{
	struct reddn_put p = {0};
	uint64_t ns = 0;

	for (unsigned i = 0; i < 300; i++)
		in_neither(&p, i % 8 ? REDDN_TABLE_FULL : 0, REDDN_PUT_NO_ENTRY);
	in_neither(&p, 0, REDDN_PUT_NO_ENTRY);
	for (unsigned i = 0; i < 7; i++) {
		in_neither(&p, REDDN_TABLE_FULL, REDDN_PUT_NO_ENTRY);
		ns += reddn_put_pause(i);
	}
	assert_true(ns >= 2000000);
	in_neither(&p, REDDN_TABLE_FULL, REDDN_PUT_FULL);
}

/* What answers in a row mean that the key of a delete is in no bucket, by the moves that came with them */
static void test_absent_delete(void **state)
{
	static const struct {
		uint64_t moves[5];
		enum reddn_put_state is[5];
	} of[] = {
		{{10, 10, 10}, {REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_NOTHING}},
		{{10, 11, 10}, {REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_NOTHING}}, /* of no server */
		{{11, 11, 11, 11}, {REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_NO_ENTRY}},
		/* between the reading of the second bucket and that of the number */
		{{10, 10, 11, 12, 12}, {REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_NO_ENTRY,
					       REDDN_PUT_OTHER}},
		{{10, 12, 12, 12}, {REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_OTHER, REDDN_PUT_NOTHING}},
	};

	for (unsigned i = 0; i < COUNT(of); i++) {
		struct reddn_put p = {0};

		for (unsigned k = 0; k < COUNT(of[i].moves) && of[i].moves[k]; k++)
			assert_int_equal(
				learn(&p, true, answer(1, 0, of[i].moves[k], REDDN_TABLE_FULL)), of[i].is[k]);
	}
}

/* They are in a row only if no other one came in between. */
static void test_absent_again(void **state)
{
	struct reddn_put p = {0};

	assert_int_equal(learn(&p, true, answer(1, 0, MOVES, 0)), REDDN_PUT_OTHER);
	assert_int_equal(learn(&p, true, answer(40, 48, MOVES, 0)), REDDN_PUT_CONFLICT);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(learn(&p, true, answer(1, 0, MOVES, 0)), REDDN_PUT_OTHER);
	assert_int_equal(learn(&p, true, answer(1, 0, MOVES, 0)), REDDN_PUT_NOTHING);
}

enum { NONE = -1 };

static bool moved; /* something else was published between the two looks of an answer at the locator */

/* An answer about something of @version, NONE: of another key; otherwise as answer() */
static enum reddn_put_state learn_if(
	struct reddn_put *p, int64_t version, uint64_t expected, uint64_t was, uint64_t *is)
{
	const uint64_t seen = htole64((uint64_t)version);
	struct reddn_wire_put_if now = {.put = answer(expected, was, MOVES, 0), .off = {0, 0, 0, 0, 64}};

	memcpy(now.version, &seen, sizeof(now.version));
	now.off[3] = moved;
	*is = 77;
	return reddn_put_if_learn(p, &geo, &now, is);
}

static void test_condition(void **state)
{
	struct reddn_put p = {.version = 5, .asked = 5};
	uint64_t is;

	assert_int_equal(learn_if(&p, 5, 40, 40, &is), REDDN_PUT_DONE);
	assert_int_equal(learn_if(&p, 5, 40, 48, &is), REDDN_PUT_CONFLICT);
	assert_int_equal(learn_if(&p, 6, 40, 0, &is), REDDN_PUT_VERSION);
	assert_int_equal(is, 6);
	moved = true;
	assert_int_equal(learn_if(&p, 6, 40, 0, &is), REDDN_PUT_CONFLICT);
	moved = false;
	/* it was deleted */
	assert_int_equal(learn_if(&p, 6, 17, 0, &is), REDDN_PUT_VERSION);
	assert_int_equal(is, 0);
	/* or never there */
	assert_int_equal(learn_if(&p, NONE, 1, 0, &is), REDDN_PUT_OTHER);
	assert_int_equal(learn_if(&p, NONE, 1, 0, &is), REDDN_PUT_OTHER);
	assert_int_equal(learn_if(&p, NONE, 1, 0, &is), REDDN_PUT_VERSION);
	assert_int_equal(is, 0);
}

static void test_condition_that_it_is_absent(void **state)
{
	struct reddn_put p = {0};
	uint64_t is;

	assert_int_equal(learn_if(&p, NONE, 1, 0, &is), REDDN_PUT_OTHER);
	assert_int_equal(learn_if(&p, NONE, 1, 0, &is), REDDN_PUT_NO_ENTRY);
	assert_int_equal(learn_if(&p, 0, 17, 40, &is), REDDN_PUT_CONFLICT);
	assert_int_equal(learn_if(&p, 6, 40, 0, &is), REDDN_PUT_VERSION);
	assert_int_equal(is, 6);
	/* what was deleted is asked for with its own version, and nothing else that has one */
	assert_int_equal(learn_if(&p, 7, 17, 0, &is), REDDN_PUT_AGAIN);
	assert_int_equal(p.asked, 7);
	assert_int_equal(learn_if(&p, 8, 17, 0, &is), REDDN_PUT_AGAIN);
	assert_int_equal(p.asked, 8);
	assert_int_equal(learn_if(&p, 9, 40, 0, &is), REDDN_PUT_VERSION);
	assert_int_equal(is, 9);
	assert_int_equal(learn_if(&p, 8, 17, 17, &is), REDDN_PUT_DONE);
}

static void test_pause(void **state)
{
	assert_int_equal(reddn_put_pause(0), 20000);
	assert_int_equal(reddn_put_pause(1), 40000);
	assert_int_equal(reddn_put_pause(5), 640000);
	assert_int_equal(reddn_put_pause(6), 1000000);
	assert_int_equal(reddn_put_pause(UINT_MAX), 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_pad),
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_absent_put),
		cmocka_unit_test(test_absent_delete),
		cmocka_unit_test(test_absent_again),
		cmocka_unit_test(test_condition),
		cmocka_unit_test(test_condition_that_it_is_absent),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
