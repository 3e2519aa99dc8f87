/* SPDX-License-Identifier: BSD-2-Clause */
/* Every program of conf/programs that ends by itself, and what it means in plain C */
#include "protocol/table-format.h"
#include "tests/programs/offloads.h"
#include "tests/programs/values.h"

#include <stdio.h>
#include <string.h>

/* ---- if, compare, wide-compare ---------------------------------------------------------------- */

static void if_request(struct run *r, uint8_t *slot)
{
	uint64_t x = run_number(r, 6), y = run_number_near(r, x, 6);

	run_arg(r, "x", x);
	run_arg(r, "y", y);
	slot[0] = x == y;
}

static void compare_request(struct run *r, uint8_t *slot)
{
	uint64_t a = run_number(r, 8), b = run_number_near(r, a, 8);
	unsigned relation = (unsigned)r->p->params[0].value;
	bool holds[] = {a == b, a != b, a<b, a> b, a <= b, a >= b};

	run_arg(r, "a", a);
	run_arg(r, "b", b);
	slot[0] = holds[relation];
	slot[1] = (uint8_t)relation;
}

static void random_region(struct run *r)
{
	run_fill(r, r->region[0], r->o->region_bytes[0]);
}

static void wide_request(struct run *r, uint8_t *slot)
{
	unsigned width = (unsigned)r->p->params[0].value;
	uint64_t at = run_random(r, r->o->region_bytes[0] - width + 1);
	uint8_t key[32];

	memcpy(key, r->region[0] + at, width);
	if (run_random(r, 2))
		key[run_random(r, width)] ^= (uint8_t)(1u << run_random(r, 8));
	run_arg(r, "at", at);
	run_arg_bytes(r, "key", key);
	slot[0] = memcmp(key, r->region[0] + at, width) == 0;
	memcpy(slot + 16, r->region[0] + at, width);
}

/* ---- mov ------------------------------------------------------------------------------------- */

static void mov_immediate_request(struct run *r, uint8_t *slot)
{
	run_put_le(r->model[0] + 8, 8, 0x123456789a);
	memcpy(slot, r->model[0] + 8, 8);
}

enum { MEMORY = 512 };

/* Registers R0, R1 and R3 hold places in the memory */
static void mov_setup(struct run *r)
{
	run_fill(r, r->region[0], 64);
	run_fill(r, r->region[1], MEMORY);
	run_put_be(r->region[0] + 6, 2, run_random(r, MEMORY / 2 - 8));
	run_put_be(r->region[0] + 14, 2, run_random(r, MEMORY / 4 - 8));
	run_put_be(r->region[0] + 30, 2, run_random(r, MEMORY / 2));
}

static void mov(struct run *r, uint8_t *slot, uint64_t i, uint64_t j)
{
	uint8_t *registers = r->model[0], *memory = r->model[1];

	memcpy(registers + 16, memory + run_get_be(registers + 6, 2) + i, 8);
	memcpy(memory + run_get_be(registers + 14, 2) + j, registers + 16, 8);
	memcpy(slot, registers + 16, 8);
}

static void mov_indirect_request(struct run *r, uint8_t *slot)
{
	mov(r, slot, 0, 0);
}

static void mov_indexed_request(struct run *r, uint8_t *slot)
{
	uint64_t i = run_random(r, 256);

	run_arg(r, "i", i);
	mov(r, slot, i, run_get_be(r->model[0] + 30, 2));
}

/* ---- while, scan ------------------------------------------------------------------------------ */

/* Elements of @size bytes that begin with 48 bits, some of them equal */
static void array_setup(struct run *r)
{
	unsigned size = strcmp(r->o->file, "scan.rdn") == 0 ? 16 : 8, n = r->o->region_bytes[0] / size;

	run_fill(r, r->region[0], r->o->region_bytes[0]);
	for (unsigned i = 0; i < n; i++)
		run_put_le(r->region[0] + i * size, 6, run_number(r, 6));
	for (unsigned i = 1; i < n; i++)
		if (run_random(r, 4) == 0)
			memcpy(r->region[0] + i * size, r->region[0] + run_random(r, i) * size, 6);
}

static void find_request(struct run *r, uint8_t *slot)
{
	unsigned n = (unsigned)r->p->params[0].value;
	uint64_t x = run_number_near(r, run_get_le(r->region[0] + run_random(r, n) * 8, 6), 6);
	bool stops = strcmp(r->o->file, "while-break.rdn") == 0;

	if (run_random(r, 2))
		x = run_get_le(r->region[0] + run_random(r, n) * 8, 6);
	run_arg(r, "x", x);
	for (unsigned i = 0; i < n; i++)
		if (run_get_le(r->region[0] + i * 8, 6) == x) {
			run_put_be(slot, 8, i);
			if (stops)
				break;
		}
	run_put_be(slot + 8, 8, n);
}

static void scan_request(struct run *r, uint8_t *slot)
{
	unsigned n = (unsigned)r->p->params[0].value;
	uint64_t x = run_number_near(r, run_get_le(r->region[0] + run_random(r, n) * 16, 6), 6);

	run_arg(r, "x", x);
	run_put_be(slot, 8, n);
	for (unsigned i = 0; i < n; i++)
		if (run_get_le(r->region[0] + i * 16, 6) >= x) {
			run_put_be(slot + 8, 8, i);
			memcpy(slot + 16, r->region[0] + i * 16 + 6, 10);
			return;
		}
}

/* ---- lists ------------------------------------------------------------------------------------ */

enum { NODE = 19, NODES = 24, HEAP = 8192, MOST = 1024 };

static void list_setup(struct run *r)
{
	run_fill(r, r->region[1], HEAP);
	for (unsigned i = 0; i < NODES; i++) {
		uint8_t *node = r->region[0] + i * NODE;
		uint64_t len = 1 + run_random(r, run_random(r, 4) ? 40 : MOST);

		/* a ring through all of them; some keys are there twice */
		run_put_be(node, 5, (i * 13 + 5) % NODES * NODE);
		run_put_le(node + 5, 6, i % 6 == 5 ? run_number(r, 6) : 1000 + i % 20);
		run_put_be(node + 11, 3, len);
		run_put_be(node + 14, 5, run_random(r, HEAP - len));
	}
}

unsigned library_list_place;

static const uint8_t *list_node(const struct run *r, unsigned at, unsigned place)
{
	const uint8_t *node = r->region[0] + at * NODE;

	while (place-- > 0)
		node = r->region[0] + run_get_be(node, 5);
	return node;
}

/* The first of @n nodes that has the key; @n: none */
static unsigned list_find(const struct run *r, unsigned at, unsigned n, uint64_t key)
{
	unsigned place = 0;

	while (place < n && run_get_le(list_node(r, at, place) + 5, 6) != key)
		place++;
	return place;
}

static void list_request(struct run *r, uint8_t *slot)
{
	unsigned n = (unsigned)r->p->params[0].value, at, place;
	uint64_t key;

	do {
		at = (unsigned)run_random(r, NODES);
		place = library_list_place ? library_list_place - 1 : (unsigned)run_random(r, n);
		key = run_get_le(list_node(r, at, place) + 5, 6);
	} while (library_list_place && list_find(r, at, n, key) != place);
	if (!library_list_place && !run_random(r, 8))
		key = run_number(r, 6);
	run_arg(r, "head", at * NODE);
	run_arg(r, "key", key);
	place = list_find(r, at, n, key);
	run_put_be(slot, 8, place < n);
	if (place < n) {
		const uint8_t *node = list_node(r, at, place);

		memcpy(slot + 8, r->region[1] + run_get_be(node + 14, 5), run_get_be(node + 11, 3));
	}
}

/* ---- tables ----------------------------------------------------------------------------------- */

enum { BUCKETS = 32, BUCKET = 16 };

static void hash_setup(struct run *r)
{
	run_fill(r, r->region[1], HEAP);
	run_fill(r, r->region[2], 64);
	for (unsigned i = 0; i < BUCKETS; i++) {
		uint8_t *b = r->region[0] + i * BUCKET;
		uint64_t len = 17 + run_random(r, 300);

		run_put_be(b, 3, len);
		run_put_be(b + 3, 5, run_random(r, HEAP - len));
		run_put_le(b + 8, 6,
			i % 2 && run_random(r, 3) == 0 ? run_get_le(b - BUCKET + 8, 6) : run_number(r, 6));
		b[14] = run_random(r, 5) ? REDDN_TABLE_TAG : (uint8_t)run_number(r, 1);
	}
}

/* A get, whose first probe is number @first of the request: the buckets of the key, or NULL if it has another
 * one. Returns the fingerprint */
static uint64_t hash_ask(struct run *r, unsigned first, unsigned probes, const uint8_t *hit[2])
{
	unsigned b[2] = {(unsigned)run_random(r, BUCKETS), (unsigned)run_random(r, BUCKETS)};
	uint64_t fp;

	if (run_random(r, 3) == 0)
		b[1] = b[0] ^ 1;
	fp = run_number_near(r, run_get_le(r->region[0] + b[run_random(r, 2)] * BUCKET + 8, 6), 6);
	for (unsigned p = 0; p < probes; p++) {
		const uint8_t *k = r->region[0] + b[p] * BUCKET;
		char name[24];

		snprintf(name, sizeof(name), "probe[%u].fp", first + p);
		run_arg(r, name, fp);
		snprintf(name, sizeof(name), "probe[%u].at", first + p);
		run_arg(r, name, b[p] * BUCKET);
		hit[p] = run_get_le(k + 8, 6) == fp && k[14] == REDDN_TABLE_TAG ? k : NULL;
	}
	return fp;
}

static void hash_record(const struct run *r, const uint8_t *k, uint8_t *record)
{
	memcpy(record, r->region[1] + run_get_be(k + 3, 5), run_get_be(k, 3));
}

static void hash_get(struct run *r, unsigned first, unsigned probes, uint8_t *record)
{
	const uint8_t *hit[2];

	hash_ask(r, first, probes, hit);
	for (unsigned p = 0; p < probes; p++)
		if (hit[p])
			hash_record(r, hit[p], record);
}

static void into_request(struct run *r, uint8_t *slot)
{
	const uint64_t number = run_number(r, 4);
	uint8_t *message = run_inbox(r);
	const uint8_t *hit[2];

	(void)slot;
	hash_ask(r, 0, 2, hit);
	run_arg(r, "number", number);
	*run_answer(r) = (struct run_answer){.sends = true};
	memcpy(message, r->region[2], 64);
	run_put_be(message + 64, 4, number);
	if (hit[0] || hit[1])
		hash_record(r, hit[0] ? hit[0] : hit[1], message + 68);
}

static void hash_request(struct run *r, uint8_t *slot)
{
	hash_get(r, 0, r->p->nargs / 2, slot + 64);
	memcpy(slot, r->region[2], 64);
}

/* A put of what its extent has, or of nothing, where the bucket is that of the key */
/* @at: of the bucket that is asked. True: the key is its own. What is answered otherwise */
static bool put_begin(struct run *r, uint8_t *slot, uint64_t at)
{
	const uint8_t *bucket = r->model[0] + at;
	const uint64_t fp = run_random(r, 3) ? run_get_le(bucket + 8, 6)
					     : run_number_near(r, run_get_le(bucket + 8, 6), 6);

	run_arg(r, "fp", fp);
	run_arg(r, "at", at);
	r->payload_bytes = run_random(r, 4) ? (uint32_t)run_random(r, RUN_PAYLOAD + 1) : 0;
	run_fill(r, r->payload, r->payload_bytes);
	memcpy(r->model[1] + run_extent(r) + r->c.img->arg_len, r->payload, r->payload_bytes);
	run_put_be(slot, 8, run_get_le(bucket, 8));
	memset(slot + 8, 0xff, 8);
	memcpy(slot + 16, r->model[2], 8);
	memcpy(slot + 24, r->model[2] + 24, 8);
	return run_get_le(bucket + 8, 6) == fp && bucket[14] == REDDN_TABLE_TAG;
}

static void put_publish(struct run *r, uint8_t *slot, uint64_t at)
{
	uint8_t *bucket = r->model[0] + at;

	memcpy(slot + 8, bucket, 8);
	run_put_be(bucket, 3, r->c.img->arg_len + r->payload_bytes);
	run_put_be(bucket + 3, 5, run_extent(r));
}

static void put_request(struct run *r, uint8_t *slot)
{
	const uint64_t at = run_random(r, BUCKETS) * BUCKET;

	if (put_begin(r, slot, at))
		put_publish(r, slot, at);
}

static void put_if_request(struct run *r, uint8_t *slot)
{
	const uint64_t at = run_random(r, BUCKETS) * BUCKET;
	const bool has_key = put_begin(r, slot, at);
	/* The payload may have come there */
	const uint64_t version = run_get_le(r->model[1] + run_get_be(r->model[0] + at + 3, 5), 7);
	const uint64_t asked = run_random(r, 3) ? version : run_number_near(r, version, 7);

	run_arg(r, "version", asked);
	memset(slot + 32, 0xff, 7);
	memcpy(slot + 39, r->model[0] + at + 3, 5);
	if (!has_key)
		return;
	memcpy(slot + 32, &(uint64_t){htole64(version)}, 7);
	if (version == asked)
		put_publish(r, slot, at);
}

static void exists_setup(struct run *r)
{
	run_fill(r, r->region[0], BUCKETS * BUCKET);
	run_fill(r, r->region[1], 64);
}

/* Where the parts begin, which need not be that of one */
static void exists_request(struct run *r, uint8_t *slot)
{
	const unsigned part = (unsigned)r->p->params[2].value;

	memcpy(slot, r->region[1], 64);
	for (unsigned p = 0; p < r->p->nargs; p++) {
		const uint64_t at = run_random(r, BUCKETS * BUCKET - part + 1);
		char name[24];

		snprintf(name, sizeof(name), "at[%u]", p);
		run_arg(r, name, at);
		memcpy(slot + 64 + p * part, r->region[0] + at, part);
	}
}

static void exact_setup(struct run *r)
{
	exists_setup(r);
	for (unsigned b = 0; b < BUCKETS; b++) {
		uint8_t *bucket = r->region[0] + b * BUCKET;

		bucket[14] = run_random(r, 4) ? REDDN_TABLE_TAG : bucket[14];
		bucket[15] = run_random(r, 8) ? 0 : bucket[15];
	}
}

/* What is looked for comes back as it was sent, with the tag in front of it, where it is not found */
static void exact_request(struct run *r, uint8_t *slot)
{
	memcpy(slot, r->region[1], 64);
	for (unsigned k = 0; k < r->p->nargs / 4; k++) {
		const uint8_t *hit[2];
		const uint64_t fp = hash_ask(r, 2 * k, 2, hit);

		for (unsigned p = 0; p < 2; p++) {
			uint8_t *word = slot + 64 + (2 * k + p) * 8;

			run_put_be(word, 2, REDDN_TABLE_TAG);
			run_put_be(word + 2, 6, fp);
			if (hit[p] && !hit[p][15])
				run_put_le(word, 8, 1);
		}
	}
}

enum { MGET_RECORD = 384 };

static void mget_request(struct run *r, uint8_t *slot)
{
	for (unsigned k = 0; k < r->p->nargs / 4; k++)
		hash_get(r, 2 * k, 2, slot + 64 + k * MGET_RECORD);
	memcpy(slot, r->region[2], 64);
}

enum { CUCKOO = 40, ITEM = 12, ITEMS = 40 };

static void cuckoo_setup(struct run *r)
{
	uint32_t at[ITEMS], end = 0;

	run_fill(r, r->region[1], HEAP);
	for (unsigned i = 0; i < ITEMS; i++) {
		uint32_t size = ITEM + (uint32_t)run_random(r, 150);

		at[i] = end;
		run_put_le(r->region[1] + end, 7,
			i % 3 == 2 ? run_get_le(r->region[1] + at[i - 1], 7) : run_number(r, 7));
		run_put_be(r->region[1] + end + 8, 4, size);
		end += size;
	}
	for (unsigned b = 0; b < BUCKETS; b++)
		for (unsigned i = 0; i < 4; i++) {
			uint8_t *bucket = r->region[0] + b * CUCKOO;

			bucket[i] = (uint8_t)run_random(r, 3);
			run_put_be(bucket + 8 + i * 8, 8, at[run_random(r, ITEMS)]);
		}
}

static void cuckoo_request(struct run *r, uint8_t *slot)
{
	unsigned b[2] = {(unsigned)run_random(r, BUCKETS), (unsigned)run_random(r, BUCKETS)};
	const uint8_t *like = r->region[0] + b[run_random(r, 2)] * CUCKOO, tag = like[0];
	uint64_t hash = run_number_near(r, run_get_le(r->region[1] + run_get_be(like + 8, 8), 7), 7);

	run_arg(r, "tag", tag);
	run_arg(r, "hash", hash);
	for (unsigned p = 0; p < 2; p++) {
		const uint8_t *bucket = r->region[0] + b[p] * CUCKOO;

		run_arg(r, p ? "at[1]" : "at[0]", b[p] * CUCKOO);
		for (unsigned i = 0; i < 4; i++) {
			const uint8_t *item = r->region[1] + run_get_be(bucket + 8 + i * 8, 8);

			if (bucket[i] == tag && run_get_le(item, 7) == hash)
				memcpy(slot + 64, item, run_get_be(item + 8, 4));
		}
	}
	slot[0] = 1;
}

/* ---- memcached-get ---------------------------------------------------------------------------- */

enum { CACHE_BUCKETS = 16, CACHE_ITEMS = 20, CACHE_STEP = 320, CACHE_BYTES = (CACHE_ITEMS + 2) * CACHE_STEP };

/* Where a pointer leads: to one of the items, or to nothing, which is the item at 0 */
static uint64_t cache_pointer(struct run *r)
{
	uint64_t i = run_random(r, CACHE_ITEMS + 1);

	return i ? i * CACHE_STEP + run_random(r, 8) * 8 : 0;
}

/* The sixth byte is the same in all pointers of memcached, and no part of the offset */
static void cache_setup(struct run *r)
{
	run_fill(r, r->region[1], CACHE_BYTES);
	memset(r->region[1], 0, CACHE_STEP);
	run_fill(r, r->region[2], 128);
	for (unsigned i = 0; i < CACHE_BUCKETS; i++)
		run_put_le(r->region[0] + i * 8, 8, cache_pointer(r) | 1ull << 40);
	for (uint64_t at = CACHE_STEP; at < CACHE_BYTES - CACHE_STEP; at += 8)
		run_put_le(r->region[1] + at + 16, 8, cache_pointer(r) | 1ull << 40);
}

static void cache_request(struct run *r, uint8_t *slot)
{
	uint64_t at = run_random(r, CACHE_BUCKETS) * 8, pointer = run_get_le(r->region[0] + at, 5);
	uint64_t n = r->p->params[0].value, most = r->p->params[1].value;

	run_arg(r, "at", at);
	memcpy(slot, r->region[2], 128);
	run_put_be(slot + 128, 4, n);
	run_put_be(slot + 132, 4, most);
	memcpy(slot + 136, r->region[0] + at, 8);
	slot += 144;
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *item = r->region[1] + pointer;

		for (unsigned walk = 0; walk < 3; walk++)
			run_put_be(slot + walk * 8, 8, r->c.env.region[1].iova + pointer);
		memcpy(slot + 24, item + 32, 24);
		memcpy(slot + 48, item + 16, 40);
		memcpy(slot + 88, item + 24, most);
		slot += 88 + most;
		pointer = run_get_le(item + 16, 5);
	}
}

/* ---- memcached-piece --------------------------------------------------------------------------- */

enum { PIECE = 1024 };

static void piece_setup(struct run *r)
{
	run_fill(r, r->region[0], CACHE_BYTES);
	run_fill(r, r->region[1], 128);
}

static void piece_request(struct run *r, uint8_t *slot)
{
	uint64_t at = run_random(r, CACHE_BYTES - PIECE + 1);

	run_arg(r, "at", at);
	memcpy(slot, r->region[1], 128);
	memcpy(slot + 128, r->region[0] + at, PIECE);
}

/* ---- counter ---------------------------------------------------------------------------------- */

static void counter_setup(struct run *r)
{
	for (unsigned i = 0; i < 8; i++)
		run_put_le(r->region[0] + i * 8, 8, run_random(r, 4));
}

static void counter_request(struct run *r, uint8_t *slot)
{
	uint64_t at = run_random(r, 8) * 8, sold = run_get_le(r->model[0] + at, 8),
		 limit = sold + run_random(r, 4);

	limit -= limit > 0 && run_random(r, 2);

	run_arg(r, "at", at);
	run_arg(r, "limit", limit);
	slot[0] = sold < limit;
	run_put_le(slot + 8, 8, sold);
	run_put_le(r->model[0] + at, 8, sold + (sold < limit));
}

/* ---- words ------------------------------------------------------------------------------------ */

static void words_setup(struct run *r)
{
	for (unsigned i = 0; i < 8; i++)
		run_put_le(r->region[0] + i * 8, 8, run_number(r, 8));
}

static uint64_t take_word(struct run *r, uint8_t *slot, uint64_t *was)
{
	uint64_t at = run_random(r, 8) * 8;

	*was = run_get_le(r->model[0] + at, 8);
	run_arg(r, "at", at);
	run_put_le(slot, 8, *was);
	return at;
}

/* Half of them swap; the others differ in a bit, or in many */
static void swap_request(struct run *r, uint8_t *slot)
{
	uint64_t was, at = take_word(r, slot, &was), old = was, swap = run_number(r, 8);

	if (run_random(r, 2))
		old = run_random(r, 2) ? was ^ 1ull << run_random(r, 64) : run_number_near(r, was, 8);
	run_arg(r, "old", old);
	run_arg(r, "new", swap);
	if (old == was)
		run_put_le(r->model[0] + at, 8, swap);
}

static void add_request(struct run *r, uint8_t *slot)
{
	uint64_t was, at = take_word(r, slot, &was), by = run_number(r, 8);

	run_arg(r, "by", by);
	run_put_le(r->model[0] + at, 8, was + by);
}

/* ---- a log -------------------------------------------------------------------------------------- */

enum { ENTRY = 64, ENTRIES = 1 << 18, RING = ENTRY * ENTRIES, LOG_REGION = RING + 64, NEAR = 8 };

static uint8_t *entry_at(uint8_t *log, uint64_t pos)
{
	return log + pos % RING;
}

/* The end of the ring is near. Where an entry has other laps than it should, somebody is late by a lap, or
 * has died */
static void log_setup(struct run *r)
{
	uint64_t tail = run_random(r, 1ull << 32) * RING + (ENTRIES - run_random(r, NEAR)) % ENTRIES * ENTRY;

	run_put_le(r->region[0] + RING, 8, tail);
	for (unsigned i = 0; i < 2 * NEAR; i++) {
		uint64_t pos = tail + i * ENTRY;
		uint8_t *entry = entry_at(r->region[0], pos);

		run_fill(r, entry, ENTRY);
		run_put_le(entry, 5, pos / RING + (run_random(r, 4) ? 0 : run_random(r, 3) - 1));
	}
}

static void append_request(struct run *r, uint8_t *slot)
{
	uint64_t pos = run_get_le(r->model[0] + RING, 8), length = run_random(r, ENTRY - 8), was = UINT64_MAX;
	uint8_t value[ENTRY - 8], *entry = entry_at(r->model[0], pos);

	run_fill(r, value, sizeof(value));
	run_arg(r, "length", length);
	run_arg_bytes(r, "value", value);
	if (run_get_le(entry, 5) == pos / RING) {
		run_put_le(entry + 5, 3, length);
		memcpy(entry + 8, value, sizeof(value));
		was = run_get_le(entry, 8);
		run_put_le(entry, 8, was + 1);
	}
	run_put_le(r->model[0] + RING, 8, pos + ENTRY);
	run_put_le(slot, 8, pos);
	run_put_le(slot + 8, 8, was);
	run_put_le(slot + 16, 8, ENTRY);
}

static void log_read_request(struct run *r, uint8_t *slot)
{
	uint64_t tail = run_get_le(r->model[0] + RING, 8), at = (tail + run_random(r, NEAR) * ENTRY) % RING;

	run_arg(r, "at", at);
	run_put_le(slot, 8, tail);
	run_put_le(slot + 8, 8, ENTRY);
	memcpy(slot + 16, r->model[0] + at, 8);
	memcpy(slot + 24, r->model[0] + at, ENTRY);
}

/* ---- what calculates ---------------------------------------------------------------------------- */

enum { WORDS = 8 };

/* 16 bytes each: two numbers near each other. Some are 0, and some all ones */
static void numbers_setup(struct run *r)
{
	for (unsigned i = 0; i < 2 * WORDS; i += 2) {
		uint64_t x = run_random(r, 4) ? run_number(r, 8) : run_random(r, 2) ? 0 : UINT64_MAX;

		run_put_le(r->region[0] + i * 8, 8, x);
		run_put_le(r->region[0] + i * 8 + 8, 8, run_number_near(r, x, 8));
	}
}

static void newest_request(struct run *r, uint8_t *slot)
{
	uint64_t at = run_random(r, 2 * WORDS) * 8, now = run_get_le(r->model[0] + at, 8),
		 mine = run_number_near(r, now, 8), next = mine > now ? mine : now;

	run_arg(r, "at", at);
	run_arg(r, "mine", mine);
	run_put_le(slot, 8, now);
	run_put_le(slot + 8, 8, now);
	run_put_le(slot + 16, 8, next);
	run_put_le(r->model[0] + at, 8, next);
}

static void bucket_request(struct run *r, uint8_t *slot)
{
	uint64_t at = run_random(r, WORDS) * 16, n = run_number(r, 4), now, granted, next;

	now = run_get_le(r->model[0] + at, 8);
	granted = run_get_le(r->model[0] + at + 8, 8);
	if (granted > now && run_random(r, 2))
		n = (granted - now + run_random(r, 2)) & UINT32_MAX;
	next = now + n < granted ? now + n : granted;
	run_arg(r, "at", at);
	run_arg(r, "n", n);
	run_put_le(slot, 8, now);
	run_put_le(slot + 8, 8, now);
	run_put_le(slot + 16, 8, next);
	run_put_le(r->model[0] + at, 8, next);
}

/* The guess is right, or one try too many is made */
static void bounded_request(struct run *r, uint8_t *slot)
{
	enum { TRIES = 3 };
	uint64_t at = run_random(r, 2 * WORDS) * 8, is = run_get_le(r->model[0] + at, 8),
		 now = run_random(r, 2) ? is : run_number_near(r, is, 8), n = run_number(r, 4),
		 limit = run_random(r, 4) ? run_number_near(r, is + n, 8) : UINT64_MAX;
	bool added = false;

	run_arg(r, "at", at);
	run_arg(r, "guess", now);
	run_arg(r, "n", n);
	run_arg(r, "limit", limit);
	for (unsigned try = 0; try < TRIES && !added && now + n <= limit; try++) {
		added = now == is;
		now = is;
	}
	if (added) {
		run_put_le(r->model[0] + at, 8, is + n);
		slot[0] = 1;
	}
	run_put_le(slot + 8, 8, now);
}

static void bitmap_request(struct run *r, uint8_t *slot)
{
	uint64_t at = run_random(r, 2 * WORDS) * 8, now = run_get_le(r->model[0] + at, 8),
		 bit = ~now & (now + 1);

	run_arg(r, "at", at);
	run_put_le(slot, 8, bit);
	run_put_le(slot + 8, 8, now);
	run_put_le(slot + 16, 8, now);
	run_put_le(r->model[0] + at, 8, now | bit);
}

static void bloom_request(struct run *r, uint8_t *slot)
{
	const unsigned probes = (unsigned)r->p->params[0].value;
	uint64_t all = UINT64_MAX;
	char name[24];

	for (unsigned p = 0; p < probes; p++) {
		uint64_t at = run_random(r, 2 * WORDS) * 8, word = run_get_le(r->region[0] + at, 8),
			 bit = 1ull << run_random(r, 64), rest = ~bit;

		if (run_random(r, 4) && word)
			rest = ~(word & -word);
		snprintf(name, sizeof(name), "probe[%u].at", p);
		run_arg(r, name, at);
		snprintf(name, sizeof(name), "probe[%u].rest", p);
		run_arg(r, name, rest);
		all &= word | rest;
	}
	run_put_le(slot, 8, all);
}

enum { LOG = 1024, LOG_PIECE = 64 };

static void range_setup(struct run *r)
{
	uint64_t first = run_random(r, LOG - LOG_PIECE + 1);

	run_fill(r, r->region[0], LOG);
	run_put_be(r->region[1], 5, first);
	run_put_be(r->region[1] + 5, 5, first + run_random(r, LOG - LOG_PIECE + 1 - first));
}

static void range_request(struct run *r, uint8_t *slot)
{
	const uint64_t first = run_get_be(r->region[1], 5), last = run_get_be(r->region[1] + 5, 5),
		       from = run_random(r, 2) ? run_random(r, LOG) : run_number_near(r, first, 5),
		       at = from < first  ? first
			    : from > last ? last
					  : from;

	run_arg(r, "from", from);
	run_put_be(slot, 5, at);
	memcpy(slot + 64, r->region[0] + at, LOG_PIECE);
}

/* ---- all of them ------------------------------------------------------------------------------ */

const struct run_offload library[] = {
	{.name = "if", .file = "if.rdn", .depth = 2, .setup = run_no_setup, .request = if_request},
#define COMPARE(relation, n, masks)                                                                          \
	{                                                                                                    \
		.name = "compare " relation, .file = "compare.rdn", .settings = {{"relation", n}},           \
		.no_masks = !(masks), .depth = 2, .setup = run_no_setup, .request = compare_request          \
	}
	COMPARE("==", 0, true),
	COMPARE("!=", 1, true),
	COMPARE("<", 2, true),
	COMPARE(">", 3, true),
	COMPARE("<=", 4, true),
	COMPARE(">=", 5, true),
	COMPARE("<, without masks", 2, false),
	COMPARE(">=, without masks", 5, false),
#define WIDE(bits)                                                                                           \
	{                                                                                                    \
		.name = "wide-compare " #bits, .file = "wide-compare.rdn",                                   \
		.settings = {{"width", (bits) / 8}}, .depth = 2, .region_bytes = {64},                       \
		.setup = random_region, .request = wide_request                                              \
	}
	WIDE(8),
	WIDE(48),
	WIDE(64),
	WIDE(96),
	WIDE(128),
	WIDE(256),
	{.name = "mov-immediate",
		.file = "mov-immediate.rdn",
		.depth = 1,
		.region_bytes = {64},
		.setup = random_region,
		.request = mov_immediate_request},
	{.name = "mov-indirect",
		.file = "mov-indirect.rdn",
		.depth = 1,
		.region_bytes = {64, MEMORY},
		.setup = mov_setup,
		.request = mov_indirect_request},
	{.name = "mov-indexed",
		.file = "mov-indexed.rdn",
		.depth = 1,
		.region_bytes = {64, MEMORY},
		.setup = mov_setup,
		.request = mov_indexed_request},
	{.name = "while-unrolled",
		.file = "while-unrolled.rdn",
		.depth = 2,
		.region_bytes = {64},
		.setup = array_setup,
		.request = find_request},
	{.name = "while-unrolled, direct",
		.file = "while-unrolled.rdn",
		.direct = true,
		.depth = 2,
		.region_bytes = {64},
		.setup = array_setup,
		.request = find_request},
	{.name = "while-break",
		.file = "while-break.rdn",
		.depth = 1,
		.region_bytes = {64},
		.setup = array_setup,
		.request = find_request},
	{.name = "while-break, direct",
		.file = "while-break.rdn",
		.direct = true,
		.unrolled = true,
		.depth = 1,
		.region_bytes = {64},
		.setup = array_setup,
		.request = find_request},
	{.name = "scan",
		.file = "scan.rdn",
		.depth = 1,
		.region_bytes = {128},
		.setup = array_setup,
		.request = scan_request},
	{.name = "list-walk",
		.file = "list-walk.rdn",
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, direct",
		.file = "list-walk.rdn",
		.direct = true,
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, fenced enables",
		.file = "list-walk.rdn",
		.fenced = true,
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, 16 at a time",
		.file = "list-walk.rdn",
		.depth = 16,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, break",
		.file = "list-walk.rdn",
		.settings = {{"stop", 1}},
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, break, 16 at a time",
		.file = "list-walk.rdn",
		.settings = {{"stop", 1}},
		.depth = 16,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, break, direct",
		.file = "list-walk.rdn",
		.settings = {{"stop", 1}},
		.direct = true,
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, break, fenced enables",
		.file = "list-walk.rdn",
		.settings = {{"stop", 1}},
		.fenced = true,
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, break, direct, fenced enables",
		.file = "list-walk.rdn",
		.settings = {{"stop", 1}},
		.direct = true,
		.fenced = true,
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "hash-get",
		.file = "hash-get.rdn",
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = hash_request},
	{.name = "hash-get, fenced enables",
		.file = "hash-get.rdn",
		.fenced = true,
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = hash_request},
	{.name = "hash-get, one probe",
		.file = "hash-get.rdn",
		.settings = {{"probes", 1}, {"width", 2}},
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = hash_request},
	{.name = "hash-get, parallel",
		.file = "hash-get-parallel.rdn",
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = hash_request},
	{.name = "hash-into",
		.file = "hash-into.rdn",
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = into_request},
	{.name = "hash-mget, 2 keys",
		.file = "hash-mget.rdn",
		.settings = {{"keys", 2}, {"record", MGET_RECORD}},
		.depth = 2,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = mget_request},
	{.name = "hash-mget, 4 keys",
		.file = "hash-mget.rdn",
		.settings = {{"record", MGET_RECORD}},
		.depth = 2,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = mget_request},
	{.name = "hash-mget, 16 keys",
		.file = "hash-mget.rdn",
		.settings = {{"keys", 16}, {"record", MGET_RECORD}},
		.depth = 2,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = mget_request},
	{.name = "hash-exists, a key",
		.file = "hash-exists.rdn",
		.settings = {{"keys", 1}},
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exists_setup,
		.request = exists_request},
	{.name = "hash-exists, 8 keys",
		.file = "hash-exists.rdn",
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exists_setup,
		.request = exists_request},
	{.name = "hash-exists, 16 keys",
		.file = "hash-exists.rdn",
		.settings = {{"keys", 16}},
		.depth = 2,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exists_setup,
		.request = exists_request},
	{.name = "hash-exists, 64 keys",
		.file = "hash-exists.rdn",
		.settings = {{"keys", 64}, {"width", 2}},
		.depth = 2,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exists_setup,
		.request = exists_request},
	{.name = "hash-exists, 8 keys of a store",
		.file = "hash-exists.rdn",
		.settings = {{"part", 10}, {"width", 2}},
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exists_setup,
		.request = exists_request},
	{.name = "hash-exists-exact, a key",
		.file = "hash-exists-exact.rdn",
		.settings = {{"keys", 1}},
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exact_setup,
		.request = exact_request},
	{.name = "hash-exists-exact, 8 keys",
		.file = "hash-exists-exact.rdn",
		.settings = {{"width", 2}},
		.depth = 4,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exact_setup,
		.request = exact_request},
	{.name = "hash-exists-exact, 16 keys",
		.file = "hash-exists-exact.rdn",
		.settings = {{"keys", 16}},
		.depth = 2,
		.region_bytes = {BUCKETS * BUCKET, 64},
		.setup = exact_setup,
		.request = exact_request},
	{.name = "store-put",
		.file = "store-put.rdn",
		.settings = {{"most", RUN_PAYLOAD - 7}},
		.depth = 1,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = put_request},
	{.name = "store-put, fenced enables",
		.file = "store-put.rdn",
		.settings = {{"most", RUN_PAYLOAD - 7}, {"width", 3}},
		.fenced = true,
		.depth = 1,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = put_request},
	{.name = "store-put-if",
		.file = "store-put-if.rdn",
		.settings = {{"most", RUN_PAYLOAD}},
		.depth = 1,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = put_if_request},
	{.name = "store-put-if, fenced enables",
		.file = "store-put-if.rdn",
		.settings = {{"most", RUN_PAYLOAD}, {"width", 3}},
		.fenced = true,
		.depth = 1,
		.region_bytes = {BUCKETS * BUCKET, HEAP, 64},
		.setup = hash_setup,
		.request = put_if_request},
	{.name = "cuckoo-get",
		.file = "cuckoo-get.rdn",
		.depth = 2,
		.region_bytes = {BUCKETS * CUCKOO, HEAP},
		.setup = cuckoo_setup,
		.request = cuckoo_request},
	{.name = "memcached-get, an item",
		.file = "memcached-get.rdn",
		.settings = {{"n", 1}, {"most", 250}},
		.depth = 4,
		.region_bytes = {CACHE_BUCKETS * 8, CACHE_BYTES, 128},
		.setup = cache_setup,
		.request = cache_request},
	{.name = "memcached-get",
		.file = "memcached-get.rdn",
		.settings = {{"most", 250}},
		.depth = 4,
		.region_bytes = {CACHE_BUCKETS * 8, CACHE_BYTES, 128},
		.setup = cache_setup,
		.request = cache_request},
	{.name = "memcached-get, fenced enables",
		.file = "memcached-get.rdn",
		.settings = {{"most", 250}},
		.fenced = true,
		.depth = 4,
		.region_bytes = {CACHE_BUCKETS * 8, CACHE_BYTES, 128},
		.setup = cache_setup,
		.request = cache_request},
	{.name = "memcached-get, 3 items",
		.file = "memcached-get.rdn",
		.settings = {{"n", 3}, {"most", 250}},
		.depth = 2,
		.region_bytes = {CACHE_BUCKETS * 8, CACHE_BYTES, 128},
		.setup = cache_setup,
		.request = cache_request},
	{.name = "memcached-get, 4 items",
		.file = "memcached-get.rdn",
		.settings = {{"n", 4}, {"most", 200}},
		.depth = 1,
		.region_bytes = {CACHE_BUCKETS * 8, CACHE_BYTES, 128},
		.setup = cache_setup,
		.request = cache_request},
	{.name = "memcached-piece",
		.file = "memcached-piece.rdn",
		.settings = {{"piece", PIECE}},
		.depth = 4,
		.region_bytes = {CACHE_BYTES, 128},
		.setup = piece_setup,
		.request = piece_request},
	{.name = "list-walk, 30 nodes",
		.file = "list-walk.rdn",
		.settings = {{"n", 30}},
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-walk, 64 nodes, break",
		.file = "list-walk.rdn",
		.settings = {{"n", 64}, {"stop", 1}},
		.no_groups = true,
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "counter",
		.file = "counter.rdn",
		.depth = 1,
		.region_bytes = {64},
		.setup = counter_setup,
		.request = counter_request},
	{.name = "compare-and-swap",
		.file = "compare-and-swap.rdn",
		.depth = 1,
		.region_bytes = {64},
		.setup = words_setup,
		.request = swap_request},
	{.name = "fetch-and-add",
		.file = "fetch-and-add.rdn",
		.depth = 1,
		.region_bytes = {64},
		.setup = words_setup,
		.request = add_request},
	{.name = "log-append",
		.file = "log-append.rdn",
		.settings = {{"order", 6}},
		.large = true,
		.depth = 1,
		.region_bytes = {LOG_REGION},
		.setup = log_setup,
		.request = append_request},
	{.name = "log-read",
		.file = "log-read.rdn",
		.settings = {{"order", 6}},
		.large = true,
		.depth = 2,
		.region_bytes = {LOG_REGION},
		.setup = log_setup,
		.request = log_read_request},
#define CALCULATES(n, d, s, r, ...)                                                                          \
	{.name = n, .file = n ".rdn", .depth = d, .region_bytes = {__VA_ARGS__}, .setup = s, .request = r},  \
	{                                                                                                    \
		.name = n ", no CALC", .file = n ".rdn", .no_calc = true, .depth = d,                        \
		.region_bytes = {__VA_ARGS__}, .setup = s, .request = r                                      \
	}
	CALCULATES("newest-wins", 1, numbers_setup, newest_request, 128),
	CALCULATES("token-bucket", 1, numbers_setup, bucket_request, 128),
	CALCULATES("bounded-add", 1, numbers_setup, bounded_request, 128),
	CALCULATES("bitmap-allocate", 1, numbers_setup, bitmap_request, 128),
	CALCULATES("bloom", 2, numbers_setup, bloom_request, 128),
	{.name = "range-get",
		.file = "range-get.rdn",
		.settings = {{"piece", LOG_PIECE}},
		.depth = 2,
		.region_bytes = {LOG, 16},
		.setup = range_setup,
		.request = range_request},
	{.name = "range-get, no CALC",
		.file = "range-get.rdn",
		.settings = {{"piece", LOG_PIECE}},
		.no_calc = true,
		.depth = 2,
		.region_bytes = {LOG, 16},
		.setup = range_setup,
		.request = range_request},
};

const unsigned nlibrary = sizeof(library) / sizeof(library[0]);
