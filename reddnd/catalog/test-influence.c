/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients store by one offload, where another one reads. */
#include "reddnd/catalog/influence.h"
#include "reddnd/catalog/test-conf.h"
#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

#define OFFLOAD_OF(name, regions)                                                                            \
	" { name = \"" name "\"; program = \"" name "\"; regions = { " regions " }; }\n"

#define MAX 4

/* Where regions are, each in a file as a whole unless there is a place for it */
struct bed {
	struct influence_offload offloads[MAX];
	struct chain_stored files[MAX];
	const struct influence_place *places; /* by region; NULL: region i is file i */
	bool gives_params;                    /* of a store, with records of up to 100 bytes */
	unsigned wrong;                       /* offloads, by bits */
};

static bool place(void *arg, const struct influence_offload *o, unsigned region, uint8_t part,
	struct influence_place *at)
{
	const struct bed *b = arg;

	if (part != CATALOG_WHOLE && o->catalog->regions[region].store) {
		*at = part == CATALOG_BUCKETS ? (struct influence_place){region, 4096, 4096}
					      : (struct influence_place){region, 8192, UINT64_MAX - 8192};
		return true;
	}
	*at = b->places ? b->places[region] : (struct influence_place){region, 0, UINT64_MAX};
	return at->size > 0;
}

static unsigned params(
	void *arg, const struct influence_offload *o, const struct program *p, struct program_setting *set)
{
	const struct bed *b = arg;
	unsigned n = 0;

	for (unsigned i = 0; b->gives_params && i < p->nparams; i++)
		if (strcmp(p->params[i].name, "most") == 0)
			set[n++] = (struct program_setting){"most", 100};
		else
			set[n++] = (struct program_setting){"record", 110};
	return n;
}

static void note(void *arg, const struct influence_offload *o, const char *messages)
{
	struct bed *b = arg;

	assert_non_null(strstr(messages, ".rdn:"));
	b->wrong |= 1u << (o - b->offloads);
}

static void settle(struct bed *b, const struct catalog *c)
{
	const struct influence all = {.offloads = b->offloads,
		.noffloads = c->noffloads,
		.files = b->files,
		.place = place,
		.params = params,
		.wrong = note,
		.arg = b};

	for (unsigned i = 0; i < c->noffloads; i++)
		b->offloads[i] = (struct influence_offload){.catalog = c, .conf = &c->offloads[i]};
	influence_settle(&all);
}

/* What one offload stores for a client another one reads, in the end by way of a third. Before files are
 * opened, one path is one file */
static void test_influence(void **state)
{
	static const char regions[] =
		"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; writable = true; },\n"
		" { name = \"b\"; kind = \"raw\"; path = \"/b\"; writable = true; },\n"
		" { name = \"again\"; kind = \"raw\"; path = \"/b\"; },\n"
		" { name = \"data\"; kind = \"raw\"; path = \"/d\"; }, { name = \"s\"; kind = \"store\"; "
		"path = "
		"\"/s\"; } );\noffloads = (\n";
	struct bed b = {0};
	struct catalog *catalog;
	char text[2000], after[4000], *errors;

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
	catalog_free(conf_load(text));
	snprintf(text, sizeof(text), "%s%s,%s,%s);\n", regions,
		OFFLOAD_OF("use", "heap = \"data\"; lengths = \"again\";"),
		OFFLOAD_OF("hop", "from = \"a\"; to = \"b\";"), OFFLOAD_OF("store", "to = \"a\";"));
	conf_put("c", text);
	assert_int_equal(catalog_load("c", &catalog, &errors), -EINVAL);
	assert_non_null(
		strstr(errors, "c:6: offload \"use\": its program has mistakes, with regions into which "
			       "programs of the catalog store something\n"));
	assert_non_null(strstr(errors, "use.rdn:4:1: error: "));
	free(errors);
	/* behind an offload with a part, it is the same entry */
	snprintf(after, sizeof(after), "%s{ name = \"s\"; region = \"s\"; },\n%s", regions,
		text + strlen(regions));
	conf_put("c", after);
	assert_int_equal(catalog_load("c", &catalog, &errors), -EINVAL);
	assert_non_null(strstr(errors, "c:7: offload \"use\": its program has mistakes"));
	free(errors);
	/* other bytes of the same region */
	conf_put("store.rdn", "program store\nregion to writable\narg x : be32\nmov x -> to @ 64 as be32\n"
			      "write_imm 0 as u8 -> slot\n");
	catalog = conf_load(text);
	settle(&b, catalog);
	assert_int_equal(b.wrong, 0);
	assert_int_equal(b.offloads[1].in.n, 2);
	assert_string_equal(b.offloads[1].in.region[0].name, "from");
	assert_int_equal(b.offloads[1].in.region[0].stored.theirs.from, 64);
	assert_int_equal(b.offloads[1].in.region[0].stored.theirs.to, 68);
	assert_int_equal(b.offloads[1].stores, 2);
	assert_int_equal(b.offloads[2].nfiles, 1);
	assert_int_equal(b.offloads[2].stores, 1);
	catalog_free(catalog);
}

/* Parts of a file: what is stored in one is found in another, if it is the same bytes */
static void test_influence_of_parts(void **state)
{
	static const char text[] =
		"regions = ( { name = \"low\"; kind = \"raw\"; path = \"/a\"; length = 128; writable = true; "
		"},\n"
		" { name = \"high\"; kind = \"raw\"; path = \"/b\"; writable = true; },\n"
		" { name = \"all\"; kind = \"raw\"; path = \"/c\"; },\n"
		" { name = \"tail\"; kind = \"raw\"; path = \"/d\"; } );\noffloads = (\n"
		" { name = \"a\"; program = \"look\"; region = \"all\"; },"
		" { name = \"t\"; program = \"look\"; region = \"tail\"; },"
		" { name = \"l\"; program = \"look\"; region = \"low\"; },"
		" { name = \"s\"; program = \"store\"; region = \"high\"; });\n";
	static const struct influence_place places[] = {
		{0, 0, 128}, {0, 4096, 128}, {0, 0, UINT64_MAX}, {0, 4152, UINT64_MAX - 4152}};
	struct bed b = {.places = places};
	struct catalog *c;

	conf_put("look.rdn", "program look\nregion from\nwrite_imm from @ 0 as be32 -> slot\n");
	conf_put("store.rdn", "program store\nregion to writable\narg x : be32\nmov x -> to @ 64 as be32\n"
			      "write_imm 0 as u8 -> slot\n");
	c = conf_load(text);
	settle(&b, c);
	assert_int_equal(b.files[0].theirs.from, 4160);
	assert_int_equal(b.files[0].theirs.to, 4164);
	assert_int_equal(b.offloads[0].in.n, 1);
	assert_int_equal(b.offloads[0].in.region[0].stored.theirs.from, 4160);
	assert_int_equal(b.offloads[0].in.region[0].stored.theirs.to, 4164);
	assert_int_equal(b.offloads[1].in.n, 1);
	assert_int_equal(b.offloads[1].in.region[0].stored.theirs.from, 8);
	assert_int_equal(b.offloads[1].in.region[0].stored.theirs.to, 12);
	assert_int_equal(b.offloads[2].in.n, 0);
	assert_int_equal(b.offloads[3].in.region[0].stored.theirs.from, 64);
	catalog_free(c);
}

/* Two paths may be one file, which has the parts of a table; and what is stored there already counts. A
 * length is refused whether the chain looks at it when it runs or not */
static void test_influence_of_files(void **state)
{
	static const char text[] =
		"regions = ( { name = \"b\"; kind = \"raw\"; path = \"/b\"; writable = true; },\n"
		" { name = \"t\"; kind = \"table\"; path = \"/t\"; },\n"
		" { name = \"o\"; kind = \"raw\"; path = \"/o\"; writable = true; } );\noffloads = "
		"(\n" OFFLOAD_OF("use", "heap = \"t.heap\"; lengths = \"t.buckets\";") "," OFFLOAD_OF(
			"vouched", "heap = \"t.heap\"; lengths = \"t.buckets\";") "," OFFLOAD_OF("steer",
			"out = \"o\"; words = \"t.buckets\";") "," OFFLOAD_OF("store", "to = \"b\";") ");\n";
	static const struct influence_place apart[] = {{0, 0, UINT64_MAX}, {1, 4096, 1024}, {2, 0, 4096}},
					    one[] = {{0, 0, UINT64_MAX}, {0, 4096, 1024}, {2, 0, 4096}},
					    closed[] = {{0, 0, UINT64_MAX}, {0, 0, 0}, {2, 0, 4096}};
	struct bed b = {.places = apart};
	struct catalog *c;

	conf_put("use.rdn", "program use\nregion heap, lengths\nread lengths @ 8 as be24 -> w.length\n"
			    "w: write heap -> slot @ 64, max 64\nwrite_imm 0 as u8 -> slot\n");
	conf_put("vouched.rdn",
		"program vouched\nregion heap, lengths\nread lengths @ 8 as be24 -> w.length\n"
		"w: write heap -> slot @ 64, 1 to 64\nwrite_imm 0 as u8 -> slot\n");
	conf_put("steer.rdn",
		"program steer\nregion words\nregion out writable\nvar v : be32\n"
		"read words @ 8 as be24 -> w.remote\nw: write v -> out @ 0\nwrite_imm 0 as u8 -> slot\n");
	conf_put("store.rdn", "program store\nregion to writable\narg x : be32\nmov x -> to @ 4104 as be32\n"
			      "write_imm 0 as u8 -> slot\n");
	c = conf_load(text);
	settle(&b, c);
	assert_int_equal(b.wrong, 0);
	b = (struct bed){.places = closed};
	settle(&b, c);
	assert_int_equal(b.wrong, 0);
	b = (struct bed){.places = one};
	settle(&b, c);
	assert_int_equal(b.wrong, 7);
	assert_true(b.offloads[0].wrong && !b.offloads[3].wrong);
	b = (struct bed){
		.places = apart, .files = {{.any = {0}}, {.any = {4104, 4105}, .theirs = {4104, 4105}}}};
	settle(&b, c);
	assert_int_equal(b.wrong, 7);
	/* nobody vouches for a length that a program stores, though no client sends it */
	b = (struct bed){.places = apart, .files = {{.any = {0}}, {.any = {4104, 4105}}}};
	settle(&b, c);
	assert_int_equal(b.wrong, 2);
	catalog_free(c);
	conf_put("store.rdn", "program store\nregion to writable\nadd to @ 4104 as le64 by 1\n"
			      "write_imm 0 as u8 -> slot\n");
	c = conf_load(text);
	b = (struct bed){.places = one};
	settle(&b, c);
	assert_int_equal(b.wrong, 2);
	catalog_free(c);
}

#define PROGRAM_OF(name, region)                                                                             \
	" { name = \"" name "-" region "\"; program = \"" name "\"; region = \"" region "\"; }\n"

/* What a put publishes in a store a get finds there: records of clients, as long as a payload may be. Other
 * stores have nothing to do with it */
static void test_influence_of_stores(void **state)
{
	static const char regions[] =
		"regions = ( { name = \"s\"; kind = \"store\"; path = \"/s\"; },\n"
		" { name = \"u\"; kind = \"store\"; path = \"/u\"; },\n"
		" { name = \"r\"; kind = \"raw\"; path = \"/r\"; writable = true; } );\noffloads = (\n";
	static const struct influence_place same[] = {{0, 0, 0}, {1, 0, 0}, {0, 0, UINT64_MAX}},
					    across[] = {{0, 0, 0}, {1, 0, 0}, {0, 4088, 4096}},
					    fits[] = {{0, 0, 0}, {1, 0, 0}, {0, 4080, 4096}},
					    apart[] = {{0, 0, 0}, {1, 0, 0}, {2, 0, UINT64_MAX}};
	enum { GET = 1, SHORT = 2, PUT = 4, RAW = 8 };
	static const struct {
		const char *offloads;
		bool gives_params;
		const struct influence_place *places;
		unsigned wrong;
	} cases[] = {
		{PROGRAM_OF("get", "s") "," PROGRAM_OF("short", "u") "," PROGRAM_OF(
			 "put", "s") "," PROGRAM_OF("change", "r"),
			true, apart, 0},
		{PROGRAM_OF("get", "s") "," PROGRAM_OF("short", "s") "," PROGRAM_OF("put", "s"), true, apart,
			SHORT},
		{PROGRAM_OF("get", "s") "," PROGRAM_OF("short", "u") "," PROGRAM_OF("put", "s"), false, apart,
			GET},
		/* the bytes of its buckets, by another way */
		{PROGRAM_OF("get", "u") "," PROGRAM_OF("short", "u") "," PROGRAM_OF(
			 "put", "s") "," PROGRAM_OF("change", "r"),
			true, same, PUT},
		/* its buckets, and what lies across them */
		{PROGRAM_OF("get", "s") "," PROGRAM_OF("long", "r") "," PROGRAM_OF("put", "s"), true, fits,
			0},
		{PROGRAM_OF("get", "s") "," PROGRAM_OF("long", "r") "," PROGRAM_OF("put", "s"), true, across,
			SHORT},
	};

	conf_put("get.rdn",
		"program get\nparam record = 64K from 64 to 16M\nregion buckets, heap\n"
		"struct bucket { len : be24, off : be40, mark : le56 }\n"
		"arg fp : u48\narg at : offset(4) in buckets\n"
		"read buckets @ at as bucket { len -> hit.length, off -> hit.addr, mark -> mark }\n"
		"if mark == fp + (0xa5 << 48) {\n"
		"hit: write heap -> slot @ 64, 1 to record\n}\nwrite_imm 0 as u8 -> slot\n");
	conf_put("short.rdn", "program short\nregion buckets\nread buckets @ 16 as be24 -> hit.length\n"
			      "hit: write buckets -> slot @ 64, 1 to 109\nwrite_imm 0 as u8 -> slot\n");
	conf_put("long.rdn", "program long\nregion words\nread words @ 16 as be24 -> hit.length\n"
			     "hit: write words -> slot @ 64, 1 to 110\nwrite_imm 0 as u8 -> slot\n");
	conf_put("put.rdn",
		"program put\nparam most = 1M from 64 to 1M\nregion buckets writable steered\nregion heap\n"
		"var was : le64\narg fp : u48\narg at : offset(4) in buckets\npayload record : max most in "
		"heap\n"
		"struct bucket { loc : le64, mark : le56, _ : u8 }\n"
		"read buckets @ at as bucket { loc -> pub.compare, mark -> mark }\nif mark == fp + (0xa5 << "
		"48) {\n"
		"pub: cas buckets @ at as le64 : 0 -> record, was -> was\n}\nwrite_imm was -> slot\n");
	conf_put("change.rdn", "program change\nregion words writable\nadd words @ 4096 as le64 by 1\n"
			       "write_imm 0 as u8 -> slot\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bed b = {.gives_params = cases[i].gives_params, .places = cases[i].places};
		struct catalog *c;
		char text[1000];

		snprintf(text, sizeof(text), "%s%s);\n", regions, cases[i].offloads);
		c = conf_load(text);
		settle(&b, c);
		if (b.wrong != cases[i].wrong)
			fail_msg("case %zu: %x are wrong, not %x", i, b.wrong, cases[i].wrong);
		if (i == 0) {
			assert_int_equal(b.files[0].located.from, 4096);
			assert_int_equal(b.files[0].located.to, 8192);
			assert_int_equal(b.files[0].longest, 110);
			assert_int_equal(b.files[0].theirs.from, 8192);
			assert_int_equal(b.offloads[0].in.region[0].stored.longest, 110);
			assert_int_equal(b.offloads[0].stores, 0);
			assert_int_equal(b.offloads[2].stores, 1);
			assert_int_equal(b.files[1].any.to, 0);
			assert_int_equal(b.files[1].located.to, 0);
		}
		catalog_free(c);
	}
}

/* What two offloads copy to and fro, by one byte further each time, comes to an end */
static void test_influence_of_many_rounds(void **state)
{
	static const char text[] =
		"regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\"; writable = true; },\n"
		" { name = \"b\"; kind = \"raw\"; path = \"/b\"; writable = true; } );\noffloads = "
		"(\n" OFFLOAD_OF("forth", "from = \"a\"; to = \"b\";") "," OFFLOAD_OF(
			"back", "from = \"b\"; to = \"a\";") ");\n";
	struct bed b = {.files = {{.any = {0, 1}, .theirs = {0, 1}}}};
	struct catalog *c;

	conf_put("forth.rdn", "program forth\nregion from\nregion to writable\n"
			      "write from -> to @ 0, 200 bytes\nwrite_imm 0 as u8 -> slot\n");
	conf_put("back.rdn", "program back\nregion from\nregion to writable\n"
			     "write from -> to @ 1, 200 bytes\nwrite_imm 0 as u8 -> slot\n");
	c = conf_load(text);
	settle(&b, c);
	assert_int_equal(b.wrong, 0);
	assert_int_equal(b.files[0].theirs.from, 0);
	assert_int_equal(b.files[0].theirs.to, UINT64_MAX);
	catalog_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_influence),
		cmocka_unit_test(test_influence_of_parts),
		cmocka_unit_test(test_influence_of_files),
		cmocka_unit_test(test_influence_of_stores),
		cmocka_unit_test(test_influence_of_many_rounds),
	};

	return cmocka_run_group_tests(tests, conf_enter, conf_leave);
}
