/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashes of memcached, against values that their authors or other implementations give. */
#include "protocol/cache-hash.h"

#include "util/array.h"

#include <string.h>

#include "tests/lib/cmocka.h"

static const struct {
	const char *key;
	uint32_t murmur3, jenkins; /* 0: not known */
} known[] = {
	{"", 0, 0xdeadbeef},
	{"a", 0, 0x58d68708},
	{"abcd", 0, 0xb5f4889c},
	{"test", 0xba6bd213, 0},
	{"hello", 0x248bfa47, 0},
	{"hello, world", 0x149bbb7f, 0},
	{"The quick brown fox jumps over the lazy dog", 0x2e4ff723, 0},
	/* driver5() of lookup3.c */
	{"Four score and seven years ago", 0, 0x17770551},
	{"xxxxxxxxxxxx", 0, 0x2e4ffe2b},
	{"xxxxxxxxxxxxxxxxxxxxxxxx", 0, 0x4f26558e},
};

static void test_known(void **state)
{
	for (unsigned i = 0; i < COUNT(known); i++) {
		size_t len = strlen(known[i].key);

		if (known[i].murmur3 || len == 0)
			assert_int_equal(cache_hash(CACHE_HASH_MURMUR3, known[i].key, len), known[i].murmur3);
		if (known[i].jenkins)
			assert_int_equal(cache_hash(CACHE_HASH_JENKINS, known[i].key, len), known[i].jenkins);
	}
	/* XXH3_64bits("") is 0x2d06800538d394c2 */
	assert_int_equal(cache_hash(CACHE_HASH_XXH3, "", 0), 0x38d394c2);
}

static void test_names(void **state)
{
	assert_string_equal(cache_hash_name(CACHE_HASH_MURMUR3), "murmur3");
	assert_string_equal(cache_hash_name(CACHE_HASH_XXH3), "xxh3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
