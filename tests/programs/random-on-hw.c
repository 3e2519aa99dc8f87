/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random-on-hw [--runs N [FIRST [FILE]]]: programs made at random (generate.h), compiled, verified and run on
 * the emulated silicon under some seeds each, beside what they mean (interpret.h). Memory, reply and slot
 * must be as the text means, no queue may fail and every request is answered. A run: the requests of one
 * program under one seed. With --runs until there were so many, programs from number FIRST on; with FILE,
 * that program instead.
 */
#include "reddnd/program/front/front.h"
#include "tests/programs/generate.h"
#include "tests/programs/interpret.h"
#include "tests/programs/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REGION = 1024, REQUESTS = 2, SEEDS = 4, TRIES = 30 };

static const struct ast_program *ast; /* of the program at hand */
static uint64_t answered, runs, loops;

static void setup(struct run *r)
{
	for (unsigned i = 0; i < r->p->nregions; i++)
		for (unsigned at = 0; at < REGION; at++)
			r->region[i][at] =
				run_random(r, 3) ? 0 : (uint8_t)run_random(r, run_random(r, 3) ? 4 : 256);
}

static void random_args(struct run *r)
{
	for (unsigned a = 0; a < r->p->nargs; a++) {
		const struct program_arg *arg = &r->p->args[a];
		uint64_t v = arg->kind == PROGRAM_WINDOW ? 8 * run_random(r, 32) : run_number(r, 8);

		memset(r->arg[a], 0, sizeof(r->arg[a]));
		for (unsigned i = 0; i < arg->bytes && i < 8; i++)
			r->arg[a][arg->bytes - 1 - i] = (uint8_t)(v >> 8 * i);
	}
}

/* Requests that a program can answer: one that reaches beyond a region ends its client */
static void request(struct run *r, uint8_t *slot)
{
	uint8_t *copy[CHAIN_MAX_WINDOWS], slot_copy[RUN_SLOT];
	struct interpret in = {.p = ast, .slot = slot_copy, .slot_bytes = RUN_SLOT, .arg = r->arg};
	int result = INTERPRET_BEYOND;

	for (unsigned i = 0; i < r->p->nregions; i++) {
		copy[i] = malloc(REGION);
		assert_non_null(copy[i]);
		in.region[i] = copy[i];
		in.bytes[i] = REGION;
	}
	for (unsigned try = 0; result && try < TRIES; try++) {
		random_args(r);
		for (unsigned i = 0; i < r->p->nregions; i++)
			memcpy(copy[i], r->model[i], REGION);
		memcpy(slot_copy, slot, RUN_SLOT);
		result = interpret(&in);
	}
	for (unsigned i = 0; i < r->p->nregions; i++) {
		if (!result)
			memcpy(r->model[i], copy[i], REGION);
		free(copy[i]);
	}
	if (!result)
		memcpy(slot, slot_copy, RUN_SLOT);
	r->enough = result;
	answered += !result;
}

static size_t read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, size, f) : 0;

	if (f)
		fclose(f);
	return n;
}

static const char *file; /* the program, instead of one at random */

/* 1: it ran as it reads, 0: it is not one that can run here, -1: it did not */
static int one(uint64_t seed, char *text, size_t size, char why[400])
{
	struct random random = {(seed + 1) * 0x9e3779b97f4a7c15u};
	struct generate_style style = {
		.statements = 1 + random_below(&random, random_below(&random, 4) ? 14 : 50), .endless = 25};
	struct run_offload o = {
		.name = "random", .text = text, .depth = 1, .setup = setup, .request = request};
	struct program_source src = {.name = "random", .text = text};
	struct program_target target = {.masked_atomics = seed % 4 != 0,
		.ignores_index = seed % 8 == 1,
		.fenced_enables = seed % 3 == 0};
	struct ast_program *tree = NULL;
	struct program *p = NULL;
	struct diag *d;
	char *messages = NULL;
	struct run_counts n = {0};
	int r = 0;

	src.len = file ? read_file(file, text, size - 1) : generate(&random, &style, text, size - 1);
	text[src.len] = '\0';
	d = diag_new(src.name, src.text, src.len);
	if (front_parse(&src, NULL, 0, d, &tree) == 0 && interpret_can(tree) &&
		program_compile(&src, NULL, 0, &target, &p, &messages) == 0) {
		for (unsigned i = 0; i < p->nregions; i++)
			o.region_bytes[i] = REGION;
		o.no_masks = !target.masked_atomics;
		o.direct = target.ignores_index;
		o.fenced = target.fenced_enables;
		ast = tree;
		r = run_offload(&o, seed * SEEDS, SEEDS, REQUESTS, &n, why) ? 1 : -1;
		runs += (n.requests + REQUESTS - 1) / REQUESTS;
		loops += p->loop && n.requests;
	}
	/* a refusal by the proof of the ring is a fault of the compiler, not of the program */
	if (messages && strstr(messages, "WQEBB")) {
		snprintf(why, 400, "%.390s", messages);
		r = -1;
	}
	free(messages);
	program_free(p);
	ast_free(tree);
	diag_free(d);
	return r;
}

static void run_as_they_read(void **state)
{
	static char text[PROGRAM_MAX_SOURCE];
	unsigned programs = RUN_SEEDS == 1000 ? 2000 : 200, ran = 0;
	char why[400];

	(void)state;
	for (uint64_t seed = 0; seed < programs; seed++) {
		int r = one(seed, text, sizeof(text), why);

		if (r < 0)
			fail_msg("program %lu: %s\n%s", (unsigned long)seed, why, text);
		ran += r > 0;
	}
	print_message(
		"%u programs, %u of them run, %lu with a loop without a bound: %lu runs, %lu requests\n",
		programs, ran, (unsigned long)loops, (unsigned long)runs, (unsigned long)answered);
	assert_true(ran > programs / 10 && loops > programs / 100 && runs > ran);
}

static void tell(FILE *f, uint64_t programs, const char *end)
{
	fprintf(f, "%lu programs, %lu runs, %lu requests; %lu programs with a loop without a bound%s",
		(unsigned long)programs, (unsigned long)runs, (unsigned long)answered, (unsigned long)loops,
		end);
	fflush(f);
}

static int campaign(uint64_t wanted, uint64_t first)
{
	static char text[PROGRAM_MAX_SOURCE];
	uint64_t seed = first, bad = 0;
	char why[400];

	for (; runs < wanted && (!file || seed == first); seed++) {
		if (one(seed, text, sizeof(text), why) < 0) {
			printf("program %lu: %s\n", (unsigned long)seed, why);
			if (!bad++)
				printf("%s", text);
		}
		if (isatty(STDERR_FILENO) && seed % 64 == 0)
			tell(stderr, seed - first + 1, "\r");
	}
	tell(stdout, seed - first, "\n");
	printf("%lu that did not run as they read\n", (unsigned long)bad);
	return bad > 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(run_as_they_read)};

	if (argc < 3 || strcmp(argv[1], "--runs") != 0)
		return cmocka_run_group_tests_name("random programs", tests, NULL, NULL);
	file = argc > 4 ? argv[4] : NULL;
	return campaign(strtoull(argv[2], NULL, 0), argc > 3 ? strtoull(argv[3], NULL, 0) : 0);
}
