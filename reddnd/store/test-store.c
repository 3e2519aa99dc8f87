/* SPDX-License-Identifier: BSD-2-Clause */
/* One thing at a time: keys that get buckets and lose them, limits, what clients and files do wrong. */
#include "reddnd/store/test-rig.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static const struct rig small = {
	.buckets = 64, .chunk = 4096, .chunks = 4, .header = 16, .max_key = 16, .max_value = 64};

static struct store_numbers numbers(const struct store *s)
{
	struct store_numbers n;

	store_numbers(s, &n);
	assert_int_equal(n.contradictions, 0);
	return n;
}

static void test_life_of_a_key(void **state)
{
	struct rig r = small;
	struct store *s;
	struct store_numbers n;
	uint64_t at, version, loc;

	rig_make(&r);
	s = rig_open(&r);
	assert_false(store_work(s));
	assert_int_equal(rig_put(s, &r, 7, 1), 0);
	loc = r.words[2 * rig_bucket(&r, 7)];
	version = *(uint64_t *)(r.heap + reddn_locator_off(loc));
	n = numbers(s);
	assert_int_equal(n.entries, 1);
	assert_int_equal(r.h->live.entries, 1);
	assert_int_equal(n.fresh, 0);
	assert_int_equal(n.extents[0].used, 1);
	/* Another value, another version, and the old extent rests. */
	assert_int_equal(rig_put(s, &r, 7, 2), 0);
	loc = r.words[2 * rig_bucket(&r, 7)];
	assert_true(*(uint64_t *)(r.heap + reddn_locator_off(loc)) > version);
	n = numbers(s);
	assert_int_equal(n.entries, 1);
	assert_int_equal(n.extents[0].used, 1);
	assert_int_equal(n.extents[0].resting, 1);
	/* An extent that is armed again, and one in which another record was */
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	version = *(uint64_t *)(r.heap + at);
	store_renew(s, at);
	assert_true(*(uint64_t *)(r.heap + at) > version);
	memset(r.heap + at, 0xff, RIG_MESSAGE);
	store_give(s, at);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	assert_int_equal(r.heap[at + 8], 0);
	version = *(uint64_t *)(r.heap + at);
	rig_delete(s, &r, 7);
	n = numbers(s);
	assert_int_equal(n.entries, 0);
	assert_int_equal(n.tombstones, 1);
	/* A delete of a key without a bucket leaves no trace. */
	assert_true(store_unplaced(s, at, r.header));
	rig_settle(s);
	assert_int_equal(numbers(s).fresh, 0);
	store_close(s);
	/* It is a tombstone still, and versions go on. */
	s = rig_open(&r);
	assert_int_equal(numbers(s).tombstones, 1);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	assert_true(*(uint64_t *)(r.heap + at) > version);
	store_close(s);
	free(r.file);
}

/* To the last bucket that can be used, with long paths of moves, then as many other keys in place of them. */
static void test_full_buckets(void **state)
{
	struct rig r = {
		.buckets = 4096, .chunk = 65536, .chunks = 8, .header = 15, .max_key = 16, .max_value = 64};
	struct store_numbers n;
	struct store *s;
	uint32_t key = 0, last;

	rig_make(&r);
	s = rig_open(&r);
	while (rig_put(s, &r, key, key) == 0)
		key++;
	last = key;
	n = numbers(s);
	assert_int_equal(n.entries, last);
	print_message("%u keys in 4096 buckets, %" PRIu64 " moves\n", last, n.moves);
	assert_true(n.full && n.entries > 4096 * 2 / 5 && n.moves > 200);
	for (key = 0; key < last; key++) {
		uint64_t loc = r.words[2 * rig_bucket(&r, key)];
		uint32_t is;

		memcpy(&is, r.heap + reddn_locator_off(loc) + r.header + 16, sizeof(is));
		assert_int_equal(is, key);
	}
	/* What another key needs is there when keys are deleted. */
	for (key = 0; key < last; key++)
		rig_delete(s, &r, key);
	assert_false(numbers(s).full);
	for (key = last; key < last + last / 2; key++)
		assert_int_equal(rig_put(s, &r, key, key), 0);
	n = numbers(s);
	assert_int_equal(n.entries, last / 2);
	assert_true(n.tombstones <= 4096 / 8);
	store_close(s);
	free(r.file);
}

/* Entries end before extents do: those that are held can always be replaced. */
static void test_full_extents(void **state)
{
	struct rig r = small;
	struct store *s;
	struct store_numbers n;
	uint64_t held[4];
	uint32_t key = 0, other;

	r.buckets = 1024;
	r.chunks = 1;
	rig_make(&r);
	s = rig_open(&r);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(store_take(s, RIG_MESSAGE, &held[i]), 0);
	while (rig_put(s, &r, key, key) == 0)
		key++;
	n = numbers(s);
	/* 31 extents: 4 held, and of put() one more, and as many free */
	assert_int_equal(n.entries, 31 - 2 * 5);
	assert_int_equal(n.fresh, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(rig_put(s, &r, i % key, i), 0);
	/* Room for one, and for no more */
	rig_delete(s, &r, 3);
	assert_int_equal(rig_put(s, &r, key, 1), 0);
	assert_int_equal(rig_put(s, &r, key + 1, 1), -ENOSPC);
	/* Fewer are held: there is room again, without any report. */
	for (unsigned i = 0; i < 4; i++)
		store_give(s, held[i]);
	rig_settle(s);
	assert_false(numbers(s).full);
	for (other = key + 1; rig_put(s, &r, other, 1) == 0;)
		other++;
	assert_int_equal(numbers(s).entries, 31 - 2);
	store_close(s);
	free(r.file);
}

/* Buckets of keys whose clients never come again */
static void test_deserted(void **state)
{
	struct rig r = small;
	struct store *s;
	uint64_t at;

	rig_make(&r);
	s = rig_open(&r);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	for (uint32_t key = 0; key < 200; key++) {
		uint32_t bytes = rig_record(&r, r.heap + at + r.header, key, 1, 16);

		assert_true(store_unplaced(s, at, bytes));
		rig_settle(s);
		/* The last ones stay. */
		assert_true(rig_bucket(&r, key) >= 0);
		assert_true(numbers(s).fresh <= r.buckets / 8 + r.buckets / 16 + 1);
	}
	store_close(s);
	free(r.file);
}

/* So small that each entry is a large part of it */
static void test_tiny(void **state)
{
	for (uint64_t buckets = 2; buckets <= 32; buckets *= 2) {
		struct rig r = small;
		struct store *s;

		r.buckets = buckets;
		rig_make(&r);
		s = rig_open(&r);
		assert_int_equal(rig_put(s, &r, 1, 1), 0);
		assert_int_equal(rig_put(s, &r, 2, 1), 0);
		rig_delete(s, &r, 1);
		rig_delete(s, &r, 2);
		assert_int_equal(rig_put(s, &r, 3, 1), 0);
		assert_int_equal(numbers(s).entries, 1);
		store_close(s);
		free(r.file);
	}
}

static void test_wrong_messages(void **state)
{
	struct rig r = small;
	struct store *s;
	struct reddn_record head;
	uint64_t at;
	uint32_t bytes;

	rig_make(&r);
	s = rig_open(&r);
	assert_int_equal(rig_put(s, &r, 1, 1), 0);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	bytes = rig_record(&r, r.heap + at + r.header, 2, 1, 16);
	memcpy(&head, r.heap + at + r.header, sizeof(head));
	for (uint32_t wrong = 0; wrong < RIG_MESSAGE; wrong++)
		assert_int_equal(store_unplaced(s, at, wrong), wrong == bytes || wrong == r.header);
	for (unsigned i = 0; i < 4; i++) {
		static const uint32_t lengths[][2] = {{0, 16}, {17, 3}, {4, 65}, {UINT32_MAX, UINT32_MAX}};
		struct reddn_record bad = {lengths[i][0], lengths[i][1], head.sum};

		memcpy(r.heap + at + r.header, &bad, sizeof(bad));
		assert_false(store_unplaced(s, at, bytes));
	}
	rig_settle(s);
	assert_int_equal(numbers(s).fresh, 1);
	/* A client publishes what has the tag in its length: the entry goes. */
	assert_false(rig_publish(s, &r, at, 1, REDDN_TABLE_TAG));
	assert_int_equal(r.h->live.entries, 0);
	rig_settle(s);
	assert_int_equal(rig_bucket(&r, 1), -1);
	assert_int_equal(rig_put(s, &r, 1, 2), 0);
	/* or when the store is opened, if nobody has heard of it */
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	r.words[2 * rig_bucket(&r, 1)] = reddn_locator(at, r.header + 7);
	store_close(s);
	s = rig_open(&r);
	rig_settle(s);
	assert_int_equal(rig_bucket(&r, 1), -1);
	assert_int_equal(numbers(s).entries, 0);
	store_close(s);
	free(r.file);
}

/* Queues that fail between a CAS and its answer, and publishes that replace those. */
static void test_unfinished(void **state)
{
	struct rig r = small;
	struct store *s;
	uint64_t a, b, c, place, old[3];
	uint32_t bytes;

	rig_make(&r);
	s = rig_open(&r);
	assert_int_equal(rig_put(s, &r, 1, 1), 0);
	place = 16 * (uint64_t)rig_bucket(&r, 1);
	old[0] = r.words[place / 8];
	assert_int_equal(store_take(s, RIG_MESSAGE, &a), 0);
	assert_int_equal(store_take(s, RIG_MESSAGE, &b), 0);
	assert_int_equal(store_take(s, RIG_MESSAGE, &c), 0);
	bytes = rig_record(&r, r.heap + a + r.header, 1, 2, 16);
	/* a took place, b replaced it, and c did that to b, which is known of c alone, and late. */
	old[1] = reddn_locator(a, bytes);
	old[2] = reddn_locator(b, bytes);
	r.words[place / 8] = reddn_locator(c, bytes);
	store_unfinished(s, place, old[0], old[1]);
	store_unfinished(s, place, old[1], old[2]);
	/* Another did not. */
	assert_int_equal(store_take(s, RIG_MESSAGE, &b), 0);
	store_unfinished(s, place, old[0], reddn_locator(b, bytes));
	assert_true(store_work(s));
	store_grace_begins(s);
	assert_true(store_published(s, place, old[2], reddn_locator(c, bytes)));
	assert_int_equal(numbers(s).extents[0].held, 3);
	store_grace_over(s);
	assert_int_equal(numbers(s).extents[0].held, 0);
	rig_settle(s);
	assert_int_equal(numbers(s).extents[0].used, 1);
	assert_int_equal(numbers(s).extents[0].resting, 3);
	assert_int_equal(numbers(s).entries, 1);
	/* The bucket names it: it has taken place. */
	assert_int_equal(store_take(s, RIG_MESSAGE, &a), 0);
	r.words[place / 8] = reddn_locator(a, bytes);
	store_unfinished(s, place, reddn_locator(c, bytes), reddn_locator(a, bytes));
	assert_int_equal(numbers(s).extents[0].used, 1);
	rig_settle(s);
	store_close(s);
	free(r.file);
}

/* The locator of a record of key 1 in an extent that is taken for it */
static uint64_t record_held(struct store *s, const struct rig *r, unsigned version)
{
	uint64_t at;

	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	return reddn_locator(at, rig_record(r, r->heap + at + r->header, 1, version, 16));
}

/* The writer dies, and instances go on: one has published by then, another replaces that later, and a third
 * has what the first had replaced before. */
static void test_open_while_chains_publish(void **state)
{
	struct rig r = small;
	struct store_held held[3] = {0};
	struct store *s;
	uint64_t place, loc[4], at;
	char why[200];

	rig_make(&r);
	s = rig_open(&r);
	assert_int_equal(rig_put(s, &r, 1, 1), 0);
	place = 16 * (uint64_t)rig_bucket(&r, 1);
	loc[0] = r.words[place / 8];
	for (unsigned i = 0; i < 3; i++) {
		loc[i + 1] = record_held(s, &r, i);
		held[i] = (struct store_held){.at = reddn_locator_off(loc[i + 1]), .bytes = RIG_MESSAGE};
	}
	r.words[place / 8] = loc[1];
	store_close(s);
	/* What the bucket names counts once, though nobody has reported it, and nothing is free for others */
	assert_int_equal(store_open(&s, r.file, r.size, held, 3, why, sizeof(why)), 0);
	assert_int_equal(numbers(s).entries, 1);
	assert_int_equal(numbers(s).extents[0].held, 3);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), -ENOSPC);
	r.words[place / 8] = loc[2];
	assert_true(store_work(s));
	store_grace_begins(s);
	assert_true(store_published(s, place, loc[1], loc[2]));
	assert_true(store_published(s, place, loc[0], loc[1]));
	assert_int_equal(numbers(s).entries, 1);
	assert_int_equal(numbers(s).extents[0].used, 1);
	assert_int_equal(numbers(s).extents[0].resting, 1);
	store_grace_over(s);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	assert_int_equal(at, reddn_locator_off(loc[0]));
	store_give(s, at);
	store_give(s, held[2].at);
	rig_settle(s);
	assert_int_equal(numbers(s).extents[0].held, 0);
	store_close(s);
	/* No two instances have one extent, and each is one of the heap */
	held[2].at = held[1].at;
	assert_int_equal(store_open(&s, r.file, r.size, held, 3, why, sizeof(why)), -EBADMSG);
	assert_non_null(strstr(why, "extents that there cannot be"));
	held[2].at = r.chunk * r.chunks;
	assert_int_equal(store_open(&s, r.file, r.size, held, 3, why, sizeof(why)), -EBADMSG);
	held[2].at = held[1].at + 64;
	assert_int_equal(store_open(&s, r.file, r.size, held, 3, why, sizeof(why)), -EBADMSG);
	free(r.file);
}

/* A put and the one that replaced it are over, and the writer dies when it has seen the later one alone */
static void test_open_after_the_later_report(void **state)
{
	struct rig r = small;
	struct store_held held = {.bytes = RIG_MESSAGE};
	struct store *s;
	uint64_t place, loc[3];
	char why[200];

	rig_make(&r);
	s = rig_open(&r);
	assert_int_equal(rig_put(s, &r, 1, 1), 0);
	place = 16 * (uint64_t)rig_bucket(&r, 1);
	loc[0] = r.words[place / 8];
	loc[1] = record_held(s, &r, 2);
	held.at = reddn_locator_off(loc[1]);
	loc[2] = record_held(s, &r, 3);
	r.words[place / 8] = loc[2];
	assert_true(store_published(s, place, loc[1], loc[2]));
	store_close(s);
	assert_int_equal(store_open(&s, r.file, r.size, &held, 1, why, sizeof(why)), 0);
	assert_true(store_published(s, place, loc[0], loc[1]));
	assert_int_equal(numbers(s).entries, 1);
	rig_settle(s);
	assert_int_equal(numbers(s).entries, 1);
	assert_int_equal(numbers(s).contradictions, 0);
	assert_int_equal(numbers(s).extents[0].used, 1);
	assert_int_equal(numbers(s).extents[0].held, 0);
	store_close(s);
	free(r.file);
}

/* The key of 8 bytes whose hash is 0: XXH3 multiplies them, changed by its secret and the seed. */
static uint64_t key_of_hash_0(uint32_t seed)
{
	const uint64_t secret = 0xdb979083e96dd4de ^ 0x1f67b3b7a4a44072;

	return secret + (seed ^ (uint64_t)__builtin_bswap32(seed) << 32);
}

/* No message that came short of its arguments finds a key. */
static void test_no_fingerprint(void **state)
{
	struct rig r = small;
	uint64_t key = key_of_hash_0(5), at;
	const struct reddn_place p = reddn_hash_key(5, r.buckets, &key, sizeof(key));
	struct reddn_record head = {.key_len = sizeof(key)};
	const uint32_t bytes = (uint32_t)reddn_record_padded(r.header + reddn_record_size(sizeof(key), 0));
	struct store *s;

	assert_int_equal(p.fp, 0);
	assert_int_equal(p.bucket[0], 0);
	rig_make(&r);
	s = rig_open(&r);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	memset(r.heap + at + r.header, 0, bytes - r.header);
	memcpy(r.heap + at + r.header, &head, sizeof(head));
	memcpy(r.heap + at + r.header + sizeof(head), &key, sizeof(key));
	assert_true(store_unplaced(s, at, bytes));
	rig_settle(s);
	assert_int_equal(numbers(s).fresh, 0);
	/* any other */
	r.heap[at + r.header + sizeof(head)] ^= 1;
	assert_true(store_unplaced(s, at, bytes));
	rig_settle(s);
	assert_int_equal(numbers(s).fresh, 1);
	store_close(s);
	free(r.file);
}

static int opens(const struct rig *r, char *why)
{
	struct store *s = NULL;
	int e;

	why[0] = '\0';
	e = store_open(&s, r->file, r->size, NULL, 0, why, 200);
	if (e == 0)
		rig_settle(s);
	store_close(s);
	return e;
}

/* A wrong entry of the journal costs the entry of the store at most that it was about. */
static void test_wrong_moves(void **state)
{
	struct rig r = small;
	struct reddn_store_journal *j;
	struct store *s;
	uint64_t at[5], to[5], mark[5], copy;
	char why[200];

	rig_make(&r);
	j = (struct reddn_store_journal *)(r.file + REDDN_STORE_JOURNAL);
	s = rig_open(&r);
	for (uint32_t key = 0; key < 12; key++)
		assert_int_equal(rig_put(s, &r, key, key), 0);
	store_close(s);
	/* Moves that have begun, and a removal: of a mark that is none, of another one, out of the store, a
	 * right one, and one whose bucket another entry has */
	for (uint32_t i = 0; i < 5; i++) {
		at[i] = (uint64_t)rig_bucket(&r, i);
		mark[i] = r.words[2 * at[i] + 1];
		to[i] = reddn_hash_other(at[i], reddn_mark_fp(mark[i]), r.buckets);
		r.words[2 * at[i] + 1] = 0;
		j->move[i] = (struct reddn_store_move){at[i], to[i], mark[i]};
	}
	assert_int_equal(r.words[2 * to[3] + 1], 0);
	j->move[0].mark |= 1ull << 63;
	j->move[1].to ^= 1;
	j->move[2].from = r.buckets;
	copy = r.words[2 * to[4] + 1];
	if (!copy)
		r.words[2 * to[4] + 1] = reddn_mark(77);
	j->count = 5;
	r.h->live.moves |= 1;
	assert_int_equal(opens(&r, why), 0);
	assert_non_null(strstr(why, "journal had 4 moves"));
	assert_int_equal(j->count, 0);
	assert_int_equal(r.h->live.moves % 2, 0);
	s = rig_open(&r);
	assert_int_equal(numbers(s).entries, 12 - 3);
	for (uint32_t key = 0; key < 3; key++)
		assert_int_equal(rig_put(s, &r, key, key), 0);
	assert_int_equal(numbers(s).entries, 12);
	store_close(s);
	assert_int_equal(rig_bucket(&r, 3), (int64_t)to[3]);
	assert_int_equal(rig_bucket(&r, 4), (int64_t)at[4]);
	j->count = UINT64_MAX;
	assert_int_equal(opens(&r, why), 0);
	free(r.file);
}

static void test_wrong_files(void **state)
{
	struct rig r = small, large;
	uint8_t *good;
	char why[200];
	unsigned refused = 0;
	struct store *s;
	int64_t b;

	rig_make(&r);
	s = rig_open(&r);
	for (uint32_t key = 0; key < 12; key++)
		assert_int_equal(rig_put(s, &r, key, key), 0);
	store_close(s);
	good = malloc(r.size);
	memcpy(good, r.file, r.size);
	r.h->header = 0;
	assert_int_equal(opens(&r, why), -EBADMSG);
	assert_non_null(strstr(why, "not a store"));
	memcpy(r.file, good, r.size);
	b = rig_bucket(&r, 1);
	r.words[2 * b] = r.words[2 * rig_bucket(&r, 2)];
	assert_int_equal(opens(&r, why), -EBADMSG);
	assert_non_null(strstr(why, "as another does"));
	memcpy(r.file, good, r.size);
	r.words[2 * b] = reddn_locator(64 + 8, 64);
	assert_int_equal(opens(&r, why), -EBADMSG);
	assert_non_null(strstr(why, "where no extent is"));
	memcpy(r.file, good, r.size);
	/* What is no mark costs its entry */
	r.words[2 * b + 1] = reddn_locator(4096, RIG_MESSAGE);
	s = rig_open(&r);
	assert_int_equal(numbers(s).entries, 11);
	assert_int_equal(r.words[2 * b + 1], 0);
	assert_int_equal(rig_put(s, &r, 1, 1), 0);
	assert_int_equal(numbers(s).entries, 12);
	store_close(s);
	/* Extents whose length is 0 in 32 bits */
	large = r;
	large.size = r.h->heap_off + (1ull << 33);
	r.h->chunk = r.h->heap_size = 1ull << 33;
	*(uint64_t *)r.heap = 1ull << 32;
	assert_int_equal(opens(&large, why), -EBADMSG);
	assert_non_null(strstr(why, "damaged: chunks"));
	memcpy(r.file, good, r.size);
	/* Any byte of the header page, the buckets and the lines of chunks may be wrong. */
	for (uint64_t at = 0; at < r.h->heap_off + 64; at++) {
		memcpy(r.file, good, r.size);
		r.file[at] ^= at % 2 ? 0x81 : 0xff;
		refused += opens(&r, why) < 0;
	}
	assert_true(refused > 100);
	memcpy(r.file, good, r.size);
	for (uint64_t size = 0; size < r.size; size += 512) {
		struct rig cut = r;

		cut.size = size;
		assert_int_equal(opens(&cut, why), -EBADMSG);
	}
	free(good);
	free(r.file);
}

/* Far more keys than there is room for, be it for want of buckets or of extents: none is refused, and those
 * that are there are the later ones. */
static void test_evict(void **state)
{
	static const struct rig sizes[] = {{.buckets = 64,
						   .chunk = 65536,
						   .chunks = 8,
						   .header = 15,
						   .max_key = 16,
						   .max_value = 64,
						   .evict = true},
		{.buckets = 4096,
			.chunk = 4096,
			.chunks = 20,
			.header = 15,
			.max_key = 16,
			.max_value = 64,
			.evict = true}};

	for (unsigned i = 0; i < 2; i++) {
		struct rig r = sizes[i];
		struct store_numbers n;
		unsigned old = 0, recent = 0;
		struct store *s;
		uint64_t at;

		rig_make(&r);
		s = rig_open(&r);
		for (uint32_t key = 0; key < 6000; key++)
			assert_int_equal(rig_put(s, &r, key, key), 0);
		n = numbers(s);
		assert_false(n.full);
		assert_true(n.entries > (i ? 500 : 26) && n.evicted + n.entries == 6000);
		for (uint32_t key = 0; key < 6000; key++)
			*(key < 4000 ? &old : &recent) += rig_bucket(&r, key) >= 0;
		for (uint32_t key = 5990; key < 6000; key++)
			assert_true(rig_bucket(&r, key) >= 0 || i == 0);
		print_message("%" PRIu64 " of 6000 keys: %u of the first 4000\n", n.entries, old);
		assert_true(old < recent / 5);
		/* Sessions come, and need what entries have. */
		for (unsigned k = 0; i && k < 100; k++) {
			while (store_take(s, RIG_MESSAGE, &at) < 0)
				rig_settle(s);
		}
		store_close(s);
		free(r.file);
	}
}

enum { LARGER = 480 };

static const struct rig two_sizes = {.buckets = 4096,
	.chunk = 4096,
	.chunks = 8,
	.header = 15,
	.max_key = 16,
	.max_value = 400,
	.evict = true};

static void put_larger(struct store *s, const struct rig *r, uint32_t key)
{
	uint32_t bytes;
	uint64_t at;

	for (unsigned i = 0; store_take(s, LARGER, &at) < 0; i++) {
		assert_true(i < 100);
		rig_settle(s);
	}
	bytes = rig_record(r, r->heap + at + r->header, key, key, 400);
	for (unsigned i = 0; rig_bucket(r, key) < 0; i++) {
		assert_true(i < 100);
		assert_true(store_unplaced(s, at, bytes));
		rig_settle(s);
		assert_false(numbers(s).full);
	}
	assert_true(rig_publish(s, r, at, key, bytes));
}

static uint64_t chunk_of(const struct rig *r, int64_t bucket)
{
	return reddn_locator_off(r->words[2 * bucket]) / r->chunk;
}

/* A store whose heap is full of one size takes records of another. What keeps a chunk is one extent that a
 * session holds, or, where @lost, one whose bucket the owner of the file has cleared. */
static void evict_another_size(bool lost)
{
	struct rig r = two_sizes;
	uint64_t held, last;
	bool keeps[8] = {false};
	struct store *s;

	rig_make(&r);
	s = rig_open(&r);
	for (uint32_t key = 0; key < 2000; key++)
		assert_int_equal(rig_put(s, &r, key, key), 0);
	assert_int_equal(store_take(s, RIG_MESSAGE, &held), 0);
	keeps[held / r.chunk] = true;
	last = (held / r.chunk + 1) % r.chunks;
	for (uint32_t key = 0; lost && key < 2000; key++) {
		const int64_t b = rig_bucket(&r, key);

		if (b < 0 || keeps[chunk_of(&r, b)] || chunk_of(&r, b) == last)
			continue;
		keeps[chunk_of(&r, b)] = true;
		r.words[2 * b + 1] = 0;
		r.words[2 * b] = r.null;
	}
	for (uint32_t key = 2000; key < 4000; key++)
		put_larger(s, &r, key);
	for (uint32_t key = 0; key < 2000; key++)
		assert_true(rig_bucket(&r, key) < 0 || keeps[chunk_of(&r, rig_bucket(&r, key))]);
	store_give(s, held);
	store_close(s);
	free(r.file);
}

static void test_evict_another_size(void **state)
{
	evict_another_size(false);
	evict_another_size(true);
}

static void put_until(struct store *s, const struct rig *r, uint32_t key, uint64_t expiry)
{
	uint8_t be[sizeof(expiry)];
	uint64_t at;
	uint32_t bytes;

	assert_int_equal(rig_put(s, r, key, key), 0);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	bytes = rig_record(r, r->heap + at + r->header, key, key, 16);
	expiry = htobe64(expiry);
	memcpy(be, &expiry, sizeof(expiry));
	memcpy(r->heap + at + r->header - REDDN_STORE_EXPIRY, be + 1, REDDN_STORE_EXPIRY);
	assert_true(rig_publish(s, r, at, key, bytes));
}

/* Records that have expired leave, and others do not; also those that an earlier writer has not removed. */
static void test_expiry(void **state)
{
	const uint64_t later = (1ull << 56) - 1;

	for (uint32_t header = REDDN_STORE_HEADER_MIN; header <= REDDN_STORE_HEADER_MAX; header++) {
		struct rig r = small;
		struct store *s;

		r.header = header;
		rig_make(&r);
		s = rig_open(&r);
		assert_int_equal(rig_put(s, &r, 1, 1), 0);
		assert_int_equal(numbers(s).sweep_ms, 0);
		put_until(s, &r, 2, later);
		rig_settle(s);
		assert_int_equal(numbers(s).sweep_ms, later);
		put_until(s, &r, 3, 1);
		put_until(s, &r, 4, 1);
		/* another put in its place, in time */
		assert_int_equal(rig_put(s, &r, 4, 4), 0);
		rig_settle(s);
		assert_true(rig_bucket(&r, 3) < 0);
		assert_true(rig_bucket(&r, 1) >= 0 && rig_bucket(&r, 2) >= 0 && rig_bucket(&r, 4) >= 0);
		assert_int_equal(numbers(s).evicted, 0);
		/* nobody has looked for it before the next writer */
		put_until(s, &r, 5, 1);
		assert_true(rig_bucket(&r, 5) >= 0);
		store_close(s);
		s = rig_open(&r);
		rig_settle(s);
		assert_true(rig_bucket(&r, 5) < 0 && rig_bucket(&r, 1) >= 0 && rig_bucket(&r, 2) >= 0);
		assert_int_equal(numbers(s).expired, 1);
		assert_int_equal(numbers(s).sweep_ms, later);
		assert_int_equal(numbers(s).extents[0].used, numbers(s).entries);
		store_close(s);
		free(r.file);
	}
}

/* The writer dies before it sees the first publish of a record that expires. One that leaves looks for none
 * later if there was none. */
static void test_unseen_expiry(void **state)
{
	struct rig r = small;
	struct store *s;
	uint64_t at;

	rig_make(&r);
	s = rig_open(&r);
	assert_int_equal(rig_put(s, &r, 1, 1), 0);
	assert_int_equal(rig_put(s, &r, 2, 2), 0);
	store_leave(s);
	store_close(s);
	s = rig_open(&r);
	assert_int_equal(numbers(s).sweep_ms, 0);
	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	r.words[2 * rig_bucket(&r, 1)] = reddn_locator(at, rig_record(&r, r.heap + at + r.header, 1, 3, 16));
	r.heap[at + r.header - 1] = 1;
	store_leave(s);
	store_close(s);
	s = rig_open(&r);
	assert_int_not_equal(numbers(s).sweep_ms, 0);
	rig_settle(s);
	assert_true(rig_bucket(&r, 1) < 0 && rig_bucket(&r, 2) >= 0);
	assert_int_equal(numbers(s).expired, 1);
	store_leave(s);
	store_close(s);
	s = rig_open(&r);
	assert_int_equal(numbers(s).sweep_ms, 0);
	store_close(s);
	free(r.file);
}

/* The owner of the file writes locators that name no extent, while the store is open. */
static void test_wild_locators(void **state)
{
	static const uint64_t offs[] = {0xfefefefef8, 0xfffffffff8, 1ull << 38, 8, 72, 4096};

	for (unsigned i = 0; i < 6; i++) {
		struct rig r = small;
		struct store *s;
		uint64_t at;
		uint32_t bytes;

		r.evict = true;
		rig_make(&r);
		s = rig_open(&r);
		assert_int_equal(rig_put(s, &r, 0, 0), 0);
		for (uint64_t b = 0; b < r.buckets; b++) {
			r.words[2 * b] = reddn_locator(offs[i], 64);
			r.words[2 * b + 1] = reddn_mark(b + 1);
		}
		assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
		for (uint32_t key = 1; key < 60; key++) {
			bytes = rig_record(&r, r.heap + at + r.header, key, 1, 16);
			assert_true(store_unplaced(s, at, bytes));
			rig_settle(s);
			assert_true(rig_bucket(&r, key) >= 0);
		}
		store_close(s);
		free(r.file);
	}
}

struct toggling {
	volatile uint64_t *word;
	uint64_t good, bad;
	atomic_bool ends;
};

static void *toggle(void *arg)
{
	struct toggling *t = arg;

	while (!t->ends) {
		*t->word = t->good;
		for (volatile unsigned i = 0; i < 20; i++)
			;
		*t->word = t->bad;
	}
	return NULL;
}

/* The owner of the file changes what is checked when the store is opened. */
static void test_changing_header(void **state)
{
	struct rig r = small;
	volatile uint64_t *words[4];
	unsigned opened = 0;
	char why[200];

	rig_make(&r);
	words[0] = &r.h->heap_off;
	words[1] = &r.h->buckets;
	words[2] = &r.h->buckets_off;
	words[3] = (uint64_t *)(r.file + REDDN_STORE_JOURNAL + offsetof(struct reddn_store_journal, move));
	for (unsigned i = 0; i < 4; i++) {
		struct toggling t = {words[i], *words[i], 1ull << 40, false};
		struct reddn_store_journal *j = (struct reddn_store_journal *)(r.file + REDDN_STORE_JOURNAL);
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, toggle, &t), 0);
		for (unsigned n = 0; n < 20000; n++) {
			j->move[0] = (struct reddn_store_move){.mark = reddn_mark(1)};
			j->count = i == 3;
			opened += opens(&r, why) == 0;
		}
		t.ends = true;
		pthread_join(thread, NULL);
		*words[i] = t.good;
	}
	assert_true(opened > 0);
	free(r.file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life_of_a_key),
		cmocka_unit_test(test_full_buckets),
		cmocka_unit_test(test_full_extents),
		cmocka_unit_test(test_deserted),
		cmocka_unit_test(test_evict),
		cmocka_unit_test(test_evict_another_size),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_unseen_expiry),
		cmocka_unit_test(test_tiny),
		cmocka_unit_test(test_wrong_messages),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_open_while_chains_publish),
		cmocka_unit_test(test_open_after_the_later_report),
		cmocka_unit_test(test_no_fingerprint),
		cmocka_unit_test(test_wrong_moves),
		cmocka_unit_test(test_wrong_files),
		cmocka_unit_test(test_wild_locators),
		cmocka_unit_test(test_changing_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
