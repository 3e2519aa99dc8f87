/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines of memcached. */
#include "memcached/options.h"

#include "util/array.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct options read_line(const char *line)
{
	char words[256], *argv[32], *rest, *before[32];
	struct options o;
	int argc = 0;

	memset(argv, 0, sizeof(argv));
	snprintf(words, sizeof(words), "memcached %s", line);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	memcpy(before, argv, sizeof(before));
	assert_int_equal(options_read(&o, argc, argv), 0);
	assert_memory_equal(before, argv, sizeof(before));
	return o;
}

static void test_defaults(void **state)
{
	struct options o = read_line("");

	assert_int_equal(o.memory, 64 << 20);
	assert_int_equal(o.power, 16);
	assert_false(o.only_prints || o.unserved);
}

static void test_sizes(void **state)
{
	static const struct {
		const char *line;
		unsigned megabytes, power;
	} lines[] = {
		{"-m 100", 100, 16},
		{"-m100", 100, 16},
		{"-vvm 100 -u memcache", 100, 16},
		{"-u m -l 127.0.0.1 -l ::1 -m 7", 7, 16},
		{"--memory-limit=9", 9, 16},
		{"--memory-limit 9 --threads 4", 9, 16},
		{"word -m 8 -o hashpower=20,no_hashexpand", 8, 20},
		{"-o no_hashexpand,hashpower=13", 64, 13},
		{"-o nohashpower=13", 64, 16},
		{"--extended=hashpower=17 -o modern", 64, 17},
		{"-P -m -m 5", 5, 16},
		{"-m 5 -- -m 6", 5, 16},
	};

	for (unsigned i = 0; i < COUNT(lines); i++) {
		struct options o = read_line(lines[i].line);

		assert_int_equal(o.memory, (uint64_t)lines[i].megabytes << 20);
		assert_int_equal(o.power, lines[i].power);
	}
}

static void test_flags(void **state)
{
	static const struct {
		const char *line, *begin;
	} lines[] = {
		{"-vC", "-C leaves"},
		{"--disable-cas", "-C leaves"},
		{"-e /mnt/file", "-e puts"},
		{"--memory-file=/mnt/file -C", "-e puts"},
		{"-o no_modern", "-o no_modern "},
		{"-m 9 -o hashpower=13,no_modern,slab_reassign", "-o no_modern "},
		{"-S", "-S leaves"},
		{"--enable-sasl", "-S leaves"},
		{"-B binary", "-B binary leaves"},
		{"-vBbinary", "-B binary leaves"},
		{"--protocol=binary", "-B binary leaves"},
		{"-Y /etc/auth", "-Y asks"},
		{"--auth-file=/etc/auth", "-Y asks"},
		{"-Z", "-Z encrypts"},
		{"--enable-ssl", "-Z encrypts"},
		{"-P -C", NULL},
		{"-s -e", NULL},
		{"-o modern", NULL},
		{"-o no_modern_art", NULL},
		{"-B ascii", NULL},
		{"-B auto", NULL},
	};

	for (unsigned i = 0; i < COUNT(lines); i++) {
		const char *why = read_line(lines[i].line).unserved;

		assert_int_equal(why != NULL, lines[i].begin != NULL);
		if (why)
			assert_memory_equal(why, lines[i].begin, strlen(lines[i].begin));
	}
	assert_true(read_line("-V").only_prints && read_line("-vvh").only_prints);
}

/* The program's own getopt() sees its arguments from the first one on */
static void test_program_is_not_disturbed(void **state)
{
	char words[][12] = {"memcached", "word", "-p", "5", "-C"};
	char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};

	read_line("-vvm 100 -C -x --nothing");
	assert_int_equal(opterr, 1);
	assert_int_equal(getopt(5, argv, "p:C"), 'p');
	assert_string_equal(optarg, "5");
	assert_int_equal(getopt(5, argv, "p:C"), 'C');
	assert_int_equal(getopt(5, argv, "p:C"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_program_is_not_disturbed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
