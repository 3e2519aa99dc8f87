/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnc - the compiler of offload programs at the command line: checks, explains, dumps and draws them, and
 * runs them once on a device of this machine.
 */
#include "tools/reddnc.h"
#include "reddnd/chain/ring/decode.h"
#include "reddnd/program/report/explain.h"
#include "reddnd/program/report/path.h"
#include "tools/common/help.h"
#include "tools/common/tool.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/number.h"
#include "util/output.h"
#include "util/text.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

struct options {
	struct program_setting set[PROGRAM_MAX_PARAMS];
	unsigned nset;
	struct program_target target;
	struct reddnc_run run;
	const char *output, *clock, *device;
	struct costs costs; /* of the clock */
	bool json, help;
};

struct input {
	char *text;
	struct program_source source;
	struct program *program;
	struct program_errors errors;
};

static void input_deinit(struct input *in)
{
	program_free(in->program);
	program_errors_free(&in->errors);
	free(in->text);
}

/* 0, or the exit status: 1 if the program has errors, which are in @in */
static int compile(const struct options *o, const char *path, struct input *in)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	int r;

	if (!f)
		return TOOL_FAIL(EX_NOINPUT, "%s: %s", path, strerror(errno));
	in->text = malloc(PROGRAM_MAX_SOURCE + 1);
	if (!in->text)
		return TOOL_FAIL(EX_OSERR, "out of memory");
	in->source = (struct program_source){.name = f == stdin ? "standard input" : path, .text = in->text};
	in->source.len = fread(in->text, 1, PROGRAM_MAX_SOURCE + 1, f);
	r = ferror(f);
	if (f != stdin)
		fclose(f);
	if (r)
		return TOOL_FAIL(EX_NOINPUT, "%s: cannot be read", path);
	r = program_diagnose(&in->source, o->set, o->nset, &o->target, &in->program, &in->errors);
	if (r < 0)
		return TOOL_FAIL(EX_OSERR, "%s: %s", path, strerror(-r));
	return r ? 1 : 0;
}

/* ---- commands ---------------------------------------------------------------------------------- */

static int check_json(const struct input *in, FILE *out)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	if (in->program)
		json_add_text(o, "program", in->program->name);
	json_add_text(o, "file", in->source.name);
	for (unsigned i = 0; i < in->errors.n; i++) {
		const struct program_error *e = &in->errors.error[i];
		struct json_object *error = json_object_new_object();

		json_add_text(error, "code", e->code);
		json_add_count(error, "line", e->line);
		json_add_count(error, "column", e->column);
		json_add_text(error, "text", e->text);
		json_object_array_add(list, error);
	}
	json_object_object_add(o, "errors", list);
	fprintf(out, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_SPACED));
	json_object_put(o);
	return in->errors.n ? 1 : 0;
}

static int run_check(const struct options *o, struct input *in, char **args, FILE *out)
{
	(void)args;
	if (o->json)
		return check_json(in, out);
	fprintf(out, "%s: %s, %u copies, %u atomics, %u waits and enables; no errors\n", in->source.name,
		in->program->name, in->program->image->n_copy, in->program->image->n_atomic,
		in->program->image->n_sync);
	return 0;
}

static bool calculates(const struct program *p)
{
	for (unsigned s = 0; p && s < p->desc->nsteps; s++)
		if (chain_verb_info(p->desc->steps[s].verb)->calc)
			return true;
	return false;
}

static int run_explain(const struct options *o, struct input *in, char **args, FILE *out)
{
	CLEANUP(input_deinit) struct input other = {0};
	struct program_target target = o->target;
	struct explain_calc calc = {.without = target.calc};
	int r;

	(void)args;
	target.calc = calc.without ? 0 : PROGRAM_CALC;
	r = program_diagnose(&in->source, o->set, o->nset, &target, &other.program, &other.errors);
	if (r < 0)
		return TOOL_FAIL(EX_OSERR, "%s: %s", in->source.name, strerror(-r));
	calc.program = other.program;
	calc.refusal = r ? other.errors.error[0].text : NULL;
	const struct explain_calc *differs =
		calculates(in->program) || calculates(other.program) ? &calc : NULL;

	r = o->json ? explain_json(out, in->program, differs)
		    : explain_text(
			      out, in->program, &in->source, o->clock ? o->clock : "a ConnectX-5", differs);
	return r < 0 ? TOOL_FAIL(EX_OSERR, "out of memory") : 0;
}

/* The WQE at WQEBB @w of a ring that has @wqebbs; returns its own */
static unsigned dump_wqe(FILE *out, const uint8_t *ring, uint32_t w, uint32_t wqebbs, const char *step)
{
	const uint8_t *wqe = ring + (size_t)w * CHAIN_WQEBB;
	char line[600];
	unsigned n = chain_decode(wqe, (size_t)(wqebbs - w) * CHAIN_WQEBB, line, sizeof(line));

	fprintf(out, "  %4u  %-12s %s\n", w, step, line);
	for (unsigned i = 0; i < n * CHAIN_WQEBB; i++)
		fprintf(out, "%s%02x%s", i % 16 == 0 ? "        " : " ", wqe[i], i % 16 == 15 ? "\n" : "");
	return n;
}

static const char *loop_step(const struct program *p, uint32_t w)
{
	unsigned s = chain_loop_step(p->loop, &p->loop_info, p->loop_ring, (uint16_t)w);

	if (s == p->loop->nsteps)
		return "(renewal)";
	return p->loop->steps[s].label ? p->loop->steps[s].label
				       : chain_verb_info(p->loop->steps[s].verb)->name;
}

/* Keys from 1 on, and addresses that are no pointers */
static void number_symbols(struct ring_values *v, unsigned nregions)
{
	static const unsigned own[] = {RING_SELF, RING_LANES, RING_SCRATCH};

	for (uint32_t key = 1; key <= COUNT(own) + nregions; key++) {
		unsigned s = key <= COUNT(own) ? own[key - 1] : RING_REGION + key - 1 - (unsigned)COUNT(own);

		v->of[s].iova = (uint64_t)key << 57;
		v->of[s].lkey = v->of[s].rkey = key;
	}
	v->of[RING_SELF].qpn = 1;
	v->of[RING_SELF].cqn = 2;
	v->of[CHAIN_LOOP_CALLER].qpn = 3;
	v->of[CHAIN_LOOP_CALLER].cqn = 4;
	v->of[RING_CREDITS].cqn = 5;
}

static int dump_loop(FILE *out, const struct program *p)
{
	CLEANUP(cleanup_free) uint8_t *ring = malloc((size_t)p->loop_ring * CHAIN_WQEBB);
	const struct chain_loop_info *info = &p->loop_info;
	struct ring_values v = {0};

	if (!ring)
		return TOOL_FAIL(EX_OSERR, "out of memory");
	number_symbols(&v, p->loop->nregions);
	v.of[RING_SELF].mem = ring;
	ring_fill(p->loop_image, &v);
	fprintf(out, "loop: a ring of %u WQEBBs, %u iterations, %u CQEs a lap; started through WQEBB %u\n",
		p->loop_ring, info->iterations, info->lap.cqes, info->start);
	for (uint32_t w = 0; w < p->loop_ring;)
		w += dump_wqe(out, ring, w, p->loop_ring, loop_step(p, w));
	return 0;
}

static int run_dump(const struct options *o, struct input *in, char **args, FILE *out)
{
	const struct chain_image *img = in->program->image;

	(void)o;
	(void)args;
	for (unsigned q = 0; q < img->nqueues; q++) {
		const struct chain_queue *queue = &img->queue[q];

		fprintf(out,
			"queue %s: %u WQEBBs, %u CQEs for each request, the first %u enabled by the one "
			"before\n",
			in->program->desc->queues[q].name, queue->wqebbs, queue->cqes, queue->head_wqebbs);
		for (uint32_t w = 0; w < queue->wqebbs;)
			w += dump_wqe(out, queue->wqes, w, queue->wqebbs,
				chain_step_at(img, 1, q, (uint16_t)w, NULL));
	}
	fprintf(out, "scratch: %u bytes for each request\n", img->scratch_size);
	for (uint32_t i = 0; i < img->scratch_size; i++)
		fprintf(out, "%s%02x%s", i % 16 == 0 ? "        " : " ", img->scratch_init[i],
			i % 16 == 15 || i + 1 == img->scratch_size ? "\n" : "");
	return in->program->loop ? dump_loop(out, in->program) : 0;
}

static int run_draw(const struct options *o, struct input *in, char **args, FILE *out)
{
	(void)o;
	(void)args;
	return draw_svg(out, in->program) < 0 ? TOOL_FAIL(EX_OSERR, "out of memory") : 0;
}

static int run_run(const struct options *o, struct input *in, char **args, FILE *out)
{
	struct reddnc_run run = o->run;

	run.program = in->program;
	run.args = args;
	run.json = o->json;
	run.path = in->source.name;
	run.progress = isatty(STDERR_FILENO);
	return reddnc_run(&run, out);
}

/* ---- the command line -------------------------------------------------------------------------- */

static const struct command {
	struct subcommand subcommand;
	bool many; /* files; else one, and arguments of the program if it is "run" */
	int (*run)(const struct options *o, struct input *in, char **args, FILE *out);
} commands[] = {
	{{"check", "FILE...", "report the errors of programs", "  reddnc check *.rdn\n"}, true, run_check},
	{{"explain", "FILE", "show the work requests of each line, and why they are there",
		 "  reddnc explain --param probes=1 hash-get.rdn\n"},
		false, run_explain},
	{{"dump", "FILE", "print the bytes of the rings, decoded", "  reddnc dump hash-get.rdn\n"}, false,
		run_dump},
	{{"draw", "FILE", "draw the chain as SVG", "  reddnc draw hash-get.rdn --output hash-get.svg\n"},
		false, run_draw},
	{{"run", "FILE [ARGUMENT...]", "run it once on a device; print the reply and each work request",
		 "  reddnc run --region words=words.bin counter.rdn 8 100\n"},
		false, run_run},
};

static const struct subcommands subcommands = {"reddnc", commands, COUNT(commands), sizeof(commands[0])};

static const struct option long_options[] = {
	{"param", required_argument, NULL, 'p'},
	{"output", required_argument, NULL, 'o'},
	{"json", no_argument, NULL, 'j'},
	{"clock", required_argument, NULL, 'c'},
	{"direct", no_argument, NULL, 'D'},
	{"no-masked-atomics", no_argument, NULL, 'M'},
	{"no-calc", no_argument, NULL, 'C'},
	{"fenced-enables", no_argument, NULL, 'F'},
	{"overlap", no_argument, NULL, 'O'},
	{"fetch-group", required_argument, NULL, 'G'},
	{"region", required_argument, NULL, 'r'},
	{"device", required_argument, NULL, 'd'},
	{"timeout", required_argument, NULL, 't'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

#define LETTERS "p:o:jc:DMCFOG:r:d:t:hV"

static const char options_text[] =
	"  -p, --param NAME=N       set a param, as \"params\" of the catalog does\n"
	"  -o, --output FILE        write there instead of to the standard output\n"
	"  -j, --json               check, explain, run: print JSON\n"
	"  -c, --clock FILE         explain, draw: times of the NIC that this file of reddn-probe is about\n"
	"  -D, --direct             compile for a device that does not check WQE indices\n"
	"  -M, --no-masked-atomics  compile for a device without masked atomics\n"
	"  -C, --no-calc            compile for a device that does not calculate on data in flight\n"
	"  -F, --fenced-enables     compile for a device that heeds the fence of a SEND_EN\n"
	"  -O, --overlap            compile as reddnd does, so that requests may overlap\n"
	"  -G, --fetch-group BYTES  compile for a device that fetches so many bytes of a queue together\n"
	"  -r, --region NAME=FILE   run: a region of the program; the file changes only if the program "
	"writes "
	"to it\n"
	"  -d, --device NAME        run: the RDMA device\n"
	"  -t, --timeout MS         run: how long to wait for the reply (1000)\n"
	"  -h, --help               print this text, or that of the command\n"
	"  -V, --version            print the version\n";

static void usage(void)
{
	puts("usage: reddnc [OPTIONS] COMMAND FILE\n"
	     "\n"
	     "Compiles offload programs for reddnd. If FILE is -, reads the standard input.\n");
	subcommands_list(&subcommands, 19);
	printf("\n%s", options_text);
	help_examples(stdout, "  reddnc check *.rdn\n"
			      "  reddnc explain --param probes=1 hash-get.rdn\n"
			      "  reddnc run --region words=words.bin counter.rdn 8 100\n");
}

/* "NAME=VALUE" cut in two, in place; NULL if there is no '=' */
static char *split(char *text)
{
	char *eq = strchr(text, '=');

	if (eq)
		*eq++ = '\0';
	return eq;
}

/* 0, or the exit status plus one */
static int take_param(struct options *o, char *text)
{
	char *value = split(text);

	if (!value)
		return TOOL_FAIL(EX_USAGE, "option -p does not take \"%s\"; write NAME=N, as in probes=2",
			       text) +
		       1;
	if (o->nset == COUNT(o->set))
		return TOOL_FAIL(EX_USAGE, "option -p: a program has at most %zu params", COUNT(o->set)) + 1;
	if (number_parse_size(value, INT64_MAX, &o->set[o->nset].value) < 0)
		return TOOL_FAIL(EX_USAGE, "option -p: \"%s\" is \"%s\"; it must be a number, as in 4 or 64K",
			       text, value) +
		       1;
	o->set[o->nset++].name = text;
	return 0;
}

static bool take_region(struct options *o, char *text)
{
	char *path = split(text);

	if (!path || o->run.nregions == COUNT(o->run.region))
		return false;
	o->run.region[o->run.nregions++] = (struct reddnc_region){.name = text, .path = path};
	return true;
}

static bool take_group(struct options *o, const char *text)
{
	uint64_t bytes;

	if (number_parse_size(text, CHAIN_MAX_GROUP * CHAIN_WQEBB, &bytes) < 0 || bytes < CHAIN_WQEBB ||
		(bytes & (bytes - 1)))
		return false;
	o->target.fetch_group = (unsigned)bytes / CHAIN_WQEBB;
	return true;
}

static bool take_timeout(struct options *o, const char *text)
{
	uint64_t ms;

	if (number_parse(text, 1, 3600000, &ms) < 0)
		return false;
	o->run.timeout_ms = (unsigned)ms;
	return true;
}

/* 0, or the exit status plus one */
static int take_clock(struct options *o, const char *name)
{
	char path[4096], why[256];
	int r = costs_find(name, path, sizeof(path));

	if (r < 0)
		return TOOL_FAIL(EX_NOINPUT, "%s: %s", name, strerror(-r)) + 1;
	if (costs_read(path, &o->costs, why, sizeof(why)) < 0)
		return TOOL_FAIL(EX_NOINPUT, "%s: %s", path, why) + 1;
	o->clock = name;
	path_use_costs(&o->costs);
	return 0;
}

/* 0: go on; else the exit status plus one */
static int parse(int argc, char **argv, const char *letters, struct options *o)
{
	int c, r;

	while ((c = getopt_long(argc, argv, letters, long_options, NULL)) >= 0) {
		bool good = true;

		switch (c) {
		case 'p':
			r = take_param(o, optarg);
			if (r)
				return r;
			break;
		case 'r':
			good = take_region(o, optarg);
			break;
		case 't':
			good = take_timeout(o, optarg);
			break;
		case 'o':
			o->output = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 'c':
			r = take_clock(o, optarg);
			if (r)
				return r;
			break;
		case 'D':
			o->target.ignores_index = true;
			break;
		case 'M':
			o->target.masked_atomics = false;
			break;
		case 'C':
			o->target.calc = 0;
			break;
		case 'F':
			o->target.fenced_enables = true;
			break;
		case 'O':
			o->target.overlap = true;
			break;
		case 'G':
			good = take_group(o, optarg);
			break;
		case 'd':
			o->device = optarg;
			break;
		case 'h':
			o->help = true;
			break;
		case 'V':
			puts("reddnc " REDDND_VERSION);
			return 1;
		default:
			fputs("reddnc --help lists the options\n", stderr);
			return EX_USAGE + 1;
		}
		if (!good)
			return TOOL_FAIL(EX_USAGE,
				       "option -%c does not take \"%s\"; reddnc --help shows what it takes",
				       c, optarg) +
			       1;
	}
	return 0;
}

static int each(const struct command *c, const struct options *o, char **args, FILE *out)
{
	int status = 0;

	for (; *args; args++) {
		CLEANUP(input_deinit) struct input in = {0};
		int r = compile(o, *args, &in);

		if (r == 1 && !(o->json && c->run == run_check))
			fputs(in.errors.text, stderr);
		else if (r <= 1)
			r = c->run(o, &in, args + 1, out);
		if (r > status)
			status = r;
		if (!c->many)
			break;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct options o = {.target = {.masked_atomics = true, .calc = PROGRAM_CALC},
		.run = {.timeout_ms = 1000},
		.device = ""};
	CLEANUP(reddnc_device_close) struct reddnc_device device = {0};
	const struct command *c;
	FILE *out = stdout;
	int r;

	output_begin(EX_IOERR);
	r = parse(argc, argv, "+" LETTERS, &o);
	if (r)
		return r - 1;
	if (optind == argc) {
		usage();
		return o.help ? 0 : EX_USAGE;
	}
	c = subcommands_find(&subcommands, argv[optind]);
	if (!c)
		return EX_USAGE;
	/* Options may stand behind the command as well; behind the file only where no arguments of the
	 * program do */
	argc -= optind;
	argv += optind;
	optind = 0;
	r = parse(argc, argv, c->run == run_run ? "+" LETTERS : LETTERS, &o);
	if (r)
		return r - 1;
	if (o.help) {
		help_subcommand(&subcommands, &c->subcommand, options_text);
		return 0;
	}
	if (optind == argc || (!c->many && c->run != run_run && optind + 1 != argc)) {
		fprintf(stderr, "usage: reddnc %s %s\n", c->subcommand.name, c->subcommand.args);
		return EX_USAGE;
	}
	if (c->run == run_run) {
		r = reddnc_device_open(&device, o.device, &o.target);
		if (r)
			return r;
		o.run.on = &device;
	}
	if (o.output && !(out = fopen(o.output, "we")))
		return TOOL_FAIL(EX_CANTCREAT, "%s: %s", o.output, strerror(errno));
	r = each(c, &o, argv + optind, out);
	if (o.output && fclose(out) != 0)
		return TOOL_FAIL(EX_IOERR, "%s: %s", o.output, strerror(errno));
	return r;
}
