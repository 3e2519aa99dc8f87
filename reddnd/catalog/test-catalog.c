/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test-catalog-XXXXXX"; /* every test runs inside it */

static int enter(void **state)
{
	(void)state;
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	(void)state;
	unlink("c");
	unlink("more");
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The whole text that loading such a file prints */
static void expect(const char *text, const char *message)
{
	struct catalog *catalog = NULL;
	char *errors;

	put("c", text);
	assert_int_equal(catalog_load("c", &catalog, &errors), -EINVAL);
	assert_null(catalog);
	assert_string_equal(errors, message);
	free(errors);
}

static struct catalog *load(const char *text)
{
	struct catalog *catalog = NULL;
	char *errors;
	int r;

	put("c", text);
	r = catalog_load("c", &catalog, &errors);
	assert_string_equal(errors, "");
	assert_int_equal(r, 0);
	free(errors);
	return catalog;
}

#define REGION "regions = ( { name = \"users\"; path = \"/d/users\"; kind = \"table\"; } );\n"

static void test_full(void **state)
{
	struct catalog *c =
		load("offloads = (\n"
		     " { name = \"get\"; program = \"hash-get\"; region = \"users\"; },\n"
		     " { name = \"get2\"; program = \"hash-get\"; region = \"users\"; mode = \"parallel\";\n"
		     "   depth_max = 7; instances = 16; } );\n"
		     "listen = [ \"10.0.0.1:99\", \"[::1]:7\", \"[::]\" ];\n"
		     "device = \"mlx5_0\"; arena = \"1G\";\n" REGION);

	(void)state;
	assert_int_equal(c->nlisten, 3);
	assert_string_equal(c->listen[0].address, "10.0.0.1");
	assert_int_equal(c->listen[0].port, 99);
	assert_string_equal(c->listen[1].address, "::1");
	assert_int_equal(c->listen[1].port, 7);
	assert_int_equal(c->listen[2].port, 7471);
	assert_string_equal(c->device, "mlx5_0");
	assert_int_equal(c->arena, 1 << 30);
	assert_int_equal(c->nregions, 1);
	assert_string_equal(c->regions[0].path, "/d/users");
	assert_string_equal(c->regions[0].where, "c:7");
	assert_int_equal(c->noffloads, 2);
	assert_false(c->offloads[0].parallel);
	assert_int_equal(c->offloads[0].depth_max, 64);
	assert_int_equal(c->offloads[0].instances, 0);
	assert_true(c->offloads[1].parallel);
	assert_int_equal(c->offloads[1].depth_max, 7);
	assert_int_equal(c->offloads[1].instances, 16);
	assert_int_equal(c->offloads[1].region, 0);
	catalog_free(c);
}

static void test_defaults(void **state)
{
	struct catalog *c = load("");

	(void)state;
	assert_int_equal(c->nlisten, 1);
	assert_string_equal(c->listen[0].address, "0.0.0.0");
	assert_int_equal(c->listen[0].port, 7471);
	assert_string_equal(c->device, "");
	assert_int_equal(c->arena, 256 << 20);
	assert_int_equal(c->nregions + c->noffloads, 0);
	catalog_free(c);
}

static void test_include(void **state)
{
	struct catalog *c;

	(void)state;
	put("more", "\n\n{ name = \"users\"; path = \"/d/users\"; kind = \"table\"; }\n");
	c = load("regions = (\n@include \"more\"\n);\n");
	assert_int_equal(c->nregions, 1);
	catalog_free(c);
	put("more", "\n\n{ name = \"users\"; path = \"users\"; kind = \"table\"; }\n");
	expect("regions = (\n@include \"more\"\n);\n",
		"more:3: path \"users\" is relative; give it from the root: \"/...\"\n");
}

static void test_files(void **state)
{
	struct catalog *c;
	char *errors;

	(void)state;
	assert_int_equal(catalog_load("absent", &c, &errors), -EINVAL);
	assert_string_equal(errors, "absent: cannot be read: No such file or directory\n");
	free(errors);
	expect("listen = ;\n", "c:1: syntax error; see libconfig's manual for the syntax\n");
	expect("device = \"a\";\ndevice = \"b\";\n",
		"c:2: duplicate setting name; see libconfig's manual for the syntax\n");
}

static void test_top(void **state)
{
	(void)state;
	expect("lisen = \"0.0.0.0\";\n",
		"c:1: unknown setting \"lisen\" in the configuration; did you mean \"listen\"?\n");
	expect("\ntenants = 3;\n", "c:2: unknown setting \"tenants\" in the configuration; known are listen, "
				   "device, arena, regions, "
				   "offloads\n");
	expect("listen = 7471;\n",
		"c:1: \"listen\" has the wrong type; it must be \"address:port\" or a list of such\n");
	expect("listen = [];\n", "c:1: \"listen\" is empty; give at least one \"address:port\"\n");
	expect("listen = [ 1 ];\n",
		"c:1: \"listen\" holds something else than text; write \"address:port\"\n");
	for (size_t i = 0; i < 8; i++) {
		static const char *const bad[] = {"host:1", "1.2.3.4:0", "1.2.3.4:65536",
			"1.2.3.4:", "1.2.3.4:1x", "::1", "[::1", "[1.2.3.4]"};
		char text[64], message[160];

		snprintf(text, sizeof text, "listen = \"%s\";", bad[i]);
		snprintf(message, sizeof message,
			"c:1: cannot listen on \"%s\"; write a numeric address and a port: \"0.0.0.0:7471\", "
			"\"[::]:7471\"\n",
			bad[i]);
		expect(text, message);
	}
	expect("device = \"a b\";\n",
		"c:1: \"a b\" cannot be a device; give a name that ibv_devices lists, or \"\"\n");
	for (size_t i = 0; i < 5; i++) {
		static const char *const bad[] = {"\"1M\"", "\"65G\"", "\"many\"", "4096", "-1"};
		char text[64];

		snprintf(text, sizeof text, "arena = %s;", bad[i]);
		expect(text, "c:1: \"arena\" is no size that will do; write 4M to 64G, as in \"256M\"\n");
	}
	expect("regions = { };\n",
		"c:1: \"regions\" has the wrong type; it must be a list of groups: ( { ... }, { ... } )\n");
}

static void test_regions(void **state)
{
	(void)state;
	expect("regions = ( 5 );\n",
		"c:1: entry 1 of \"regions\" is no group; write { name = \"...\"; ... }\n");
	expect("regions = ( { kind = \"table\"; } );\n",
		"c:1: \"name\" is missing in a region; set it to a name\n"
		"c:1: \"path\" is missing in a region; set it to the path of a file\n");
	expect("regions = ( { name = \"a/b\"; path = \"/x\"; kind = \"heap\"; } );\n",
		"c:1: \"a/b\" cannot be a name; 1 to 23 letters, digits, '.', '_' or '-', beginning with a "
		"letter "
		"or digit\n"
		"c:1: unknown kind \"heap\"; it must be \"table\"\n");
	expect(REGION "regionz = 1;\n",
		"c:2: unknown setting \"regionz\" in the configuration; did you mean \"regions\"?\n");
	expect("regions = ( { name = \"u\"; path = \"/a\"; kind = \"table\"; },\n"
	       "            { name = \"u\"; path = \"/b\"; kind = \"table\"; } );\n",
		"c:2: region \"u\" is already declared at c:1; names must differ\n");
	expect("regions = ( { name = \"u\"; pth = \"/a\"; path = \"/a\"; kind = 1; } );\n",
		"c:1: unknown setting \"pth\" in a region; did you mean \"path\"?\n"
		"c:1: \"kind\" has the wrong type; it must be \"table\"\n");
}

static void expect_offload(const char *settings, const char *message)
{
	char text[512], full[512];

	snprintf(text, sizeof text, REGION "offloads = ( { %s } );\n", settings);
	snprintf(full, sizeof full, "c:2: %s\n", message);
	expect(text, full);
}

#define OFFLOAD "name = \"get\"; program = \"hash-get\"; region = \"users\"; "

static void test_offloads(void **state)
{
	(void)state;
	expect_offload("name = \"get\"; region = \"users\";",
		"\"program\" is missing in an offload; set it to \"hash-get\"");
	expect_offload("name = \"get\"; program = \"hash-put\"; region = \"users\";",
		"unknown program \"hash-put\"; it must be \"hash-get\"");
	expect_offload("name = \"get\"; program = \"hash-get\"; region = \"user\";",
		"no region \"user\"; did you mean \"users\"?");
	expect_offload("name = \"get\"; program = \"hash-get\"; region = \"zzz\";",
		"no region \"zzz\"; declare it in \"regions\"");
	expect_offload(OFFLOAD "mode = \"fast\";",
		"unknown mode \"fast\"; it must be \"sequential\" or \"parallel\"");
	expect_offload(OFFLOAD "depth_max = 0;", "\"depth_max\" is 0; it must be 1 to 4096");
	expect_offload(OFFLOAD "depth_max = 4097;", "\"depth_max\" is 4097; it must be 1 to 4096");
	expect_offload(
		OFFLOAD "depth_max = 8589934592L;", "\"depth_max\" is 8589934592; it must be 1 to 4096");
	expect_offload(OFFLOAD "depth_max = \"8\";",
		"\"depth_max\" has the wrong type; it must be a number of requests");
	expect_offload(OFFLOAD "instances = 100;", "\"instances\" is 100; it must be a power of two");
	expect_offload(OFFLOAD "instances = 2;", "\"instances\" is 2; it must be 4 to 32768");
	expect_offload(OFFLOAD "depth_max = 33; instances = 64;",
		"\"instances\" is 64; it must be at least twice \"depth_max\" (33)");
	expect_offload(
		OFFLOAD "depth = 3;", "unknown setting \"depth\" in an offload; did you mean \"depth_max\"?");
	expect(REGION "offloads = ( { " OFFLOAD "},\n{ " OFFLOAD "} );\n",
		"c:3: offload \"get\" is already declared at c:2; names must differ\n");
	expect_offload("name = \"a23456789012345678901234\"; program = \"hash-get\"; region = \"users\";",
		"\"a23456789012345678901234\" cannot be a name; 1 to 23 letters, digits, '.', '_' or '-', "
		"beginning "
		"with a letter or digit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_include),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_offloads),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
