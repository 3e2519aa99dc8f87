/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/address.h"

#include <arpa/inet.h>

#include "tests/lib/cmocka.h"

static void test_families(void **state)
{
	static const uint8_t four[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 7}, none[16];
	static const uint8_t six[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 7};
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} sa = {.in = {.sin_family = AF_INET, .sin_port = htons(7471)}};
	uint8_t address[16];

	assert_int_equal(inet_pton(AF_INET, "192.0.2.7", &sa.in.sin_addr), 1);
	address_read(&sa.any, address);
	assert_memory_equal(address, four, sizeof(four));
	sa.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(7471), .sin6_scope_id = 3};
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::7", &sa.in6.sin6_addr), 1);
	address_read(&sa.any, address);
	assert_memory_equal(address, six, sizeof(six));
	assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.7", &sa.in6.sin6_addr), 1);
	address_read(&sa.any, address);
	assert_memory_equal(address, four, sizeof(four));
	sa.any.sa_family = AF_UNSPEC;
	address_read(&sa.any, address);
	assert_memory_equal(address, none, sizeof(none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_families)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
