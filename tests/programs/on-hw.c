/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * on-hw library | features | loops | places | above [--recycled | --groups | --overlap | --recycled-overlap |
 * NAME]: these programs (offloads.h) on the emulated silicon, under many seeds, against what they mean in
 * plain C.
 */
#include "tests/programs/offloads.h"
#include "tests/programs/suite.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		const struct run_offload *offloads;
		unsigned n, requests;
	} sets[] = {
		{"library", library, nlibrary, 5},
		{"features", features, nfeatures, 4},
		{"loops", loops, nloops, 2},
		{"places", places, nplaces, 4},
		{"above", above, nabove, 4},
	};

	for (unsigned i = 0; argc > 1 && i < sizeof(sets) / sizeof(sets[0]); i++)
		if (strcmp(argv[1], sets[i].name) == 0)
			return run_all(sets[i].offloads, sets[i].n, RUN_SEEDS, sets[i].requests, argv[2]);
	fprintf(stderr, "usage: on-hw library | features | loops | places | above [--recycled | --groups | "
			"--overlap | --recycled-overlap | NAME]\n");
	return 2;
}
