/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/judge.h"
#include "protocol/cache-hash.h"
#include "protocol/cache-item.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "tests/lib/cmocka.h"

enum {
	N = 2,
	MOST = 200,
	WALKS = 88,
	AFTER = 48, /* bytes 16 to 55 of an item, as the last walk saw it */
	FIRST = 136,
	ITEMS = 144,
	LEN = ITEMS + N * (WALKS + MOST),
	CLOCK = 1000
};

static struct {
	uint8_t bytes[LEN];
	struct mc_lines lines;
	struct reddn_cache_item item;
} r;

static uint64_t newest; /* CAS id that was known when the NIC was asked */

static void put64(size_t at, uint64_t v)
{
	v = htobe64(v);
	memcpy(r.bytes + at, &v, 8);
}

static void put32(size_t at, uint32_t v)
{
	v = htobe32(v);
	memcpy(r.bytes + at, &v, 4);
}

static void put_lines(void)
{
	struct reddn_cache_served *s = &r.lines.served;

	s->sum = XXH3_64bits(s, offsetof(struct reddn_cache_served, sum));
	memcpy(r.bytes, &r.lines, sizeof(r.lines));
}

/* Item @i of the bucket is r.item, with this key and value, as each walk sees it */
static void put_item(unsigned i, const char *key, const char *value)
{
	const uint8_t *item = (const uint8_t *)&r.item;
	size_t at = ITEMS + i * (WALKS + MOST);
	uint8_t *rest = r.bytes + at + WALKS;
	uint32_t flags = 77;

	r.item.nkey = (uint8_t)strlen(key);
	r.item.nbytes = (int32_t)strlen(value) + 2;
	r.item.h_next = i + 1 < N ? 0x10000200000 + 512 * (i + 1) : 0;
	for (unsigned walk = 0; walk < 3; walk++)
		put64(at + 8 * walk, 0x7f0000200000 + 512 * i);
	memcpy(r.bytes + at + 24, item + 32, 24);
	memcpy(r.bytes + at + AFTER, item + 16, 40);
	memcpy(rest, item + 24, 32);
	memcpy(rest + 32, key, strlen(key) + 1);
	memcpy(rest + 32 + strlen(key) + 1, &flags, 4);
	memcpy(rest + 32 + strlen(key) + 5, value, strlen(value));
}

static int setup(void **state)
{
	memset(&r, 0, sizeof(r));
	r.lines.live.generation = r.lines.served.generation = 4;
	put_lines();
	put32(128, N);
	put32(132, MOST);
	r.item = (struct reddn_cache_item){.time = 100,
		.refcount = 1,
		.it_flags = CACHE_ITEM_LINKED | CACHE_ITEM_CAS | CACHE_ITEM_CFLAGS,
		.cas = 99};
	newest = 99;
	put_item(0, "other", "o");
	put_item(1, "key", "value");
	memcpy(r.bytes + FIRST, &(uint64_t){0x10000200000}, 8);
	return 0;
}

static enum mc_judgement judge_with(const char *key, unsigned rules, struct mc_item *item)
{
	const struct mc_question q = {
		.key = key, .key_len = strlen(key), .clock = CLOCK, .newest = newest, .rules = rules};

	return mc_judge(r.bytes, LEN, &r.lines, &q, item);
}

static enum mc_judgement judge(const char *key)
{
	struct mc_item item;

	return judge_with(key, MC_RULES, &item);
}

static void test_lines(void **state)
{
	struct mc_lines lines;

	assert_true(mc_lines_read(r.bytes, LEN, &lines));
	assert_int_equal(lines.live.generation, 4);
	assert_false(mc_lines_read(r.bytes, 100, &lines));
	r.bytes[70]++; /* in the middle of a write */
	assert_false(mc_lines_read(r.bytes, LEN, &lines));
	r.lines.live.generation = 6;
	put_lines();
	assert_false(mc_lines_read(r.bytes, LEN, &lines));
	r.lines.live.generation = r.lines.served.generation = 5;
	put_lines();
	assert_false(mc_lines_read(r.bytes, LEN, &lines));
}

static void test_hit(void **state)
{
	struct mc_item item;

	assert_int_equal(judge_with("key", MC_RULES, &item), MC_HIT);
	assert_int_equal(item.len, 5);
	assert_memory_equal(item.value, "value", 5);
	assert_int_equal(item.cas, 99);
	assert_int_equal(item.flags, 77);
	assert_int_equal(item.exptime, 0);
	r.item.it_flags &= (uint16_t)~CACHE_ITEM_CFLAGS;
	r.item.exptime = CLOCK + 2;
	put_item(1, "key", "xxxxvalue");
	assert_int_equal(judge_with("key", MC_RULES, &item), MC_HIT);
	assert_int_equal(item.flags, 0);
	assert_int_equal(item.exptime, CLOCK + 2);
}

static bool is_due(uint16_t flags, uint8_t list, uint32_t time)
{
	struct mc_item item;

	r.item.it_flags = CACHE_ITEM_LINKED | CACHE_ITEM_CAS | CACHE_ITEM_CFLAGS | flags;
	r.item.clsid = list | 5;
	r.item.time = time;
	put_item(1, "key", "value");
	assert_int_equal(judge_with("key", MC_RULES, &item), MC_HIT);
	return item.due;
}

/* The first use, and those of an item that may be evicted soon */
static void test_due(void **state)
{
	enum { HOT = 0, WARM = 64, COLD = 128 };

	assert_true(is_due(0, HOT, CLOCK));
	assert_true(is_due(0, COLD, CLOCK));
	assert_false(is_due(CACHE_ITEM_FETCHED, HOT, 1));
	assert_false(is_due(CACHE_ITEM_FETCHED, WARM, 1));
	assert_true(is_due(CACHE_ITEM_FETCHED, COLD, CLOCK - 2));
	assert_false(is_due(CACHE_ITEM_FETCHED, COLD, CLOCK - 1));
	assert_false(is_due(CACHE_ITEM_FETCHED, COLD, CLOCK + 1));
	assert_false(is_due(CACHE_ITEM_FETCHED | CACHE_ITEM_ACTIVE, COLD, 1));
}

static void test_absent(void **state)
{
	assert_int_equal(judge("ke"), MC_BEYOND);
	assert_int_equal(judge("kez"), MC_BEYOND);
	for (unsigned walk = 0; walk < 3; walk++)
		put64(ITEMS + WALKS + MOST + 8 * walk, 0x7f0000000000);
	/* the last walk saw one that was not there before */
	assert_int_equal(judge("key"), MC_UNSURE);
	memset(r.bytes + ITEMS + AFTER, 0, 8);
	assert_int_equal(judge("key"), MC_ABSENT);
	assert_int_equal(judge("other"), MC_HIT);
}

/* The walks end behind an item that is not proved to have been in the table, or to be the one that was sent:
 * the item with the key may be behind it, or be it */
static void test_absent_unproved(void **state)
{
	const size_t flags = 6, cas = 16;
	uint8_t *header = r.bytes + ITEMS + AFTER + 16;

	for (unsigned walk = 0; walk < 3; walk++)
		put64(ITEMS + WALKS + MOST + 8 * walk, 0x7f0000000000);
	memset(r.bytes + ITEMS + AFTER, 0, 8);
	assert_int_equal(judge("key"), MC_ABSENT);
	/* deleted before the first walk read it: its pointer is 0, and the bucket points elsewhere */
	memcpy(r.bytes + FIRST, &(uint64_t){0x10000200200}, 8);
	assert_int_equal(judge("key"), MC_UNSURE);
	memcpy(r.bytes + FIRST, &(uint64_t){0x10000200000}, 8);
	/* deleted before the last one read it, or deleted and used again */
	header[flags] &= (uint8_t)~CACHE_ITEM_LINKED;
	assert_int_equal(judge("key"), MC_UNSURE);
	header[flags] |= CACHE_ITEM_LINKED;
	header[cas]++;
	assert_int_equal(judge("key"), MC_UNSURE);
	header[cas]--;
	/* another item was sent whole, or another header first */
	for (unsigned walk = 0; walk < 2; walk++) {
		put64(ITEMS + 8 * walk, 0x7f0000300000);
		assert_int_equal(judge("key"), MC_UNSURE);
		put64(ITEMS + 8 * walk, 0x7f0000200000);
	}
	assert_int_equal(judge("key"), MC_ABSENT);
}

/* One walk differs in what a rule looks at: without that rule it is a hit */
static void expect_rule(unsigned rule)
{
	struct mc_item item;

	assert_int_equal(judge("key"), MC_UNSURE);
	assert_int_equal(judge_with("key", MC_RULES & ~rule, &item), MC_HIT);
	setup(NULL);
}

static void test_rules(void **state)
{
	const size_t at = ITEMS + WALKS + MOST, nbytes = 0, refcount = 4, flags = 6, cas = 16;

	for (unsigned walk = 0; walk < 3; walk++) {
		put64(at + 8 * walk, 0x300000);
		expect_rule(MC_RULE_PLACES);
	}
	for (unsigned after = 0; after < 2; after++) {
		uint8_t *header = r.bytes + at + (after ? AFTER + 16 : 24);
		unsigned rule = after ? MC_RULE_AFTER : MC_RULE_BEFORE;

		header[nbytes]++;
		expect_rule(rule);
		header[flags] &= (uint8_t)~CACHE_ITEM_LINKED;
		expect_rule(rule);
		header[cas]++;
		expect_rule(rule);
	}
	/* the bucket points elsewhere, or the item before has left the table */
	r.bytes[FIRST]++;
	expect_rule(MC_RULE_PLACES);
	r.bytes[ITEMS + 16 + 5]++;
	expect_rule(MC_RULE_PLACES);
	r.bytes[ITEMS + AFTER + 1]++; /* or points elsewhere */
	expect_rule(MC_RULE_PLACES);
	r.bytes[ITEMS + AFTER + 16 + flags] &= (uint8_t)~CACHE_ITEM_LINKED;
	expect_rule(MC_RULE_PLACES);
	r.bytes[ITEMS + AFTER + 16 + cas]++;
	expect_rule(MC_RULE_PLACES);
	r.item.refcount = 2;
	put_item(1, "key", "12");
	expect_rule(MC_RULE_COUNTER);
	r.item.refcount = 2;
	put_item(1, "key", " 2");
	expect_rule(MC_RULE_COUNTER);
	/* the count after the header does not matter: another change may have begun */
	put_item(1, "key", "12");
	r.bytes[at + WALKS + 8 + refcount] = r.bytes[at + AFTER + 16 + refcount] = 2;
	assert_int_equal(judge("key"), MC_HIT);
	r.bytes[at + 24 + refcount] = 2;
	expect_rule(MC_RULE_COUNTER);
}

/*
 * The READ of the header took the count before a change, and the CAS id in the midst of it: all is as if the
 * change were over. Only that nobody knew this id yet shows that it may not be.
 */
static void test_known(void **state)
{
	static const char *const numbers[] = {"12", " 2", "\t", "-2", "+2", "1 and more"};
	struct mc_item item;

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		put_item(1, "key", numbers[i]);
		newest = 98;
		expect_rule(MC_RULE_KNOWN);
		put_item(1, "key", numbers[i]);
		newest = 100;
		assert_int_equal(judge("key"), MC_HIT);
	}
	newest = 0;
	put_item(1, "key", "v12");
	assert_int_equal(judge("key"), MC_HIT);
	put_item(1, "key", "");
	assert_int_equal(judge("key"), MC_HIT);
	/* so the next question knows it */
	put_item(1, "key", "12");
	assert_int_equal(judge_with("key", MC_RULES, &item), MC_UNSURE);
	assert_int_equal(item.cas, 99);
	newest = item.cas;
	assert_int_equal(judge("key"), MC_HIT);
}

/* The CAS id of what is not proved to be in the table may be anything */
static void test_unproved_id(void **state)
{
	struct mc_item item = {.cas = 5};

	r.bytes[ITEMS + WALKS + MOST + AFTER + 16 + 16]++;
	assert_int_equal(judge_with("key", MC_RULES, &item), MC_UNSURE);
	assert_int_equal(item.cas, 0);
	item.cas = 5;
	assert_int_equal(judge_with("kez", MC_RULES, &item), MC_BEYOND);
	assert_int_equal(item.cas, 0);
}

/*
 * memcached moves an item to where a walk comes by a pointer that is over: first it copies all of it, with
 * LINKED and the CAS id, from front to back (1.6.18 slabs.c, 1.6.38 slabs_mover.c), and then it links the
 * copy. The first two walks are in the midst of that.
 */
static void test_moved(void **state)
{
	const size_t at = ITEMS + WALKS + MOST, refcount = 4;

	/* the last walk finds it where it was: nothing else is wrong with a value of which the end is not
	 * there yet */
	r.item.refcount = 2;
	put_item(1, "key", "valu?");
	put64(at + 16, 0x7f0000300000);
	expect_rule(MC_RULE_PLACES);
	/* or where it is now, if it keeps its CAS id: of memcached 1.6.27 and later */
	r.lines.served.traits = REDDN_CACHE_IDS_MOVE;
	r.item.refcount = 2;
	put_item(1, "key", "valu?");
	expect_rule(MC_RULE_COUNTER);
	/* or if the READ of the header took the count of what was there before */
	r.lines.served.traits = REDDN_CACHE_IDS_MOVE;
	put_item(1, "key", "valu?");
	r.bytes[at + WALKS + 8 + refcount] = 2;
	expect_rule(MC_RULE_COUNTER);
	r.lines.served.traits = REDDN_CACHE_IDS_MOVE;
	assert_int_equal(judge("key"), MC_HIT);
}

static void expect_item(const char *value, enum mc_judgement expected)
{
	put_item(1, "key", value);
	assert_int_equal(judge("key"), expected);
	setup(NULL);
}

static void test_items(void **state)
{
	r.item.it_flags &= (uint16_t)~CACHE_ITEM_LINKED;
	expect_item("value", MC_UNSURE);
	r.item.cas = 0;
	expect_item("value", MC_UNSURE);
	r.item.it_flags |= CACHE_ITEM_CHUNKED;
	expect_item("value", MC_ELSEWHERE);
	r.item.it_flags |= CACHE_ITEM_HDR;
	expect_item("value", MC_ELSEWHERE);
	r.item.exptime = CLOCK + 1; /* memcached's clock may have come there */
	expect_item("value", MC_ELSEWHERE);
	r.item.refcount = 2;
	expect_item("value", MC_HIT);
	r.item.refcount = 2;
	expect_item("", MC_HIT);
}

static void test_too_long(void **state)
{
	const size_t room = MOST - 32 - 4 - 4 - 2; /* header, key, flags, line end */
	char value[MOST] = "";

	memset(value, 'v', room);
	expect_item(value, MC_HIT);
	/* the last byte that put_item() writes is behind the item, in the reply's last byte */
	r.item.nbytes = 0;
	put_item(1, "key", value);
	r.bytes[ITEMS + WALKS + MOST + WALKS + 8]++;
	r.bytes[ITEMS + WALKS + MOST + 24]++;
	r.bytes[ITEMS + WALKS + MOST + AFTER + 16]++;
	assert_int_equal(judge("key"), MC_LONG);
}

/* An item of which all pieces have come */
static void test_pieces(void **state)
{
	const struct mc_question q = {.key = "key", .key_len = 3, .clock = CLOCK, .rules = MC_RULES};
	const struct mc_item before = {.len = 1000, .place = 0x5000, .at = 64, .cas = 7};
	struct reddn_cache_item header = {
		.nbytes = 1002, .it_flags = CACHE_ITEM_LINKED | CACHE_ITEM_CFLAGS, .nkey = 3, .cas = 7};
	struct mc_item after = before, held = before, fresh = before, item;
	uint8_t bytes[1064] = {[60] = 77};

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + 56, "key", 4);
	memset(bytes + 64, '5', 1000);
	after.exptime = 9;
	assert_true(mc_judge_pieces(&before, bytes, &after, &q, &item));
	assert_ptr_equal(item.value, bytes + 64);
	assert_int_equal(item.len, 1000);
	assert_int_equal(item.flags, 77);
	assert_int_equal(item.exptime, 9);
	held.held = true; /* by incr, for a moment */
	assert_false(mc_judge_pieces(&held, bytes, &after, &q, &item));
	fresh.fresh = true; /* incr may have begun, and go on */
	assert_false(mc_judge_pieces(&fresh, bytes, &after, &q, &item));
	bytes[64] = 'v';
	assert_true(mc_judge_pieces(&held, bytes, &after, &q, &item));
	assert_true(mc_judge_pieces(&fresh, bytes, &after, &q, &item));
	after.cas = 8;
	assert_false(mc_judge_pieces(&before, bytes, &after, &q, &item));
	after = before;
	after.place += 8;
	assert_false(mc_judge_pieces(&before, bytes, &after, &q, &item));
	after = before;
	after.len++; /* more than there are bytes of */
	assert_false(mc_judge_pieces(&before, bytes, &after, &q, &item));
	after = before;
	for (unsigned i = 0; i < 4; i++) { /* length, length of the key, CAS id, key */
		const unsigned at[] = {32, 41, 48, 57};

		bytes[at[i]]++;
		assert_false(mc_judge_pieces(&before, bytes, &after, &q, &item));
		bytes[at[i]]--;
	}
}

static void test_flushed(void **state)
{
	r.lines.served.flushed = 99;
	assert_int_equal(judge("key"), MC_HIT);
	r.lines.served.flushed = 100;
	assert_int_equal(judge("key"), MC_ELSEWHERE);
	/* one with a delay */
	r.lines.served.flushed = CLOCK + 2;
	assert_int_equal(judge("key"), MC_ELSEWHERE);
	r.lines.served.flushed = CLOCK + 3;
	assert_int_equal(judge("key"), MC_HIT);
	/* not asked yet */
	r.lines.served.flushed = UINT64_MAX;
	assert_int_equal(judge("key"), MC_ELSEWHERE);
}

/* Of a key that is longer than what was sent only the beginning can be compared */
static void test_long_key(void **state)
{
	char key[251];

	memset(key, 'k', 250);
	key[250] = '\0';
	r.bytes[ITEMS + WALKS + MOST + WALKS + 17] = 250;
	memset(r.bytes + ITEMS + WALKS + MOST + WALKS + 32, 'k', MOST - 32);
	r.bytes[ITEMS + WALKS + MOST + 24 + 9] = r.bytes[ITEMS + WALKS + MOST + AFTER + 16 + 9] = 250;
	assert_int_equal(judge(key), MC_LONG);
	key[0] = 'x';
	assert_int_equal(judge(key), MC_BEYOND);
}

/* A program with other params, or another program */
static void test_malformed(void **state)
{
	put32(128, 1000);
	assert_int_equal(judge("key"), MC_HIT);
	assert_int_equal(judge("kez"), MC_BEYOND);
	put32(132, UINT32_MAX);
	assert_int_equal(judge("key"), MC_BEYOND);
	put32(132, 10);
	assert_int_equal(judge("key"), MC_ELSEWHERE);
}

/* ---- facts ---- */

enum { NOW = 5000000 };

static struct mc_lines lines(uint64_t tables)
{
	return (struct mc_lines){.live = {.generation = 8, .tables = tables, .power_min = 12},
		.served = {.generation = 8, .hash = CACHE_HASH_MURMUR3, .clock = 100, .asked = 100}};
}

static void test_places(void **state)
{
	const uint32_t hash = cache_hash(CACHE_HASH_MURMUR3, "key", 3);
	struct mc_lines l = lines(1 << 13 | 1 << 14);
	struct mc_facts f = {0};
	struct mc_place p;

	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	mc_facts_take(&f, &l, true, NOW);
	assert_true(mc_facts_place(&f, 0, "key", 3, &p));
	assert_int_equal(p.at, (8u << 13) + 8 * (hash % (1 << 13)));
	assert_true(mc_place_holds(&p, &l));
	assert_true(mc_facts_place(&f, 1, "key", 3, &p));
	assert_int_equal(p.at, (8u << 14) + 8 * (hash % (1 << 14)));
	assert_false(mc_facts_place(&f, 2, "key", 3, &p));
	l.live.tables = 1 << 13;
	assert_false(mc_place_holds(&p, &l));
	l = lines(1 << 14);
	l.live.generation = 10;
	assert_false(mc_place_holds(&p, &l));
	/* the other place of the smallest comes before the rest */
	l = lines(1 << 0 | 1 << 13);
	mc_facts_take(&f, &l, true, NOW);
	assert_true(mc_facts_place(&f, 0, "key", 3, &p));
	assert_int_equal(p.at, 8 * (hash % (1 << 12)));
	assert_true(mc_facts_place(&f, 1, "key", 3, &p));
	assert_int_equal(p.at, (8u << 13) + 8 * (hash % (1 << 13)));
}

static void test_unknown(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};
	struct mc_place p;

	mc_facts_take(&f, &l, true, NOW);
	mc_facts_take(&f, &l, false, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	l.served.hash = CACHE_HASHES;
	mc_facts_take(&f, &l, true, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	l = lines(0);
	mc_facts_take(&f, &l, true, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	l = lines(1ull << 40);
	mc_facts_take(&f, &l, true, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
}

/* CAS ids of one memcached are given in order; the next one begins again */
static void test_newest(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};

	mc_facts_take(&f, &l, true, NOW);
	mc_facts_saw(&f, 7);
	mc_facts_saw(&f, 5);
	mc_facts_saw(&f, 0);
	assert_int_equal(f.newest, 7);
	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(f.newest, 7);
	l.live.generation = l.served.generation = 10;
	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(f.newest, 0);
	mc_facts_saw(&f, 5);
	assert_int_equal(f.newest, 5);
}

static void test_clock(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};

	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(mc_facts_clock(&f, NOW), 100);
	assert_int_equal(mc_facts_clock(&f, NOW + 999), 100);
	assert_int_equal(mc_facts_clock(&f, NOW + 1000), 101);
	/* a later look shows that the first was late; an even later one is */
	l.served.clock = 101;
	mc_facts_take(&f, &l, true, NOW + 300);
	assert_int_equal(mc_facts_clock(&f, NOW + 300), 101);
	mc_facts_take(&f, &l, true, NOW + 1000);
	assert_int_equal(mc_facts_clock(&f, NOW + 1300), 102);
	/* another memcached has another clock */
	l.live.generation = l.served.generation = 10;
	l.served.clock = 60;
	mc_facts_take(&f, &l, true, NOW + 2000);
	assert_int_equal(mc_facts_clock(&f, NOW + 2000), 60);
}

static void test_age(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};

	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(mc_facts_age(&f, NOW), 0);
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 3000), 3000);
	/* it looks, but memcached does not answer */
	l.served.clock = 103;
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 3000), 3000);
	l.served.asked = 103;
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 3000), 0);
	l.served.died = 1700000000;
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 9000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_lines, setup),
		cmocka_unit_test_setup(test_hit, setup),
		cmocka_unit_test_setup(test_due, setup),
		cmocka_unit_test_setup(test_absent, setup),
		cmocka_unit_test_setup(test_absent_unproved, setup),
		cmocka_unit_test_setup(test_rules, setup),
		cmocka_unit_test_setup(test_known, setup),
		cmocka_unit_test_setup(test_unproved_id, setup),
		cmocka_unit_test_setup(test_moved, setup),
		cmocka_unit_test_setup(test_items, setup),
		cmocka_unit_test_setup(test_too_long, setup),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test_setup(test_flushed, setup),
		cmocka_unit_test_setup(test_long_key, setup),
		cmocka_unit_test_setup(test_malformed, setup),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
