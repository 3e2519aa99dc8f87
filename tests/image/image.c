/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image [--runs N] [--seed N] [--endless PERCENT] [--device N] [PROGRAM...]: compiles the PROGRAMs, and N
 * programs at random that keep to the grammar (tests/programs/generate.h), some with a loop without a bound,
 * for devices of all kinds; the PROGRAMs after --device for the one that program number N would be for. The
 * second opinion (check.h) must agree with each that is accepted; the first one with which it does not is
 * printed.
 */
#include "tests/image/check.h"
#include "tests/programs/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[PROGRAM_MAX_SOURCE + 1];
static uint64_t accepted, loops, disagreed;

static void one(const char *name, size_t len, const struct program_target *target, uint64_t run)
{
	const struct program_source source = {name, text, len};
	struct program *p = NULL;
	char *messages = NULL, why[300];

	if (program_compile(&source, NULL, 0, target, &p, &messages) == 0) {
		accepted++;
		loops += p->loop != NULL;
		if (!image_check(p, target, why, sizeof(why))) {
			printf("%s%s, number %" PRIu64 ": %s\n", disagreed ? "" : text, name, run, why);
			disagreed++;
		}
	}
	free(messages);
	program_free(p);
}

static struct program_target device(uint64_t n)
{
	return (struct program_target){.masked_atomics = n % 4 != 0,
		.swapped_old = n % 11 < 3,
		.ignores_index = n % 3 == 1,
		.fenced_enables = n % 5 == 0,
		.overlap = n % 2,
		.fetch_group = n % 7 == 0 ? 4 : 0};
}

static bool load(const char *path, const char *number)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, PROGRAM_MAX_SOURCE, f);
	fclose(f);
	text[n] = '\0';
	if (number) {
		const struct program_target target = device(strtoull(number, NULL, 0));

		one(path, n, &target, 0);
		return true;
	}
	for (unsigned d = 0; d < 16; d++) {
		const struct program_target target = {.masked_atomics = d & 1,
			.ignores_index = d & 2,
			.fenced_enables = d & 4,
			.swapped_old = d & 8};

		one(path, n, &target, d);
	}
	return true;
}

int main(int argc, char **argv)
{
	uint64_t runs = 0, seed = 0;
	unsigned endless = 10;
	const char *number = NULL;
	int files = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
			runs = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
			seed = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(argv[i], "--endless") == 0 && i + 1 < argc) {
			endless = (unsigned)atoi(argv[++i]);
		} else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
			number = argv[++i];
		} else if (argv[i][0] == '-' || !load(argv[i], number)) {
			fprintf(stderr, "usage: image [--runs N] [--seed N] [--endless PERCENT] [--device N] "
					"[PROGRAM...]\n");
			return 2;
		} else {
			files++;
		}
	}
	for (uint64_t run = seed; run < seed + runs; run++) {
		struct random r = {(run + 1) * 0x9e3779b97f4a7c15u | 1};
		struct generate_style style = {.endless = endless};
		struct program_target target = device(run);

		random_next(&r);
		style.statements = 1 + random_below(&r, random_below(&r, 4) ? 14 : 60);
		one("at random", generate(&r, &style, text, PROGRAM_MAX_SOURCE), &target, run);
	}
	printf("%d files and %" PRIu64 " programs from number %" PRIu64 " on: %" PRIu64 " images, %" PRIu64
	       " with a loop without a bound; %" PRIu64 " disagree\n",
		files, runs, seed, accepted, loops, disagreed);
	image_check_done();
	return disagreed > 0 || accepted == 0;
}
