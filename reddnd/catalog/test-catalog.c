/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test-catalog-XXXXXX"; /* every test runs inside it */

static const char *const files[] = {"c", "more", "get.rdn", "wrong.rdn", "raw.rdn", "key"};

static void put(const char *name, const char *text);

static int enter(void **state)
{
	(void)state;
	if (!mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	put("get.rdn", "program get\nparam width = 4 from 1 to 7\nregion buckets, heap\n"
		       "arg at : offset(width) in buckets\n"
		       "read buckets @ at -> hit.length, hit.addr\n"
		       "hit: write heap -> slot @ 64, max 64\n"
		       "write_imm 0 as u8 -> slot @ 0\n");
	put("wrong.rdn", "program wrong\nregion a\nwrite_imm b -> slot @ 0\n");
	put("raw.rdn", "program raw\nregion nodes writable\nregion values\n"
		       "write_imm values @ 0 -> slot @ 0, 8 bytes\n");
	return 0;
}

static int leave(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		unlink(files[i]);
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	/* Behind what is tested, whose lines keep their numbers */
	if (strcmp(name, "c") == 0 && !strstr(text, "programs ="))
		fprintf(f, "\nprograms = \"%s\";\n", dir);
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
		     " { name = \"get\"; program = \"get\"; region = \"users\"; },\n"
		     " { name = \"get2\"; program = \"get\"; region = \"users\"; mode = \"recycled\"; params "
		     "= { width = 5; };\n"
		     "   depth_max = 7; instances = 16; } );\n"
		     "listen = [ \"10.0.0.1:99\", \"[::1]:7\", \"[::]\" ];\n"
		     "device = \"mlx5_0\"; arena = \"1G\"; control = \"/run/x/control\";\n" REGION);

	(void)state;
	assert_int_equal(c->nlisten, 3);
	assert_string_equal(c->listen[0].address, "10.0.0.1");
	assert_int_equal(c->listen[0].port, 99);
	assert_string_equal(c->listen[1].address, "::1");
	assert_int_equal(c->listen[1].port, 7);
	assert_int_equal(c->listen[2].port, 7471);
	assert_string_equal(c->device, "mlx5_0");
	assert_int_equal(c->arena, 1 << 30);
	assert_string_equal(c->control, "/run/x/control");
	assert_int_equal(c->nregions, 1);
	assert_string_equal(c->regions[0].path, "/d/users");
	assert_string_equal(c->regions[0].where, "c:7");
	assert_int_equal(c->noffloads, 2);
	assert_false(c->offloads[0].recycled);
	assert_int_equal(c->offloads[0].nparams, 0);
	assert_int_equal(c->offloads[0].depth_max, 64);
	assert_int_equal(c->offloads[0].instances, 0);
	assert_true(c->offloads[1].recycled);
	assert_int_equal(c->offloads[1].nparams, 1);
	assert_string_equal(c->offloads[1].params[0].name, "width");
	assert_int_equal(c->offloads[1].params[0].value, 5);
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
	expect("@include \"\"\n", "c:1: @include \"\" is no file but a directory\n");
	put("more", "\n\t@include\t\".\"\n");
	expect("device = \"a\";\n @include \"more\"\n",
		"./more:2: @include \".\" is no file but a directory\n");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	expect("@include \"fifo\"\n@include \"/\"\n", "c:1: @include \"fifo\" is no file but something else\n"
						      "c:2: @include \"/\" is no file but a directory\n");
	put("more", "@include \"more\"\n@include \"more\"\n@include \"more\"\n"); /* ever deeper */
	expect("@include \"more\"\n",
		"more:1: include file nesting too deep; see libconfig's manual for the syntax\n");
	assert_int_equal(unlink("fifo"), 0);
	expect("listen = ;\n", "c:1: syntax error; see libconfig's manual for the syntax\n");
	expect("device = \"a\";\ndevice = \"b\";\n",
		"c:2: duplicate setting name; see libconfig's manual for the syntax\n");
}

static void test_top(void **state)
{
	(void)state;
	expect("lisen = \"0.0.0.0\";\n",
		"c:1: unknown setting \"lisen\" in the configuration; did you mean \"listen\"?\n");
	expect("\nzebra = 3;\n", "c:2: unknown setting \"zebra\" in the configuration; known are listen, "
				 "device, control, metrics, connect_timeout, arena, "
				 "programs, regions, offloads, tenants\n");
	expect("tenants = ( { name = \"a\"; networks = [ \"::/0\" ]; conect_rate = 3; } );\n",
		"c:1: unknown setting \"conect_rate\" in a tenant; did you mean \"connect_rate\"?\n");
	expect("listen = 7471;\n",
		"c:1: \"listen\" has the wrong type; it must be \"address:port\" or a list of such\n");
	expect("listen = [];\n", "c:1: \"listen\" is empty; give at least one \"address:port\"\n");
	expect("listen = [ 1 ];\n",
		"c:1: \"listen\" holds something else than text; write \"address:port\"\n");
	for (size_t i = 0; i < 8; i++) {
		static const char *const bad[] = {"host:1", "1.2.3.4:0", "1.2.3.4:65536",
			"1.2.3.4:", "1.2.3.4:1x", "::1", "[::1", "[1.2.3.4]"};
		char text[64], message[160];

		snprintf(text, sizeof(text), "listen = \"%s\";", bad[i]);
		snprintf(message, sizeof(message),
			"c:1: cannot listen on \"%s\"; write a numeric address and a port: \"0.0.0.0:7471\", "
			"\"[::]:7471\"\n",
			bad[i]);
		expect(text, message);
	}
	expect("device = \"a b\";\n",
		"c:1: \"a b\" cannot be a device; give a name that ibv_devices lists, or \"\"\n");
	expect("device = \"a\nb\\x01\";",
		"c:1: \"a?b?\" cannot be a device; give a name that ibv_devices lists, or \"\"\n");
	expect("control = \"run/control\";\n", "c:1: \"run/control\" cannot be a control socket; give an "
					       "absolute path of at most 107 characters\n");
	for (size_t i = 0; i < 5; i++) {
		static const char *const bad[] = {"\"1M\"", "\"65G\"", "\"many\"", "4096", "-1"};
		char text[64];

		snprintf(text, sizeof(text), "arena = %s;", bad[i]);
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
		"c:1: unknown kind \"heap\"; it must be \"table\" or \"raw\"\n");
	expect(REGION "regionz = 1;\n",
		"c:2: unknown setting \"regionz\" in the configuration; did you mean \"regions\"?\n");
	expect("regions = ( { name = \"u\"; path = \"/a\"; kind = \"table\"; },\n"
	       "            { name = \"u\"; path = \"/b\"; kind = \"table\"; } );\n",
		"c:2: region \"u\" is already declared at c:1; names must differ\n");
	expect("regions = ( { name = \"u\"; pth = \"/a\"; path = \"/a\"; kind = 1; } );\n",
		"c:1: unknown setting \"pth\" in a region; did you mean \"path\"?\n"
		"c:1: \"kind\" has the wrong type; it must be \"table\" or \"raw\"\n");
}

static void expect_offload(const char *settings, const char *message)
{
	char text[512], full[512];

	snprintf(text, sizeof(text), REGION "offloads = ( { %s } );\n", settings);
	snprintf(full, sizeof(full), "c:2: %s\n", message);
	expect(text, full);
}

#define OFFLOAD "name = \"get\"; program = \"get\"; region = \"users\"; "

static void test_offloads(void **state)
{
	(void)state;
	expect_offload("name = \"get\"; region = \"users\";",
		"\"program\" is missing in an offload; set it to the name of a program");
	expect_offload("name = \"get\"; program = \"get\"; region = \"user\";",
		"no region \"user\"; did you mean \"users\"?");
	expect_offload("name = \"get\"; program = \"get\"; region = \"zzz\";",
		"no region \"zzz\"; declare it in \"regions\"");
	expect_offload(
		OFFLOAD "mode = \"fast\";", "unknown mode \"fast\"; it must be \"unrolled\" or \"recycled\"");
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
	expect_offload("name = \"a23456789012345678901234\"; program = \"get\"; region = \"users\";",
		"\"a23456789012345678901234\" cannot be a name; 1 to 23 letters, digits, '.', '_' or '-', "
		"beginning "
		"with a letter or digit");
}

/* As expect_offload */
static void expect_program(const char *settings, const char *message)
{
	char text[1024], full[1024];

	snprintf(text, sizeof(text), REGION "\noffloads = ( { name = \"o\"; %s } );\n", settings);
	snprintf(full, sizeof(full), "c:3: %s\n", message);
	expect(text, full);
}

static void test_programs(void **state)
{
	struct catalog *catalog;
	char text[200], *errors;

	(void)state;
	snprintf(text, sizeof(text), "there is no program put.rdn in %s; see \"programs\"", dir);
	expect_program("program = \"put\"; region = \"users\";", text);
	expect_program("program = \"/absent.rdn\"; region = \"users\";", "there is no program /absent.rdn");
	expect_program("program = \"../get\"; region = \"users\";",
		"\"../get\" cannot be a program; give the name of one in the directories of \"programs\", or "
		"the path of a "
		"file from the root");
	expect_program("program = \"get\";", "offload \"o\": region \"buckets\" of the program is bound to "
					     "nothing; set regions = { buckets = \"...\"; }\n"
					     "c:3: offload \"o\": region \"heap\" of the program is bound to "
					     "nothing; set regions = { heap = \"...\"; }");
	expect_program(
		"program = \"get\"; regions = { buckets = \"users.buckets\"; heap = \"users.heap\"; heaps = "
		"\"users.heap\"; };",
		"offload \"o\": its program has no region \"heaps\"");
	expect_program("program = \"get\"; region = \"users\"; regions = { heap = \"users\"; };",
		"region \"users\" is a table; name a part of it: \"NAME.buckets\", \"NAME.heap\" or "
		"\"NAME.live\"");
	expect_program("program = \"get\"; region = \"users\"; regions = { heap = \"user.heap\"; };",
		"no region \"user\"; did you mean \"users\"?");
	expect_program("program = \"raw\"; region = \"users\";",
		"offload \"o\": region \"nodes\" of the program is no part of table \"users\", which has "
		"buckets, heap and "
		"live\n"
		"c:3: offload \"o\": region \"values\" of the program is no part of table \"users\", which "
		"has buckets, heap "
		"and live");
	expect_program("program = \"get\"; region = \"users\"; params = { width = 1.5; };",
		"param \"width\" must be set to a number, as in 4 or \"64K\"");
	snprintf(text, sizeof(text),
		"programs = \"%s\"; offloads = ( { name = \"o\"; program = \"wrong\"; } );", dir);
	put("c", text);
	assert_int_equal(catalog_load("c", &catalog, &errors), -EINVAL);
	assert_non_null(strstr(errors, "c:1: offload \"o\": its program has mistakes\n"));
	assert_non_null(strstr(errors, "wrong.rdn:3:11: error: "));
	free(errors);
}

static void test_raw(void **state)
{
	struct catalog_binding b;
	struct catalog *c;
	char why[200];

	(void)state;
	c = load("regions = ( { name = \"a.b\"; kind = \"raw\"; path = \"/a\"; writable = true; },\n"
		 "            { name = \"t\"; kind = \"table\"; path = \"/t\"; } );\n"
		 "offloads = ( { name = \"o\"; program = \"raw\"; region = \"a.b\"; regions = { values = "
		 "\"t.heap\"; }; } );\n");
	assert_true(c->regions[0].raw && c->regions[0].writable);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "nodes", true, &b, why, sizeof(why)), 0);
	assert_int_equal(b.region, 0);
	assert_int_equal(b.part, CATALOG_WHOLE);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "values", false, &b, why, sizeof(why)), 0);
	assert_int_equal(b.region, 1);
	assert_int_equal(b.part, CATALOG_HEAP);
	catalog_free(c);
	expect("regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; } );\n"
	       "offloads = ( { name = \"o\"; program = \"raw\"; region = \"a\"; } );\n",
		"c:2: offload \"o\": the program writes to region \"nodes\", but \"a\" is not declared "
		"writable = true\n");
	expect("regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; writable = true; } );\n"
	       "offloads = ( { name = \"o\"; program = \"raw\"; region = \"a\"; } );\n",
		"c:2: offload \"o\": regions \"nodes\" and \"values\" of its program are both \"a\", and it "
		"writes to one of them; bind them to two regions\n");
	expect("regions = ( { name = \"a\"; kind = \"table\"; path = \"/a\"; writable = true; } );\n",
		"c:1: a table is written by its writer alone; only regions of kind \"raw\" can be "
		"\"writable\"\n");
	expect("programs = 1;\n",
		"c:1: \"programs\" has the wrong type; it must be a directory or a list of such\n");
	expect("programs = \"x\";\n",
		"c:1: \"programs\" must be a directory, or a list of them, from the root: \"/...\"\n");
}

#define NETS(text) "tenants = ( { name = \"t\"; networks = [ " text " ]; } );\n"

static int bits(const struct catalog *c, unsigned tenant, const char *address)
{
	uint8_t a[16] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET, address, a + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, address, a), 1);
	return catalog_match(&c->tenants[tenant], a);
}

static void test_tenants(void **state)
{
	struct catalog *c = load("");

	(void)state;
	assert_int_equal(c->ntenants, 1);
	assert_string_equal(c->tenants[0].name, "everyone");
	assert_int_equal(bits(c, 0, "1.2.3.4"), 0);
	assert_true(catalog_allows(&c->tenants[0], 7));
	catalog_free(c);
	put("key", "0123456789abcdef\n");
	assert_int_equal(chmod("key", 0600), 0);
	c = load(REGION "offloads = ( { " OFFLOAD
			"}, { name = \"b\"; program = \"get\"; region = \"users\"; } );\n"
			"tenants = ( { name = \"one\"; networks = [ \"192.0.2.0/24\", \"2001:db8::/33\", "
			"\"192.0.2.128/25\" ];\n"
			" offloads = [ \"b\" ]; sessions = 3; depth = 70000; queue_bytes = \"1M\"; "
			"slot_bytes = \"3K\"; rate = "
			"5000; burst = 5;\n"
			" session_rate = 7; session_burst = 2; connect_rate = 20; connect_burst = 300; "
			"idle_timeout = \"5m\"; bytes_rate = \"1G\"; "
			"session_bytes_rate = \"2K\"; },\n"
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
	assert_false(catalog_allows(&c->tenants[0], 0));
	assert_true(catalog_allows(&c->tenants[0], 1));
	assert_true(catalog_allows(&c->tenants[1], 0));
	assert_int_equal(c->tenants[0].limits.sessions, 3);
	assert_int_equal(c->tenants[0].limits.depth, 70000);
	assert_int_equal(c->tenants[0].limits.queue_bytes, 1 << 20);
	assert_int_equal(c->tenants[0].limits.slot_bytes, 3 << 10);
	assert_int_equal(c->tenants[0].limits.rate, 5000);
	assert_int_equal(c->tenants[0].limits.burst, 5);
	assert_int_equal(c->tenants[0].limits.session_rate, 7);
	assert_int_equal(c->tenants[0].limits.session_burst, 2);
	assert_int_equal(c->tenants[0].limits.idle_timeout, 300000000);
	assert_int_equal(c->tenants[0].limits.connect_rate, 20);
	assert_int_equal(c->tenants[0].limits.connect_burst, 300);
	assert_int_equal(c->tenants[0].limits.bytes_rate, 1 << 30);
	assert_int_equal(c->tenants[0].limits.session_bytes_rate, 2048);
	catalog_free(c);
	expect("tenants = ();\n",
		"c:1: \"tenants\" is empty: nobody could connect; leave it out for everyone\n");
	expect("tenants = ( { } );\n", "c:1: \"name\" is missing in a tenant; set it to a name\n");
	for (size_t i = 0; i < 8; i++) {
		static const char *const bad[] = {
			"", "/8", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/+8", "::/129", "1.2.3/24", "host"};
		char text[128], message[200];

		snprintf(text, sizeof(text), NETS("\"%s\""), bad[i]);
		snprintf(message, sizeof(message),
			"c:1: \"%s\" is no network; write an address and the length of its prefix: "
			"\"192.0.2.0/24\", "
			"\"2001:db8::/32\"\n",
			bad[i]);
		expect(text, message);
	}
	expect(NETS("\"192.0.2.1/24\""),
		"c:1: \"192.0.2.1/24\" has bits of a host; they must be 0 behind the prefix\n");
	expect(NETS(""), "c:1: \"networks\" is empty; leave it out for clients from anywhere\n");
	expect("tenants = ( { name = \"a\"; networks = [ \"10.0.0.0/8\" ]; },\n{ name = \"b\"; networks = [ "
	       "\"10.0.0.0/8\" ]; } );\n",
		"c:2: tenants \"a\" and \"b\" have a network in common, and no key tells them apart\n");
	expect("tenants = ( { name = \"a\"; }, { name = \"a\"; } );\n",
		"c:1: tenant \"a\" is already declared at c:1; names must differ\n");
	expect("tenants = ( { name = \"a\"; offloads = [ \"x\" ]; } );\n",
		"c:1: no offload \"x\"; declare it in \"offloads\"\n");
	expect("tenants = ( { name = \"a\"; rate = 0; sessions = 0; queue_bytes = \"all\"; slot_bytes = 0; } "
	       ");\n",
		"c:1: \"rate\" is 0; it must be 1 to 1000000000\n"
		"c:1: \"sessions\" is 0; it must be 1 to 1000000\n"
		"c:1: \"queue_bytes\" is no size; write it as in \"64M\"\n"
		"c:1: \"slot_bytes\" is no size; write it as in \"64M\"\n");
	expect("tenants = ( { name = \"a\"; connect_burst = 5; } );\n",
		"c:1: \"connect_burst\" means nothing without \"connect_rate\"\n");
	expect("tenants = ( { name = \"a\"; connect_rate = 0; } );\n",
		"c:1: \"connect_rate\" is 0; it must be 1 to 1000000000\n");
	expect("tenants = ( { name = \"a\"; idle_timeout = \"10ms\"; } );\n",
		"c:1: \"idle_timeout\" is \"10ms\"; it must be a time of at least 1 s, as in \"10m\"\n");
	expect("tenants = ( { name = \"a\"; bytes_rate = 0; session_bytes_rate = \"much\"; } );\n",
		"c:1: \"bytes_rate\" is no size; write it as in \"64M\"\n"
		"c:1: \"session_bytes_rate\" is no size; write it as in \"64M\"\n");
	expect("connect_timeout = \"10ms\";\n",
		"c:1: \"connect_timeout\" is \"10ms\"; it must be a time of at least 1 s, as in \"10s\"\n");
	expect("tenants = ( { name = \"a\"; burst = 5; } );\n",
		"c:1: \"burst\" means nothing without \"rate\"\n");
	expect("tenants = ( { name = \"a\"; session_rate = 5001; session_burst = 5; } );\n",
		"c:1: \"session_burst\" is 5; for 5001 requests per second it must be at least 6\n");
}

static void expect_key(const char *key, const char *message)
{
	char text[400];

	snprintf(text, sizeof(text), "tenants = ( { name = \"a\"; key = \"%s\"; } );\n", key);
	expect(text, message);
}

static void test_keys(void **state)
{
	char text[200], message[300];
	struct catalog *c;

	(void)state;
	put("key", "0123456789abcdef\n");
	assert_int_equal(chmod("key", 0600), 0);
	unsetenv("CREDENTIALS_DIRECTORY");
	expect_key("key", "c:1: key \"key\" is relative; give it from the root, or \"credential:NAME\"\n");
	expect_key("/absent", "c:1: key file /absent: No such file or directory\n");
	expect_key("credential:key",
		"c:1: there is no credential key: CREDENTIALS_DIRECTORY is not set; systemd sets it for "
		"LoadCredential= of the service\n");
	setenv("CREDENTIALS_DIRECTORY", dir, 1);
	expect_key("credential:../key", "c:1: \"../key\" is no name of a credential\n");
	c = load("tenants = ( { name = \"a\"; key = \"credential:key\"; }, { name = \"b\"; } );\n");
	assert_true(c->tenants[0].has_key && !c->tenants[1].has_key);
	assert_int_equal(c->tenants[0].key.len, 16);
	catalog_free(c);
	unsetenv("CREDENTIALS_DIRECTORY");
	assert_int_equal(chmod("key", 0604), 0);
	snprintf(text, sizeof(text), "%s/key", dir);
	snprintf(message, sizeof(message), "c:1: key file %s can be read by everybody; chmod o= it\n", text);
	expect_key(text, message);
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
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
