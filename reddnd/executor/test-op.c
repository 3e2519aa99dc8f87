/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/internal.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { BYTES = 64 };

static uint8_t region[BYTES];
static const struct memory memory = {
	.space[MEMORY_REGIONS] = {region, BYTES, false}, .space[MEMORY_OWN] = {region, BYTES, true}};

static void has_bounds(void **state)
{
	const uint64_t base = memory_address(MEMORY_REGIONS);
	const uint32_t key = memory_key(MEMORY_REGIONS);

	assert_ptr_equal(memory_at(&memory, key, base, BYTES, false), region);
	assert_ptr_equal(memory_at(&memory, key, base + BYTES - 1, 1, false), region + BYTES - 1);
	assert_null(memory_at(&memory, key, base + BYTES - 1, 2, false));
	assert_null(memory_at(&memory, key, base + 1, UINT64_MAX, false));
	assert_null(memory_at(&memory, key, base - 1, 1, false));
	assert_null(memory_at(&memory, key, memory_address(MEMORY_OWN), 1, false));
	assert_null(memory_at(&memory, memory_key(MEMORY_SPACES), base, 1, false));
	assert_null(memory_at(&memory, memory_key(MEMORY_OWN) - 1, base, 1, false));
	/* a space that is not there */
	assert_null(memory_at(&memory, key + 1, memory_address(MEMORY_REGIONS + 1), 1, false));
}

static void has_rights(void **state)
{
	assert_null(memory_at(&memory, memory_key(MEMORY_REGIONS), memory_address(MEMORY_REGIONS), 8, true));
	assert_ptr_equal(
		memory_at(&memory, memory_key(MEMORY_OWN), memory_address(MEMORY_OWN), 8, true), region);
}

static void copies(void **state)
{
	_Alignas(8) uint8_t from[BYTES], to[BYTES], should[BYTES];

	for (unsigned i = 0; i < BYTES; i++)
		from[i] = (uint8_t)(i + 1);
	for (unsigned a = 0; a < 16; a++)
		for (unsigned b = 0; b < 16; b++)
			for (unsigned len = 0; len < 40; len++) {
				memset(to, 0, BYTES);
				memset(should, 0, BYTES);
				memcpy(should + b, from + a, len);
				memory_copy(to + b, from + a, len);
				assert_memory_equal(to, should, BYTES);
			}
	memmove(from + 3, from, 40);
	for (unsigned i = 0; i < BYTES; i++)
		to[i] = (uint8_t)(i + 1);
	memory_copy(to + 3, to, 40);
	assert_memory_equal(to, from, BYTES);
}

static void swaps(void **state)
{
	uint64_t word = 0x1122334455667788;

	assert_int_equal(memory_swap((uint8_t *)&word, 5, 6, UINT64_MAX, UINT64_MAX), 0x1122334455667788);
	assert_int_equal(word, 0x1122334455667788);
	assert_int_equal(memory_swap((uint8_t *)&word, 0xff00, 0x88, 0xffff, 0xff), 0x1122334455667788);
	assert_int_equal(word, 0x112233445566ff00);
}

static uint64_t add_by_bits(uint64_t a, uint64_t b, uint64_t boundary)
{
	uint64_t sum = 0, carry = 0;

	for (unsigned i = 0; i < 64; i++) {
		uint64_t bit = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (bit & 1) << i;
		carry = boundary >> i & 1 ? 0 : bit >> 1;
	}
	return sum;
}

static uint64_t any(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

static void adds(void **state)
{
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t word = any(), add = any(), boundary = i % 3 ? any() & any() : 0, old = word;

		assert_int_equal(memory_add((uint8_t *)&word, add, boundary), old);
		assert_int_equal(word, add_by_bits(old, add, boundary));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_bounds),
		cmocka_unit_test(has_rights),
		cmocka_unit_test(copies),
		cmocka_unit_test(swaps),
		cmocka_unit_test(adds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
