/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image [--runs N] [--seed N] [--jobs N] [--endless PERCENT] [--device N] [PROGRAM...]: compiles the
 * PROGRAMs, and N programs at random that keep to the grammar (tests/programs/generate.h), some with a loop
 * without a bound, for devices of all kinds; the PROGRAMs after --device for the one that program number N
 * would be for. Those at random are shared out among as many processes as --jobs; on a terminal they show how
 * far they are. The second opinion (check.h) must agree with each that is accepted; the first one with which
 * it does not is printed.
 */
#include "tests/image/check.h"
#include "tests/programs/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[PROGRAM_MAX_SOURCE + 1];

/* What a process has done; the parent reads it */
struct tally {
	uint64_t programs, accepted, loops, disagreed;
};

static struct tally *mine;

static void one(const char *name, size_t len, const struct program_target *target, uint64_t run)
{
	const struct program_source source = {name, text, len};
	struct program *p = NULL;
	char *messages = NULL, why[300];

	if (program_compile(&source, NULL, 0, target, &p, &messages) == 0) {
		mine->accepted++;
		mine->loops += p->loop != NULL;
		if (!image_check(p, target, why, sizeof(why))) {
			printf("%s%s, number %" PRIu64 ": %s\n", mine->disagreed ? "" : text, name, run, why);
			fflush(stdout);
			mine->disagreed++;
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
		.calc = n % 13 < 9 ? PROGRAM_CALC : 0,
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
	for (unsigned d = 0; d < 32; d++) {
		/* half of them: any four of the five in all ways */
		if (__builtin_parity(d))
			continue;
		const struct program_target target = {.masked_atomics = d & 1,
			.ignores_index = d & 2,
			.fenced_enables = d & 4,
			.swapped_old = d & 8,
			.calc = d & 16 ? PROGRAM_CALC : 0};

		one(path, n, &target, d);
	}
	return true;
}

static void at_random(uint64_t run, unsigned endless)
{
	struct random r = {(run + 1) * 0x9e3779b97f4a7c15u | 1};
	struct generate_style style = {.endless = endless};
	struct program_target target = device(run);

	random_next(&r);
	style.statements = 1 + random_below(&r, random_below(&r, 4) ? 14 : 60);
	one("at random", generate(&r, &style, text, PROGRAM_MAX_SOURCE), &target, run);
	mine->programs++;
}

static struct tally sum_of(const struct tally *t, unsigned n)
{
	struct tally sum = {0};

	for (unsigned i = 0; i < n; i++) {
		sum.programs += t[i].programs;
		sum.accepted += t[i].accepted;
		sum.loops += t[i].loops;
		sum.disagreed += t[i].disagreed;
	}
	return sum;
}

static struct tally *tallies(unsigned n)
{
	void *t = mmap(
		NULL, n * sizeof(struct tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		abort();
	return t;
}

/* True if all @jobs processes have come to their end */
static bool wait_for(unsigned jobs, const struct tally *t, uint64_t runs)
{
	bool fine = true, shown = isatty(STDERR_FILENO);
	int status;

	for (unsigned left = jobs; left;) {
		pid_t pid = waitpid(-1, &status, shown ? WNOHANG : 0);
		struct tally sum = sum_of(t, jobs);

		if (pid < 0)
			return false;
		if (pid > 0) {
			fine &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
			left--;
			continue;
		}
		fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " programs, %" PRIu64 " disagree ", sum.programs,
			runs, sum.disagreed);
		sleep(1);
	}
	if (shown)
		fprintf(stderr, "\r\033[K");
	return fine;
}

/* @runs programs, by @jobs processes with a tally each */
static bool share_out(uint64_t seed, uint64_t runs, unsigned endless, unsigned jobs, struct tally *t)
{
	fflush(stdout);
	for (unsigned j = 0; j < jobs; j++) {
		pid_t pid = fork();

		if (pid < 0)
			abort();
		if (pid > 0)
			continue;
		mine = &t[j];
		for (uint64_t run = seed + j; run < seed + runs; run += jobs)
			at_random(run, endless);
		image_check_done();
		fflush(stdout);
		_exit(0);
	}
	return wait_for(jobs, t, runs);
}

int main(int argc, char **argv)
{
	uint64_t runs = 0, seed = 0;
	unsigned endless = 10, jobs = 1;
	struct tally files_of = {0}, *t, sum;
	bool fine = true;
	const char *number = NULL;
	int files = 0;

	mine = &files_of;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
			runs = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
			seed = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) {
			jobs = (unsigned)atoi(argv[++i]);
		} else if (strcmp(argv[i], "--endless") == 0 && i + 1 < argc) {
			endless = (unsigned)atoi(argv[++i]);
		} else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
			number = argv[++i];
		} else if (argv[i][0] == '-' || !load(argv[i], number)) {
			fprintf(stderr, "usage: image [--runs N] [--seed N] [--jobs N] [--endless PERCENT] "
					"[--device N] [PROGRAM...]\n");
			return 2;
		} else {
			files++;
		}
	}
	if (jobs < 2) {
		jobs = 0;
		for (uint64_t run = seed; run < seed + runs; run++)
			at_random(run, endless);
	}
	t = tallies(jobs + 1);
	t[jobs] = files_of;
	if (jobs)
		fine = share_out(seed, runs, endless, jobs, t);
	sum = sum_of(t, jobs + 1);
	printf("%d files and %" PRIu64 " programs from number %" PRIu64 " on: %" PRIu64 " images, %" PRIu64
	       " with a loop without a bound; %" PRIu64 " disagree\n",
		files, sum.programs, seed, sum.accepted, sum.loops, sum.disagreed);
	image_check_done();
	return !fine || sum.disagreed > 0 || sum.accepted == 0;
}
