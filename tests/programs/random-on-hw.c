/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random-on-hw [--runs N [FIRST [FILE]]]: programs made at random (generate.h), compiled, verified and run on
 * the emulated silicon under some seeds each, and by the CPU, beside what they mean (interpret.h) if that can
 * tell. Memory, reply and slot must be as the text means, no queue may fail and every request is answered.
 * Where requests overlap, four are outstanding, and each program runs again, recycled, and with queues that
 * fail then. A run: the requests of one program under one seed. With --runs until there were so many,
 * programs from number FIRST on; with FILE, that program instead. --operators: each program of
 * tests/programs/operators, many times.
 */
#include "reddnd/program/front/ast.h"
#include "tests/programs/failing.h"
#include "tests/programs/random-offload.h"
#include "util/array.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	REQUESTS = 2,
	OVERLAPPING = 8,
	RECYCLED = 40, /* more than two laps */
	SLOTS = 8,
	SEEDS = 4
};

static uint64_t answered, runs, loops, overlap, recycled, several;
static const char *file; /* the program, instead of one at random */
static struct failing_counts failing;
static struct random_offload program;

static bool runs_while_queues_fail(uint64_t seed, char why[400])
{
	bool recycles = run_recycles(program.p->image);
	char what[400];

	for (unsigned i = 0; i < SEEDS; i++) {
		unsigned slots = recycles && i % 2 ? SLOTS : 0;

		recycled += slots > 0;
		if (!failing_run(&program.o, program.p, seed + i, slots, slots ? RECYCLED : OVERLAPPING,
			    &failing, what)) {
			snprintf(why, 400, "%swhen a queue has failed, %.350s", slots ? "recycled, " : "",
				what);
			return false;
		}
	}
	return true;
}

static bool runs_recycled(uint64_t seed, char why[400])
{
	char what[400];
	bool ok;

	if (!run_recycles(program.p->image))
		return true;
	run_recycled = true;
	ok = run_program(&program.o, program.p, seed, 1, RECYCLED, NULL, what);
	run_recycled = false;
	if (!ok)
		snprintf(why, 400, "recycled, %.380s", what);
	return ok;
}

static struct program_target device(uint64_t seed)
{
	static const unsigned groups[] = {0, 4, 0, 2, 0, 16, 4};

	return (struct program_target){.masked_atomics = seed % 4 != 0,
		.swapped_old = seed % 11 < 3,
		.calc = seed % 5 < 2 ? 0 : PROGRAM_CALC,
		.ignores_index = seed % 8 == 1,
		.fenced_enables = seed % 3 == 0,
		.overlap = seed % 2,
		.pad_wqebbs = (unsigned)(seed % (CHAIN_LONGEST_PAD + 1)),
		.fetch_group = groups[seed % 7]};
}

/* What the text of a program does not show */
enum trait { BLOCK, INVERTED, COPIED, SPLIT, NARROW, TRAITS };

static const char *const TRAIT[TRAITS] = {[BLOCK] = "more arguments than places",
	[INVERTED] = "an argument that arrives as its complement",
	[COPIED] = "an argument at several places",
	[SPLIT] = "the old value of a word in several fields",
	[NARROW] = "an operand that is narrower than its word"};
static uint64_t with_trait[TRAITS];

static void note_traits(const struct program *p, const struct ast_program *tree)
{
	bool has[TRAITS] = {[BLOCK] = p->npieces > CHAIN_MAX_RECV_SGE};

	for (unsigned i = 0; i < p->npieces; i++)
		has[INVERTED] |= p->pieces[i].inverted;
	for (unsigned i = 0; i < p->desc->nsteps; i++)
		has[COPIED] |=
			p->desc->steps[i].label && strncmp(p->desc->steps[i].label, "argument~", 9) == 0;
	for (unsigned i = 0; i < tree->nverbs; i++) {
		const struct ast_verb *v = tree->verb[i];
		const struct ast_operand *o = v->kind == AST_CAS ? &v->swap : &v->by;

		has[SPLIT] |= v->nwas > 1;
		has[NARROW] |= (v->kind == AST_CAS || v->kind == AST_ADD) && o->kind == AST_ARG &&
			       o->type.bytes < v->place->type.bytes;
	}
	for (unsigned i = 0; i < TRAITS; i++)
		with_trait[i] += has[i];
}

/* 1: it ran as it reads, 0: it is not one that can run here, -1: it did not */
static int one(uint64_t seed, char why[400])
{
	const struct program_target target = device(seed);
	struct run_counts n = {0};
	unsigned requests;
	int r = 0;

	random_offload_make(&program, seed, file, &target, true);
	if (program.p) {
		requests = program.o.depth > 1 ? OVERLAPPING : REQUESTS;
		r = run_program(&program.o, program.p, seed * SEEDS, SEEDS, requests, &n, why) ? 1 : -1;
		if (r > 0 && program.o.depth > 1 &&
			(!runs_recycled(seed, why) || !runs_while_queues_fail(seed * SEEDS, why)))
			r = -1;
		answered += n.requests;
		runs += (n.requests + requests - 1) / requests;
		loops += program.p->loop && n.requests;
		overlap += program.o.depth > 1 && n.requests;
		several += program.o.depth > 1 && program.p->image->nqueues > 2 && n.requests;
	}
	/* a refusal by the proof of the ring is a fault of the compiler, not of the program, unless it is too
	 * long */
	if (program.messages && strstr(program.messages, "WQEBB") &&
		!strstr(program.messages, "NOPs that fill groups")) {
		snprintf(why, 400, "%.390s", program.messages);
		r = -1;
	}
	if (r > 0)
		note_traits(program.p, program.tree);
	random_offload_free(&program);
	return r;
}

static void tell_forms(void)
{
	for (unsigned i = 0; i < TRAITS; i++)
		printf("%lu programs with %s\n", (unsigned long)with_trait[i], TRAIT[i]);
	printf("%lu requests of the interpreter, %lu that lack bytes, %lu that lack all; %lu without a "
	       "payload, %lu "
	       "with the largest; %lu payloads published\n",
		(unsigned long)random_counts.all, (unsigned long)random_counts.lacking,
		(unsigned long)random_counts.empty, (unsigned long)random_counts.none,
		(unsigned long)random_counts.most, (unsigned long)random_counts.published);
}

static void run_as_they_read(void **state)
{
	static const char *const FORMS[] = {", mask ", ", fields ", ": wait ", "wait l", "enable done",
		"-> done.imm", "cas l", ".remote[", ".local[1].", "fence ", "send ", "swab(", " was -> ",
		"max ", "min ", "xor ", " && ", " || ", " -> pl, was", " -> 0x080000 in ", "mov l", "read l",
		"loc : le64, _ : bytes 6, tag : u8 }", "mov pl.length -> ", "-> get.length"};
	unsigned programs = SANITIZED ? 200 : 2000, ran = 0, with[COUNT(FORMS)] = {0};
	char why[400];

	(void)state;
	for (uint64_t seed = 0; seed < programs; seed++) {
		int r = one(seed, why);

		if (r < 0)
			fail_msg("program %lu: %s\n%s", (unsigned long)seed, why, program.text);
		ran += r > 0;
		for (unsigned i = 0; r > 0 && i < COUNT(FORMS); i++)
			with[i] += strstr(program.text, FORMS[i]) != NULL;
	}
	/* the short run of the sanitizers is too short for rare forms */
	for (unsigned i = 0; programs == 2000 && i < COUNT(FORMS); i++)
		if (!with[i])
			fail_msg("no program that ran has \"%s\"", FORMS[i]);
	for (unsigned i = 0; programs == 2000 && i < TRAITS; i++)
		if (!with_trait[i])
			fail_msg("no program that ran has %s", TRAIT[i]);
	print_message("%u programs, %u of them run, %lu with a loop without a bound, %lu whose requests "
		      "overlap, %lu of them with several code queues: %lu runs, %lu requests\n",
		programs, ran, (unsigned long)loops, (unsigned long)overlap, (unsigned long)several,
		(unsigned long)runs, (unsigned long)answered);
	tell_forms();
	print_message("%lu runs in which a queue failed: %lu requests answered, %lu lost\n",
		(unsigned long)failing.runs, (unsigned long)failing.answered, (unsigned long)failing.lost);
	assert_true(failing.answered > failing.runs && failing.lost > failing.runs / 4);
	assert_true(recycled > failing.runs / 4);
	assert_true(random_counts.lacking > random_counts.all / 20 &&
		    random_counts.empty > random_counts.all / 50);
	assert_true(programs < 2000 || (random_counts.none && random_counts.most && random_counts.published));
	assert_true(several >= programs / 500);
	assert_true(ran > programs / 10 && loops > programs / 100 && overlap > programs / 100 && runs > ran);
}

static void tell(FILE *f, uint64_t programs, const char *end)
{
	fprintf(f,
		"%lu programs, %lu runs, %lu requests; %lu programs with a loop without a bound, %lu whose "
		"requests overlap%s",
		(unsigned long)programs, (unsigned long)runs, (unsigned long)answered, (unsigned long)loops,
		(unsigned long)overlap, end);
	fflush(f);
}

static int campaign(uint64_t wanted, uint64_t first)
{
	uint64_t seed = first, bad = 0;
	char why[400];

	for (; runs < wanted && (!file || seed == first); seed++) {
		if (one(seed, why) < 0) {
			printf("program %lu: %s\n", (unsigned long)seed, why);
			if (!bad++)
				printf("%s", program.text);
		}
		if (isatty(STDERR_FILENO) && seed % 64 == 0)
			tell(stderr, seed - first + 1, "\r");
	}
	tell(stdout, seed - first, "\n");
	tell_forms();
	printf("%lu that did not run as they read\n", (unsigned long)bad);
	return bad > 0;
}

static void operators_run_as_they_read(void **state)
{
	enum { TIMES = SANITIZED ? 20 : 60 };
	glob_t found;
	char why[400];

	(void)state;
	assert_int_equal(glob(OPERATORS "/*.rdn", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		unsigned ran[2] = {0};

		file = found.gl_pathv[i];
		for (uint64_t seed = 0; seed < TIMES; seed++) {
			int r = one(seed, why);

			if (r < 0)
				fail_msg("%s, %lu: %s", file, (unsigned long)seed, why);
			ran[device(seed).calc != 0] += r > 0;
		}
		if (ran[0] < TIMES / 5 || ran[1] < TIMES / 5)
			fail_msg("%s ran %u times without CALC and %u times with it", file, ran[0], ran[1]);
	}
	file = NULL;
	globfree(&found);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(run_as_they_read)};
	const struct CMUnitTest operators[] = {cmocka_unit_test(operators_run_as_they_read)};

	if (argc == 2 && strcmp(argv[1], "--operators") == 0)
		return cmocka_run_group_tests_name("programs of operators", operators, NULL, NULL);
	if (argc < 3 || strcmp(argv[1], "--runs") != 0)
		return cmocka_run_group_tests_name("random programs", tests, NULL, NULL);
	file = argc > 4 ? argv[4] : NULL;
	return campaign(strtoull(argv[2], NULL, 0), argc > 3 ? strtoull(argv[3], NULL, 0) : 0);
}
