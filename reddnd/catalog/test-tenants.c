/* SPDX-License-Identifier: BSD-2-Clause */
/* Tenants: who belongs to one, their limits and keys, and the mistakes in them. */
#include "reddnd/catalog/catalog.h"
#include "reddnd/catalog/test-conf.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/lib/cmocka.h"

static int bits(const struct catalog *c, unsigned tenant, const char *address)
{
	uint8_t a[16] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET, address, a + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, address, a), 1);
	return catalog_match(&c->tenants[tenant], a);
}

static void test_everyone(void **state)
{
	struct catalog *c = conf_load("");

	assert_int_equal(c->ntenants, 1);
	assert_string_equal(c->tenants[0].name, "everyone");
	assert_int_equal(bits(c, 0, "1.2.3.4"), 0);
	assert_true(catalog_allows(&c->tenants[0], 7));
	catalog_free(c);
}

static void test_networks(void **state)
{
	struct catalog *c =
		conf_load("tenants = ( { name = \"one\"; networks = [ \"192.0.2.0/24\", \"2001:db8::/33\", "
			  "\"192.0.2.128/25\" ]; },\n"
			  " { name = \"two\"; networks = ( \"0.0.0.0/0\", \"::/0\" ); },\n"
			  " { name = \"three\"; networks = [ \"10.9.8.7\", \"::1\" ]; } );\n");

	assert_int_equal(c->ntenants, 3);
	assert_int_equal(bits(c, 0, "192.0.2.127"), 96 + 24);
	assert_int_equal(bits(c, 0, "192.0.2.128"), 96 + 25);
	assert_int_equal(bits(c, 0, "192.0.3.0"), -1);
	assert_int_equal(bits(c, 0, "2001:db8:7fff::1"), 33);
	assert_int_equal(bits(c, 0, "2001:db8:8000::1"), -1);
	assert_int_equal(bits(c, 1, "192.0.2.1"), 96);
	assert_int_equal(bits(c, 1, "fe80::1"), 0);
	assert_int_equal(bits(c, 2, "10.9.8.7"), 128);
	assert_int_equal(bits(c, 2, "10.9.8.6"), -1);
	assert_int_equal(bits(c, 2, "::1"), 128);
	catalog_free(c);
}

static void test_limits(void **state)
{
	struct catalog *c = conf_load(CONF_REGION
		"offloads = ( { " CONF_OFFLOAD
		"}, { name = \"b\"; program = \"get\"; region = \"users\"; } );\n"
		"tenants = ( { name = \"one\"; offloads = [ \"b\" ]; sessions = 3; depth = 70000;\n"
		" queue_bytes = \"1M\"; slot_bytes = \"3K\"; extent_bytes = \"5M\"; rate = 5000; burst = 5;\n"
		" session_rate = 7; session_burst = 2; connect_rate = 20; connect_burst = 300;\n"
		" idle_timeout = \"5m\"; bytes_rate = \"1G\"; session_bytes_rate = \"2K\"; },\n"
		" { name = \"two\"; networks = [ \"::1\" ]; } );\n");
	const struct catalog_limits *l = &c->tenants[0].limits;

	assert_false(catalog_allows(&c->tenants[0], 0));
	assert_true(catalog_allows(&c->tenants[0], 1));
	assert_true(catalog_allows(&c->tenants[1], 0));
	assert_int_equal(l->sessions, 3);
	assert_int_equal(l->depth, 70000);
	assert_int_equal(l->queue_bytes, 1 << 20);
	assert_int_equal(l->slot_bytes, 3 << 10);
	assert_int_equal(l->extent_bytes, 5 << 20);
	assert_int_equal(l->rate, 5000);
	assert_int_equal(l->burst, 5);
	assert_int_equal(l->session_rate, 7);
	assert_int_equal(l->session_burst, 2);
	assert_int_equal(l->idle_timeout, 300000000);
	assert_int_equal(l->connect_rate, 20);
	assert_int_equal(l->connect_burst, 300);
	assert_int_equal(l->bytes_rate, 1 << 30);
	assert_int_equal(l->session_bytes_rate, 2048);
	catalog_free(c);
}

#define NETS(text) "tenants = ( { name = \"t\"; networks = [ " text " ]; } );\n"

static void test_no_networks(void **state)
{
	static const char *const bad[] = {
		"", "/8", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/+8", "::/129", "1.2.3/24", "host"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		char text[128], message[200];

		snprintf(text, sizeof(text), NETS("\"%s\""), bad[i]);
		snprintf(message, sizeof(message),
			"c:1: \"%s\" is no network; write an address and the length of its prefix: "
			"\"192.0.2.0/24\", \"2001:db8::/32\"\n",
			bad[i]);
		conf_expect(text, message);
	}
}

#define TENANT(text) "tenants = ( { name = \"a\"; " text " } );\n"

static const struct conf_mistake tenant_mistakes[] = {
	{"tenants = ( { } );\n", "c:1: \"name\" is missing in a tenant; set it to " CONF_A_NAME "\n"},
	{NETS("\"192.0.2.1/24\""),
		"c:1: \"192.0.2.1/24\" has bits of a host; they must be 0 behind the prefix\n"},
	{NETS(""), "c:1: \"networks\" is empty; leave it out for clients from anywhere\n"},
	{"tenants = ( { name = \"a\"; networks = [ \"10.0.0.0/8\" ]; },\n"
	 "{ name = \"b\"; networks = [ \"10.0.0.0/8\" ]; } );\n",
		"c:2: tenants \"a\" and \"b\" have a network in common, and no key to tell them apart\n"},
	{"tenants = ( { name = \"a\"; }, { name = \"a\"; } );\n",
		"c:1: tenant \"a\" is already declared at c:1; names must differ\n"},
	{TENANT("offloads = [ \"x\" ];"), "c:1: no offload \"x\"; declare it in \"offloads\"\n"},
	{TENANT("connect = 3;"),
		"c:1: unknown setting \"connect\" in a tenant; did you mean \"connect_rate\"?\n"},
	{TENANT("rate = 0; sessions = 0; queue_bytes = \"all\"; slot_bytes = 0;"),
		"c:1: \"rate\" is 0; it must be a number of requests per second from 1 to 1000000000\n"
		"c:1: \"sessions\" is 0; it must be a number from 1 to 1000000\n"
		"c:1: \"queue_bytes\" is \"all\"; it must be a size, as in \"64M\"\n"
		"c:1: \"slot_bytes\" is 0; it must be a size, as in \"64M\"\n"},
	{TENANT("bytes_rate = 0; session_bytes_rate = \"much\";"),
		"c:1: \"bytes_rate\" is 0; it must be a size, as in \"64M\"\n"
		"c:1: \"session_bytes_rate\" is \"much\"; it must be a size, as in \"64M\"\n"},
	{TENANT("connect_burst = 5;"), "c:1: \"connect_burst\" means nothing without \"connect_rate\"\n"},
	{TENANT("connect_rate = 0;"), "c:1: \"connect_rate\" is 0; it must be a number of clients per second "
				      "from 1 to 1000000000\n"},
	{TENANT("idle_timeout = \"10ms\";"),
		"c:1: \"idle_timeout\" is \"10ms\"; it must be a time of at least 1 s, as in \"10m\"\n"},
	{TENANT("burst = 5;"), "c:1: \"burst\" means nothing without \"rate\"\n"},
	{TENANT("session_rate = 5001; session_burst = 5;"),
		"c:1: \"session_burst\" is 5; for 5001 requests per second it must be at least 6\n"},
};

static void test_tenants(void **state)
{
	conf_expect_each(tenant_mistakes, COUNT(tenant_mistakes));
}

static void expect_key(const char *key, const char *message)
{
	char text[400];

	snprintf(text, sizeof(text), "tenants = ( { name = \"a\"; key = \"%s\"; } );\n", key);
	conf_expect(text, message);
}

static void test_keys(void **state)
{
	char text[200], message[300];
	struct catalog *c;

	conf_put("key", "0123456789abcdef\n");
	assert_int_equal(chmod("key", 0600), 0);
	unsetenv("CREDENTIALS_DIRECTORY");
	expect_key("key", "c:1: \"key\" is \"key\"; it must be an absolute path, or \"credential:NAME\"\n");
	expect_key("/absent", "c:1: key file /absent: No such file or directory\n");
	expect_key("credential:key",
		"c:1: there is no credential key: CREDENTIALS_DIRECTORY is not set; systemd sets it for "
		"LoadCredential= of the service\n");
	setenv("CREDENTIALS_DIRECTORY", conf_dir, 1);
	expect_key("credential:../key", "c:1: \"../key\" is no name of a credential\n");
	c = conf_load("tenants = ( { name = \"a\"; key = \"credential:key\"; }, { name = \"b\"; } );\n");
	assert_true(c->tenants[0].has_key && !c->tenants[1].has_key);
	assert_int_equal(c->tenants[0].key.len, 16);
	catalog_free(c);
	unsetenv("CREDENTIALS_DIRECTORY");
	assert_int_equal(chmod("key", 0604), 0);
	snprintf(text, sizeof(text), "%s/key", conf_dir);
	snprintf(message, sizeof(message), "c:1: key file %s can be read by everybody; chmod o= it\n", text);
	expect_key(text, message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everyone),
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_no_networks),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, conf_enter, conf_leave);
}
