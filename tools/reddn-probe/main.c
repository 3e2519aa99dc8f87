/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-probe - tries on a device what reddnd assumes of it, without a daemon; see reddn-probe(1). This file
 * has the command line.
 */
#include "reddnd/rnic/visitor.h"
#include "reddnd/util/log.h"
#include "tools/common/tool.h"
#include "tools/reddn-probe/measure.h"
#include "tools/reddn-probe/report.h"
#include "util/cleanup.h"
#include "util/number.h"
#include "util/output.h"
#include "util/text.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { MAX_CHECKS = 64 };

struct options {
	const char *device, *names, *clock, *to;
	bool list, json, thorough, verbose;
};

static const struct option long_options[] = {
	{"check", required_argument, NULL, 'c'},
	{"clock", required_argument, NULL, 'C'},
	{"device", required_argument, NULL, 'd'},
	{"json", no_argument, NULL, 'j'},
	{"list", no_argument, NULL, 'l'},
	{"thorough", no_argument, NULL, 't'},
	{"to", required_argument, NULL, 'T'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static const char usage_text[] =
	"usage: reddn-probe [OPTIONS]\n"
	"\n"
	"Tries on an RDMA device what reddnd assumes of it.\n"
	"\n"
	"  -c, --check CHECK[,CHECK...]  only these, by number or name\n"
	"  -d, --device NAME             such as mlx5_0 (default: the only mlx5 device)\n"
	"  -j, --json                    output for programs and bug reports\n"
	"  -l, --list                    list the checks, with the reason and the source of each\n"
	"  -t, --thorough                100 times as many trials where order matters, and checks that take "
	"long\n"
	"  -v, --verbose                 show what happens on the device\n"
	"      --clock FILE              measure times instead, and write a clock file\n"
	"      --to NAME                 measure to the port of this device, which a cable connects\n"
	"  -h, --help                    show this help\n"
	"  -V, --version                 show the version\n"
	"\n"
	"The exit status is 0 if all holds, 1 if something does not, 2 if something could not be tried.\n"
	"\n"
	"Examples:\n"
	"  reddn-probe --json | tee probe.json\n"
	"  reddn-probe --thorough --check fetch\n"
	"  reddn-probe --device mlx5_0 --to mlx5_1 --clock ./mine.conf\n";

/* ---- choosing checks -------------------------------------------------------------------- */

struct chosen {
	const struct probe_check *check[MAX_CHECKS];
	unsigned n;
};

static const struct probe_check *find(const char *word)
{
	const char *names[MAX_CHECKS];
	char hint[TEXT_HINT];
	unsigned n;
	const struct probe_check *all = probe_checks(&n);
	uint64_t number = 0;

	number_parse_decimal(word, 1, UINT16_MAX, &number);
	for (unsigned i = 0; i < n; i++) {
		if (all[i].number == number || strcmp(all[i].name, word) == 0)
			return &all[i];
		names[i] = all[i].name;
	}
	tool_complain(
		"there is no check \"%s\"%s", word, text_hint(hint, word, names, n, "; --list lists them"));
	return NULL;
}

static bool choose_named(struct chosen *chosen, const char *names)
{
	CLEANUP(cleanup_free) char *copy = strdup(names);
	char *rest = copy, *word;

	while (rest && (word = strsep(&rest, ","))) {
		const struct probe_check *check = find(word);

		if (!check || chosen->n == MAX_CHECKS)
			return false;
		chosen->check[chosen->n++] = check;
	}
	return chosen->n > 0;
}

static bool choose(struct chosen *chosen, const struct options *o)
{
	unsigned n;
	const struct probe_check *all = probe_checks(&n);

	if (o->names)
		return choose_named(chosen, o->names);
	for (unsigned i = 0; i < n; i++)
		if (o->thorough || !(all[i].flags & PROBE_LONG))
			chosen->check[chosen->n++] = &all[i];
	return true;
}

/* ---- running them ----------------------------------------------------------------------- */

DEFINE_CLEANUP(struct rnic_device *, rnic_device_close)

struct bench {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct master_qp master;
};

static void close_bench(struct bench *b)
{
	if (b->dev)
		master_qp_deinit(&b->master);
	if (b->dev)
		rnic_device_close(b->dev);
	if (b->arena)
		rnic_arena_free(b->arena);
}

static int open_bench(struct bench *b, const char *device)
{
	int r = rnic_device_open_for_chains(&b->dev, device, NULL);

	if (r == 0)
		r = rnic_arena_new(&b->arena, PROBE_ARENA);
	if (r == 0)
		r = master_qp_init(&b->master, rnic_device_pd(b->dev), b->arena);
	return r;
}

/* Opens the device. Errors are logged, and copied to @why, on one line */
static int open_and_note(struct bench *b, const char *device, char *why, size_t size)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);
	int r;

	if (!f)
		return -ENOMEM;
	log_tee(f);
	r = open_bench(b, device);
	log_tee(NULL);
	fclose(f);
	snprintf(why, size, "%s", r < 0 && *text ? text : strerror(-r));
	why[strcspn(why, "\n")] = '\0';
	return r;
}

static void run_all(const struct chosen *chosen, const struct probe_attr *attr, struct probe_result *results)
{
	bool shown = isatty(STDERR_FILENO);

	for (unsigned i = 0; i < chosen->n; i++) {
		if (shown)
			fprintf(stderr, "\r[%u/%u] %-20s", i + 1, chosen->n, chosen->check[i]->name);
		probe_run(attr, chosen->check[i], &results[i]);
	}
	if (shown)
		fprintf(stderr, "\r%-30s\r", "");
}

/* Measures, and writes a file */
static int make_clock(const struct options *o)
{
	CLEANUP(rnic_device_closep) struct rnic_device *dev = NULL;
	CLEANUP(rnic_device_closep) struct rnic_device *other = NULL;

	if (rnic_device_open_for_chains(&dev, o->device, NULL) < 0 ||
		(o->to && rnic_device_open_for_chains(&other, o->to, NULL) < 0))
		return EX_UNAVAILABLE;
	return measure_to_file(o->clock, dev, other);
}

static int exit_status(const struct probe_result *results, unsigned n)
{
	unsigned of[3] = {0};

	for (unsigned i = 0; i < n; i++)
		of[results[i].verdict]++;
	return of[PROBE_DOES_NOT] ? 1 : of[PROBE_NOT_TRIED] ? 2 : 0;
}

static int probe(const struct options *o, const struct chosen *chosen)
{
	CLEANUP(close_bench) struct bench bench = {0};
	struct probe_result results[MAX_CHECKS];
	struct report report = {.thorough = o->thorough, .checks = chosen->check, .results = results};
	static const struct probe_visitors visitors = {rnic_visitor_start, rnic_visitor_end};
	struct probe_attr attr = {.visitors = &visitors, .thorough = o->thorough};
	char why[200];
	int r = open_and_note(&bench, o->device, why, sizeof(why));

	if (r == -ENODEV)
		return EX_UNAVAILABLE;
	report.n = chosen->n;
	report.dev = bench.dev;
	if (r == 0)
		attr.master = &bench.master;
	else
		attr.unusable = why;
	run_all(chosen, &attr, results);
	if (o->json)
		report_json(&report, stdout);
	else
		report_text(&report, stdout);
	return exit_status(results, chosen->n);
}

int main(int argc, char **argv)
{
	struct options o = {.device = ""};
	struct chosen chosen = {0};
	int c;

	output_begin(EX_IOERR);
	while ((c = getopt_long(argc, argv, "c:d:jltvhV", long_options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			o.names = optarg;
			break;
		case 'C':
			o.clock = optarg;
			break;
		case 'T':
			o.to = optarg;
			break;
		case 'd':
			o.device = optarg;
			break;
		case 'j':
			o.json = true;
			break;
		case 'l':
			o.list = true;
			break;
		case 't':
			o.thorough = true;
			break;
		case 'v':
			o.verbose = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			puts("reddn-probe " REDDN_VERSION);
			return 0;
		default:
			fputs("reddn-probe --help lists the options\n", stderr);
			return EX_USAGE;
		}
	}
	if (optind < argc)
		return TOOL_FAIL(EX_USAGE, "\"%s\" is too much; --device chooses a device", argv[optind]);
	o.thorough |= o.list; /* lists all */
	if (!choose(&chosen, &o))
		return EX_USAGE;
	log_name(program_invocation_short_name);
	log_init(o.verbose ? LOG_DEBUG : LOG_ERR);
	if (o.clock)
		return make_clock(&o);
	if (!o.list)
		return probe(&o, &chosen);
	if (o.json)
		report_list_json(chosen.check, chosen.n, stdout);
	else
		report_list(chosen.check, chosen.n, stdout);
	return 0;
}
