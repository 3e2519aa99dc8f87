/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/suite.h"

#include <stdlib.h>
#include <string.h>

/* So that its requests are some laps of the slots */
enum { SEEDS_OF_A_CLIENT = 20, LARGE_CLIENTS = 3 };

static unsigned all_seeds, all_requests;

/* As the daemon does: with instances in turn, where those that overlap cannot be recycled */
static struct program *compile(const struct run_offload *o)
{
	struct program *p = run_compile(o);
	bool overlap = run_overlap;

	if (!run_recycled || !overlap || run_recycles(p->image))
		return p;
	program_free(p);
	run_overlap = false;
	p = run_compile(o);
	run_overlap = overlap;
	return p;
}

/* Whatever the silicon may do; and the compiler's count of work requests is what ran */
static void means_what_it_says(void **state)
{
	const struct run_offload *o = *state;
	const struct chain_image *img;
	struct chain_rig_recycler recycler = {0};
	struct run_counts n = {0};
	const uint64_t seeds = o->large ? LARGE_CLIENTS * SEEDS_OF_A_CLIENT : all_seeds;
	struct program *p;
	char why[400];

	if (run_fetch_group && o->no_groups)
		return;
	p = compile(o);
	img = p->image;

	if (run_recycled && o->unrolled) {
		assert_false(run_recycles(img));
		program_free(p);
		return;
	}
	run_shared = &recycler;
	/* the first is lenient: everything in order, at once */
	if (!run_program(o, p, 0, 1, SEEDS_OF_A_CLIENT, &n, why))
		fail_msg("%s", why);
	for (uint64_t seed = 1; seed <= seeds; seed += SEEDS_OF_A_CLIENT)
		if (!run_program(o, p, seed, SEEDS_OF_A_CLIENT, all_requests, &n, why))
			fail_msg("client of seed %lu: %s", (unsigned long)seed, why);
	run_shared = NULL;
	ring_free(recycler.image);
	assert_int_equal(n.copy + n.atomic + n.sync + n.nops,
		n.requests * (img->n_copy + img->n_atomic + img->n_sync + img->n_pad));
	assert_true(n.copy <= n.requests * img->n_copy && n.atomic <= n.requests * img->n_atomic &&
		    n.sync <= n.requests * img->n_sync);
	print_message("%-24s %uC + %uA + %uE, of which %.1f are no NOPs\n", o->name, img->n_copy,
		img->n_atomic, img->n_sync, (double)(n.copy + n.atomic + n.sync) / (double)n.requests);
	if (p->loop)
		print_message("%-24s and in its loop %.1fC + %.1fA + %.1fE, and %.1f NOPs\n", "",
			(double)n.loop[CHAIN_CLASS_COPY] / (double)n.requests,
			(double)n.loop[CHAIN_CLASS_ATOMIC] / (double)n.requests,
			(double)n.loop[CHAIN_CLASS_SYNC] / (double)n.requests,
			(double)n.loop[RUN_NOPS] / (double)n.requests);
	program_free(p);
}

int run_all(
	const struct run_offload *offloads, unsigned n, unsigned seeds, unsigned requests, const char *filter)
{
	struct CMUnitTest *tests = calloc(n, sizeof(*tests));
	bool both = filter && strcmp(filter, "--recycled-overlap") == 0;
	int r;

	assert_non_null(tests);
	run_recycled = both || (filter && strcmp(filter, "--recycled") == 0);
	if (filter && strcmp(filter, "--groups") == 0)
		run_fetch_group = 4;
	run_overlap = both || (filter && (strcmp(filter, "--overlap") == 0 || run_fetch_group));
	run_swapped = filter && strcmp(filter, "--swapped") == 0;
	all_seeds = seeds;
	all_requests = requests;
	for (unsigned i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){.name = offloads[i].name,
			.test_func = means_what_it_says,
			.initial_state = (void *)(uintptr_t)&offloads[i]};
	if (filter && !run_recycled && !run_fetch_group && !run_swapped && !run_overlap)
		cmocka_set_test_filter(filter);
	r = _cmocka_run_group_tests("programs", tests, n, NULL, NULL);
	free(tests);
	return r;
}
