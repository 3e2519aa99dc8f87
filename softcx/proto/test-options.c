/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of softcx: how they are read and passed on, and that the manual page has each of them. */
#include "softcx/proto/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct options o;
static char why[200];
static int first;

static int parse(enum option_verb verb, const char *const *argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	optind = 0; /* once more from the start */
	return options_parse(&o, verb, argc, (char **)(uintptr_t)argv, &first, why, sizeof(why));
}

#define ARGV(...) ((const char *[]){"softcx", __VA_ARGS__, NULL})

static void verbs(void **state)
{
	assert_int_equal(options_verb("run"), VERB_RUN);
	assert_int_equal(options_verb("stop"), VERB_STOP);
	assert_int_equal(options_verb("ru"), VERBS);
	assert_int_equal(options_verb(""), VERBS);
}

static void values(void **state)
{
	assert_int_equal(parse(VERB_RUN, ARGV("--seed", "0x10", "--lenient", "ls", "--seed", "3")), 0);
	assert_int_equal(o.number[OPTION_SEED], 16);
	assert_true(options_given(&o, OPTION_LENIENT));
	assert_false(options_given(&o, OPTION_CLOCK));
	assert_int_equal(first, 3 + 1); /* the command's options are its own */
	assert_int_equal(parse(VERB_FUZZ, ARGV("ls")), 0);
	assert_int_equal(o.number[OPTION_JOBS], 1);
	assert_int_equal(o.number[OPTION_TIMEOUT], 60);
	assert_int_equal(o.number[OPTION_LINES], 40);
	assert_int_equal(parse(VERB_TRACE, ARGV("--qp", "5", "--qp=7")), 0);
	assert_int_equal(o.nqps, 2);
	assert_int_equal(o.qp[0], 5);
	assert_int_equal(o.qp[1], 7);
	assert_int_equal(parse(VERB_NIC, ARGV("--seed=18446744073709551615", "--linger=0")), 0);
	assert_true(o.number[OPTION_SEED] == UINT64_MAX);
	assert_true(options_given(&o, OPTION_LINGER));
}

static void refusals(void **state)
{
	static const char *too_many[2 * SOFTCX_TRACE_QPS + 4] = {"softcx"};

	assert_int_equal(parse(VERB_RUN, ARGV("--seed", "-1")), -EINVAL);
	assert_string_equal(why, "--seed -1: not a number");
	assert_int_equal(parse(VERB_NIC, ARGV("--devices", "17")), -EINVAL);
	assert_string_equal(why, "--devices 17: not from 1 to 16");
	assert_int_equal(parse(VERB_FUZZ, ARGV("--seed", "1", "ls")), -EINVAL);
	assert_string_equal(why, "fuzz does not take --seed");
	assert_int_equal(parse(VERB_NIC, ARGV("--host", "a")), -EINVAL);
	assert_string_equal(why, "nic does not take --host");
	assert_int_equal(parse(VERB_RUN, ARGV("--nonsense")), -EINVAL);
	assert_string_equal(why, "");
	for (int i = 0; i <= SOFTCX_TRACE_QPS; i++) {
		too_many[1 + 2 * i] = "--qp";
		too_many[2 + 2 * i] = "1";
	}
	assert_int_equal(parse(VERB_TRACE, too_many), -EINVAL);
	assert_string_equal(why, "--qp: at most 64");
}

/* The options of "softcx run" arrive at the NIC process, without those of the tool alone. */
static void passed_on(void **state)
{
	char *argv[OPTIONS + 2] = {why};
	struct options given;
	int n;

	assert_int_equal(
		parse(VERB_RUN, ARGV("--clock", "cx5", "--host", "b", "--no-qpn-check", "--hosts=a,b", "ls")),
		0);
	assert_int_equal(options_set(&o, OPTION_READY_FD, "7", why, sizeof(why)), 0);
	given = o;
	n = options_args(&given, VERB_NIC, argv + 1);
	assert_int_equal(n, 4);
	assert_int_equal(parse(VERB_NIC, (const char *const *)argv), 0);
	assert_string_equal(o.text[OPTION_CLOCK], "cx5");
	assert_string_equal(o.text[OPTION_HOSTS], "a,b");
	assert_true(options_given(&o, OPTION_NO_QPN_CHECK));
	assert_false(options_given(&o, OPTION_HOST));
	assert_int_equal(o.number[OPTION_READY_FD], 7);
	while (n)
		free(argv[n--]);
}

static void processing_units(void **state)
{
	assert_int_equal(parse(VERB_RUN, ARGV("ls")), 0);
	assert_int_equal(o.number[OPTION_PU], 1);
	assert_int_equal(options_check_pu(&o, 1, why, sizeof(why)), 0);
	assert_int_equal(parse(VERB_RUN, ARGV("--clock", "cx5", "--pu=1", "ls")), 0);
	assert_int_equal(options_check_pu(&o, 1, why, sizeof(why)), 0);
	assert_int_equal(parse(VERB_NIC, ARGV("--pu", "2")), 0);
	assert_int_equal(o.number[OPTION_PU], 2);
	assert_int_equal(options_check_pu(&o, 2, why, sizeof(why)), 0);
	assert_int_equal(options_check_pu(&o, 1, why, sizeof(why)), -EINVAL);
	assert_string_equal(why,
		"--pu 2: one thread executes a device, and the NIC has 1; --hosts and --devices make more");
	assert_int_equal(parse(VERB_FUZZ, ARGV("--pu", "2", "--clock", "cx5", "ls")), 0);
	assert_int_equal(options_check_pu(&o, 2, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "--pu 2 with --clock: "));
	assert_int_equal(parse(VERB_NIC, ARGV("--pu", "17")), -EINVAL);
	assert_string_equal(why, "--pu 17: not from 1 to 16");
	assert_int_equal(parse(VERB_STATUS, ARGV("--pu", "2")), -EINVAL);
	assert_string_equal(why, "status does not take --pu");
}

static char *read_file(FILE *f)
{
	static char text[200000];
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	assert_in_range(n, 1, sizeof(text) - 2);
	text[n] = '\0';
	return text;
}

static void manual_page(void **state)
{
	FILE *f = fopen(SOFTCX_PAGE, "r");
	char *page;

	assert_non_null(f);
	page = read_file(f);
	fclose(f);
	for (unsigned id = 0; id < OPTIONS; id++) {
		const struct option_row *row = &option_table[id];
		char item[80], *at;
		size_t len = (size_t)snprintf(item, sizeof(item), "\n.It Fl -%s", row->name);

		for (at = strstr(page, item); at && at[len] != ' ' && at[len] != '\n';)
			at = strstr(at + 1, item);
		if (!at)
			fail_msg("%s does not describe --%s", SOFTCX_PAGE, row->name);
		if (strncmp(at + len, row->arg ? " Ar " : "\n", row->arg ? 4 : 1) != 0)
			fail_msg("%s: --%s %s", SOFTCX_PAGE, row->name,
				row->arg ? "takes an argument" : "takes none");
	}
}

static void help(void **state)
{
	FILE *f = tmpfile();
	char *text;

	assert_non_null(f);
	options_help(f);
	rewind(f);
	text = read_file(f);
	fclose(f);
	assert_non_null(strstr(text, "\nOptions of run, nic and fuzz:\n"));
	assert_non_null(strstr(text, "\nOptions of fuzz, status, trace, fault and devices:\n  --json"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > 100)
			fail_msg("a line of %zu columns: %s", strlen(line), line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs),
		cmocka_unit_test(values),
		cmocka_unit_test(refusals),
		cmocka_unit_test(processing_units),
		cmocka_unit_test(passed_on),
		cmocka_unit_test(manual_page),
		cmocka_unit_test(help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
