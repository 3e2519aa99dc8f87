/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client can make the NIC read a bucket from any byte of the array, and knows any fingerprint. Whatever it
 * sends, it gets a whole record that is present, or nothing: tried at every byte offset, with the fingerprint
 * that matches there, between every two stores of the writer, with words that are read before and after any
 * of the last stores. Keys, lengths and offsets are those that would put the tag into other bytes.
 *
 * The writer is included, not linked, so that each of its stores calls store().
 */
#include "libclient/table/impl.h"
#include "util/array.h"

#include "tests/lib/cmocka.h"

static void store(_Atomic uint64_t *w, uint64_t v);

#define reddn_word_set store
#include "libclient/table/file.c"
#include "libclient/table/table.c"
#undef reddn_word_set

enum { KEYS = 64, LOG = 4096, READ = 15, WORDS = 3, MAX_VALUES = 12 };

/* What the table holds: entry i has a key that begins with i, and a value that begins with its generation. */
static struct {
	bool present;
	uint32_t gen;
} model[KEYS];

struct version {
	uint32_t id, gen;
};

static struct {
	struct reddn_table *t;
	bool watched;
	uint32_t gen;
	struct version put;     /* the record of the operation at work */
	struct version gone[2]; /* what the operation before and the one at work removed, or may have */
	struct {
		uint64_t word, old;
	} log[LOG]; /* stores to buckets since the beginning of the operation before */
	unsigned nlog, op_at;
	uint64_t stores, offsets, matches, torn;
	uint64_t die_at; /* the writer is killed before this store; 0: never */
	jmp_buf killed;
} w;

static const struct version nothing = {UINT32_MAX, 0};

static const uint8_t *heap_at(uint64_t locator)
{
	return w.t->heap + reddn_locator_off(locator);
}

static uint8_t pattern(uint32_t id, uint32_t gen, size_t i)
{
	return (uint8_t)(REDDN_TABLE_TAG ^ (id + 3 * gen + i) % 5);
}

static bool same(struct version a, uint32_t id, uint32_t gen)
{
	return a.id == id && a.gen == gen;
}

/* The NIC sends that many bytes from there: one record, whole, nothing else, and of an entry of the table */
static void check_record(uint64_t locator, bool torn)
{
	const struct reddn_record *r = (const struct reddn_record *)heap_at(locator);
	uint64_t len = reddn_locator_len(locator), size;
	uint32_t id, gen;

	if (torn && locator == w.t->null_locator)
		return;
	assert_true(reddn_locator_off(locator) + len <= w.t->geo.heap_size);
	size = reddn_record_size(r->key_len, r->val_len);
	assert_int_equal(len, reddn_record_padded(size));
	assert_int_equal(r->sum, reddn_record_sum(r));
	for (uint64_t i = size; i < len; i++)
		assert_int_equal(((const uint8_t *)r)[i], 0);
	memcpy(&id, r->bytes, 4);
	memcpy(&gen, r->bytes + r->key_len, 4);
	assert_true(id < KEYS);
	if (!(model[id].present && model[id].gen == gen) && !same(w.put, id, gen) &&
		!(torn && (same(w.gone[0], id, gen) || same(w.gone[1], id, gen))))
		fail_msg("generation %u of key %u is not in the table", gen, id);
}

/* The chain of hash-get on 15 bytes, with the fingerprint in them */
static void look_at(uint64_t at, const uint8_t *bytes, bool torn)
{
	uint64_t locator;

	w.offsets++;
	if (bytes[offsetof(struct reddn_bucket, tag)] != REDDN_TABLE_TAG)
		return;
	w.matches++;
	w.torn += torn;
	if (at % sizeof(struct reddn_bucket))
		fail_msg("a match at byte %" PRIu64 ", where no bucket is", at);
	memcpy(&locator, bytes, 8);
	check_record(locator, torn);
}

static uint64_t array_bytes(void)
{
	return w.t->geo.buckets * sizeof(struct reddn_bucket);
}

/* The array as it is, from its first byte to the last that can be read */
static void look_everywhere(void)
{
	const uint8_t *array = (const uint8_t *)w.t->words;

	for (uint64_t at = 0; at + READ <= array_bytes(); at++)
		look_at(at, array + at, false);
}

/* What word @i holds or held since the beginning of the operation before */
static unsigned values_of(uint64_t i, uint64_t values[MAX_VALUES])
{
	unsigned n = 0;

	values[n++] = reddn_word_get(&w.t->words[i]);
	for (unsigned k = 0; k < w.nlog; k++) {
		unsigned seen = 0;

		if (w.log[k].word != i)
			continue;
		while (seen < n && values[seen] != w.log[k].old)
			seen++;
		if (seen == n) {
			assert_true(n < MAX_VALUES);
			values[n++] = w.log[k].old;
		}
	}
	return n;
}

/* A read at @at that sees each of its words at another time */
static void look_torn(uint64_t at)
{
	uint64_t values[WORDS][MAX_VALUES], words[WORDS] = {0}, first = at / 8, last = (at + READ - 1) / 8;
	unsigned n[WORDS] = {1, 1, 1};

	for (uint64_t i = first; i <= last; i++)
		n[i - first] = values_of(i, values[i - first]);
	for (unsigned a = 0; a < n[0]; a++)
		for (unsigned b = 0; b < n[1]; b++)
			for (unsigned c = 0; c < n[2]; c++) {
				words[0] = values[0][a];
				words[1] = values[1][b];
				words[2] = last - first == 2 ? values[2][c] : 0;
				look_at(at, (const uint8_t *)words + at % 8, true);
			}
}

static void store(_Atomic uint64_t *word, uint64_t v)
{
	uint64_t i, from;

	if (!w.watched || word < w.t->words || word >= w.t->words + 2 * w.t->geo.buckets) {
		atomic_store_explicit(word, v, memory_order_release);
		return;
	}
	i = (uint64_t)(word - w.t->words);
	if (++w.stores == w.die_at)
		longjmp(w.killed, 1);
	assert_true(w.nlog < LOG);
	w.log[w.nlog].word = i;
	w.log[w.nlog++].old = reddn_word_get(word);
	atomic_store_explicit(word, v, memory_order_release);
	look_everywhere();
	from = i * 8 < READ - 1 ? 0 : i * 8 - (READ - 1);
	for (uint64_t at = from; at < i * 8 + 8 && at + READ <= array_bytes(); at++)
		look_torn(at);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Forget what happened before the last operation */
static void begin(uint32_t id, uint32_t gen)
{
	memmove(w.log, w.log + w.op_at, (w.nlog - w.op_at) * sizeof(w.log[0]));
	w.nlog -= w.op_at;
	w.op_at = w.nlog;
	w.gone[0] = w.gone[1];
	w.gone[1] = model[id].present ? (struct version){id, model[id].gen} : nothing;
	w.put = gen ? (struct version){id, gen} : nothing;
}

static size_t key_len(uint32_t id)
{
	return 8 + id % 17;
}

/* Of every second key, the hash has the tag where the fingerprint is taken from */
static size_t key_of(uint32_t id, uint8_t key[32])
{
	size_t len = key_len(id);
	uint64_t low;

	memset(key, 0, 32);
	memcpy(key, &id, 4);
	for (uint32_t n = 0; id % 2; n++) {
		memcpy(key + 4, &n, 4);
		low = XXH3_128bits_withSeed(key, len, w.t->geo.hash_seed).low64;
		if (reddn_hash_fp(low) != (low & 0xffffffffffff))
			break;
	}
	return len;
}

static int put(uint32_t id, size_t val_len)
{
	static uint8_t value[0xa60000];
	uint8_t key[32];
	size_t len = key_of(id, key);
	uint32_t gen = ++w.gen;
	int r;

	for (size_t i = 0; i < val_len; i++)
		value[i] = pattern(id, gen, i);
	memcpy(value, &gen, 4);
	begin(id, gen);
	r = reddn_table_put(w.t, key, len, value, val_len);
	if (r == 0) {
		model[id].present = true;
		model[id].gen = gen;
	} else {
		assert_int_equal(r, -ENOSPC);
	}
	w.put = nothing;
	return r;
}

static void delete (uint32_t id)
{
	uint8_t key[32];
	size_t len = key_of(id, key);

	begin(id, 0);
	assert_int_equal(reddn_table_delete(w.t, key, len), model[id].present ? 0 : REDDN_TABLE_MISS);
	model[id].present = false;
}

/* What is in the table of a writer that was killed in an operation on @id: it has happened or not */
static void settle(uint32_t id)
{
	uint8_t key[32];
	size_t len = key_of(id, key), val_len;
	const void *val;
	uint32_t gen;

	model[id].present = reddn_table_get(w.t, key, len, &val, &val_len) == 0;
	if (!model[id].present)
		return;
	memcpy(&gen, val, 4);
	assert_true(same(w.put, id, gen) || same(w.gone[1], id, gen));
	model[id].gen = gen;
}

static void check_all(void)
{
	for (uint32_t id = 0; id < KEYS; id++) {
		uint8_t key[32];
		const void *val;
		size_t len, n = key_of(id, key);

		assert_int_equal(
			reddn_table_get(w.t, key, n, &val, &len), model[id].present ? 0 : REDDN_TABLE_MISS);
		if (model[id].present)
			assert_memory_equal(val, &model[id].gen, 4);
	}
}

static void open_table(int fd)
{
	char why[200];

	w.watched = false;
	if (reddn_table_open_fd(&w.t, fd, REDDN_TABLE_WRITE, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	w.watched = true;
	look_everywhere();
}

static void start(int fd, const struct reddn_table_options *opt)
{
	char why[200];

	memset(model, 0, sizeof(model));
	memset(&w, 0, sizeof(w));
	w.put = w.gone[0] = w.gone[1] = nothing;
	if (reddn_table_create_fd(&w.t, fd, opt, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	w.watched = true;
}

static void finish(int fd, const char *what)
{
	check_all();
	print_message("%s: %" PRIu64 " stores, %" PRIu64 " reads, %" PRIu64 " matches, %" PRIu64
		      " of them torn\n",
		what, w.stores, w.offsets, w.matches, w.torn);
	reddn_table_close(w.t);
	close(fd);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Values whose records have the length @len before padding */
static size_t value_for(uint32_t id, size_t len)
{
	return len - sizeof(struct reddn_record) - key_len(id);
}

static size_t some_length(uint32_t id)
{
	switch (random() % 6) {
	case 0: /* what the tag in the middle byte makes longer */
		return value_for(id, 0xa500 + (size_t)random() % 0x100);
	case 1: /* up to it, and behind */
		return value_for(id, 0xa4f0 + (size_t)random() % 0x20);
	case 2:
		return value_for(id, 0xa600 - (size_t)random() % 0x10);
	case 3: /* 0xa5 in the lowest byte, before it is rounded up */
		return value_for(id, 0x100 * (1 + (size_t)random() % 3) + 0xa5);
	default:
		return 4 + (size_t)random() % 300;
	}
}

/* Where the allocator looks next: before offsets with the tag */
static void steer_heap(void)
{
	static const uint64_t tagged[] = {0xa500, 0x1a500, 0xaa500, 0xa50000, 0xa5a500, 0xa4a500};
	uint64_t at = tagged[random() % COUNT(tagged)] / REDDN_HEAP_GRANULE - (uint64_t)random() % 3;

	if (at < w.t->space.granules)
		w.t->space.cursor = at;
}

static void change(unsigned keys)
{
	uint32_t id = (uint32_t)random() % keys;

	if (random() % 4 == 0)
		steer_heap();
	if (random() % 3 == 0)
		delete (id);
	else
		put(id, some_length(id));
}

/* A table that is nearly full: many moves */
static void test_every_offset(void **state)
{
	int fd = memfd_create("table", MFD_CLOEXEC);
	uint64_t moves;

	srandom(5);
	start(fd, &(struct reddn_table_options){.buckets = 32,
			  .max_key = 24,
			  .max_value = 0xa700,
			  .heap_size = 0xb00000,
			  .seed = 17});
	for (int i = 0; i < 6000; i++)
		change(24);
	moves = w.t->live->moves / 2;
	print_message("%" PRIu64 " moves\n", moves);
	assert_true(moves > 100);
	finish(fd, "6000 operations");
}

/* The smallest table: every read is near the beginning or the end */
static void test_smallest(void **state)
{
	int fd = memfd_create("table", MFD_CLOEXEC);

	srandom(6);
	start(fd, &(struct reddn_table_options){
			  .buckets = 2, .max_key = 24, .max_value = 0xa700, .heap_size = 1 << 20, .seed = 3});
	for (int i = 0; i < 2000; i++)
		change(3);
	finish(fd, "two buckets");
}

/* Fingerprints of which bytes are the tag in the hash: each key is there, and its bytes are others */
static void test_fingerprints(void **state)
{
	const uint64_t seed = 99;
	unsigned found = 0, tagged;

	for (uint32_t k = 0; found < 200; k++) {
		uint64_t low = XXH3_128bits_withSeed(&k, 4, seed).low64, fp = reddn_hash_fp(low);

		tagged = 0;
		for (unsigned i = 0; i < 48; i += 8) {
			tagged += (low >> i & 0xff) == REDDN_TABLE_TAG;
			assert_int_not_equal(fp >> i & 0xff, REDDN_TABLE_TAG);
		}
		assert_int_equal(fp >> 48, 0);
		assert_int_equal(reddn_hash_fp(fp), fp);
		found += tagged > 0;
		if (!tagged)
			assert_int_equal(fp, low & 0xffffffffffff);
	}
}

/* Lengths and offsets: the next one without the tag */
static void test_untagged(void **state)
{
	static const struct {
		uint64_t from, beyond; /* the first without the tag that is not below from + 2^24 */
	} ranges[] = {{0, 1 << 24}, {0xa4000000, 0xa6000000}, {0xa5000000, 0xa6000000},
		{0xa4ff000000, 0xa600000000}, {0xa5a4000000, 0xa600000000}, {0xffa4000000, 0xffa6000000}};

	for (size_t i = 0; i < COUNT(ranges); i++) {
		uint64_t next = ranges[i].beyond;

		for (uint64_t v = ranges[i].from + (1 << 24) - 8;; v -= 8) {
			if ((v >> 8 & 0xff) != 0xa5 && (v >> 16 & 0xff) != 0xa5 && (v >> 24 & 0xff) != 0xa5 &&
				(v >> 32 & 0xff) != 0xa5)
				next = v;
			if (reddn_untagged(v) != next)
				fail_msg("0x%" PRIx64 " after 0x%" PRIx64, reddn_untagged(v), v);
			if (v == ranges[i].from)
				break;
		}
	}
}

/* The tag in the highest byte of a length */
static void test_long_records(void **state)
{
	int fd = memfd_create("table", MFD_CLOEXEC);

	start(fd, &(struct reddn_table_options){.buckets = 8,
			  .max_key = 24,
			  .max_value = 0xa60000 - 48,
			  .heap_size = 64 << 20,
			  .seed = 5});
	for (int round = 0; round < 3; round++) {
		assert_int_equal(put(0, value_for(0, 0xa50000)), 0);
		assert_int_equal(put(1, value_for(1, 0xa4fff9)), 0);
		assert_int_equal(put(2, value_for(2, 0xa4a5a5)), 0);
		delete (1);
	}
	finish(fd, "long records");
}

/* An operation on @id. False if the writer was killed in it. */
static bool survive(uint32_t id, bool remove)
{
	if (setjmp(w.killed))
		return false;
	if (remove)
		delete (id);
	else
		put(id, some_length(id));
	return true;
}

/* A writer that is killed before any of its stores, and the repair by the next one */
static void test_killed(void **state)
{
	int fd = memfd_create("table", MFD_CLOEXEC);
	unsigned kills = 0, repairs = 0;

	srandom(8);
	start(fd,
		&(struct reddn_table_options){
			.buckets = 32, .max_key = 24, .max_value = 0xa700, .heap_size = 4 << 20, .seed = 23});
	for (int i = 0; i < 1500; i++) {
		uint32_t id = (uint32_t)random() % 20;
		struct reddn_table_repair done;

		w.die_at = w.stores + 1 + (uint64_t)random() % 8;
		if (survive(id, random() % 3 == 0))
			continue;
		kills++;
		w.die_at = 0;
		w.watched = false;
		reddn_table_close(w.t);
		open_table(fd);
		reddn_table_repaired(w.t, &done);
		repairs += done.moves + done.entries > 0;
		id = w.put.id != UINT32_MAX ? w.put.id : w.gone[1].id;
		if (id != UINT32_MAX)
			settle(id);
		w.put = nothing;
		w.nlog = w.op_at = 0;
		check_all();
	}
	w.die_at = 0;
	print_message("%u kills, %u repairs\n", kills, repairs);
	assert_true(kills > 100 && repairs > 50);
	finish(fd, "killed writers");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_offset),
		cmocka_unit_test(test_smallest),
		cmocka_unit_test(test_fingerprints),
		cmocka_unit_test(test_untagged),
		cmocka_unit_test(test_long_records),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
