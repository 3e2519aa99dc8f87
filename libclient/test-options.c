/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/options.h"

#include "protocol/wire.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct token_key key;
static char err[128];

static int read_options(struct reddn_options *opt)
{
	*err = '\0';
	memset(&key, 0, sizeof(key));
	return reddn_options_read(opt, &key, err, sizeof(err));
}

static void test_defaults(void **state)
{
	struct reddn_options opt = {.host = "host", .offload = "users"};

	assert_int_equal(read_options(&opt), 0);
	assert_int_equal(opt.port, REDDN_WIRE_PORT);
	assert_int_equal(opt.depth, 0); /* up to reddn_connect(), and the server */
	assert_int_equal(opt.connections, 1);
	assert_int_equal(opt.timeout_ms, 5000);
	assert_int_equal(opt.retry_ms, 1000);
	assert_int_equal(opt.spin_us, 20);
	assert_int_equal(opt.slot_size, 0);
	assert_int_equal(key.len, 0);
}

/* What takes a limit as an int takes a negative one for none. */
static void test_timeout(void **state)
{
	static const uint32_t given[] = {1, 60000, INT_MAX, INT_MAX + 1u, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(given) / sizeof(*given); i++) {
		struct reddn_options opt = {.host = "host", .offload = "users", .timeout_ms = given[i]};

		assert_int_equal(read_options(&opt), 0);
		assert_int_equal(opt.timeout_ms, given[i] < INT_MAX ? given[i] : 24u * 86400 * 1000);
		assert_true((int)opt.timeout_ms > 0);
	}
}

static void expect_invalid(struct reddn_options opt, const char *words)
{
	assert_int_equal(read_options(&opt), -EINVAL);
	assert_non_null(strstr(err, words));
	assert_int_equal(key.len, 0);
}

#define INVALID(words, ...)                                                                                  \
	expect_invalid((struct reddn_options){.host = "host", .offload = "users", __VA_ARGS__}, words)

static void test_invalid(void **state)
{
	expect_invalid((struct reddn_options){.host = "host"}, "lack");
	expect_invalid((struct reddn_options){.offload = "users"}, "lack");
	expect_invalid((struct reddn_options){.host = "host", .offload = ""}, "1 to 23 bytes");
	expect_invalid((struct reddn_options){.host = "host", .offload = "123456789012345678901234"},
		"1 to 23 bytes");
	INVALID("depth 4097: up to 4096", .depth = 4097);
	INVALID("connections 17: up to 16", .connections = 17);
	INVALID("16 connections of depth 4096: up to 65535", .connections = 16, .depth = 4096);
	INVALID("multiple of 64", .slot_size = 100);
	INVALID("reserved", .reserved = {0, 0, 1});
	INVALID("flags 0x8: this library knows 0x7", .flags = 8);
	INVALID("shards", .shards = REDDN_SHARDS_REDIS + 1);
	INVALID("shards", .shards = REDDN_SHARDS_REDIS, .flags = REDDN_INTO);
	INVALID("reserved", .reserved32 = 1);
	INVALID("policy 2", .policy = 2);
	INVALID("16 to 1024 bytes", .token_key = "short", .token_key_len = 5);
	INVALID("both given", .token_key = "0123456789abcdef", .token_key_len = 16,
		.token_file = "/dev/null");
	INVALID("key file /nowhere/key: ", .token_file = "/nowhere/key");
}

static void test_key(void **state)
{
	struct reddn_options opt = {
		.host = "host", .offload = "users", .token_key = "0123456789abcdef", .token_key_len = 16};

	assert_int_equal(read_options(&opt), 0);
	assert_int_equal(key.len, 16);
	assert_memory_equal(key.bytes, "0123456789abcdef", 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
