/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reply.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"
#include "util/array.h"

#include <endian.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/cmocka.h"

static const struct reddn_geometry geo = {.seed = 77,
	.buckets = 4096,
	.max_key = 100,
	.max_value = 1000,
	.offset_len = 3,
	.keys = 1,
	.room = 1152};

static union {
	uint8_t bytes[64 + 1152];
	uint64_t align;
} slot;

static struct reddn_record *const record = (struct reddn_record *)(slot.bytes + REDDN_SLOT_RECORD);
static struct reddn_table_live *const live = (struct reddn_table_live *)slot.bytes;

/* What the NIC would have put there. */
static void put(const char *key, size_t val_len)
{
	memset(&slot, 0xee, sizeof(slot));
	record->key_len = (uint32_t)strlen(key);
	record->val_len = (uint32_t)val_len;
	memcpy(record->bytes, key, strlen(key));
	memset(record->bytes + strlen(key), 'v', val_len);
	record->sum = reddn_record_sum(record);
	*live = (struct reddn_table_live){.moves = 10, .epoch = 5};
}

enum { HIT = -1 }; /* beside enum reddn_reply_state */

static int judge_in(const struct reddn_geometry *g, const char *key, const struct reddn_seen *before)
{
	const struct reddn_seen now = reddn_reply_see(slot.bytes);
	const uint8_t *at = (uint8_t *)record;
	int64_t len = reddn_reply_hit(g, key, strlen(key), at);

	if (len < 0 || !reddn_seen_current(&now, before))
		return (int)reddn_reply_without(g, key, strlen(key), at, &now, before);
	assert_int_equal(len, record->val_len);
	assert_ptr_equal(reddn_reply_value(at, strlen(key)), record->bytes + strlen(key));
	return HIT;
}

static int judge(const char *key, uint64_t moves, uint64_t epoch)
{
	return judge_in(&geo, key, &(struct reddn_seen){.moves = moves, .epoch = epoch});
}

static int judge_first(const char *key)
{
	return judge_in(&geo, key, &REDDN_SEEN_NOTHING);
}

static void test_hit(void **state)
{
	for (size_t len = 0; len <= 1000; len += 125) {
		put("key", len);
		/* A hit needs nothing but itself and the epoch. */
		assert_int_equal(judge_first("key"), HIT);
		live->moves = 11;
		assert_int_equal(judge("key", 2, 5), HIT);
	}
}

/* Whatever is in a table that was replaced */
static void test_stale(void **state)
{
	for (size_t len = 0; len <= 10; len += 10)
		for (int what = 0; what < 3; what++) {
			put("key", len);
			if (what == 1)
				memset(record, 0, 8);
			if (what == 2)
				record->sum++;
			assert_int_not_equal(judge_first("key"), REDDN_REPLY_STALE);
			assert_int_not_equal(judge("key", 10, 5), REDDN_REPLY_STALE);
			assert_int_equal(judge("key", 10, 6), REDDN_REPLY_STALE);
			live->epoch = 0;
			assert_int_equal(judge_first("key"), REDDN_REPLY_STALE);
			assert_int_equal(judge("key", 10, 5), REDDN_REPLY_STALE);
		}
}

static void test_any_flip_is_overtaken(void **state)
{
	put("key", 100);
	for (size_t i = 0; i < reddn_record_size(3, 100); i++)
		for (int bit = 0; bit < 8; bit++) {
			uint8_t *b = slot.bytes + REDDN_SLOT_RECORD + i;

			*b ^= (uint8_t)(1 << bit);
			assert_int_equal(judge("key", 10, 5), REDDN_REPLY_OVERTAKEN);
			*b ^= (uint8_t)(1 << bit);
		}
	assert_int_equal(judge("key", 10, 5), HIT);
}

static void test_miss(void **state)
{
	put("key", 100);
	memset(record, 0, 8);
	assert_int_equal(judge("key", 10, 5), REDDN_REPLY_MISS);
	assert_int_equal(judge_first("key"), REDDN_REPLY_MOVED);
	assert_int_equal(judge("key", 8, 5), REDDN_REPLY_MOVED);
	assert_int_equal(judge("key", 12, 5), REDDN_REPLY_MOVED);
	assert_int_equal(judge("key", 10, 6), REDDN_REPLY_STALE);
	live->moves = 11;
	assert_int_equal(judge("key", 11, 5), REDDN_REPLY_MOVED);
}

static void test_other_records(void **state)
{

	/* Another key, right in itself: the bucket was rewritten between the reads of its words. */
	put("other", 10);
	assert_int_equal(judge("key", 10, 5), REDDN_REPLY_OVERTAKEN);
	/* A prefix is not the key. */
	put("keyv", 10);
	assert_int_equal(judge("key", 10, 5), REDDN_REPLY_OVERTAKEN);
	/* The null record. */
	put("", 0);
	record->key_len = UINT32_MAX;
	assert_int_equal(judge("key", 10, 5), REDDN_REPLY_OVERTAKEN);
	/* No keys are empty. */
	put("", 5);
	assert_int_equal(judge("key", 10, 5), REDDN_REPLY_OVERTAKEN);
	/* More than the table's limits. */
	put("key", 1001);
	assert_int_equal(judge("key", 10, 5), REDDN_REPLY_OVERTAKEN);
	put("key", 1000);
	assert_int_equal(judge("key", 10, 5), HIT);
}

/* ---- a server that writes into the slot once more, after the head of the record has been read ---- */

static struct {
	uint8_t *pages; /* a head at the end of the first one, and its bytes in the second */
	struct reddn_record *record;
	uint32_t key_len, val_len; /* what the server writes then */
	unsigned times;
} late;

/* The first look at the bytes of the record: the head has been read. */
static void write_late(int signal)
{
	late.record->key_len = late.key_len;
	late.record->val_len = late.val_len;
	late.record->sum ^= 1;
	late.times++;
	mprotect(late.pages + REDDN_TABLE_PAGE, REDDN_TABLE_PAGE, PROT_READ | PROT_WRITE);
}

static int64_t hit_written_late(uint32_t key_len, uint32_t val_len)
{
	late.key_len = key_len;
	late.val_len = val_len;
	late.record = (struct reddn_record *)(late.pages + REDDN_TABLE_PAGE - sizeof(struct reddn_record));
	memcpy(late.record, record, sizeof(*record) + 3 + 100);
	assert_int_equal(mprotect(late.pages + REDDN_TABLE_PAGE, REDDN_TABLE_PAGE, PROT_NONE), 0);
	return reddn_reply_hit(&geo, "key", 3, (uint8_t *)late.record);
}

/* What was checked is what is used. */
static void test_written_again(void **state)
{
	static const uint32_t lengths[] = {0, 1, 3, 100, 101, 1000, 1001, INT32_MAX, UINT32_MAX};
	const struct sigaction action = {.sa_handler = write_late};
	const struct reddn_seen before = {.moves = 10, .epoch = 5};
	struct reddn_seen now;
	struct sigaction old;

	late.pages =
		mmap(NULL, 2 * REDDN_TABLE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(late.pages != MAP_FAILED);
	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	put("key", 100);
	for (unsigned i = 0; i < COUNT(lengths); i++)
		for (unsigned k = 0; k < COUNT(lengths); k++)
			assert_int_equal(hit_written_late(lengths[i], lengths[k]), 100);
	assert_int_equal(late.times, COUNT(lengths) * COUNT(lengths));
	sigaction(SIGSEGV, &old, NULL);
	munmap(late.pages, 2 * REDDN_TABLE_PAGE);
	/* The moves that decide about a miss are those that become the next ones seen. */
	put("", 0);
	now = reddn_reply_see(slot.bytes);
	*live = (struct reddn_table_live){.moves = 11, .epoch = 0};
	assert_int_equal(
		reddn_reply_without(&geo, "key", 3, (uint8_t *)record, &now, &before), REDDN_REPLY_MISS);
	assert_int_equal(now.moves, 10);
	assert_int_equal(now.epoch, 5);
}

/* Keys that fingerprint and bucket do not distinguish. */
static void test_same_place(void **state)
{
	struct reddn_place a = {.fp = 9, .bucket = {3, 4}}, b = a;

	assert_true(reddn_place_same(&a, &b));
	b = (struct reddn_place){.fp = 9, .bucket = {4, 3}};
	assert_true(reddn_place_same(&a, &b));
	b = (struct reddn_place){.fp = 9, .bucket = {5, 6}};
	assert_false(reddn_place_same(&a, &b));
	b = (struct reddn_place){.fp = 8, .bucket = {3, 4}};
	assert_false(reddn_place_same(&a, &b));
}

static void test_request(void **state)
{
	uint8_t arg[64];
	char key[12];

	assert_int_equal(reddn_request_len(&geo), 18);
	for (int k = 0; k < 1000; k++) {
		struct reddn_place p;

		snprintf(key, sizeof(key), "%d", k);
		p = reddn_hash_key(geo.seed, geo.buckets, key, strlen(key));
		memset(arg, 0xaa, sizeof(arg));
		reddn_request_build(&geo, key, strlen(key), arg);
		for (int i = 0; i < 2; i++) {
			uint64_t off = p.bucket[i] * 16;
			uint8_t *a = arg + i * 9;

			for (int n = 0; n < 6; n++)
				assert_int_equal(a[n], (uint8_t)(p.fp >> (8 * (5 - n))));
			assert_int_equal(a[6] << 16 | a[7] << 8 | a[8], off);
		}
		assert_int_equal(arg[REDDN_REQUEST_ROOM], 0xaa);
		assert_true(p.bucket[0] != p.bucket[1]);
		assert_true(p.bucket[0] < geo.buckets && p.bucket[1] < geo.buckets);
		assert_int_equal(reddn_hash_other(p.bucket[1], p.fp, geo.buckets), p.bucket[0]);
	}
}

/* ---- which keys exist ---- */

/* The parts of the buckets of a key, as a table or a store has them; @at: the one that has its mark, of a
 * record of @len bytes */
static void parts_of(const struct reddn_geometry *g, const char *key, int at, uint32_t len, uint8_t *parts)
{
	const struct reddn_place p = reddn_hash_key(g->seed, g->buckets, key, strlen(key));
	union {
		struct reddn_bucket bucket;
		uint64_t word[2];
		uint8_t byte[16];
	} b;

	for (int i = 0; i < 2; i++, parts += g->part) {
		/* the other one differs in the highest bit that is looked at */
		b.word[0] = reddn_locator(4096, i == at ? len : 64);
		b.word[1] = reddn_mark(i == at ? p.fp : p.fp ^ 0x8000);
		memcpy(parts, b.byte + REDDN_PART_END - g->part, g->part);
	}
}

static enum reddn_reply_state judge_parts(
	const struct reddn_geometry *g, const char *key, const uint8_t *parts, uint64_t moves, uint64_t epoch)
{
	const struct reddn_seen now = {.moves = 10, .epoch = 5}, before = {.moves = moves, .epoch = epoch};
	uint8_t request[REDDN_REQUEST_ROOM];
	uint16_t mark;

	reddn_exists_build(g, key, strlen(key), request, &mark);
	return reddn_reply_parts(g, mark, parts, &now, &before);
}

static void test_parts(void **state)
{
	static const uint32_t lengths[] = {0, 8, 10, 64, 256 + 9, 65536 + 9, 0xfffff8};
	struct reddn_geometry g = geo;
	uint8_t parts[2 * REDDN_PART_STORE];

	for (int store = 0; store < 2; store++) {
		g.header = store ? 9 : 0;
		g.part = (uint8_t)reddn_wire_part(g.header);
		for (int at = 0; at < 2; at++) {
			/* the key of an entry without a record is absent in a store */
			parts_of(&g, "key", at, 9, parts);
			assert_int_equal(judge_parts(&g, "key", parts, 10, 5),
				store ? REDDN_REPLY_MISS : REDDN_REPLY_EXISTS);
			for (unsigned i = 0; i < COUNT(lengths); i++) {
				parts_of(&g, "key", at, lengths[i], parts);
				/* moves do not matter, another table does */
				assert_int_equal(judge_parts(&g, "key", parts, 8, 5), REDDN_REPLY_EXISTS);
				assert_int_equal(judge_parts(&g, "key", parts, 10, 6), REDDN_REPLY_STALE);
			}
		}
		parts_of(&g, "key", 2, 64, parts);
		assert_int_equal(judge_parts(&g, "key", parts, 10, 5), REDDN_REPLY_MISS);
		assert_int_equal(judge_parts(&g, "key", parts, 8, 5), REDDN_REPLY_MOVED);
		assert_int_equal(judge_parts(&g, "key", parts, 1, UINT64_MAX), REDDN_REPLY_MOVED);
		assert_int_equal(judge_parts(&g, "key", parts, 10, 6), REDDN_REPLY_STALE);
	}
}

static uint64_t longer;

/* The record in the slot, as a message brings it for a key of @key_len bytes, with @room for the value. */
/* @intact: no other reply has used the sink since */
static int judge_into_in(const struct reddn_geometry *g, const char *key, size_t room, bool intact,
	uint64_t moves, uint64_t epoch, size_t *len)
{
	const struct reddn_seen now = reddn_reply_see(slot.bytes), before = {.moves = moves, .epoch = epoch};
	uint8_t head[64], value[1100], sink[1100];
	const struct reddn_apart r = {
		.record = head, .value = value, .rest = sink, .room = room, .longer = &longer};
	const size_t first = sizeof(struct reddn_record) + strlen(key);

	memcpy(head, record, first);
	memset(value, 0xcc, sizeof(value));
	memcpy(value, (uint8_t *)record + first, room);
	memset(sink, 0xdd, sizeof(sink));
	if (intact && first + room < 1100)
		memcpy(sink, (uint8_t *)record + first + room, 1100 - first - room);
	return (int)reddn_reply_into(g, key, strlen(key), &r, &now, &before, len);
}

static int judge_into(const char *key, size_t room, uint64_t moves, uint64_t epoch, size_t *len)
{
	return judge_into_in(&geo, key, room, true, moves, epoch, len);
}

/* Two keys that have the same fingerprint, by search: the longer one is behind a place that it does not fit
 */
static void test_into_same_place(void **state)
{
	static const char *const key = "1103968", *const other = "a key of another length 14629168";
	const size_t end = strlen(other) - strlen(key);
	struct reddn_geometry g = geo;
	size_t len;

	g.buckets = 2;
	put(other, 20);
	for (size_t room = 0; room <= end + 30; room++) {
		assert_int_equal(judge_into_in(&g, key, room, true, 10, 5, &len), REDDN_REPLY_MISS);
		assert_int_equal(judge_into_in(&g, key, room, false, 10, 5, &len),
			room < end ? REDDN_REPLY_OVERTAKEN : REDDN_REPLY_MISS);
	}
	record->bytes[strlen(other) - 1] ^= 1;
	assert_int_equal(judge_into_in(&g, key, 3, true, 10, 5, &len), REDDN_REPLY_OVERTAKEN);
}

static void test_into(void **state)
{
	static const char *const others[] = {"ke", "kez", "another"};
	size_t len;

	for (unsigned val_len = 0; val_len <= 1000; val_len += 125) {
		put("key", val_len);
		assert_int_equal(judge_into("key", val_len, 8, 5, &len), REDDN_REPLY_EXISTS);
		assert_int_equal(len, val_len);
		assert_int_equal(judge_into("key", 1000, 8, 6, &len), REDDN_REPLY_STALE);
		for (unsigned at = 0; at < 16 + 3 + val_len; at += 1 + at / 24 * 7) {
			((uint8_t *)record)[at] ^= 1;
			assert_int_not_equal(judge_into("key", val_len, 8, 5, &len), REDDN_REPLY_EXISTS);
			((uint8_t *)record)[at] ^= 1;
		}
		longer = 0;
		for (unsigned n = 0; val_len && n < 3; n++) {
			/* a record that changed while it was read has another checksum */
			record->sum += n == 2;
			assert_int_equal(judge_into("key", val_len - 1, 8, 5, &len),
				n == 1 ? REDDN_REPLY_TOO_LONG : REDDN_REPLY_OVERTAKEN);
		}
		assert_int_equal(len, val_len);
	}
	for (unsigned i = 0; i < COUNT(others); i++) {
		put(others[i], 20);
		/* the key reaches into the place of the value, or beyond it */
		assert_int_equal(judge_into("key", 100, 10, 5, &len), REDDN_REPLY_OVERTAKEN);
		assert_int_equal(judge_into("key", 2, 10, 5, &len), REDDN_REPLY_OVERTAKEN);
	}
	put("key", 20);
	record->key_len = record->val_len = 0;
	assert_int_equal(judge_into("key", 20, 10, 5, &len), REDDN_REPLY_MISS);
	assert_int_equal(judge_into("key", 20, 8, 5, &len), REDDN_REPLY_MOVED);
	record->key_len = 101;
	assert_int_equal(judge_into("key", 20, 10, 5, &len), REDDN_REPLY_OVERTAKEN);
}

/* The server compares: the request is that of a get, and a word is 1 or begins with 0 */
static void test_exact(void **state)
{
	const uint8_t absent[16] = {
		0, REDDN_TABLE_TAG, 1, 2, 3, 4, 5, 6, 0, REDDN_TABLE_TAG, 1, 2, 3, 4, 5, 6};
	struct reddn_geometry g = geo;
	uint8_t parts[16], request[REDDN_REQUEST_ROOM], get[REDDN_REQUEST_ROOM];
	uint16_t mark;

	g.part = REDDN_PART_EXACT;
	assert_null(reddn_geometry_error(&g, 2, 18));
	assert_non_null(reddn_geometry_error(&g, 2, 6));
	assert_int_equal(reddn_parts_at(&g, 2), 64 + 32);
	reddn_exists_build(&g, "key", 3, request, &mark);
	reddn_request_build(&geo, "key", 3, get);
	assert_memory_equal(request, get, 18);
	for (unsigned header = 0; header <= 9; header += 9) {
		g.header = (uint8_t)header;
		for (unsigned at = 0; at < 3; at++) {
			memcpy(parts, absent, sizeof(parts));
			if (at < 2)
				memcpy(parts + 8 * at, &(uint64_t){htole64(1)}, 8);
			assert_int_equal(judge_parts(&g, "key", parts, 10, 5),
				at < 2 ? REDDN_REPLY_EXISTS : REDDN_REPLY_MISS);
			assert_int_equal(judge_parts(&g, "key", parts, 10, 6), REDDN_REPLY_STALE);
		}
	}
}

static void test_exists_request(void **state)
{
	struct reddn_geometry g = geo;
	uint8_t arg[8];
	uint16_t mark;

	for (int k = 0; k < 1000; k++) {
		struct reddn_place p;
		char key[12];

		g.header = k % 2 ? 9 : 0;
		g.part = (uint8_t)reddn_wire_part(g.header);
		snprintf(key, sizeof(key), "%d", k);
		p = reddn_hash_key(g.seed, g.buckets, key, strlen(key));
		memset(arg, 0xaa, sizeof(arg));
		reddn_exists_build(&g, key, strlen(key), arg, &mark);
		assert_int_equal(mark, p.fp & 0xffff);
		for (int i = 0; i < 2; i++)
			assert_int_equal(arg[3 * i] << 16 | arg[3 * i + 1] << 8 | arg[3 * i + 2],
				p.bucket[i] * 16 + (k % 2 ? 0 : 8));
		assert_int_equal(arg[6], 0xaa);
	}
	assert_null(reddn_geometry_error(&g, 2, 6));
	assert_non_null(reddn_geometry_error(&g, 2, 18));
}

/* No byte of a fingerprint is the tag, and those of the hash that are not stay as they are. */
static void test_fingerprint(void **state)
{
	static const uint8_t bytes[] = {
		0, 1, 0x7f, 0x80, 0xff, REDDN_TABLE_TAG - 1, REDDN_TABLE_TAG, REDDN_TABLE_TAG + 1};
	enum { N = COUNT(bytes) };

	for (unsigned n = 0; n < N * N * N * N * N * N; n++) {
		uint64_t hash = 0xabcd, fp, rest = n;

		for (int i = 0; i < 6; i++, rest /= N)
			hash = hash << 8 | bytes[rest % N];
		fp = reddn_hash_fp(hash);
		assert_int_equal(fp >> 48, 0);
		for (int i = 0; i < 48; i += 8) {
			uint8_t was = (uint8_t)(hash >> i);

			assert_int_equal((uint8_t)(fp >> i), was == REDDN_TABLE_TAG ? (uint8_t)~was : was);
		}
	}
}

static void test_geometry(void **state)
{
	struct reddn_geometry g = geo;

	assert_null(reddn_geometry_error(&g, 2, 18));
	assert_non_null(reddn_geometry_error(&g, 2, 20));
	g.offset_len = 2; /* 65536 bytes of buckets: the last offset is 0xfff0 */
	assert_null(reddn_geometry_error(&g, 2, 16));
	g.offset_len = 1;
	assert_non_null(reddn_geometry_error(&g, 2, 14));
	g = geo;
	g.offset_len = 9;
	assert_non_null(reddn_geometry_error(&g, 2, 30));
	g = geo;
	g.buckets = 4095;
	assert_non_null(reddn_geometry_error(&g, 2, 18));
	g.buckets = 1ull << 63;
	assert_non_null(reddn_geometry_error(&g, 2, 18));
	g = geo;
	g.max_key = 0;
	assert_non_null(reddn_geometry_error(&g, 2, 18));
	g = geo;
	g.max_value = UINT32_MAX;
	assert_non_null(reddn_geometry_error(&g, 2, 18));
	g = geo; /* the longest record has a place, or is one that is put */
	g.room = 16 + 100 + 1000;
	assert_null(reddn_geometry_error(&g, 2, 18));
	g.room--;
	assert_non_null(reddn_geometry_error(&g, 2, 18));
	assert_null(reddn_geometry_error(&g, 1, 9));
}

/* Keys of all lengths around those that are not left to libc: no byte beside them is touched, each one counts
 */
static void test_short(void **state)
{
	uint8_t a[24], b[24];

	for (size_t len = 0; len <= 20; len++) {
		for (unsigned i = 0; i < sizeof(a); i++)
			a[i] = (uint8_t)(i + 1);
		memset(b, 0, sizeof(b));
		assert_int_equal(short_is(len), len > 8 && len <= 16);
		if (short_is(len))
			short_copy(b + 2, a + 2, len);
		else
			memcpy(b + 2, a + 2, len);
		assert_memory_equal(b + 2, a + 2, len);
		assert_true(b[1] == 0 && b[2 + len] == 0);
		assert_true(short_same(a + 2, b + 2, len));
		for (size_t i = 0; i < len; i++) {
			b[2 + i] ^= 0x80;
			assert_false(short_same(a + 2, b + 2, len));
			b[2 + i] ^= 0x80;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_hit),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_any_flip_is_overtaken),
		cmocka_unit_test(test_miss),
		cmocka_unit_test(test_other_records),
		cmocka_unit_test(test_written_again),
		cmocka_unit_test(test_same_place),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_into),
		cmocka_unit_test(test_into_same_place),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_exists_request),
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_geometry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
