/* SPDX-License-Identifier: BSD-2-Clause */
/* An item as memcached 1.6.18 has it, and the same with each field moved or changed. */
#include "memcached/proof.c"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static const struct proof_item with_flags = {
	.key = "a-key",
	.value = "some value",
	.flags = 0x12345678,
	.ttl = 100,
	.cas = 4711,
	.clock_min = 500,
	.clock_max = 501,
};
static const struct proof_item plain = {
	.key = "a-key",
	.value = "some value",
	.cas = 4711,
	.clock_min = 500,
	.clock_max = 501,
};

static void make(const struct proof_item *want, uint8_t bytes[256])
{
	struct reddn_cache_item h = {
		.h_next = 8,
		.time = 501,
		.exptime = want->ttl ? 500 + want->ttl : 0,
		.nbytes = 12,
		.refcount = 1,
		.it_flags = (uint16_t)(3 | (want->flags ? 256 : 0)),
		.clsid = 64 + 3,
		.nkey = 5,
		.cas = 4711,
	};
	size_t off = sizeof(h) + 6;

	memset(bytes, 0xee, 256);
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), "a-key", 6);
	if (want->flags) {
		memcpy(bytes + off, "\x78\x56\x34\x12", 4);
		off += 4;
	}
	memcpy(bytes + off, "some value\r\n", 12);
	assert_int_equal(off + 12, proof_item_size(want));
}

static void test_right(void **state)
{
	uint8_t bytes[256];
	char why[PROOF_WHY];

	make(&with_flags, bytes);
	assert_int_equal(proof_item_compare(&with_flags, bytes, why), 0);
	make(&plain, bytes);
	assert_int_equal(proof_item_compare(&plain, bytes, why), 0);
	/* while memcached uses it */
	bytes[36] = 3;
	assert_int_equal(proof_item_compare(&plain, bytes, why), 0);
}

/* Each byte that a reader relies on */
static void test_every_byte(void **state)
{
	uint8_t bytes[256];
	char why[PROOF_WHY];
	unsigned refused = 0;

	for (size_t i = 0; i < proof_item_size(&with_flags); i++) {
		make(&with_flags, bytes);
		/* of flags ACTIVE and others may be set, of the class only zero is wrong */
		bytes[i] ^= i == 38 ? 1 : i == 40 ? bytes[i] : i == 36 ? 8 : 0x80;
		if (proof_item_compare(&with_flags, bytes, why) < 0)
			refused++;
		else
			/* links, flags that readers do not look at, padding, the byte behind the key */
			assert_true(i < 24 || i == 39 || (i >= 42 && i < 48) || i == 61);
	}
	assert_int_equal(refused, proof_item_size(&with_flags) - 24 - 1 - 6 - 1);
}

/* A header with a field more or less before this one */
static void test_moved(void **state)
{
	char why[PROOF_WHY];
	uint8_t bytes[256];

	for (size_t at = 24; at < sizeof(struct reddn_cache_item); at += 8) {
		make(&with_flags, bytes);
		memmove(bytes + at + 8, bytes + at, 128);
		assert_int_equal(proof_item_compare(&with_flags, bytes, why), -EINVAL);
		assert_non_null(strstr(why, "another layout of items"));
		make(&with_flags, bytes);
		memmove(bytes + at, bytes + at + 8, 128);
		assert_int_equal(proof_item_compare(&with_flags, bytes, why), -EINVAL);
	}
}

static void names(const char *field, size_t at, uint8_t value)
{
	char why[PROOF_WHY];
	uint8_t bytes[256];

	make(&plain, bytes);
	bytes[at] = value;
	assert_int_equal(proof_item_compare(&plain, bytes, why), -EINVAL);
	assert_non_null(strstr(why, field));
}

static void test_words(void **state)
{
	names("time (byte 24) is 502 where 500 is right", 24, 502 & 0xff);
	names("exptime (byte 28) is 1 where 0 is right", 28, 1);
	names("nbytes (byte 32) is 13 where 12 is right", 32, 13);
	names("refcount (byte 36) is 4 where 1 is right", 36, 4);
	names("refcount (byte 36) is 0 where 1 is right", 36, 0);
	names("it_flags (byte 38) is 35 where 3 is right", 38, 35);
	names("slabs_clsid (byte 40) is 64", 40, 64);
	names("nkey (byte 41) is 6 where 5 is right", 41, 6);
	names("the CAS id (byte 48)", 48, 0);
	names("byte 56 does not begin the key", 60, 'x');
	names("byte 62 does not begin the value", 63, 'x');
}

/* ---- the file --------------------------------------------------------------------------- */

static void put_next(const struct reader *r, uint64_t off, uint64_t next)
{
	struct reddn_cache_item item = {.h_next = next};

	assert_int_equal(pwrite(r->fd, &item, sizeof(item), (off_t)off), sizeof(item));
}

/* From the first item to the second one, which leads to itself */
static void test_walk(const struct reader *r)
{
	uint64_t first = r->header.pages_off, second = first + 64, base = r->header.base;

	put_next(r, first, base + second);
	put_next(r, second, base + second);
	assert_int_equal(reader_leads(r, base + first, (int64_t)first), 0);
	assert_int_equal(reader_leads(r, base + first, (int64_t)second), 0);
	assert_int_equal(reader_leads(r, base + first, (int64_t)second + 64), -EFAULT);
	put_next(r, second, 0);
	assert_int_equal(reader_leads(r, base + first, (int64_t)second + 64), -EFAULT);
}

static void test_reader(void **state)
{
	struct reddn_cache_header h;
	struct reader r;
	char why[PROOF_WHY];
	int fd = memfd_create("cache", 0);
	uint64_t base = REDDN_CACHE_BASE;

	assert_int_equal(reader_init(&r, fd, 1 << 20, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "no cache file"));
	cache_layout_make(&h, 1 << 20, 12);
	assert_int_equal(pwrite(fd, &h, sizeof(h), REDDN_CACHE_NULL), sizeof(h));
	assert_int_equal(ftruncate(fd, (off_t)h.file_size), 0);
	/* it had one byte less when the caller mapped it */
	assert_int_equal(reader_init(&r, fd, h.file_size - 1, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "another version, or damaged"));
	assert_int_equal(reader_init(&r, fd, h.file_size, why, sizeof(why)), 0);
	assert_false(reader_is_served(&r));
	assert_int_equal(reader_item(&r, base + h.pages_off), h.pages_off);
	assert_int_equal(reader_item(&r, base + h.pages_off + 4), -EFAULT);
	assert_int_equal(reader_item(&r, base + h.pages_off - 8), -EFAULT);
	assert_int_equal(
		reader_item(&r, base + h.pages_off + h.pages_size - 56), h.pages_off + h.pages_size - 56);
	assert_int_equal(reader_item(&r, base + h.pages_off + h.pages_size - 48), -EFAULT);
	assert_int_equal(reader_item(&r, h.pages_off), -EFAULT);
	assert_int_equal(reader_item(&r, 0), -EFAULT);
	test_walk(&r);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(reader_leads(&r, base + h.pages_off, (int64_t)h.pages_off + 64), -EIO);
	assert_int_equal(reader_live(&r, &h.live), -EIO);
	close(fd);
	/* there is no answer */
	assert_true(reader_is_served(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
