/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine of tests/chain/turing.h on the emulated silicon, in this process: how long it takes and what that costs in WQEs.
 */
#include "tests/chain/turing.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const champion_5 = "1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RH0LA";

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct options {
	const char *rules;
	enum turing_form form;
	uint32_t ring;
	uint64_t seed, most;
	bool json, quiet;
};

/* Until it halts, the queue fails, or @most steps are done; false: stopped on the way */
static bool run(struct turing *t, const struct options *o, double start)
{
	struct hw_qp_progress p;
	double shown = start;
	unsigned idle = 0;

	while (idle < 1000) {
		double at;

		idle = hw_poll(t->rig.dev) ? 0 : idle + 1;
		if (o->most && turing_progress(t) >= o->most)
			return false;
		at = now();
		if (o->quiet || at - shown < 1)
			continue;
		shown = at;
		hw_qp_progress(t->qp.qp, &p);
		fprintf(stderr, "\r%12" PRIu64 " steps, %8.0f per second ", turing_progress(t),
			(double)turing_progress(t) / (at - start));
	}
	if (!o->quiet)
		fputc('\n', stderr);
	return true;
}

static void report(const struct turing *t, const struct options *o, bool halted, double seconds)
{
	const struct lap_size *lap = &t->info.lap;
	uint64_t steps = halted ? turing_steps(t) : turing_progress(t);
	double per_step = (double)lap->wqes / t->info.iterations;
	struct hw_counts counts;

	hw_counts(t->rig.dev, &counts);
	if (o->json) {
		printf("{\"halted\": %s, \"steps\": %" PRIu64
		       ", \"ones\": %u, \"seconds\": %.3f, \"steps_per_s\": %.0f, "
		       "\"wqes\": %" PRIu64
		       ", \"wqes_per_s\": %.0f, \"wqes_per_step\": %.3f, \"steps_per_lap\": %u, "
		       "\"ring_wqebbs\": %u}\n",
			halted ? "true" : "false", steps, turing_ones(t), seconds, (double)steps / seconds,
			counts.wqes, (double)counts.wqes / seconds, per_step, t->info.iterations,
			t->qp.wqebbs);
		return;
	}
	printf("%s after %" PRIu64 " steps, %u ones on the tape\n", halted ? "halted" : "stopped", steps,
		turing_ones(t));
	printf("%.1f s, %.0f steps/s, %" PRIu64 " WQEs, %.0f WQEs/s\n", seconds, (double)steps / seconds,
		counts.wqes, (double)counts.wqes / seconds);
	printf("a lap of %u WQEBBs: %u steps in %u WQEs (%.2f per step), of them %u READs and %u FETCH_ADDs "
	       "to refresh it, "
	       "%u NOPs\n",
		t->qp.wqebbs, t->info.iterations, lap->wqes, per_step, lap->reads, lap->adds, lap->nops);
}

static void usage(FILE *f)
{
	fputs("usage: turing [--fences] [--ring WQEBBS] [--seed N] [--steps N] [--json] [RULES]\n\n"
	      "Runs a Turing machine of two symbols as a chain that nobody but the NIC keeps going. RULES as "
	      "in\n"
	      "1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RH0LA, the champion of five states and the default.\n\n"
	      "  --fences   a fenced SEND_EN instead of WAIT and SEND_EN\n"
	      "  --ring N   WQEBBs of the queue, a power of two from 256 to 32768 (2048)\n"
	      "  --seed N   a strict NIC with that seed; without it a friendly one\n"
	      "  --steps N  stop after so many\n",
		f);
}

static bool number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return *text && !*end;
}

/* @return false: a mistake, told */
static bool parse(int argc, char **argv, struct options *o, struct hw_config *cfg)
{
	static const struct option options[] = {{"fences", 0, NULL, 'f'}, {"ring", 1, NULL, 'r'},
		{"seed", 1, NULL, 's'}, {"steps", 1, NULL, 'n'}, {"json", 0, NULL, 'j'},
		{"help", 0, NULL, 'h'}, {0}};
	uint64_t ring;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			o->form = TURING_FENCES;
			break;
		case 'r':
			if (!number(optarg, &ring) || ring < LAP_MIN_RING || ring > CHAIN_MAX_RING ||
				ring & (ring - 1)) {
				fprintf(stderr, "turing: a ring has 256, 512, ... or %d WQEBBs, not %s\n",
					CHAIN_MAX_RING, optarg);
				return false;
			}
			o->ring = (uint32_t)ring;
			break;
		case 's':
			cfg->lenient = false;
			if (number(optarg, &cfg->seed))
				break;
			fprintf(stderr, "turing: %s is not a number\n", optarg);
			return false;
		case 'n':
			if (number(optarg, &o->most))
				break;
			fprintf(stderr, "turing: %s is not a number\n", optarg);
			return false;
		case 'j':
			o->json = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			return false;
		}
	}
	if (optind < argc)
		o->rules = argv[optind];
	if (strlen(o->rules) % 7 == 6 && strlen(o->rules) < 32 * 7 &&
		strspn(o->rules, "01LRABCDEFGHIJKLMNOPQSTUVWXYZ_") == strlen(o->rules))
		return true;
	fprintf(stderr, "turing: %s: rules look like %s\n", o->rules, champion_5);
	return false;
}

int main(int argc, char **argv)
{
	struct options o = {.rules = champion_5, .ring = 2048, .quiet = !isatty(2)};
	struct hw_config cfg = {.lenient = true};
	struct turing t;
	char why[400];
	double start;
	bool halted;

	if (!parse(argc, argv, &o, &cfg))
		return 2;
	turing_open(&t, &cfg, o.rules, o.form, o.ring);
	start = now();
	turing_start(&t);
	halted = run(&t, &o, start);
	if (!turing_healthy(&t, why, sizeof why)) {
		fprintf(stderr, "turing: after %" PRIu64 " steps the queue failed: %s\n", turing_progress(&t),
			why);
		return 1;
	}
	report(&t, &o, halted, now() - start);
	if (halted)
		turing_close(&t);
	return 0;
}
