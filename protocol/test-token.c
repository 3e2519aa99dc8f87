/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOW = 1763700000 };

static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 7};
static struct token_key key;

static struct reddn_wire_req signed_request(void)
{
	struct reddn_wire_req req = {
		.magic = 1, .version = 1, .depth = 7, .slot_addr = 0x1000, .slot_rkey = 5, .slot_size = 64};

	strcpy(req.offload, "users");
	token_make(&key, &req, here, NOW, req.token);
	return req;
}

static int make_key(void **state)
{
	(void)state;
	key.len = 32;
	for (unsigned i = 0; i < 32; i++)
		key.bytes[i] = (uint8_t)(i * 7);
	return 0;
}

/* The result of another implementation of HMAC-SHA256, Python's, over the bytes that reddn-wire(7) lists */
static void test_bytes(void **state)
{
	static const uint8_t token[8] = {0x6a, 0xb6, 0x20, 0x63, 0xc6, 0x34, 0xcd, 0x1a};
	struct reddn_wire_req req = signed_request();

	(void)state;
	assert_memory_equal(req.token, token, 8);
}

static void test_time(void **state)
{
	const uint64_t begin = NOW / TOKEN_WINDOW_S * TOKEN_WINDOW_S;
	struct reddn_wire_req req = signed_request();

	(void)state;
	assert_true(token_valid(&key, &req, here, NOW));
	assert_true(token_valid(&key, &req, here, begin - TOKEN_WINDOW_S));
	assert_false(token_valid(&key, &req, here, begin - TOKEN_WINDOW_S - 1));
	assert_true(token_valid(&key, &req, here, begin + 2 * TOKEN_WINDOW_S - 1));
	assert_false(token_valid(&key, &req, here, begin + 2 * TOKEN_WINDOW_S));
}

/* Every bit of the request, of the address and of the key counts, and every bit of the token */
static void test_bits(void **state)
{
	struct reddn_wire_req req = signed_request();
	uint8_t address[16];
	struct token_key other = key;

	(void)state;
	for (size_t bit = 0; bit < 8 * sizeof(req); bit++) {
		((uint8_t *)&req)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(token_valid(&key, &req, here, NOW));
		((uint8_t *)&req)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t bit = 0; bit < 128; bit++) {
		memcpy(address, here, 16);
		address[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(token_valid(&key, &req, address, NOW));
	}
	other.bytes[31] ^= 1;
	assert_false(token_valid(&other, &req, here, NOW));
	other = key;
	other.len--;
	assert_false(token_valid(&other, &req, here, NOW));
	assert_true(token_valid(&key, &req, here, NOW));
}

static int read_file(const char *bytes, size_t len, char *why, size_t size)
{
	char path[] = "/tmp/test-token-XXXXXX";
	struct token_key k;
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
	*why = '\0';
	r = token_key_read(path, &k, why, size);
	unlink(path);
	if (r == 0)
		assert_memory_equal(k.bytes, bytes, k.len);
	return r == 0 ? (int)k.len : r;
}

static void test_files(void **state)
{
	char bytes[TOKEN_KEY_MAX + 2], why[100];
	struct token_key k;

	(void)state;
	memset(bytes, 'k', sizeof(bytes));
	assert_int_equal(read_file("0123456789abcdef\n", 17, why, sizeof(why)), 16);
	assert_int_equal(read_file("0123456789abcde\n", 16, why, sizeof(why)), -22);
	assert_string_equal(why, "a key has at least 16 bytes; openssl rand -hex 32 makes one");
	assert_int_equal(read_file(bytes, 0, why, sizeof(why)), -22);
	assert_int_equal(read_file(bytes, TOKEN_KEY_MAX, why, sizeof(why)), TOKEN_KEY_MAX);
	assert_int_equal(read_file(bytes, TOKEN_KEY_MAX + 1, why, sizeof(why)), -22);
	assert_string_equal(why, "a key has at most 1024 bytes");
	assert_int_equal(token_key_read("/absent", &k, why, sizeof(why)), -2);
	assert_string_equal(why, "No such file or directory");
	assert_int_equal(token_key_read("/", &k, why, sizeof(why)), -5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, make_key, NULL);
}
