/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/table.h"

#include "util/array.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { BUCKETS = 256, HEAP = 8192, SIZE = 4096 + BUCKETS * 16 + HEAP };

static uint8_t page[4096] __attribute__((aligned(8)));

static struct reddn_table_header good(void)
{
	return (struct reddn_table_header){
		.magic = REDDN_TABLE_MAGIC,
		.version = REDDN_TABLE_VERSION,
		.header_size = sizeof(struct reddn_table_header),
		.hash_seed = 7,
		.buckets = BUCKETS,
		.buckets_off = 4096,
		.heap_off = 8192,
		.heap_size = HEAP,
		.file_size = SIZE,
		.max_key = 100,
		.max_value = 1000,
	};
}

static int parse(const struct reddn_table_header *h, uint64_t size, struct table_geometry *g, char why[200])
{
	memcpy(page, h, sizeof(*h));
	return table_geometry(page, size, g, why, 200);
}

static void test_good(void **state)
{
	struct reddn_table_header h = good();
	struct reddn_wire_table wire;
	struct table_geometry g;
	char why[200];

	assert_int_equal(parse(&h, SIZE, &g, why), 0);
	assert_int_equal(g.offset_len, 2);
	assert_int_equal(table_slot_need(&g), 1216); /* 64 + 16 + 1100, up to 64 */
	table_describe(&g, 0, 0, &wire);
	assert_int_equal(be64toh(wire.hash_seed), 7);
	assert_int_equal(be64toh(wire.buckets), BUCKETS);
	assert_int_equal(be32toh(wire.max_key), 100);
	assert_int_equal(be32toh(wire.max_value), 1000);
	assert_int_equal(wire.offset_len, 2);
	assert_int_equal(wire.probes, 2);
	assert_int_equal(wire.header, 0);
}

/* A record has the header in front of it, and requests have offsets of the bytes that a put has */
static void test_store(void **state)
{
	struct reddn_table_header h = good();
	struct reddn_wire_table wire;
	struct table_geometry g;
	char why[200];

	h.header = 16;
	assert_int_equal(parse(&h, SIZE, &g, why), 0);
	assert_int_equal(g.offset_len, 3);
	assert_int_equal(table_slot_need(&g), 1216); /* 64 + 16 + 16 + 1100, up to 64 */
	table_describe(&g, 0, 77, &wire);
	assert_int_equal(wire.header, 16);
	assert_int_equal(wire.offset_len, 3);
	assert_int_equal(be32toh(wire.payload_max), 77);
	for (h.header = 1; h.header <= 21; h.header += h.header == 14 ? 7 : 1) {
		assert_int_equal(parse(&h, SIZE, &g, why), -EINVAL);
		assert_non_null(strstr(why, "bytes in front of each record"));
	}
}

/* As many bytes as the offset of the last bucket takes, not more */
static void test_offset_len(void **state)
{
	static const struct {
		uint64_t buckets;
		unsigned len;
	} cases[] = {{2, 1}, {16, 1}, {32, 2}, {4096, 2}, {8192, 3}, {1 << 20, 3}, {1 << 21, 4}, {1 << 28, 4},
		{1 << 29, 5}};
	char why[200];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct reddn_table_header h = good();
		struct table_geometry g;

		h.buckets = cases[i].buckets;
		h.heap_off = (4096 + h.buckets * 16 + 4095) / 4096 * 4096;
		h.file_size = h.heap_off + HEAP;
		assert_int_equal(parse(&h, h.file_size, &g, why), 0);
		assert_int_equal(g.offset_len, cases[i].len);
	}
}

#define REFUSED(change)                                                                                      \
	do {                                                                                                 \
		struct reddn_table_header h = good();                                                        \
		struct table_geometry g;                                                                     \
		char why[200] = "";                                                                          \
		h.change;                                                                                    \
		if (parse(&h, SIZE, &g, why) != -EINVAL || !*why)                                            \
			fail_msg("%s is accepted", #change);                                                 \
	} while (0)

static void test_refusals(void **state)
{
	struct reddn_table_header ok = good();
	struct table_geometry geometry;
	char words[200];

	REFUSED(magic = 1);
	REFUSED(version = REDDN_TABLE_VERSION + 1);
	REFUSED(version = 1);
	REFUSED(file_size = SIZE + 1);
	REFUSED(buckets = 0);
	REFUSED(buckets = 1);
	REFUSED(buckets = 255);
	REFUSED(buckets = 1ull << 61);
	REFUSED(buckets = 1ull << 60);
	REFUSED(buckets = 1024);
	REFUSED(buckets_off = 0);
	REFUSED(buckets_off = 4097);
	REFUSED(buckets_off = 1ull << 40);
	REFUSED(heap_off = 4096);
	REFUSED(heap_off = 8193);
	REFUSED(heap_off = SIZE);
	REFUSED(heap_off = UINT64_MAX - 4095);
	REFUSED(heap_size = 0);
	REFUSED(heap_size = HEAP + 1);
	REFUSED(heap_size = UINT64_MAX);
	REFUSED(max_key = 0);
	REFUSED(max_value = 1 << 24);
	REFUSED(max_key = UINT32_MAX);
	assert_int_equal(parse(&ok, 4095, &geometry, words), -EINVAL);
	assert_string_equal(words, "it has 4095 bytes; a table has at least one page");
	assert_int_equal(parse(&ok, SIZE - 1, &geometry, words), -EINVAL);
	assert_string_equal(words, "its header has a size of 16384 bytes, the file has 16383");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_offset_len),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
