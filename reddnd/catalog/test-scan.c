/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/scan.c"
#include "reddnd/catalog/test-conf.h"
#include "util/array.h"

#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* libconfig 1.5 makes another number of each of them */
static void test_cut(void **state)
{
	static const struct {
		const char *text, *name, *integer, *right; /* NULL: 64 bits cannot hold it */
	} cut[] = {
		{"refusal_rate = 4294967297;", "refusal_rate", "4294967297", "4294967297L"},
		{"refusal_rate:0x100000001", "refusal_rate", "0x100000001", "4294967297L"},
		{"refusal_rate = +2147483648;", "refusal_rate", "+2147483648", "2147483648L"},
		{"refusal_rate = -2147483649;", "refusal_rate", "-2147483649", "-2147483649L"},
		{"refusal_rate = 0xFFFFFFFF;", "refusal_rate", "0xFFFFFFFF", "4294967295L"},
		{"refusal_rate = 0x80000000L;", "refusal_rate", "0x80000000", "2147483648L"},
		{"refusal_rate = 4294967297source_prefix = 64;", "refusal_rate", "4294967297", "4294967297L"},
		{"refusal_rate = /* \" */4294967297# \"", "refusal_rate", "4294967297", "4294967297L"},
		{"refusal_rate = 18446744073709551617L;", "refusal_rate", "18446744073709551617", NULL},
		{"refusal_rate = 0x10000000000000001LL;", "refusal_rate", "0x10000000000000001", NULL},
		{"refusal_rate = 99999999999999999999;", "refusal_rate", "99999999999999999999", NULL},
	};

	for (size_t i = 0; i < COUNT(cut); i++) {
		char message[300], text[200];

		snprintf(text, sizeof(text), "engine = \"a \\\" b\";\n%s\n", cut[i].text);
		if (cut[i].right)
			snprintf(message, sizeof(message),
				"c:2: \"%s\" is %s, which a signed integer of 32 bits cannot hold; write it "
				"as %s\n",
				cut[i].name, cut[i].integer, cut[i].right);
		else
			snprintf(message, sizeof(message),
				"c:2: \"%s\" is %s, which 64 bits cannot hold; the largest number is "
				"9223372036854775807\n",
				cut[i].name, cut[i].integer);
		conf_expect(text, message);
	}
}

/* What 1.5, 1.7 and 1.8 of libconfig read differently, or not all of them */
static void test_versions(void **state)
{
	static const struct conf_mistake mistakes[] = {
		{"\nexecutors = 010;\n",
			"c:2: \"executors\" is 010, which some versions of libconfig read as octal; "
			"write it as 10\n"},
		{"executors = -08L;\n",
			"c:1: \"executors\" is -08, which some versions of libconfig read as octal; "
			"write it as -8\n"},
		{"executors = 00;\n",
			"c:1: \"executors\" is 00, which some versions of libconfig read as octal; "
			"write it as 0\n"},
		{"executors = 0b11;\n",
			"c:1: \"executors\" is 0b11; write a decimal number, or a hexadecimal one as "
			"0x1f\n"},
		{"executors = 0o17;\n",
			"c:1: \"executors\" is 0o17; write a decimal number, or a hexadecimal one as "
			"0x1f\n"},
		{"\xef\xbb\xbf"
		 "executors = 1;\n",
			"c:1: the file begins with a byte order mark (ef bb bf); remove it\n"},
		{"listen = [ \"0.0.0.0\",\n # x\n /* ] */\n ];\n",
			"c:1: a comma with nothing behind it in its list; leave it out\n"},
		{"offloads = ( { name = \"a\", }, );\n",
			"c:1: a comma with nothing behind it in its list; leave it out\n"},
		{"\ncontrol = \"/\\\\a\\b\";\n",
			"c:2: a text has \\b; write a control character as \\x07, a backslash "
			"as \\\\\n"},
	};

	conf_expect_each(mistakes, COUNT(mistakes));
}

#define SUFFIX(name, integer)                                                                                \
	"\"" name "\" is " integer ", which a signed integer of 32 bits cannot hold; write it as " integer   \
	"L"                                                                                                  \
	"\n"

static void test_where(void **state)
{
	conf_put("more", "/* 4294967296 */\noffset = 1L; length = 4294967296;\n");
	conf_expect("regions = ( { name = \"a\"; kind = \"raw\"; path = \"/a\";\n@include \"more\"\n"
		    "} ); refusal_rate = 1; executors = 4294967297; offloads = ( {\n"
		    " depth_max = 16; params = { width = 4294967300; }; } );\n",
		"./more:2: " SUFFIX("length", "4294967296") "c:3: " SUFFIX(
			"executors", "4294967297") "c:4: " SUFFIX("width", "4294967300"));
}

/* None of these is a number that libconfig cuts */
static void test_whole(void **state)
{
	struct catalog *c = conf_load("# 4294967296\n// 4294967296 \"\n/* 4294967296\n * \" */ control = "
				      "\"/4294967296 \\\" # \\\\\";\n"
				      "refusal_rate = 0x10L; executors = 7;\n"
				      "regions = ( { name = \"r4294967296\"; kind = \"raw\"; path = "
				      "\"/a\n@include \\\"absent\\\"\"\n"
				      " offset = 4294967296L; length = 0x7FFFFFFF; },\n"
				      " { name = \"b\"; kind = \"raw\"; path = \"/b\"; offset = 2147483647; "
				      "length = \"8G\"; } );\n");

	assert_string_equal(c->control, "/4294967296 \" # \\");
	assert_int_equal(c->refusal_rate, 16);
	assert_int_equal(c->executors, 7);
	assert_int_equal(c->regions[0].offset, 1ull << 32);
	assert_int_equal(c->regions[0].length, 0x7fffffff);
	assert_int_equal(c->regions[1].offset, 0x7fffffff);
	assert_int_equal(c->regions[1].length, 1ull << 33);
	catalog_free(c);
}

/* What libconfig goes on with in the file that includes another */
static void test_open(void **state)
{
	static const char end[] =
		"a text or a comment begins here and does not end in this file; one of # or // ends "
		"with a line feed\n";
	static const char *const open[] = {
		"/* x\n", "/*/\n", "control = \"/x\\\"\n", "@include \"x\n", "# x", "// x"};

	for (size_t i = 0; i < COUNT(open); i++) {
		char text[100], message[200];

		snprintf(text, sizeof(text), "\n%s", open[i]);
		snprintf(message, sizeof(message), "./more:2: %s", end);
		conf_put("more", text);
		conf_expect("@include \"more\"\nexecutors = 1;\n", message);
	}
}

/* Before 1.7, libconfig lets absolute names start at the directory of the configuration */
static void test_absolute(void **state)
{
	char text[100], message[300];

	conf_put("more", "executors = 5;\n");
	snprintf(text, sizeof(text), "@include \"%s/more\"\n", conf_dir);
	if (LIBCONFIG_VER_MAJOR == 1 && LIBCONFIG_VER_MINOR < 7) {
		snprintf(message, sizeof(message),
			"c:1: @include \"%s/more\": libconfig %d.%d looks for ./%s/more; write a relative "
			"name\n",
			conf_dir, LIBCONFIG_VER_MAJOR, LIBCONFIG_VER_MINOR, conf_dir);
		conf_expect(text, message);
	} else {
		catalog_free(conf_load(text));
	}
}

/* Fractions and exponents are no integers; names have digits */
static void test_lex(void **state)
{
	static const char text[] = "a-1 = 1.5 2.e5 .7 8 x9 = 0x1F-2+3LL\n";
	static const char *const found[] = {"8", "0x1F", "-2", "+3"};
	struct lex l;

	lex_begin(&l, text, strlen(text));
	for (size_t i = 0; i < COUNT(found); i++) {
		assert_int_equal(lex_next(&l), LEX_INTEGER);
		assert_int_equal(l.len, strlen(found[i]));
		assert_memory_equal(l.token, found[i], l.len);
		assert_int_equal(l.suffix, i == 3 ? 2 : 0);
		assert_int_equal(l.token_line, 1);
	}
	assert_int_equal(lex_next(&l), LEX_END);
	assert_int_equal(l.line, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_absolute),
		cmocka_unit_test(test_lex),
	};

	return cmocka_run_group_tests(tests, conf_enter, conf_leave);
}
