/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of hosts: what they are read as, and in which order they are tried. */
#include "libclient/hosts.h"

#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct reddn_hosts hosts;
static char err[256];

static int read_hosts(const char *text)
{
	*err = '\0';
	hosts = (struct reddn_hosts){0};
	return reddn_hosts_read(&hosts, text, 7471, false, err, sizeof(err));
}

static void test_lists(void **state)
{
	static const struct {
		const char *text;
		unsigned n;
		struct {
			const char *name;
			uint16_t port;
		} host[3];
	} lists[] = {
		{"a", 1, {{"a", 7471}}},
		{"a:7472", 1, {{"a", 7472}}},
		{"a,b:7472,c", 3, {{"a", 7471}, {"b", 7472}, {"c", 7471}}},
		{"127.0.0.1, 127.1.0.1:1 ", 2, {{"127.0.0.1", 7471}, {"127.1.0.1", 1}}},
		{"::1,fe80::1%eth0", 2, {{"::1", 7471}, {"fe80::1%eth0", 7471}}},
		{"[::1],[fe80::1%eth0]:65535", 2, {{"::1", 7471}, {"fe80::1%eth0", 65535}}},
	};

	for (unsigned i = 0; i < COUNT(lists); i++) {
		assert_int_equal(read_hosts(lists[i].text), 0);
		assert_int_equal(hosts.n, lists[i].n);
		for (unsigned k = 0; k < hosts.n; k++) {
			assert_string_equal(hosts.host[k].name, lists[i].host[k].name);
			assert_int_equal(hosts.host[k].port, lists[i].host[k].port);
		}
		reddn_hosts_deinit(&hosts);
	}
}

static void test_wrong_lists(void **state)
{
	static const struct {
		const char *text, *words;
	} lists[] = {
		{"", "host \"\": \"\" is no host, nor HOST:PORT or [ADDRESS]:PORT"},
		{"a,,b", "host \"a,,b\": \"\" is no host"},
		{"a,b,", "\"\" is no host"},
		{"a, ,b", "\"\" is no host"},
		{"a,b:0", "\"b:0\" is no host"},
		{"a,b:65536", "\"b:65536\" is no host"},
		{"a,b:x", "\"b:x\" is no host"},
		{"[::1,b", "\"[::1\" is no host"},
		{"[::1]7471", "\"[::1]7471\" is no host"},
		{"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "17 hosts, up to 16"},
	};

	for (unsigned i = 0; i < COUNT(lists); i++) {
		assert_int_equal(read_hosts(lists[i].text), -EINVAL);
		assert_non_null(strstr(err, lists[i].words));
		reddn_hosts_deinit(&hosts);
	}
}

/* The same hosts, in any order */
static void test_spread(void **state)
{
	unsigned first[4] = {0};

	for (unsigned i = 0; i < 1000; i++) {
		unsigned seen = 0;

		hosts = (struct reddn_hosts){0};
		assert_int_equal(reddn_hosts_read(&hosts, "0,1,2,3", 7471, true, err, sizeof(err)), 0);
		for (unsigned k = 0; k < 4; k++)
			seen |= 1u << (hosts.host[k].name[0] - '0');
		assert_int_equal(seen, 15);
		first[hosts.host[0].name[0] - '0']++;
		reddn_hosts_deinit(&hosts);
	}
	for (unsigned k = 0; k < 4; k++)
		assert_true(first[k] > 100);
}

/* The hosts that are tried, in this order */
static void expect_tried(enum reddn_choice choice, unsigned host, uint64_t now, const char *names)
{
	bool any = reddn_hosts_choose(&hosts, choice, host, now);

	assert_int_equal(any, *names != '\0');
	for (; any; any = reddn_hosts_next(&hosts))
		assert_int_equal(reddn_hosts_at(&hosts)->name[0], *names++);
	assert_int_equal(*names, '\0');
}

static void test_choice(void **state)
{
	assert_int_equal(read_hosts("a,b,c"), 0);
	expect_tried(REDDN_ANY_HOST, 0, 0, "abc");
	expect_tried(REDDN_ANY_HOST, 2, 0, "cab");
	expect_tried(REDDN_ANY_HOST, 3, 0, "abc");
	expect_tried(REDDN_THIS_HOST, 1, 0, "b");
	expect_tried(REDDN_OTHER_HOST, 0, 0, "bc");
	expect_tried(REDDN_OTHER_HOST, 1, 0, "ac");
	hosts.host[0].out_until = hosts.host[1].out_until = 5;
	expect_tried(REDDN_ANY_HOST, 0, 4, "c");
	expect_tried(REDDN_THIS_HOST, 1, 4, "b");
	expect_tried(REDDN_OTHER_HOST, 2, 4, "");
	expect_tried(REDDN_OTHER_HOST, 2, 5, "ab");
	/* better one of those than none */
	hosts.host[2].out_until = 5;
	expect_tried(REDDN_ANY_HOST, 1, 4, "bca");
	expect_tried(REDDN_OTHER_HOST, 0, 4, "");
	reddn_hosts_deinit(&hosts);
}

static void test_addresses(void **state)
{
	const struct addrinfo *at;

	assert_int_equal(read_hosts("127.0.0.1,::1,fe80::1,127.0.0.2"), 0);
	assert_int_equal(reddn_hosts_look_up(&hosts, clock_ms() + 60000, err, sizeof(err)), 0);
	assert_non_null(strstr(err, "fe80::1: a link-local address needs an interface of this machine"));
	assert_null(hosts.host[2].list);
	/* of the time that is left, each address has an equal share */
	assert_true(reddn_hosts_choose(&hosts, REDDN_ANY_HOST, 0, 0));
	at = hosts.host[0].list;
	assert_int_equal(reddn_hosts_until(&hosts, at, 1000, 4000), 2000);
	assert_true(reddn_hosts_next(&hosts));
	assert_int_equal(reddn_hosts_until(&hosts, hosts.host[1].list, 2000, 4000), 3000);
	assert_true(reddn_hosts_next(&hosts));
	assert_true(reddn_hosts_next(&hosts));
	assert_int_equal(reddn_hosts_until(&hosts, hosts.host[3].list, 3000, 4000), 4000);
	assert_int_equal(reddn_hosts_until(&hosts, hosts.host[3].list, 5000, 4000), 4000);
	strcpy(err, "refused");
	reddn_hosts_add(&hosts, hosts.host[3].list, err, sizeof(err));
	assert_string_equal(err, "refused (127.0.0.2, one of 4 hosts)");
	reddn_hosts_deinit(&hosts);

	assert_int_equal(read_hosts("fe80::1,fe80::2"), 0);
	assert_int_equal(reddn_hosts_look_up(&hosts, clock_ms() + 60000, err, sizeof(err)), -EHOSTUNREACH);
	assert_non_null(strstr(err, "fe80::1: a link-local"));
	reddn_hosts_deinit(&hosts);
}

static uint32_t address_of(const struct reddn_host *host)
{
	assert_non_null(host->list);
	return ntohl(((const struct sockaddr_in *)(const void *)host->list->ai_addr)->sin_addr.s_addr);
}

/* A copy begins with the address that is known, and goes on with those of the names */
static void test_copy(void **state)
{
	const struct sockaddr_in known = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 4), .sin_port = htons(9)};
	struct reddn_hosts h = {0}, copy;

	assert_int_equal(reddn_hosts_read(&h, "127.0.0.2:71,127.0.0.3", 7471, false, NULL, 0), 0);
	copy = (struct reddn_hosts){0};
	assert_int_equal(reddn_hosts_copy(&copy, &h, 1, (const struct sockaddr *)&known), 0);
	assert_int_equal(copy.n, 2);
	assert_string_equal(copy.host[1].name, "127.0.0.3");
	assert_int_equal(copy.host[0].port, 71);
	reddn_hosts_look_up_again(&copy);
	assert_int_equal(address_of(&copy.host[0]), INADDR_LOOPBACK + 1);
	assert_int_equal(address_of(&copy.host[1]), INADDR_LOOPBACK + 4);
	assert_int_equal(((struct sockaddr_in *)(void *)copy.host[1].list->ai_addr)->sin_port, htons(7471));
	reddn_hosts_look_up_again(&copy);
	assert_int_equal(address_of(&copy.host[1]), INADDR_LOOPBACK + 2);
	reddn_hosts_deinit(&copy);
	copy = (struct reddn_hosts){0};
	assert_int_equal(reddn_hosts_copy(&copy, &h, 1, NULL), 0);
	reddn_hosts_look_up_again(&copy);
	assert_int_equal(address_of(&copy.host[1]), INADDR_LOOPBACK + 2);
	reddn_hosts_deinit(&copy);
	reddn_hosts_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_wrong_lists),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
