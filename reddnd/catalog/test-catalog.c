/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"

#include "reddnd/catalog/kept.h"
#include "reddnd/catalog/test-conf.h"
#include "util/array.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static void test_full(void **state)
{
	struct catalog *c =
		conf_load("offloads = (\n"
			  " { name = \"get\"; program = \"get\"; region = \"users\"; },\n"
			  " { name = \"get2\"; program = \"get\"; region = \"users\"; mode = \"recycled\"; "
			  "params = { width = 5; };\n"
			  "   depth_max = 7; instances = 16; engine = \"cpu\"; } );\n"
			  "listen = [ \"10.0.0.1:99\", \"[::1]:7\", \"[::]\" ];\n"
			  "device = \"mlx5_0\"; arena = \"1G\"; control = \"/run/x/control\";\n" CONF_REGION);

	assert_int_equal(c->nlisten, 3);
	assert_string_equal(c->listen[0].address, "10.0.0.1");
	assert_int_equal(c->listen[0].port, 99);
	assert_string_equal(c->listen[1].address, "::1");
	assert_int_equal(c->listen[1].port, 7);
	assert_int_equal(c->listen[2].port, 7471);
	assert_int_equal(c->ndevices, 1);
	assert_string_equal(c->devices[0], "mlx5_0");
	assert_false(c->all_devices);
	assert_int_equal(c->arena, 1 << 30);
	assert_string_equal(c->control, "/run/x/control");
	assert_int_equal(c->nregions, 1);
	assert_string_equal(c->regions[0].path, "/d/users");
	assert_string_equal(c->regions[0].where, "c:7");
	assert_int_equal(c->noffloads, 2);
	assert_int_equal(c->offloads[0].mode, CATALOG_MODE_AUTO);
	assert_int_equal(c->offloads[0].nparams, 0);
	assert_int_equal(c->offloads[0].depth_max, 64);
	assert_int_equal(c->offloads[0].instances, 0);
	assert_int_equal(c->offloads[1].mode, CATALOG_RECYCLED);
	assert_int_equal(c->offloads[1].nparams, 1);
	assert_string_equal(c->offloads[1].params[0].name, "width");
	assert_int_equal(c->offloads[1].params[0].value, 5);
	assert_int_equal(c->offloads[1].depth_max, 7);
	assert_int_equal(c->offloads[0].engine, CATALOG_AUTO);
	assert_int_equal(c->offloads[1].engine, CATALOG_CPU);
	assert_int_equal(c->offloads[1].instances, 16);
	assert_int_equal(c->offloads[1].region, 0);
	catalog_free(c);
}

static void test_defaults(void **state)
{
	struct catalog *c = conf_load("");

	assert_int_equal(c->nlisten, 1);
	assert_string_equal(c->listen[0].address, "0.0.0.0");
	assert_int_equal(c->listen[0].port, 7471);
	assert_int_equal(c->ndevices, 0);
	assert_false(c->all_devices);
	assert_int_equal(c->arena, 1ull << 30);
	assert_int_equal(c->nregions + c->noffloads, 0);
	assert_false(c->has_offloads);
	catalog_free(c);
	c = conf_load("offloads = ();\n");
	assert_true(c->has_offloads);
	catalog_free(c);
}

static void test_include(void **state)
{
	struct catalog *c;

	conf_put("more", "\n\n{ name = \"users\"; path = \"/d/users\"; kind = \"table\"; }\n");
	c = conf_load("regions = (\n@include \"more\"\n);\n");
	assert_int_equal(c->nregions, 1);
	catalog_free(c);
	conf_put("more", "\n\n{ name = \"users\"; path = \"users\"; kind = \"table\"; }\n");
	conf_expect("regions = (\n@include \"more\"\n);\n",
		"more:3: \"path\" is \"users\"; it must be an absolute path: \"/...\"\n");
}

/* A configuration that is no text of its own: a directory, a file with a zero byte, a pipe */
static void test_source(void **state)
{
	struct catalog *c;
	char *errors, path[32];
	int ends[2];
	FILE *f;

	errno = ENOENT; /* of something else */
	assert_int_equal(catalog_load(".", &c, &errors), -EINVAL);
	assert_string_equal(errors, ".: cannot be read: Is a directory\n");
	free(errors);
	f = fopen("c", "w");
	assert_non_null(f);
	assert_int_equal(fwrite("arena = 1;\0", 11, 1, f), 1);
	fclose(f);
	assert_int_equal(catalog_load("c", &c, &errors), -EINVAL);
	assert_string_equal(errors, "c: has a zero byte; a configuration is text\n");
	free(errors);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "executors = 3;\n", 15), 15);
	close(ends[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	assert_int_equal(catalog_load(path, &c, &errors), 0);
	free(errors);
	assert_int_equal(c->executors, 3);
	catalog_free(c);
	close(ends[0]);
}

static void test_files(void **state)
{
	struct catalog *c;
	char *errors, message[256];

	assert_int_equal(catalog_load("absent", &c, &errors), -EINVAL);
	assert_string_equal(errors, "absent: cannot be read: No such file or directory\n");
	free(errors);
	conf_expect("@include \"\"\n", "c:1: @include \"\" is no file but a directory\n");
	conf_put("more", "\n\t@include\t\".\"\n");
	conf_expect("device = \"a\";\n @include \"more\"\n",
		"./more:2: @include \".\" is no file but a directory\n");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	conf_expect("@include \"fifo\"\n@include \"/\"\n",
		"c:1: @include \"fifo\" is no file but something else\n"
		"c:2: @include \"/\" is no file but a directory\n");
	snprintf(message, sizeof(message), "c:1: program %s/fifo.rdn cannot be read: it is no regular file\n",
		conf_dir);
	assert_int_equal(rename("fifo", "fifo.rdn"), 0); /* that nobody writes to */
	conf_expect("offloads = ( { name = \"o\"; program = \"fifo\"; } );\n", message);
	assert_int_equal(rename("fifo.rdn", "fifo"), 0);
	conf_put("more", "@include \"more\"\n@include \"more\"\n@include \"more\"\n"); /* ever deeper */
	conf_expect("@include \"more\"\n", "./more:1: @include \"more\" is in the 11th file that includes "
					   "another; does one include itself?\n");
	assert_int_equal(unlink("fifo"), 0);
	conf_put("more", "\n/* @include \"b\" */\n@include \"a\x01\"\n");
	conf_expect("@include \"more\"\n@include \"/absent\"\n",
		"./more:3: @include \"a?\" cannot be read: No such file or directory\n"
		"c:2: @include \"/absent\" cannot be read: No such file or directory\n");
	conf_expect("listen = ;\n", "c:1: syntax error; see libconfig's manual for the syntax\n");
	conf_expect("device = \"a\";\ndevice = \"b\";\n",
		"c:2: duplicate setting name; see libconfig's manual for the syntax\n");
}

static const struct conf_mistake top_mistakes[] = {
	{"lisen = \"0.0.0.0\";\n",
		"c:1: unknown setting \"lisen\" in the configuration; did you mean \"listen\"?\n"},
	{"\nzebra = 3;\n", "c:2: unknown setting \"zebra\" in the configuration; known are listen, device, "
			   "control, metrics, "
			   "connect_timeout, refusal_rate, source_prefix, arena, engine, "
			   "executors, fenced_enables, "
			   "programs, regions, "
			   "offloads, tenants\n"},
	{"listen = 7471;\n",
		"c:1: \"listen\" has the wrong type; it must be \"address:port\" or a list of such\n"},
	{"listen = [];\n", "c:1: \"listen\" is empty; give at least one \"address:port\"\n"},
	{"listen = [ 1 ];\n", "c:1: \"listen\" holds something else than text; write \"address:port\"\n"},
	{"metrics = \"1.2.3.4:7471\";\n",
		"c:1: \"metrics\" is \"1.2.3.4:7471\"; it must be a numeric address and a port: "
		"\"127.0.0.1:9471\"\n"},
	{"device = \"a b\";\n", "c:1: \"device\" is \"a b\"; it must be a name that ibv_devices lists, a "
				"list of such, \"all\", or "
				"\"\"\n"},
	{"device = [];\n", "c:1: \"device\" is empty; name at least one device, or leave it out\n"},
	{"device = [ \"a\", \"\" ];\n", "c:1: a device must be a name that ibv_devices lists\n"},
	{"device = [ 1 ];\n", "c:1: a device must be a name that ibv_devices lists\n"},
	{"device = [ \"a\", \"b\", \"a\" ];\n", "c:1: \"device\" has a twice\n"},
	{"device = [ \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\" ];\n",
		"c:1: too many devices; at most 8\n"},
	{"device = \"a\nb\\x01\";", "c:1: \"device\" is \"a?b?\"; it must be a name that ibv_devices lists, "
				    "a list of such, \"all\", or "
				    "\"\"\n"},
	{"control = \"run/control\";\n", "c:1: \"control\" is \"run/control\"; it must be an absolute path "
					 "of at most 107 characters\n"},
	{"connect_timeout = \"10ms\";\n",
		"c:1: \"connect_timeout\" is \"10ms\"; it must be a time of at least 1 s, as in \"10s\"\n"},
	{"connect_timeout = 10;\n", "c:1: \"connect_timeout\" has the wrong type; it must be a time of at "
				    "least 1 s, as in \"10s\"\n"},
	{"connect_timeout = \"99999999999h\";\n",
		"c:1: \"connect_timeout\" is \"99999999999h\"; it must be at most 720h\n"},
	{"fenced_enables = 1;\n", "c:1: \"fenced_enables\" has the wrong type; it must be true or false\n"},
	{"refusal_rate = 0;\n", "c:1: \"refusal_rate\" is 0; it must be a number from 1 to 1000000\n"},
	{"source_prefix = 129;\n",
		"c:1: \"source_prefix\" is 129; it must be a number of bits from 32 to 128\n"},
	{"source_prefix = \"64\";\n",
		"c:1: \"source_prefix\" has the wrong type; it must be a number of bits from 32 "
		"to 128\n"},
	{"engine = \"gpu\";\n", "c:1: \"engine\" is \"gpu\"; it must be \"nic\", \"cpu\" or \"auto\"\n"},
	{"programs = 1;\n",
		"c:1: \"programs\" has the wrong type; it must be a directory or a list of such\n"},
	{"programs = \"x\";\n",
		"c:1: \"programs\" must be an absolute path of a directory, or a list of them\n"},
	{"regions = { };\n",
		"c:1: \"regions\" has the wrong type; it must be a list of groups: ( { ... }, { ... } )\n"},
	{"tenants = ();\n", "c:1: \"tenants\" is empty: nobody could connect; leave it out for everyone\n"},
};

static void test_top(void **state)
{
	conf_expect_each(top_mistakes, COUNT(top_mistakes));
}

static void test_listen(void **state)
{
	static const char *const bad[] = {
		"host:1", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:", "1.2.3.4:1x", "::1", "[::1", "[1.2.3.4]"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		char text[64], message[160];

		snprintf(text, sizeof(text), "listen = \"%s\";", bad[i]);
		snprintf(message, sizeof(message),
			"c:1: cannot listen on \"%s\"; write a numeric address and a port: \"0.0.0.0:7471\", "
			"\"[::]:7471\"\n",
			bad[i]);
		conf_expect(text, message);
	}
}

/* Both wildcards work side by side, as the hint has them */
static void test_listen_together(void **state)
{
	static const struct conf_mistake bad[] = {
		{"listen = [\"127.0.0.1:7471\", \"127.0.0.1\"];\n",
			"c:1: \"listen\" has \"127.0.0.1\" beside 127.0.0.1 port 7471, which takes its "
			"place; leave one out\n"},
		{"listen = [\"[::1]:5\", \"[0:0::1]:5\"];\n",
			"c:1: \"listen\" has \"[0:0::1]:5\" beside ::1 port 5, which takes its place; leave "
			"one out\n"},
		{"listen = [\"0.0.0.0\", \"127.0.0.1:7471\"];\n",
			"c:1: \"listen\" has \"127.0.0.1:7471\" beside 0.0.0.0 port 7471, which takes its "
			"place; leave one out\n"},
		{"listen = [\"[fe80::1%eth0]:5\", \"[::]:5\"];\n",
			"c:1: \"listen\" has \"[::]:5\" beside fe80::1%eth0 port 5, which takes its place; "
			"leave one out\n"},
		{"listen = \"[::ffff:127.0.0.1]:5\";\n",
			"c:1: cannot listen on \"[::ffff:127.0.0.1]:5\"; write an IPv4 address as such: "
			"\"127.0.0.1:7471\"\n"},
		{"listen = [\"255.255.255.255\", \"[ff02::1]:5\"];\n",
			"c:1: cannot listen on \"255.255.255.255\"; write an address of this machine; nobody "
			"can "
			"listen on one of a group or for broadcasts\n"
			"c:1: cannot listen on \"[ff02::1]:5\"; write an address of this machine; nobody can "
			"listen on one of a group or for broadcasts\n"},
		{"listen = \"224.0.0.1:5\";\n",
			"c:1: cannot listen on \"224.0.0.1:5\"; write an address of this machine; nobody can "
			"listen on one of a group or for broadcasts\n"},
		{"listen = \"[fe80::1]:5\";\n", "c:1: cannot listen on \"[fe80::1]:5\"; write a link-local "
						"address with its interface: "
						"\"[fe80::1%eth0]:7471\"\n"},
		{"listen = \"[fe80::1%]:5\";\n", "c:1: cannot listen on \"[fe80::1%]:5\"; write a link-local "
						 "address with its interface: "
						 "\"[fe80::1%eth0]:7471\"\n"},
		{"listen = \"[::1%lo]:5\";\n", "c:1: cannot listen on \"[::1%lo]:5\"; write it without %; "
					       "only link-local addresses have "
					       "an interface\n"},
	};
	struct catalog *c =
		conf_load("listen = [\"0.0.0.0:7471\", \"[::]:7471\", \"127.0.0.1:5\", "
			  "\"[::1]:5\", \"[fe80::1%eth0]:5\", \"[fe80::1%eth1]:5\", \"[fe80::2%eth0]:5\"];\n"
			  "metrics = \"[fe80::1%eth0]:9471\";\n");

	assert_int_equal(c->nlisten, 7);
	assert_string_equal(c->listen[4].address, "fe80::1%eth0");
	assert_string_equal(c->metrics.address, "fe80::1%eth0");
	catalog_free(c);
	conf_expect_each(bad, COUNT(bad));
}

static void test_sizes(void **state)
{
	static const char *const bad[] = {"\"1M\"", "\"65G\"", "\"many\"", "4096", "-1"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		char text[64], message[160];

		snprintf(text, sizeof(text), "arena = %s;", bad[i]);
		snprintf(message, sizeof(message),
			"c:1: \"arena\" is %s; it must be a size from 4M to 64G, as in \"256M\"\n", bad[i]);
		conf_expect(text, message);
	}
}

static const struct conf_mistake region_mistakes[] = {
	{"regions = ( 5 );\n", "c:1: entry 1 of \"regions\" is no group; write { name = \"...\"; ... }\n"},
	{"regions = ( { kind = \"table\"; } );\n",
		"c:1: \"name\" is missing in a region; set it to " CONF_A_NAME "\n"
		"c:1: \"path\" is missing in a region; set it to an absolute path: \"/...\", or set "
		"\"handover\" to true\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; handover = true; path = \"/a\"; owner = 0; } );\n",
		"c:1: a region whose file is handed over has no \"path\"; leave one of the two out\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; handover = true; } );\n",
		"c:1: \"owner\" is missing in a region whose file is handed over; set it to the name or "
		"number of "
		"the user who may do that\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; size_max = \"1M\"; } );\n",
		"c:1: only a region whose file is handed over has \"size_max\"; leave it out, or set "
		"\"handover\" to true\n"},
	{"regions = ( { name = \"a/b\"; path = \"/x\"; kind = \"heap\"; } );\n",
		"c:1: \"name\" is \"a/b\"; it must be " CONF_A_NAME "\n"
		"c:1: \"kind\" is \"heap\"; it must be \"table\", \"store\", \"raw\" or \"memcached\"\n"},
	{CONF_REGION "regionz = 1;\n",
		"c:2: unknown setting \"regionz\" in the configuration; did you mean \"regions\"?\n"},
	{"regions = ( { name = \"u\"; path = \"/a\"; kind = \"table\"; },\n"
	 "            { name = \"u\"; path = \"/b\"; kind = \"table\"; } );\n",
		"c:2: region \"u\" is already declared at c:1; names must differ\n"},
	{"regions = ( { name = \"u\"; pth = \"/a\"; path = \"/a\"; kind = 1; } );\n",
		"c:1: unknown setting \"pth\" in a region; did you mean \"path\"?\n"
		"c:1: \"kind\" has the wrong type; it must be \"table\", \"store\", \"raw\" or "
		"\"memcached\"\n"},
	{"regions = ( { name = \"a\"; kind = \"table\"; path = \"/a\"; writable = true; } );\n",
		"c:1: a table is written by its writer alone; only regions of kind \"raw\" can be "
		"\"writable\"\n"},
	{"regions = ( { name = \"a\"; kind = \"table\"; path = \"/a\"; offset = 4096; } );\n",
		"c:1: a table is the whole of its file; only regions of kind \"raw\" can have \"offset\" and "
		"\"length\"\n"},
	{"regions = ( { name = \"a\"; kind = \"store\"; path = \"/a\"; writable = true; } );\n",
		"c:1: a store is the whole of a file that reddnd writes to, and programs that publish in it; "
		"leave "
		"out \"handover\", \"writable\", \"offset\" and \"length\"\n"},
	{"regions = ( { name = \"a\"; kind = \"store\"; handover = true; owner = 0; length = 1; } );\n",
		"c:1: a store is the whole of a file that reddnd writes to, and programs that publish in it; "
		"leave "
		"out \"handover\", \"writable\", \"offset\" and \"length\"\n"},
	{"regions = ( { name = \"a\"; kind = \"store\"; path = \"/a\"; server = \"h:1\"; } );\n",
		"c:1: only a region of kind \"memcached\" has \"server\" and \"stale_max\"; leave them "
		"out\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; writable = true; offset = 4; } );\n",
		"c:1: \"offset\" of a region that is \"writable\" is a multiple of 8, because programs "
		"compare and "
		"add in aligned words\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; length = 0; offset = -1; } );\n",
		"c:1: \"length\" is 0; it must be a number of bytes from 1 on, as in 4096 or \"64K\"\n"
		"c:1: \"offset\" is -1; it must be a number of bytes, as in 4096 or \"64K\"\n"},
	{"regions = ( { name = \"a\"; kind = \"memcached\"; path = \"/a\"; writable = true; } );\n",
		"c:1: \"server\" is missing in a region of kind \"memcached\"; set it to the address of a "
		"memcached, "
		"\"HOST:PORT\" or the path of its socket\n"
		"c:1: a region of kind \"memcached\" is the file that memcached makes, which it alone writes "
		"to; leave "
		"out \"handover\", \"writable\", \"offset\" and \"length\"\n"},
	{"regions = ( { name = \"a\"; kind = \"memcached\"; path = \"/a\"; server = \"here\"; stale_max = "
	 "\"5ms\"; } );\n",
		"c:1: \"server\" is \"here\"; it must be the address of a memcached, \"HOST:PORT\" or the "
		"path of its "
		"socket\n"
		"c:1: \"stale_max\" is \"5ms\"; it must be a time of at least 1 s, as in \"10s\"\n"},
	{"regions = ( { name = \"a\"; kind = \"memcached\"; path = \"/a\"; server = \"h:99999\"; } );\n",
		"c:1: \"server\" is \"h:99999\"; it must be the address of a memcached, \"HOST:PORT\" or the "
		"path of its socket\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; server = \"[::1]:11211\"; } );\n",
		"c:1: only a region of kind \"memcached\" has \"server\" and \"stale_max\"; leave them "
		"out\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; owner = \"no one\"; } );\n",
		"c:1: there is no user \"no one\"; \"owner\" is the name or number of the user whom the file "
		"of the region belongs to\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; owner = -1; } );\n",
		"c:1: \"owner\" is -1; it must be the name or number of a user\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; owner = true; } );\n",
		"c:1: \"owner\" has the wrong type; it must be the name or number of a user\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; } );\n"
	 "offloads = ( { name = \"o\"; program = \"raw\"; region = \"a\"; } );\n",
		"c:2: offload \"o\": the program writes to region \"nodes\", but \"a\" is not declared "
		"writable = true\n"},
	{"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; writable = true; } );\n"
	 "offloads = ( { name = \"o\"; program = \"raw\"; region = \"a\"; } );\n",
		"c:2: offload \"o\": regions \"nodes\" and \"values\" of its program are both \"a\", and it "
		"writes to one of them; bind them to two regions\n"},
};

static void test_regions(void **state)
{
	conf_expect_each(region_mistakes, COUNT(region_mistakes));
}

/* What stands in the group of an offload, and the message about it */
static void expect_offloads(const struct conf_mistake *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[1024], message[1024];

		snprintf(text, sizeof(text), CONF_REGION "offloads = ( { %s } );\n", m[i].text);
		snprintf(message, sizeof(message), "c:2: %s\n", m[i].errors);
		conf_expect(text, message);
	}
}

static const struct conf_mistake offload_mistakes[] = {
	{"name = \"get\";",
		"\"program\" is missing in an offload; set it to the name of a program, or \"region\" "
		"to that of a table or a store"},
	{"name = \"get\"; program = \"get\"; region = \"user\";",
		"no region \"user\"; did you mean \"users\"?"},
	{"name = \"get\"; program = \"get\"; region = \"zzz\";",
		"no region \"zzz\"; declare it in \"regions\""},
	{CONF_OFFLOAD "mode = \"fast\";",
		"\"mode\" is \"fast\"; it must be \"recycled\", \"unrolled\" or \"auto\""},
	{CONF_OFFLOAD "engine = \"\";", "\"engine\" is \"\"; it must be \"nic\", \"cpu\" or \"auto\""},
	{CONF_OFFLOAD "depth_max = 0;", "\"depth_max\" is 0; it must be a number of requests from 1 to 4096"},
	{CONF_OFFLOAD "depth_max = 4097;",
		"\"depth_max\" is 4097; it must be a number of requests from 1 to 4096"},
	{CONF_OFFLOAD "depth_max = 8589934592L;",
		"\"depth_max\" is 8589934592; it must be a number of requests from 1 to 4096"},
	{CONF_OFFLOAD "depth_max = -1;",
		"\"depth_max\" is -1; it must be a number of requests from 1 to 4096"},
	{CONF_OFFLOAD "depth_max = \"8\";",
		"\"depth_max\" has the wrong type; it must be a number of requests from 1 to 4096"},
	{CONF_OFFLOAD "instances = 100;",
		"\"instances\" is 100; it must be 0 or a power of two from 4 to 32768"},
	{CONF_OFFLOAD "instances = 2;", "\"instances\" is 2; it must be 0 or a power of two from 4 to 32768"},
	{CONF_OFFLOAD "instances = 4294967296L;",
		"\"instances\" is 4294967296; it must be 0 or a power of two from 4 to 32768"},
	{CONF_OFFLOAD "depth_max = 33; instances = 64;",
		"\"instances\" is 64; it must be at least twice \"depth_max\" (33)"},
	{CONF_OFFLOAD "loop_rate = 999;",
		"\"loop_rate\" is 999; it must be a number of WQEs per second from 1000 to 100000000"},
	{CONF_OFFLOAD "depth = 3;", "unknown setting \"depth\" in an offload; did you mean \"depth_max\"?"},
	{CONF_OFFLOAD "time_budget = \"9ms\";",
		"\"time_budget\" is \"9ms\"; it must be a time of at least 10 ms, "
		"as in \"250ms\" or \"2s\""},
	{CONF_OFFLOAD "loop_budget = \"1025G\";",
		"\"loop_budget\" is \"1025G\"; it must be a number of iterations from 1 to \"1024G\", as in "
		"10000 or \"1M\""},
	{CONF_OFFLOAD "on_error = { step = \"throttle:1\"; };",
		"\"step\" must be \"log\", \"throttle:RATE:TIME\", \"terminate\" or \"ban:TIME\", as in "
		"\"throttle:100:60s\" or \"ban:60s\""},
	{CONF_OFFLOAD "on_error = { steps = \"log\"; };",
		"there is no verdict \"steps\"; there are step, queue, "
		"request, rnr, unreachable, time and loop"},
	{CONF_OFFLOAD "}, { " CONF_OFFLOAD, "offload \"get\" is already declared at c:2; names must differ"},
	{"name = \"a23456789012345678901234\"; program = \"get\"; region = \"users\";",
		"\"name\" is \"a23456789012345678901234\"; it must be " CONF_A_NAME},
};

static void test_offloads(void **state)
{
	expect_offloads(offload_mistakes, COUNT(offload_mistakes));
}

/* What the daemon would refuse when it opens the offload on a device. The compiler decides on the numbers */
static void test_budgets(void **state)
{
	static const char fewest[] =
		"c:2: offload \"o\": a request takes [1-9]* WQEs, \"wqe_budget\" is 2, on the "
		"device that needs the fewest\n";
	const struct conf_mistake m[] = {
		{"program = \"get\"; wqe_budget = 2;", fewest},
		{"program = \"get\"; wqe_budget = 2; engine = \"cpu\";", fewest},
		{"program = \"look\"; time_budget = \"1s\"; wqe_budget = 100;",
			"c:2: offload \"o\": its loop has no bound, so a \"wqe_budget\" needs a "
			"\"loop_budget\"\n"},
		{"program = \"look\"; loop_budget = 1000; wqe_budget = 2;", fewest},
	};
	struct catalog *catalog;
	char text[300], *errors;

	conf_put("look.rdn",
		"program look\nendless\nstruct element { value : le48, _ : bytes 2 }\n"
		"region buckets of element\narg x : u48\nvar want : le48\nvar at : le64\n"
		"mov x -> want\nmov 0 -> at\nloop {\n read buckets @ at as element { value -> a }\n"
		" add at by sizeof(element)\n if a == want {\n  break\n }\n}\n"
		"write_imm at -> slot @ 0\n");
	for (size_t i = 0; i < COUNT(m); i++) {
		snprintf(text, sizeof(text),
			CONF_REGION "offloads = ( { name = \"o\"; region = \"users\"; %s } );\n", m[i].text);
		conf_put("c", text);
		assert_int_equal(catalog_load("c", &catalog, &errors), -EINVAL);
		assert_int_equal(fnmatch(m[i].errors, errors, 0), 0);
		free(errors);
	}
	catalog_free(
		conf_load(CONF_REGION "offloads = ( { name = \"o\"; region = \"users\"; program = \"look\"; "
				      "loop_budget = 10; wqe_budget = 10000; } );\n"));
}

static const struct conf_mistake program_mistakes[] = {
	{"name = \"o\"; program = \"/absent.rdn\"; region = \"users\";", "there is no program /absent.rdn"},
	{"name = \"o\"; program = \"../get\"; region = \"users\";",
		"\"program\" is \"../get\"; it must be the name of a program in the directories of "
		"\"programs\", or an absolute path"},
	{"name = \"o\"; program = \"get\";",
		"offload \"o\": region \"buckets\" of the program is bound to nothing; "
		"set regions = { buckets = \"...\"; }\n"
		"c:2: offload \"o\": region \"heap\" of the program is bound to nothing; "
		"set regions = { heap = \"...\"; }"},
	{"name = \"o\"; program = \"get\"; regions = { buckets = \"users.buckets\"; heap = \"users.heap\"; "
	 "heaps = \"users.heap\"; };",
		"offload \"o\": its program has no region \"heaps\""},
	{"name = \"o\"; program = \"get\"; region = \"users\"; regions = { heap = \"users\"; };",
		"region \"users\" is a table; name a part of it: \"NAME.buckets\", \"NAME.heap\" or "
		"\"NAME.live\""},
	{"name = \"o\"; program = \"get\"; region = \"users\"; regions = { heap = \"user.heap\"; };",
		"no region \"user\"; did you mean \"users\"?"},
	{"name = \"o\"; program = \"raw\"; region = \"users\";",
		"offload \"o\": region \"nodes\" of the program is no part of table \"users\", which has "
		"buckets, heap and live\n"
		"c:2: offload \"o\": region \"values\" of the program is no part of table \"users\", which "
		"has buckets, heap and live"},
	{"name = \"o\"; program = \"get\"; region = \"users\"; params = { width = 1.5; };",
		"offload \"o\": param \"width\" must be set to a number, as in 4 or \"64K\""},
	{"name = \"o\"; program = \"get\"; region = \"users\"; loop_budget = 1;",
		"offload \"o\": all loops of its program have bounds; \"loop_budget\" is for others"},
};

static void test_programs(void **state)
{
	struct conf_mistake absent = {"name = \"o\"; program = \"put\"; region = \"users\";", NULL};
	struct catalog *catalog;
	char text[200], *errors;

	expect_offloads(program_mistakes, COUNT(program_mistakes));
	snprintf(text, sizeof(text), "there is no program put.rdn in %s; see \"programs\"", conf_dir);
	absent.errors = text;
	expect_offloads(&absent, 1);
	snprintf(text, sizeof(text),
		"programs = \"%s\"; offloads = ( { name = \"o\"; program = \"wrong\"; } );", conf_dir);
	conf_put("c", text);
	assert_int_equal(catalog_load("c", &catalog, &errors), -EINVAL);
	assert_non_null(strstr(errors, "c:1: offload \"o\": its program has mistakes\n"));
	assert_non_null(strstr(errors, "wrong.rdn:3:11: error: "));
	free(errors);
}

static const char publishing_regions[] = "regions = ( { name = \"s\"; kind = \"store\"; path = \"/s\"; }, { "
					 "name = \"u\"; kind = \"store\"; path = "
					 "\"/u\"; }, { name = \"t\"; kind = \"table\"; path = \"/t\"; }, { "
					 "name = \"r\"; kind = \"raw\"; path = "
					 "\"/r\"; writable = true; } );\n";

/* Only a store has extents, and keeps account of what becomes of them */
static void test_publishing_programs(void **state)
{
	static const struct conf_mistake m[] = {
		{"program = \"publish\"; regions = { words = \"r\"; heap = \"s.heap\"; };",
			"its program publishes in \"words\", so that must be the buckets of a region of kind "
			"\"store\"; \"r\" is of kind \"raw\""},
		{"program = \"publish\"; regions = { words = \"s.live\"; heap = \"s.heap\"; };",
			"its program publishes in \"words\", so that must be the buckets of a region of kind "
			"\"store\"; \"s\" is of kind \"store\""},
		{"program = \"publish\"; regions = { words = \"s.buckets\"; heap = \"u.heap\"; };",
			"its program publishes in \"s.buckets\", so \"heap\", which its payload is in, must "
			"be "
			"\"s.heap\""},
		{"program = \"publish\"; regions = { words = \"s.buckets\"; heap = \"s.live\"; };",
			"its program publishes in \"s.buckets\", so \"heap\", which its payload is in, must "
			"be "
			"\"s.heap\""},
		{"program = \"publish\"; regions = { words = \"t.buckets\"; heap = \"t.heap\"; };",
			"the program writes to region \"words\", but \"t\" is not declared writable = true"},
		{"program = \"publish\"; engine = \"cpu\"; regions = { words = \"s.buckets\"; heap = "
		 "\"s.heap\"; };",
			"its program publishes, which only a NIC can; set \"engine\" to \"nic\""},
		{"program = \"publish\"; regions = { words = \"s.buckets\"; heap = \"s.buckets\"; };",
			"regions \"words\" and \"heap\" of its program are both \"s\", and it writes to one "
			"of "
			"them; bind them to two regions"},
		{"program = \"retire\"; regions = { words = \"s.buckets\"; heap = \"s.heap\"; };",
			"its program publishes a constant locator in \"words\", and a store keeps account of "
			"its "
			"extents alone; a \"payload\" is published in one, also one of no bytes"},
		{"program = \"change\"; regions = { words = \"s.buckets\"; };",
			"the program writes to region \"words\", and in a store, as \"s\" is, only a publish "
			"changes something"},
		{"program = \"no-put\"; region = \"t\";",
			"its program has shape put and needs a region of kind \"store\"; \"t\" is of kind "
			"\"table\""},
		{"program = \"put\"; regions = { buckets = \"s.buckets\"; heap = \"u.heap\"; };",
			"its program has shape put, so its region \"heap\" must be \"s.heap\"; it is "
			"\"u.heap\""},
		{"program = \"no-put\"; region = \"s\";", "its program has shape put, and publishes nothing"},
		{"program = \"nowhere\"; regions = { a = \"s.heap\"; };",
			"its program has shape put, and none of its regions is the buckets of a store"},
	};
	static const char rest[] = "var was : le64\nstruct bucket { loc : le64, mark : le56 }\n"
				   "read %s as bucket { loc -> pub.compare, mark -> mark }\n"
				   "if mark == 0xa5 << 48 {\n  pub: cas %s as le64 : 0 -> %s, was -> was\n}\n"
				   "write_imm was -> slot\n";
	char text[800], message[300], end[320];

	snprintf(end, sizeof(end), rest, "words", "words", "record");
	snprintf(text, sizeof(text),
		"program publish\nregion words writable\nregion heap\npayload record : max 4K in heap\n%s",
		end);
	conf_put("publish.rdn", text);
	snprintf(end, sizeof(end), rest, "words", "words", "0x080000 in heap");
	snprintf(text, sizeof(text), "program retire\nregion words writable\nregion heap\n%s", end);
	conf_put("retire.rdn", text);
	conf_put("change.rdn", "program change\nregion words writable\ncas words as le64 : 0 -> 1\n"
			       "write_imm words -> slot, 8 bytes\n");
	snprintf(end, sizeof(end), rest, "buckets", "buckets", "record");
	snprintf(text, sizeof(text),
		"program put\nshape put\nregion buckets writable\nregion heap\npayload record : max 4K in "
		"heap\n%s",
		end);
	conf_put("put.rdn", text);
	conf_put("no-put.rdn",
		"program no_put\nshape put\nregion buckets\nwrite_imm buckets -> slot, 8 bytes\n");
	conf_put("nowhere.rdn", "program nowhere\nshape put\nregion a\nwrite_imm a -> slot, 8 bytes\n");
	for (size_t i = 0; i < COUNT(m); i++) {
		snprintf(text, sizeof(text), "%soffloads = ( { name = \"o\"; %s } );\n", publishing_regions,
			m[i].text);
		snprintf(message, sizeof(message), "c:2: offload \"o\": %s\n", m[i].errors);
		conf_expect(text, message);
	}
}

/* What a store takes: its parts, read by any program, and published in by some */
static void test_stores(void **state)
{
	struct catalog_binding b;
	struct catalog *c;
	char text[800], why[200];

	snprintf(text, sizeof(text),
		"%soffloads = ( { name = \"s\"; program = \"get\"; region = \"s\"; },\n"
		"{ name = \"s.put\"; program = \"put\"; region = \"s\"; },\n"
		"{ name = \"o\"; program = \"publish\"; engine = \"nic\"; regions = { words = \"u.buckets\"; "
		"heap = \"u.heap\"; }; } );\n",
		publishing_regions);
	c = conf_load(text);
	assert_true(c->regions[0].store && !c->regions[0].raw && !c->regions[0].memcached);
	assert_false(c->regions[0].writable || c->regions[2].store);
	assert_string_equal(c->offloads[1].name, "s.put");
	assert_int_equal(catalog_bind(c, &c->offloads[1], "buckets", true, &b, why, sizeof(why)), 0);
	assert_int_equal(b.region, 0);
	assert_int_equal(b.part, CATALOG_BUCKETS);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "items", false, &b, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "region \"items\" of the program is no part of store \"s\", which has "
				 "buckets, heap and live");
	catalog_free(c);
}

/* An offload of a store has a part for its puts, which has what it does not share with the gets */
static void test_puts(void **state)
{
	static const struct conf_mistake m[] = {
		{"name = \"r\"; region = \"r\";",
			"\"program\" is missing in an offload; set it to the name of "
			"a program, or \"region\" to that of a table or a "
			"store"},
		{"name = \"t\"; region = \"t\"; put = { depth_max = 4; };",
			"\"put\" is for offloads of a store"},
		{"name = \"t\"; region = \"t\"; put_if = {};", "\"put_if\" is for offloads of a store"},
		{"name = \"s\"; region = \"s\"; put_if = { keys = [1]; };",
			"unknown setting \"keys\" in a part of an offload; known are params, depth_max, "
			"instances, "
			"wqe_budget, time_budget, on_error"},
		{"name = \"s\"; program = \"hash-get\"; region = \"s\"; put = { depth_max = 4; };",
			"offload \"s\": \"put\" means nothing beside \"program\""},
		{"name = \"s\"; region = \"s\"; put = { mode = \"recycled\"; };",
			"unknown setting \"mode\" in a part of an offload; known are params, depth_max, "
			"instances, "
			"wqe_budget, time_budget, on_error"},
		{"name = \"s\"; region = \"s\"; put = { params = { most = \"x\"; }; };",
			"offload \"s.put\": param \"most\" must be set to a number, as in 4 or \"64K\""},
		{"name = \"twenty-characters-20\"; region = \"s\";",
			"offload \"twenty-characters-20\": \"twenty-characters-20.put\" must be a name, too: "
			"its "
			"own has at most 19 characters"},
		{"name = \"s\"; region = \"s\"; }, { name = \"s.put\"; program = \"store-put\"; region = "
		 "\"s\";",
			"offload \"s.put\" is already declared at c:3; names must differ"},
	};
	struct catalog *c, *again;
	char text[800], *errors;
	int fd;

	snprintf(text, sizeof(text),
		"%soffloads = ( { name = \"s\"; region = \"s\"; mode = \"recycled\"; engine = \"cpu\"; "
		"depth_max = 8; instances = 32;\n"
		"time_budget = \"1s\"; on_error = \"log\"; params = { probes = 1; }; put = { depth_max = 4; "
		"params = { most = 128; }; }; },\n"
		"{ name = \"u\"; region = \"u\"; } );\n"
		"tenants = ( { name = \"all\"; }, { name = \"readers\"; networks = [ \"192.0.2.0/24\" ]; "
		"offloads = [ \"s\", \"u.put\" ]; } );\n",
		publishing_regions);
	c = conf_load(text);
	assert_int_equal(c->noffloads, 4);
	assert_string_equal(c->offloads[0].name, "s");
	assert_true(strstr(c->offloads[0].path, "/hash-get.rdn") && c->offloads[0].mode == CATALOG_RECYCLED);
	assert_string_equal(c->offloads[1].name, "s.put");
	assert_true(
		strstr(c->offloads[1].path, "/store-put.rdn") && c->offloads[1].mode == CATALOG_MODE_AUTO);
	assert_int_equal(c->offloads[1].engine, CATALOG_NIC);
	assert_int_equal(c->offloads[1].depth_max, 4);
	assert_int_equal(c->offloads[1].instances, 0);
	assert_int_equal(c->offloads[1].time_budget, 1000000);
	assert_int_equal(c->offloads[1].on_error[0].action, VERDICT_LOG);
	assert_int_equal(c->offloads[1].nparams, 1);
	assert_int_equal(c->offloads[1].params[0].value, 128);
	assert_string_equal(c->offloads[2].name, "u");
	assert_int_equal(c->offloads[2].entry, 1);
	assert_string_equal(c->offloads[3].name, "u.put");
	assert_int_equal(c->offloads[3].entry, 1);
	assert_int_equal(c->offloads[3].depth_max, 64);
	assert_true(catalog_allows(&c->tenants[0], 1) && catalog_allows(&c->tenants[1], 0));
	assert_false(catalog_allows(&c->tenants[1], 1) || catalog_allows(&c->tenants[1], 2));
	assert_true(catalog_allows(&c->tenants[1], 3));
	assert_int_equal(catalog_keep(c, &fd), 0);
	catalog_free(c);
	assert_int_equal(catalog_restore(fd, &again, &errors), 0);
	free(errors);
	close(fd);
	assert_int_equal(again->noffloads, 4);
	assert_true(strstr(again->offloads[1].path, "/store-put.rdn") &&
		    strstr(again->offloads[2].path, "/hash-get.rdn"));
	catalog_free(again);
	for (size_t i = 0; i < COUNT(m); i++) {
		char message[600];

		snprintf(text, sizeof(text), "%soffloads = (\n{ %s } );\n", publishing_regions, m[i].text);
		snprintf(message, sizeof(message), "c:3: %s\n", m[i].errors);
		conf_expect(text, message);
	}
}

/* Parts for several keys, each with one number of them: named by that, and by nothing else that a whole has
 */
static void test_parts(void **state)
{
#define NUMBERS(of, least, most)                                                                             \
	"\"" of "\" of offload \"t\" has numbers of keys from " least " to " most                            \
	", the smallest first, and an offload has 4 such parts in all"
	static const struct conf_mistake m[] = {
		{"program = \"hash-get\"; mget = { keys = [4]; };",
			"offload \"t\": \"mget\" means nothing beside \"program\""},
		{"mget = { keys = [1]; };", NUMBERS("mget", "2", "16")},
		{"mget = { keys = [4, 17]; };", NUMBERS("mget", "2", "16")},
		{"exists = { keys = [8, 8]; };", NUMBERS("exists", "1", "64")},
		{"exists = { keys = [0]; };", NUMBERS("exists", "1", "64")},
		{"exists_exact = { keys = [17]; };", NUMBERS("exists_exact", "1", "16")},
		{"exists = { keys = [8]; }; exists_exact = { keys = [8]; };",
			"offload \"t.exists8\" is already declared at c:2; names must differ"},
		{"exists = { keys = [\"8\"]; };", NUMBERS("exists", "1", "64")},
		{"mget = { keys = [2, 4]; }; exists = { keys = [1, 2, 3]; };", NUMBERS("exists", "1", "64")},
		{"exists = { depth_max = 4; };",
			"\"exists\" of offload \"t\" has no \"keys\"; set it to a list, as [4, 16]"},
		{"mget = { keys = []; };",
			"\"mget\" of offload \"t\" has no \"keys\"; set it to a list, as [4, 16]"},
		{"mget = { keys = [4]; params = { keys = 8; }; };",
			"offload \"t.mget4\": its name sets param \"keys\""},
		{"engine = \"nic\"; exists = { keys = [64]; cpu_above = 32; };",
			"\"cpu_above\" is for offloads whose \"engine\" is \"auto\""},
		{"exists = { keys = [64]; region = \"t\"; };",
			"unknown setting \"region\" in a part of an offload; known are params, depth_max, "
			"instances, wqe_budget, time_budget, on_error, keys, cpu_above"},
		{"keys = [4];",
			"unknown setting \"keys\" in an offload; known are name, program, region, regions, "
			"mode, engine, loop_budget, loop_rate, put, put_if, mget, exists, exists_exact, "
			"params, "
			"depth_max, instances, wqe_budget, time_budget, on_error"},
	};
	static const struct {
		const char *name, *program;
		uint8_t part, engine;
		uint16_t depth_max;
		uint32_t cpu_above;
	} parts[] = {
		{"t", "/hash-get.rdn", 0, CATALOG_AUTO, 8, 0},
		{"t.mget4", "/hash-mget.rdn", 4, CATALOG_AUTO, 2, 0},
		{"t.mget16", "/hash-mget.rdn", 16, CATALOG_AUTO, 2, 0},
		{"t.exists40", "/hash-exists.rdn", 0x80 | 40, CATALOG_AUTO, 8, 0},
		{"t.exists64", "/hash-exists.rdn", 0x80 | 64, CATALOG_CPU, 8, 40},
		{"s", "/hash-get.rdn", 0, CATALOG_NIC, 64, 0},
		{"s.put", "/store-put.rdn", 0, CATALOG_NIC, 64, 0},
		{"s.put_if", "/store-put-if.rdn", 0x80, CATALOG_NIC, 2, 0},
		{"s.exists64", "/hash-exists.rdn", 0x80 | 64, CATALOG_NIC, 64, 0},
		{"s.exists1", "/hash-exists-exact.rdn", 0x80 | 1, CATALOG_NIC, 64, 0},
	};
	struct catalog *c;
	char text[1000];

	snprintf(text, sizeof(text),
		"%soffloads = ( { name = \"t\"; region = \"t\"; mode = \"recycled\"; depth_max = 8; on_error "
		"= "
		"\"log\"; exists = { keys = [40, 64]; cpu_above = 40; }; mget = { keys = [4, 16]; depth_max "
		"= 2; }; "
		"},\n"
		"{ name = \"s\"; region = \"s\"; engine = \"nic\"; exists = { keys = [64]; }; "
		"exists_exact = { keys = [1]; }; "
		"put_if = { depth_max = 2; }; } );\n"
		"tenants = ( { name = \"gets\"; offloads = [ \"t\", \"t.mget16\" ]; } );\n",
		publishing_regions);
	c = conf_load(text);
	assert_int_equal(c->noffloads, COUNT(parts));
	for (unsigned i = 0; i < COUNT(parts); i++) {
		const struct catalog_offload *o = &c->offloads[i];

		assert_string_equal(o->name, parts[i].name);
		assert_non_null(strstr(o->path, parts[i].program));
		assert_int_equal(o->part, parts[i].part);
		assert_int_equal(o->engine, parts[i].engine);
		assert_int_equal(o->depth_max, parts[i].depth_max);
		assert_int_equal(o->cpu_above, parts[i].cpu_above);
		assert_int_equal(o->entry, i >= 5);
		assert_int_equal(o->mode, i < 5 ? CATALOG_RECYCLED : CATALOG_MODE_AUTO);
		assert_int_equal(o->on_error[0].action, i < 5 ? VERDICT_LOG : VERDICT_TERMINATE);
		assert_int_equal(o->nparams, (o->part & 0x7f) > 0);
		assert_int_equal(o->params[0].value, o->part & 0x7f);
		assert_int_equal(catalog_allows(c->tenants, i), i == 0 || i == 2);
	}
	catalog_free(c);
	for (size_t i = 0; i < COUNT(m); i++) {
		char message[600];

		snprintf(text, sizeof(text), "%soffloads = ( { name = \"t\"; region = \"t\"; %s } );\n",
			publishing_regions, m[i].text);
		snprintf(message, sizeof(message), "c:2: %s\n", m[i].errors);
		conf_expect(text, message);
	}
#undef NUMBERS
}

static void test_raw(void **state)
{
	struct catalog_binding b;
	struct catalog *c;
	char why[200];

	c = conf_load(
		"regions = ( { name = \"a.b\"; kind = \"raw\"; path = \"/a\"; writable = true; owner = "
		"\"root\"; },\n"
		"            { name = \"t\"; kind = \"table\"; path = \"/t\"; } );\n"
		"offloads = ( { name = \"o\"; program = \"raw\"; region = \"a.b\"; regions = { values = "
		"\"t.heap\"; }; } );\n");
	assert_true(c->regions[0].raw && c->regions[0].writable);
	assert_true(c->regions[0].owned && c->regions[0].owner == 0 && !c->regions[1].owned);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "nodes", true, &b, why, sizeof(why)), 0);
	assert_int_equal(b.region, 0);
	assert_int_equal(b.part, CATALOG_WHOLE);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "values", false, &b, why, sizeof(why)), 0);
	assert_int_equal(b.region, 1);
	assert_int_equal(b.part, CATALOG_HEAP);
	catalog_free(c);
}

/* What libreddn asks for must be a table, with its parts where they belong */
static void test_shape(void **state)
{
	static const struct conf_mistake m[] = {
		{"region = \"r\";",
			"its program has shape table and needs a region of kind \"table\"; \"r\" is of "
			"kind \"raw\""},
		{"region = \"m\"; regions = { heap = \"m.items\"; counts = \"r\"; };",
			"its program has shape table and needs a region of kind \"table\"; \"m\" is of "
			"kind \"memcached\""},
		{"regions = { counts = \"r\"; live = \"t.live\"; buckets = \"t.heap\"; heap = \"t.buckets\"; "
		 "};",
			"its program has shape table, so its region \"buckets\" must be \"t.buckets\"; it is "
			"\"t.heap\""},
		{"region = \"t\"; regions = { counts = \"r\"; live = \"t.heap\"; };",
			"its program has shape table, so its region \"live\" must be \"t.live\"; it is "
			"\"t.heap\""},
		{"region = \"t\"; regions = { counts = \"r\"; heap = \"u.heap\"; };",
			"its program has shape table, so its region \"heap\" must be \"t.heap\"; it is "
			"\"u.heap\""},
		{"program = \"which\"; region = \"r\";",
			"its program has shape exists and needs a region of kind \"table\"; \"r\" is of "
			"kind \"raw\""},
		{"program = \"which\"; regions = { buckets = \"t.buckets\"; live = \"u.live\"; };",
			"its program has shape exists, so its region \"live\" must be \"t.live\"; it is "
			"\"u.live\""},
		{"program = \"use\"; regions = { a = \"t.heap\"; };",
			"its program has shape table, and none of its regions is the buckets of a table"},
	};
	static const char regions[] =
		"regions = ( { name = \"t\"; kind = \"table\"; path = \"/t\"; }, { name = \"u\"; kind = "
		"\"table\"; path = \"/u\"; }, { name = \"r\"; kind = \"raw\"; path = \"/r\"; }, { name = "
		"\"m\"; "
		"kind = \"memcached\"; path = \"/m\"; server = \"h:1\"; } );\n";
	char text[600], message[300];

	conf_put("look.rdn", "program look\nshape table\nregion buckets, heap, live\nregion counts\n"
			     "write_imm live -> slot @ 0, 64 bytes\n");
	conf_put("which.rdn", "program which\nshape exists\nregion buckets, live\n"
			      "write_imm live -> slot @ 0, 64 bytes\n");
	conf_put("use.rdn", "program use\nshape table\nregion a\nwrite_imm a -> slot @ 0, 64 bytes\n");
	for (size_t i = 0; i < COUNT(m); i++) {
		bool other = strstr(m[i].text, "program");

		snprintf(text, sizeof(text), "%soffloads = ( { name = \"o\"; %s%s } );\n", regions,
			other ? "" : "program = \"look\"; ", m[i].text);
		snprintf(message, sizeof(message), "c:2: offload \"o\": %s\n", m[i].errors);
		conf_expect(text, message);
	}
	snprintf(text, sizeof(text),
		"%soffloads = ( { name = \"o\"; program = \"look\"; region = \"t\"; regions = { counts = "
		"\"r\"; }; }, "
		"{ name = \"p\"; program = \"use\"; regions = { a = \"u.buckets\"; }; } );\n",
		regions);
	catalog_free(conf_load(text));
}

/* The parts of a memcached have names of their own */
static void test_memcached(void **state)
{
	struct catalog_binding b;
	struct catalog *c;
	char why[200];

	conf_put("look.rdn",
		"program look\nregion buckets, items, live\nwrite_imm live -> slot @ 0, 64 bytes\n");
	c = conf_load("regions = ( { name = \"m\"; kind = \"memcached\"; path = \"/m\"; server = \"h:1\"; "
		      "stale_max = "
		      "\"2s\"; } );\n"
		      "offloads = ( { name = \"o\"; program = \"look\"; region = \"m\"; regions = { live = "
		      "\"m.items\"; }; } );\n");
	assert_true(c->regions[0].memcached && !c->regions[0].raw);
	assert_string_equal(c->regions[0].server, "h:1");
	assert_int_equal(c->regions[0].stale_max, 2000000);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "buckets", false, &b, why, sizeof(why)), 0);
	assert_int_equal(b.part, CATALOG_CACHE_TABLES);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "live", false, &b, why, sizeof(why)), 0);
	assert_int_equal(b.part, CATALOG_CACHE_ITEMS);
	assert_int_equal(catalog_bind(c, &c->offloads[0], "heap", false, &b, why, sizeof(why)), -EINVAL);
	assert_string_equal(why,
		"region \"heap\" of the program is no part of memcached \"m\", which has buckets, "
		"items and live");
	assert_int_equal(catalog_bind(c, &c->offloads[0], "items", true, &b, why, sizeof(why)), -EINVAL);
	catalog_free(c);
	/* what is dead is not served for ever */
	c = conf_load("regions = ( { name = \"m\"; kind = \"memcached\"; path = \"/m\"; server = "
		      "\"[::1]:1\"; } );\n");
	assert_int_equal(c->regions[0].stale_max, 600000000);
	catalog_free(c);
}

/* The NIC has no right to read there */
static void test_parts_that_are_sent(void **state)
{
	static const struct conf_mistake m[] = {
		{"program = \"use\"; region = \"t\";",
			"line 4 of its program reads in \"heap\", which is the heap of \"t\": a program can "
			"only send that, as in \"write heap -> slot\""},
		{"program = \"use\"; regions = { heap = \"m.live\"; };",
			"line 4 of its program reads in \"heap\", which is the live line of \"m\": a program "
			"can only send that, as in \"write heap -> slot\""},
		{"program = \"look\"; region = \"t\"; loop_budget = 9;",
			"line 6 of its program reads in \"live\", which is the live line of \"t\": a program "
			"can only send that, as in \"write live -> slot\""},
	};
	static const char regions[] =
		"regions = ( { name = \"t\"; kind = \"table\"; path = \"/t\"; }, { name = \"r\"; kind = "
		"\"raw\"; path = \"/r\"; }, { name = \"m\"; kind = \"memcached\"; path = \"/m\"; server = "
		"\"h:1\"; } );\n";
	char text[600], message[300];

	(void)state;
	conf_put("use.rdn", "program use\nregion heap\n\nread heap @ 64 as be64 -> v\n"
			    "write_imm v, heap -> slot, 8 bytes\n");
	conf_put("look.rdn", "program look\nendless\nregion live\nvar n : le64\nloop {\n"
			     "if live @ 8 as le64 == n {\nbreak\n}\nadd n by 1\n}\nwrite_imm n -> slot\n");
	for (size_t i = 0; i < COUNT(m); i++) {
		snprintf(text, sizeof(text), "%soffloads = ( { name = \"o\"; %s } );\n", regions, m[i].text);
		snprintf(message, sizeof(message), "c:2: offload \"o\": %s\n", m[i].errors);
		conf_expect(text, message);
	}
	snprintf(text, sizeof(text),
		"%soffloads = ( { name = \"o\"; program = \"use\"; regions = { heap = \"r\"; }; }, "
		"{ name = \"p\"; program = \"use\"; regions = { heap = \"m.items\"; }; }, "
		"{ name = \"q\"; program = \"use\"; regions = { heap = \"t.buckets\"; }; } );\n",
		regions);
	catalog_free(conf_load(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_include),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_listen_together),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_offloads),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_publishing_programs),
		cmocka_unit_test(test_stores),
		cmocka_unit_test(test_puts),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_parts_that_are_sent),
		cmocka_unit_test(test_memcached),
	};

	return cmocka_run_group_tests(tests, conf_enter, conf_leave);
}
