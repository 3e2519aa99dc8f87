/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failing-on-hw: the programs that can have two sets of code queues (offloads.h), with a queue that fails
 * while their requests are at work (failing.h), each under some seeds, armed by the rig and recycled in turn.
 */
#include "tests/programs/failing.h"
#include "tests/programs/offloads.h"

enum { SEEDS = RUN_SEEDS / 25, DEPTH = 4, SLOTS = 8, REQUESTS = 8, RECYCLED = 40 /* more than two laps */ };

static struct failing_counts counts;
static unsigned programs, several, recycled;

static void fails(struct run_offload o, struct program *p)
{
	const bool recycles = run_recycles(p->image), cut = p->image->nqueues > 2;
	const unsigned seeds = cut ? 8 * SEEDS : SEEDS; /* there are few of these */
	char why[400];

	o.meets = true;
	o.depth = o.depth < DEPTH ? o.depth : DEPTH;
	for (uint64_t seed = 0; seed < seeds; seed++) {
		unsigned slots = recycles && seed % 2 ? SLOTS : 0;

		recycled += slots > 0;
		if (!failing_run(&o, p, seed, slots, slots ? RECYCLED : REQUESTS, &counts, why))
			fail_msg("%s, seed %lu%s: %s", o.name, (unsigned long)seed, slots ? ", recycled" : "",
				why);
	}
	programs++;
	several += cut;
}

static void fail_all(const struct run_offload *offloads, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct program *p;

		if (offloads[i].depth == 1) /* its requests do not overlap */
			continue;
		p = run_compile(&offloads[i]);
		if (p->image->sets > 1)
			fails(offloads[i], p);
		program_free(p);
	}
}

static void no_answer_is_wrong(void **state)
{
	(void)state;
	run_overlap = true;
	run_sets = 2;
	fail_all(library, nlibrary);
	fail_all(features, nfeatures);
	fail_all(places, nplaces);
	fail_all(above, nabove);
	print_message("%u programs, %u of them with several code queues; %lu runs, %u of them recycled: %lu "
		      "requests answered, %lu lost; %lu runs in which later ones were answered\n",
		programs, several, (unsigned long)counts.runs, recycled, (unsigned long)counts.answered,
		(unsigned long)counts.lost, (unsigned long)counts.ahead);
	assert_true(several > 0 && recycled > counts.runs / 4);
	assert_true(counts.answered > counts.runs && counts.lost > counts.runs / 4 && counts.ahead > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_answer_is_wrong)};

	return cmocka_run_group_tests_name("programs whose queues fail", tests, NULL, NULL);
}
