/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/token.h"
#include "util/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { NOW = 1763700000 };

static const struct token_ends ends = {
	.client = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 7},
	.gid = {0xfe, 0x80, [8] = 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11},
	.server = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 9},
	.port = 7471,
	.client_qpn = 0x123456,
};
static struct token_key key;

static struct reddn_wire_req signed_request(void)
{
	struct reddn_wire_req req = {
		.magic = 1, .version = 1, .depth = 7, .slot_addr = 0x1000, .slot_rkey = 5, .slot_size = 64};

	strcpy(req.offload, "users");
	token_make(&key, &req, &ends, NOW, req.token);
	return req;
}

static int make_key(void **state)
{
	key.len = 32;
	for (unsigned i = 0; i < 32; i++)
		key.bytes[i] = (uint8_t)(i * 7);
	return 0;
}

/* The result of another implementation of HMAC-SHA256, Python's, over the bytes that reddn-wire(7) lists */
static void test_bytes(void **state)
{
	static const uint8_t token[8] = {0x5b, 0xe0, 0x05, 0xad, 0xea, 0x1f, 0x50, 0x79};
	struct reddn_wire_req req = signed_request();

	assert_memory_equal(req.token, token, 8);
}

/* The token that libreddn 0.1 made for the same request: it names only the client's address */
static void test_version_1(void **state)
{
	static const uint8_t token[8] = {0x6a, 0xb6, 0x20, 0x63, 0xc6, 0x34, 0xcd, 0x1a};
	struct reddn_wire_req req = signed_request();

	memcpy(req.token, token, 8);
	assert_false(token_valid(&key, &req, &ends, NOW));
}

static void test_time(void **state)
{
	const uint64_t begin = NOW / TOKEN_WINDOW_S * TOKEN_WINDOW_S;
	struct reddn_wire_req req = signed_request();

	assert_true(token_valid(&key, &req, &ends, NOW));
	assert_true(token_valid(&key, &req, &ends, begin - TOKEN_WINDOW_S));
	assert_false(token_valid(&key, &req, &ends, begin - TOKEN_WINDOW_S - 1));
	assert_true(token_valid(&key, &req, &ends, begin + 2 * TOKEN_WINDOW_S - 1));
	assert_false(token_valid(&key, &req, &ends, begin + 2 * TOKEN_WINDOW_S));
}

/* Every bit of the request, of both ends and of the key counts, and every bit of the token */
static void test_bits(void **state)
{
	static const struct {
		size_t at, size;
	} covered[] = {
		{offsetof(struct token_ends, client), sizeof(ends.client)},
		{offsetof(struct token_ends, gid), sizeof(ends.gid)},
		{offsetof(struct token_ends, server), sizeof(ends.server)},
		{offsetof(struct token_ends, port), sizeof(ends.port)},
		{offsetof(struct token_ends, client_qpn), sizeof(ends.client_qpn)},
	};
	struct reddn_wire_req req = signed_request();
	struct token_key other = key;

	for (size_t bit = 0; bit < 8 * sizeof(req); bit++) {
		((uint8_t *)&req)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(token_valid(&key, &req, &ends, NOW));
		((uint8_t *)&req)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t i = 0; i < COUNT(covered); i++) {
		for (size_t bit = 0; bit < 8 * covered[i].size; bit++) {
			struct token_ends changed = ends;

			((uint8_t *)&changed)[covered[i].at + bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_false(token_valid(&key, &req, &changed, NOW));
		}
	}
	other.bytes[31] ^= 1;
	assert_false(token_valid(&other, &req, &ends, NOW));
	other = key;
	other.len--;
	assert_false(token_valid(&other, &req, &ends, NOW));
	assert_true(token_valid(&key, &req, &ends, NOW));
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
	char bytes[TOKEN_KEY_MAX + 2], why[120], fifo[40];
	struct token_key k;

	memset(bytes, 'k', sizeof(bytes));
	assert_int_equal(read_file("0123456789abcdef\n", 17, why, sizeof(why)), 16);
	assert_int_equal(read_file("0123456789abcde\n", 16, why, sizeof(why)), -22);
	assert_string_equal(why, "a key has at least 16 bytes; openssl rand -hex 32 makes one");
	assert_int_equal(read_file("0123456789abcdef\r\n", 18, why, sizeof(why)), -22);
	assert_int_equal(read_file("\xef\xbb\xbf"
				   "0123456789abcdef\n",
				 20, why, sizeof(why)),
		-22);
	assert_string_equal(why,
		"a key with a carriage return at its end, or a byte order mark, is another one; "
		"remove them");
	assert_int_equal(read_file(bytes, 0, why, sizeof(why)), -22);
	assert_int_equal(read_file(bytes, TOKEN_KEY_MAX, why, sizeof(why)), TOKEN_KEY_MAX);
	assert_int_equal(read_file(bytes, TOKEN_KEY_MAX + 1, why, sizeof(why)), -22);
	assert_string_equal(why, "a key has at most 1024 bytes");
	assert_int_equal(token_key_read("/absent", &k, why, sizeof(why)), -2);
	assert_string_equal(why, "No such file or directory");
	assert_int_equal(token_key_read("/", &k, why, sizeof(why)), -22);
	assert_string_equal(why, "it is no regular file");
	snprintf(fifo, sizeof(fifo), "/tmp/test-token-%d", (int)getpid());
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(token_key_read(fifo, &k, why, sizeof(why)), -22); /* waits for nobody */
	assert_string_equal(why, "it is no regular file");
	assert_int_equal(unlink(fifo), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, make_key, NULL);
}
