/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wr-counts [--check FILE]: docs/wr-counts.md, the work requests of constructs and programs as the compiler
 * and the trace of the emulated silicon count them; or whether FILE is that.
 */
#include "tests/programs/offloads.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTED = 40 /* requests */ };

/** What a construct costs: a program with it, less one without it, for each of @times. */
static const struct construct {
	const char *name;
	struct run_offload with, without;
	unsigned times;
	const char *paper;
} constructs[] = {
#define BARE "program p\narg x : u48\narg y : u48\nvar a : le48\nvar b : le64\nregion data writable\n"
#define ANSWER "write_imm 1 as u8 -> slot @ 0\n"
#define FETCH "read data @ 0 as le64 -> b\n"
#define SHOW "write b -> slot @ 1\n"
#define WITHOUT_CALC(t)                                                                                      \
	{                                                                                                    \
		.name = "a construct", .text = BARE t ANSWER, .no_calc = true                                \
	}
#define TEXT(t)                                                                                              \
	{                                                                                                    \
		.name = "a construct", .text = BARE t ANSWER                                                 \
	}
	{"`if` of 48 bits, one WR in the branch", TEXT("if x == y {\nwrite 1 as u8 -> slot @ 1\n}\n"),
		TEXT(""), 1, "1C + 1A + 3E"},
	{"`if` and `else`, one WR in each",
		TEXT("if x == y {\nwrite 1 as u8 -> slot @ 1\n} else {\nwrite 2 as u8 -> slot @ 1\n}\n"),
		TEXT(""), 1, ""},
	{"`<` of 48 bits, one WR in the branch", TEXT("if x < y {\nwrite 1 as u8 -> slot @ 1\n}\n"), TEXT(""),
		1, "`if`, and MAX or MIN"},
#define TWO(t)                                                                                               \
	"var c : " t "\nvar d : " t "\nread data @ 0 as " t " -> c\nread data @ 8 as " t                     \
	" -> d\nwrite c, d -> slot @ 8\n"
#define LESS "if c < d {\nwrite 1 as u8 -> slot @ 1\n}\n"
	{"`<` of two variables of 48 bits, one WR in the branch", TEXT(TWO("le48") LESS), TEXT(TWO("le48")),
		1, "`if`, and MAX or MIN"},
	{"the same without CALC", WITHOUT_CALC(TWO("le48") LESS), TEXT(TWO("le48")), 1, ""},
	{"`<` of two variables of 64 bits, one WR in the branch", TEXT(TWO("le64") LESS), TEXT(TWO("le64")),
		1, "`if`, and MAX or MIN"},
	{"the same without CALC", WITHOUT_CALC(TWO("le64") LESS), TEXT(TWO("le64")), 1, ""},
	{"`max` of an argument and a variable that is read", TEXT(FETCH "max x, b -> b\n" SHOW),
		TEXT(FETCH SHOW), 1, "1C"},
	{"the same into a be64", TEXT("var c : be64\n" FETCH "max x, b -> c\nwrite c -> slot @ 1\n"),
		TEXT(FETCH SHOW), 1, "1C"},
	{"`min` of them", TEXT(FETCH "min x, b -> b\n" SHOW), TEXT(FETCH SHOW), 1, "1C"},
	{"`max` without CALC", WITHOUT_CALC(FETCH "max x, b -> b\n" SHOW), TEXT(FETCH SHOW), 1, ""},
	{"`and`, `or` or `xor` of them", TEXT(FETCH "and x, b -> b\n" SHOW), TEXT(FETCH SHOW), 1, ""},
	{"the same without CALC", WITHOUT_CALC(FETCH "and x, b -> b\n" SHOW), TEXT(FETCH SHOW), 1, ""},
	{"`sub` of them", TEXT(FETCH "sub x, b -> b\n" SHOW), TEXT(FETCH SHOW), 1, ""},
	{"the same without CALC", WITHOUT_CALC(FETCH "sub x, b -> b\n" SHOW), TEXT(FETCH SHOW), 1, ""},
	{"both of two conditions, one WR in the branch",
		TEXT("if x == y && a == 0 {\nwrite 1 as u8 -> slot @ 1\n}\n"), TEXT(""), 1, ""},
	{"both of two conditions, one WR in each branch",
		TEXT("if x == y && a == 0 {\nwrite 1 as u8 -> slot @ 1\n} else {\nwrite 2 as u8 -> slot @ "
		     "1\n}\n"),
		TEXT(""), 1, ""},
	{"one of two conditions, one WR in the branch",
		TEXT("if x == y || a == 0 {\nwrite 1 as u8 -> slot @ 1\n}\n"), TEXT(""), 1, ""},
	{"`while`, unrolled: an iteration, without the read",
		{.name = "a construct", .file = "while-unrolled.rdn", .settings = {{"n", 8}}},
		{.name = "a construct", .file = "while-unrolled.rdn", .settings = {{"n", 4}}}, 4,
		"1C + 1A + 3E"},
	{"the same, where index and QPN are not checked",
		{.name = "a construct", .file = "while-unrolled.rdn", .settings = {{"n", 5}}, .direct = true},
		{.name = "a construct", .file = "while-unrolled.rdn", .settings = {{"n", 4}}, .direct = true},
		1, "1C + 1A + 3E"},
	{"`while`, with a break: an iteration, without the read",
		{.name = "a construct", .file = "while-break.rdn", .settings = {{"n", 8}}},
		{.name = "a construct", .file = "while-break.rdn", .settings = {{"n", 4}}}, 4, ""},
	{"96 bits compared, one WR in each branch",
		{.name = "a construct", .file = "wide-compare.rdn", .settings = {{"width", 12}}},
		TEXT("mov data @ 0 as le48 -> a\nwrite a -> slot @ 1\n"), 1, ""},
	{"128 bits compared, one WR in each branch",
		{.name = "a construct", .file = "wide-compare.rdn", .settings = {{"width", 16}}},
		TEXT("mov data @ 0 as le48 -> a\nwrite a -> slot @ 1\n"), 1, ""},
};

static void print_class(FILE *f, double c, double a, double e)
{
	fprintf(f, "%gC + %gA + %gE | %g |", c, a, e, c + a + e);
}

static void print_constructs(FILE *f)
{
	fprintf(f, "| construct | WRs | all | the paper |\n|---|---|---|---|\n");
	for (unsigned i = 0; i < sizeof(constructs) / sizeof(constructs[0]); i++) {
		const struct construct *k = &constructs[i];
		struct program *with = run_compile(&k->with), *without = run_compile(&k->without);
		const struct chain_image *a = with->image, *b = without->image;
		/* the paper's loop has its data at hand: it does not count the READ that fetches an element
		 */
		double reads = k->times > 1 || k->with.direct ? 1 : 0;

		fprintf(f, "| %s | ", k->name);
		print_class(f, (double)(int)(a->n_copy - b->n_copy) / k->times - reads,
			(double)(int)(a->n_atomic - b->n_atomic) / k->times,
			(double)(int)(a->n_sync - b->n_sync) / k->times);
		fprintf(f, " %s |\n", k->paper);
		program_free(with);
		program_free(without);
	}
}

/* What a queue of the NIC does for each request to keep a chain with so many slots going (chain/recycle.h) */
static void recycling(const struct chain_image *img, unsigned slots, double per_request[3])
{
	struct chain_env env = {.slots = slots};
	struct chain_recycle k;
	unsigned a, e, sections = chain_recycle_sections(slots);

	for (unsigned q = 0; q < img->nqueues; q++)
		env.queue[q].ring_wqebbs = chain_recycle_ring(img, q, slots);
	assert_int_equal(chain_recycle_size(img, &env, &k), 0);
	a = k.lap.adds + sections; /* one counts */
	/* WAIT and RECV_EN; and where the daemon does not ring, a SEND_EN, and a WAIT for the CQEs of each
	 * queue */
	e = 2 * sections;
	for (unsigned q = 0; q < img->nqueues && !img->payload.max; q++)
		e += (q == 0) * sections + (img->queue[q].cqes ? sections : 0);
	per_request[0] = (double)(k.lap.wqes - a - e) / slots;
	per_request[1] = (double)a / slots;
	per_request[2] = (double)e / slots;
}

static void recycled_row(FILE *f, const char *name, const struct chain_image *img, double wrs[2])
{
	double k[3];

	fprintf(f, "| %s |", name);
	for (unsigned s = 0; s < 2; s++) {
		recycling(img, s ? 256 : 64, k);
		wrs[s] = k[0] + k[1] + k[2];
		fprintf(f, " %.2fC + %.2fA + %.2fE = %.2f |", k[0], k[1], k[2], wrs[s]);
	}
	fputc('\n', f);
}

static void print_recycled(FILE *f)
{
	static const struct run_offload programs[] = {
		{.name = "if", .file = "if.rdn"},
		{.name = "hash-get", .file = "hash-get.rdn"},
		{.name = "store-put", .file = "store-put.rdn"},
		{.name = "store-put-if", .file = "store-put-if.rdn"},
		{.name = "while-break, 4 iterations", .file = "while-break.rdn", .settings = {{"n", 4}}},
		{.name = "while-break, 8 iterations", .file = "while-break.rdn", .settings = {{"n", 8}}},
	};
	double wrs[6][2];
	struct program *p;

	fprintf(f, "| program | 64 slots | 256 slots |\n|---|---|---|\n");
	for (unsigned i = 0; i < 6; i++) {
		p = run_compile(&programs[i]);
		recycled_row(f, programs[i].name, p->image, wrs[i]);
		program_free(p);
	}
	fprintf(f, "| an iteration of `while-break` | %.2f | %.2f |\n", (wrs[5][0] - wrs[4][0]) / 4,
		(wrs[5][1] - wrs[4][1]) / 4);
}

static double busy_program(const struct run_offload *o, struct program *p)
{
	struct run_counts n = {0};
	char why[400];

	if (!run_program(o, p, 1, 1, COUNTED, &n, why))
		fail_msg("%s: %s", o->name, why);
	return (double)(n.copy + n.atomic + n.sync) / (double)n.requests;
}

static double busy(const struct run_offload *o)
{
	struct program *p = run_compile(o);
	double n = busy_program(o, p);

	program_free(p);
	return n;
}

static const struct run_offload *find_offload(const char *name)
{
	for (unsigned i = 0; i < nlibrary; i++)
		if (strcmp(library[i].name, name) == 0)
			return &library[i];
	fail_msg("no program %s", name);
	return NULL;
}

static void program_row(FILE *f, const struct run_offload *o)
{
	struct program *p = run_compile(o);

	fprintf(f, "| %s | ", o->name);
	print_class(f, p->image->n_copy, p->image->n_atomic, p->image->n_sync);
	fprintf(f, " %.1f |\n", busy_program(o, p));
	program_free(p);
}

static void print_programs(FILE *f)
{
	fprintf(f, "| program | WRs posted | all | that are no NOPs |\n|---|---|---|---|\n");
	for (unsigned i = 0; i < nlibrary; i++)
		program_row(f, &library[i]);
}

/* Nobody has a model of them, so nothing ran: random-on-hw runs them */
static void print_operators(FILE *f)
{
	glob_t found;

	assert_int_equal(glob(OPERATORS "/*.rdn", 0, NULL, &found), 0);
	fprintf(f, "| program | with CALC | all | without | all |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i], *name = strrchr(path, '/') + 1;

		fprintf(f, "| %.*s | ", (int)strcspn(name, "."), name);
		for (unsigned no_calc = 0; no_calc < 2; no_calc++) {
			struct program *p =
				run_compile(&(struct run_offload){.file = path, .no_calc = no_calc});

			print_class(f, p->image->n_copy, p->image->n_atomic, p->image->n_sync);
			fputs(no_calc ? "\n" : " ", f);
			program_free(p);
		}
	}
	globfree(&found);
}

/* ---- loops without a bound --------------------------------------------------------------------- */

static void loop_row(FILE *f, const struct run_offload *o)
{
	struct run_counts n = {0};
	struct program *p;
	double iterations, renewals[2], laps;
	unsigned later = 0;
	char why[400];

	p = run_compile(o);
	iterations = p->loop_info.iterations;
	for (unsigned s = 0; s < p->loop->nsteps; s++)
		later += p->loop->steps[s].flags & CHAIN_DORMANT &&
			 chain_verb_info(p->loop->steps[s].verb)->class == CHAIN_CLASS_SYNC;
	renewals[0] = p->loop_info.lap.copies / iterations;
	renewals[1] = (p->loop_info.lap.adds + 2) / iterations; /* two count iterations */
	if (!run_offload(o, 1, 1, COUNTED, &n, why))
		fail_msg("%s: %s", o->name, why);
	laps = (double)n.laps * iterations;
	/* whole laps: exactly the count of the compiler, NOPs included */
	assert_true(n.laps > 0);
	assert_int_equal(n.lap[0] + n.lap[1] + n.lap[2] + n.lap[RUN_NOPS], n.laps * p->loop_info.lap.wqes);
	fprintf(f, "| %s | %uC + %uA + %uE |", o->name, program_loop_size(p).copy,
		program_loop_size(p).atomic, program_loop_size(p).sync);
	fprintf(f, " %u | %.2fC + %.2fA |", later, renewals[0], renewals[1]);
	fprintf(f, " %.2fC + %.2fA + %.2fE | %s |\n", (double)n.lap[CHAIN_CLASS_COPY] / laps,
		(double)n.lap[CHAIN_CLASS_ATOMIC] / laps, (double)n.lap[CHAIN_CLASS_SYNC] / laps,
		strcmp(o->file, "while-recycled.rdn") == 0 ? "3C + 2A + 4E" : "");
	program_free(p);
}

static void print_loops(FILE *f)
{
	fprintf(f, "| loop | an iteration | NOPs until the end | renewal | what ran | the paper "
		   "|\n|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < nloops; i++)
		if (loops[i].file && !loops[i].no_masks)
			loop_row(f, &loops[i]);
}

static void print_lists(FILE *f)
{
	static const char *const names[] = {"list-walk", "list-walk, fenced enables", "list-walk, break",
		"list-walk, break, direct", "list-walk, break, fenced enables",
		"list-walk, break, direct, fenced enables"};

	fprintf(f, "| key in node | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | average | the paper |\n"
		   "|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		double sum = 0;

		fprintf(f, "| %s |", names[i]);
		for (library_list_place = 1; library_list_place <= 8; library_list_place++) {
			double n = busy(find_offload(names[i]));

			sum += n;
			fprintf(f, " %g |", n);
		}
		library_list_place = 0;
		fprintf(f, " %g | %s |\n", sum / 8, i >= 2 ? "30" : "more than 49.5");
	}
}

static void print_tables(FILE *f)
{
	fprintf(f, "# Work requests per request\n"
		   "\n"
		   "C: copies (READ, WRITE, SEND and the NOPs that may become one); A: atomics; E: WAIT and "
		   "SEND_EN.\n"
		   "The compiler counts them, and a test compares each count of a program with the trace of "
		   "what the\n"
		   "emulated NIC executes (`tests/programs`). `build/tests/programs/wr-counts` prints this "
		   "page.\n"
		   "The counts are for NICs that check WQE indices, except where a line names the direct "
		   "form; the\n"
		   "paper's forms rely on NICs that do not check them. \"Fenced enables\" are for NICs on "
		   "which a SEND_EN\n"
		   "heeds a fence and takes no WAIT; no public source states it. `reddnd` tries the first "
		   "when it\n"
		   "starts, the second if its configuration asks for it, and compiles for what it found. "
		   "Every program\n"
		   "has a WAIT and a SEND_EN of the reply. They serve a condition before it as well.\n"
		   "\n"
		   "## Constructs\n"
		   "\n"
		   "What each adds to a program that answers.\n"
		   "\n");
	print_constructs(f);
	fprintf(f, "\n"
		   "## Programs\n"
		   "\n"
		   "Complete, from the request's arrival to the reply. The last column is an average over "
		   "the requests\n"
		   "of the test: a WR whose condition did not hold is a NOP.\n"
		   "\n");
	print_programs(f);
	fprintf(f, "\n"
		   "## What operators write\n"
		   "\n"
		   "Work requests posted of the programs of `tests/programs/operators`, with CALC and "
		   "without. A test runs\n"
		   "them on emulated NICs of both kinds, and by the CPU, beside what their text means.\n"
		   "\n");
	print_operators(f);
	fprintf(f, "\n"
		   "## Recycled\n"
		   "\n"
		   "The work requests per request that keep a chain going without a CPU. They run on a queue "
		   "of their\n"
		   "own and not on the path. The paper's loop grows by 2C + 1A + 1E with each iteration, to "
		   "3C + 2A + 4E.\n"
		   "\n");
	print_recycled(f);
	fprintf(f, "\n"
		   "## Loops without a bound\n"
		   "\n"
		   "Per iteration. Two of its WRs serve to call the loop and to get back. They are NOPs "
		   "until the loop is\n"
		   "left; then one is the WAIT for the next call, and the other the SEND_EN of the caller. "
		   "The loop of the\n"
		   "paper serves one request. The ring is renewed in whole laps of some ten iterations: "
		   "`renewal` is the\n"
		   "cost of that for each, and `what ran` is the trace of whole laps, without NOPs. The "
		   "paper counts\n"
		   "neither the READ that fetches an element nor what else its loop does. `while-recycled` "
		   "reads one and\n"
		   "adds to an address, so it is 2C + 1A + 4E and the two NOPs where the paper has 3C + 2A + "
		   "4E. The\n"
		   "direct form does not renew the indices in control segments, as the paper does not. A "
		   "condition in\n"
		   "such a loop decides about two WRs at least, so a scratch word is as good.\n"
		   "\n");
	print_loops(f);
	fprintf(f, "\n"
		   "## A list of eight nodes\n"
		   "\n"
		   "WRs of `list-walk.rdn` that are not NOPs. Without a break it answers when it comes to "
		   "the key, for\n"
		   "which each node takes a SEND_EN. With a break, the nodes behind the key are skipped, "
		   "except for a WAIT\n"
		   "and a SEND_EN for each: the ring goes on, where the paper leaves it to a CPU to post the "
		   "rest anew. On\n"
		   "a NIC with fenced enables there are no WAITs.\n"
		   "\n");
	print_lists(f);
}

/* 0 if @path is what --table prints */
static int check_tables(const char *path)
{
	char *page = NULL, *is = NULL;
	size_t n, m = 0;
	FILE *f = open_memstream(&page, &n);
	int bad;

	assert_non_null(f);
	print_tables(f);
	fclose(f);
	f = fopen(path, "r");
	if (!f || getdelim(&is, &m, '\0', f) < 0) {
		perror(path);
		return 1;
	}
	fclose(f);
	bad = strcmp(page, is) != 0;
	if (bad)
		fprintf(stderr, "%s is not what build/tests/programs/wr-counts prints now\n", path);
	free(page);
	free(is);
	return bad;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--check") == 0)
		return check_tables(argv[2]);
	print_tables(stdout);
	return 0;
}
