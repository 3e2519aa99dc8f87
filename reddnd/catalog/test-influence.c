/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients store by one offload, where another one reads. */
#include "reddnd/catalog/test-conf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OFFLOAD_OF(name, regions)                                                                            \
	" { name = \"" name "\"; program = \"" name "\"; regions = { " regions " }; }\n"

/* What one offload stores for a client another one reads, in the end by way of a third */
static void test_influence(void **state)
{
	static const char regions[] =
		"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; writable = true; },\n"
		" { name = \"b\"; kind = \"raw\"; path = \"/b\"; writable = true; },\n"
		" { name = \"again\"; kind = \"raw\"; path = \"/b\"; },\n"
		" { name = \"data\"; kind = \"raw\"; path = \"/d\"; } );\noffloads = (\n";
	struct catalog *catalog;
	char text[2000], *errors;

	(void)state;
	conf_put("use.rdn", "program use\nregion heap, lengths\nread lengths @ 8 as be24 -> w.length\n"
			    "w: write heap -> slot @ 64, max 64\nwrite_imm 0 as u8 -> slot\n");
	conf_put("hop.rdn",
		"program hop\nregion from\nregion to writable\nwrite from @ 16 as be32 -> to @ 8\n"
		"write_imm 0 as u8 -> slot\n");
	conf_put("store.rdn", "program store\nregion to writable\narg x : be32\nmov x -> to @ 16 as be32\n"
			      "write_imm 0 as u8 -> slot\n");
	snprintf(text, sizeof(text), "%s%s,%s);\n", regions,
		OFFLOAD_OF("use", "heap = \"data\"; lengths = \"again\";"),
		OFFLOAD_OF("hop", "from = \"a\"; to = \"b\";"));
	catalog = conf_load(text);
	assert_int_equal(catalog->offloads[0].ntheirs, 0);
	catalog_free(catalog);
	snprintf(text, sizeof(text), "%s%s,%s,%s);\n", regions,
		OFFLOAD_OF("use", "heap = \"data\"; lengths = \"again\";"),
		OFFLOAD_OF("hop", "from = \"a\"; to = \"b\";"), OFFLOAD_OF("store", "to = \"a\";"));
	conf_put("c", text);
	assert_int_equal(catalog_load("c", NULL, &catalog, &errors), -EINVAL);
	assert_non_null(
		strstr(errors, "c:6: offload \"use\": its program has mistakes, with regions into "
			       "which programs of the catalog store what clients send, or have since the "
			       "daemon started\n"));
	assert_non_null(strstr(errors, "use.rdn:4:1: error: "));
	free(errors);
	/* other bytes of the same region */
	conf_put("store.rdn", "program store\nregion to writable\narg x : be32\nmov x -> to @ 64 as be32\n"
			      "write_imm 0 as u8 -> slot\n");
	catalog = conf_load(text);
	assert_int_equal(catalog->offloads[1].ntheirs, 1);
	assert_string_equal(catalog->offloads[1].theirs[0].region, "from");
	assert_int_equal(catalog->offloads[1].theirs[0].from, 64);
	assert_int_equal(catalog->offloads[1].theirs[0].to, 68);
	catalog_free(catalog);
}

/* Parts of a file: what is stored in one is found in another, if it is the same bytes */
static void test_influence_of_parts(void **state)
{
	static const char regions[] =
		"regions = ( { name = \"low\"; kind = \"raw\"; path = \"/a\"; length = 128; writable = true; "
		"},\n"
		" { name = \"high\"; kind = \"raw\"; path = \"/a\"; offset = \"4K\"; length = 128; writable "
		"= true; },\n"
		" { name = \"all\"; kind = \"raw\"; path = \"/a\"; },\n"
		" { name = \"tail\"; kind = \"raw\"; path = \"/a\"; offset = 4152; } );\noffloads = (\n";
	struct catalog *c;
	char text[2000];

	(void)state;
	conf_put("look.rdn", "program look\nregion from\nwrite_imm from @ 0 as be32 -> slot\n");
	conf_put("store.rdn", "program store\nregion to writable\narg x : be32\nmov x -> to @ 64 as be32\n"
			      "write_imm 0 as u8 -> slot\n");
	snprintf(text, sizeof(text),
		"%s { name = \"a\"; program = \"look\"; region = \"all\"; },"
		" { name = \"t\"; program = \"look\"; region = \"tail\"; },"
		" { name = \"l\"; program = \"look\"; region = \"low\"; },"
		" { name = \"s\"; program = \"store\"; region = \"high\"; });\n",
		regions);
	c = conf_load(text);
	assert_int_equal(c->regions[1].offset, 4096);
	assert_int_equal(c->regions[1].length, 128);
	assert_int_equal(catalog_stored(c, "/a")->from, 4160);
	assert_int_equal(catalog_stored(c, "/a")->to, 4164);
	assert_int_equal(c->offloads[0].ntheirs, 1);
	assert_int_equal(c->offloads[0].theirs[0].from, 4160);
	assert_int_equal(c->offloads[0].theirs[0].to, 4164);
	assert_int_equal(c->offloads[1].ntheirs, 1);
	assert_int_equal(c->offloads[1].theirs[0].from, 8);
	assert_int_equal(c->offloads[1].theirs[0].to, 12);
	assert_int_equal(c->offloads[2].ntheirs, 0);
	assert_int_equal(c->offloads[3].theirs[0].from, 64);
	catalog_free(c);
}

/* What clients stored stays in the file, and old sessions go on to store: a reload does not forget it, nor
 * does one without that region in between */
static void test_influence_stays(void **state)
{
	static const char regions[] =
		"regions = ( { name = \"b\"; kind = \"raw\"; path = \"/b\"; writable = true; },\n"
		" { name = \"data\"; kind = \"raw\"; path = \"/d\"; } );\noffloads = (\n";
	struct catalog *store, *none, *catalog = NULL;
	char text[1000], *errors;

	(void)state;
	conf_put("use.rdn", "program use\nregion heap, lengths\nread lengths @ 8 as be24 -> w.length\n"
			    "w: write heap -> slot @ 64, max 64\nwrite_imm 0 as u8 -> slot\n");
	conf_put("store.rdn", "program store\nregion to writable\narg x : be32\nmov x -> to @ 8 as be32\n"
			      "write_imm 0 as u8 -> slot\n");
	snprintf(text, sizeof(text), "%s%s);\n", regions, OFFLOAD_OF("store", "to = \"b\";"));
	store = conf_load(text);
	assert_non_null(catalog_stored(store, "/b"));
	assert_int_equal(catalog_stored(store, "/b")->from, 8);
	assert_int_equal(catalog_stored(store, "/b")->to, 12);
	assert_null(catalog_stored(store, "/d"));
	conf_put("c", "regions = ( { name = \"data\"; kind = \"raw\"; path = \"/d\"; } );\n");
	assert_int_equal(catalog_load("c", store, &none, &errors), 0);
	free(errors);
	catalog_free(store);
	snprintf(text, sizeof(text), "%s%s);\n", regions,
		OFFLOAD_OF("use", "heap = \"data\"; lengths = \"b\";"));
	conf_put("c", text);
	assert_int_equal(catalog_load("c", none, &catalog, &errors), -EINVAL);
	assert_non_null(strstr(errors, "or have since the daemon started\n"));
	free(errors);
	catalog_free(none);
	catalog_free(conf_load(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_influence),
		cmocka_unit_test(test_influence_of_parts),
		cmocka_unit_test(test_influence_stays),
	};

	return cmocka_run_group_tests(tests, conf_enter, conf_leave);
}
