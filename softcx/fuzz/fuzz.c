/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.c - "softcx-fuzz": feeds nonsense to a NIC process and sees that it lives, that a bystander is not
 * disturbed, and that nothing is left over. Three sources at once: conversations of real programs with damage
 * (replay.c), and two applications with wild queues (wqe.c). "./dev fuzz softcx" builds the NIC with
 * sanitizers and runs this.
 */
#include "softcx/fuzz/harness.h"
#include "softcx/fuzz/random.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
	CASES_PER_BATCH = 50,
	BATCH_SECONDS = 120,
	BATCHES_PER_CHECK = 8, /* before all but the bystander end, and everything they made must be gone */
	MAX_CONVS = 16,
	MAX_STEPS = 400,
	SHRINK_RUNS = 100,
	PATIENCE = 90, /* seconds: a machine may have other things to do */
	SHRINK_PATIENCE = 4,
};

struct fuzz {
	struct harness harness;
	struct conv convs[MAX_CONVS];
	unsigned nconvs;
	struct replay_setup setup;
	struct replay_counts counts;
	uint64_t wqes, rounds;
	uint64_t cases;
	double start;
	bool quiet;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static double now(void)
{
	return (double)clock_ns() / 1e9;
}

/* ---- conversations ---------------------------------------------------------------------- */

/* Two programs that find each other by TCP need a port; others use rdma_cm, whose ports are this NIC's own.
 */
static const char *const programs[] = {
	"ibv_devinfo -v",
	"ibv_rc_pingpong -g 1 -n 20 -p $PORT & sleep 0.3; ibv_rc_pingpong -g 1 -n 20 -p $PORT 127.0.0.1",
	"ibv_rc_pingpong -e -g 1 -n 5 -p $PORT & sleep 0.3; ibv_rc_pingpong -e -g 1 -n 5 -p $PORT 127.0.0.1",
	"ibv_ud_pingpong -g 1 -n 20 -p $PORT & sleep 0.3; ibv_ud_pingpong -g 1 -n 20 -p $PORT 127.0.0.1",
	"ibv_srq_pingpong -g 1 -q 3 -p $PORT & sleep 0.3; ibv_srq_pingpong -g 1 -q 3 -p $PORT 127.0.0.1",
	"rping -s -a 127.0.0.1 -p 7001 -C 3 & sleep 0.3; rping -c -a 127.0.0.1 -p 7001 -C 3",
	"ucmatose -p 7002 & sleep 0.3; ucmatose -s 127.0.0.1 -p 7002",
	"udaddy -p 7003 & sleep 0.3; udaddy -s 127.0.0.1 -p 7003",
	"$TOOLS/../../tests/softcx/test-devx",
};

static bool record_all(struct fuzz *f)
{
	enum { PROGRAMS = COUNT(programs) };
	pid_t pid[PROGRAMS];
	char port[16];

	setenv("TOOLS", f->harness.tools, 1);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		snprintf(port, sizeof(port), "%u", 20000 + (unsigned)((getpid() * 16 + i) % 12000));
		setenv("PORT", port, 1);
		pid[i] = harness_record(&f->harness, programs[i], i);
	}
	for (unsigned i = 0; i < PROGRAMS; i++) {
		if (harness_recorded(&f->harness, pid[i], i, &f->convs[f->nconvs]))
			f->nconvs++;
		else
			printf("not recorded: %s\n", programs[i]);
	}
	f->setup.convs = f->convs;
	f->setup.nconvs = f->nconvs;
	return f->nconvs > 0;
}

/* ---- runs ------------------------------------------------------------------------------- */

/** In a process of its own, whose end takes everything with it. False: it did not end by itself in time. */
static bool replay(struct fuzz *f, uint64_t first, unsigned n, const bool *skip, unsigned nskip)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct replay_setup setup = f->setup;

		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		signal(SIGINT, SIG_IGN);
		setup.dir = f->harness.dir;
		for (unsigned i = 0; i < n; i++) {
			f->harness.shared->number = first + i;
			replay_case(&setup, first + i, skip, nskip, &f->harness.shared->counts);
		}
		_exit(0);
	}
	for (int i = 0; i < BATCH_SECONDS * 200; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status);
		usleep(5000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return true;
}

static void gather_counts(struct fuzz *f)
{
	const struct fuzz_shared *s = f->harness.shared;

	f->counts.calls += s->counts.calls;
	f->counts.done += s->counts.done;
	f->counts.good += s->counts.good;
	f->wqes += s->app_wqes[0] + s->app_wqes[1];
	f->rounds += s->rounds;
}

static void report(const struct fuzz *f)
{
	double t = now() - f->start;

	printf("%llu cases, %llu calls (%.0f/s), %llu answered, %llu with success; %llu wild WQEs (%.0f/s); "
	       "%llu checked rounds of the bystander; %.0f s\n",
		(unsigned long long)f->cases, (unsigned long long)f->counts.calls,
		(double)f->counts.calls / t, (unsigned long long)f->counts.done,
		(unsigned long long)f->counts.good, (unsigned long long)f->wqes, (double)f->wqes / t,
		(unsigned long long)f->rounds, t);
}

/* ---- a failure -------------------------------------------------------------------------- */

/** True if @n cases alone, without the steps of @skip, break a new NIC. */
static bool breaks(struct fuzz *f, uint64_t number, unsigned n, const bool *skip, unsigned nskip)
{
	struct harness saved = f->harness;
	bool broken;

	if (!harness_start(&f->harness, saved.seed, SHRINK_PATIENCE)) {
		printf("no second NIC: %s\n", f->harness.what);
		harness_remove(&f->harness);
		f->harness = saved;
		return false;
	}
	replay(f, number, n, skip, nskip);
	broken = !harness_check_clean(&f->harness) || !harness_stop(&f->harness);
	if (broken && !skip)
		printf("%u cases from %llu on: %s\n", n, (unsigned long long)number, f->harness.what);
	fflush(stdout);
	harness_remove(&f->harness);
	f->harness = saved;
	return broken;
}

/** Leaves out as many steps as possible: halves, then quarters, and so on. */
static void shrink(struct fuzz *f, uint64_t number, unsigned nsteps)
{
	static bool skip[MAX_STEPS], trial[MAX_STEPS];
	unsigned runs = 0;

	for (unsigned size = (nsteps + 1) / 2; size; size /= 2) {
		for (unsigned at = 0; at < nsteps && runs < SHRINK_RUNS && !interrupted; at += size, runs++) {
			memcpy(trial, skip, sizeof(trial));
			for (unsigned i = at; i < at + size && i < nsteps; i++)
				trial[i] = true;
			if (memcmp(trial, skip, sizeof(trial)) != 0 && breaks(f, number, 1, trial, nsteps))
				memcpy(skip, trial, sizeof(skip));
		}
	}
	printf("steps that are enough:");
	for (unsigned i = 0; i < nsteps; i++)
		if (!skip[i])
			printf(" %u", i);
	putchar('\n');
}

static unsigned steps_of(const struct fuzz *f, uint64_t number)
{
	uint64_t rng = fuzz_start(f->setup.seed, number, UINT64_MAX);
	size_t n = f->convs[fuzz_pick(&rng, f->nconvs)].nsteps;

	return n < MAX_STEPS ? (unsigned)n : MAX_STEPS;
}

/** Halves the range of cases as long as one half breaks a NIC. False: not even all of it does. */
static bool find_case(struct fuzz *f, uint64_t *first, unsigned *n)
{
	if (!breaks(f, *first, *n, NULL, 0))
		return false;
	while (*n > 1 && !interrupted) {
		unsigned half = *n / 2;

		if (breaks(f, *first + half, *n - half, NULL, 0)) {
			*first += half;
			*n -= half;
		} else if (breaks(f, *first, half, NULL, 0)) {
			*n = half;
		} else {
			break; /* it takes some of both */
		}
	}
	return true;
}

static void explain(struct fuzz *f, uint64_t first, uint64_t last)
{
	unsigned n = (unsigned)(last - first) + 1;

	printf("FAIL: %s\n", f->harness.what);
	printf("seed %llu, cases %llu to %llu, of the wild queues %llu and %llu\n",
		(unsigned long long)f->setup.seed, (unsigned long long)first, (unsigned long long)last,
		(unsigned long long)f->harness.shared->app_case[0],
		(unsigned long long)f->harness.shared->app_case[1]);
	harness_print_log(&f->harness);
	printf("---- looking for the case\n");
	if (!find_case(f, &first, &n)) {
		printf("without the wild queues, or on a new NIC, it does not break; to repeat it: ./dev "
		       "fuzz softcx --seed %llu --first %llu\n",
			(unsigned long long)f->setup.seed, (unsigned long long)first);
		return;
	}
	if (n == 1)
		shrink(f, first, steps_of(f, first));
	printf("to repeat it: ./dev fuzz softcx --seed %llu --case %llu --count %u\n",
		(unsigned long long)f->setup.seed, (unsigned long long)first, n);
}

/* ---- the loop --------------------------------------------------------------------------- */

/** Until @seconds have passed. 0, or 1 after a failure has been explained. */
static int run(struct fuzz *f, double seconds, uint64_t first)
{
	uint64_t next = first, since = first;
	bool ok = true;
	double end;

	f->start = now();
	end = f->start + seconds;
	while (ok && now() < end && !interrupted) {
		ok = harness_start_apps(&f->harness);
		since = next;
		for (unsigned i = 0; ok && i < BATCHES_PER_CHECK && now() < end && !interrupted; i++) {
			replay(f, next, CASES_PER_BATCH, NULL, 0);
			next += CASES_PER_BATCH;
			ok = harness_check(&f->harness);
		}
		f->cases = next - first;
		ok = ok && harness_stop_apps(&f->harness) && harness_check_clean(&f->harness);
		if (!f->quiet && ok)
			printf("\r%llu cases, %.0f s \033[K", (unsigned long long)f->cases, now() - f->start);
		fflush(stdout);
	}
	if (!f->quiet)
		putchar('\n');
	gather_counts(f);
	ok = ok && harness_stop(&f->harness);
	report(f);
	if (!ok)
		explain(f, since, f->harness.shared->number);
	return !ok;
}

static int run_cases(struct fuzz *f, uint64_t number, unsigned n)
{
	replay(f, number, n, NULL, 0);
	if (harness_check_clean(&f->harness) && harness_stop(&f->harness)) {
		printf("%u cases from %llu on: nothing wrong\n", n, (unsigned long long)number);
		return 0;
	}
	printf("FAIL: %s\n", f->harness.what);
	harness_print_log(&f->harness);
	return 1;
}

static bool find_tools(struct fuzz *f)
{
	ssize_t n = readlink("/proc/self/exe", f->harness.tools, sizeof(f->harness.tools) - 1);

	if (n <= 0)
		return false;
	f->harness.tools[n] = '\0';
	*strrchr(f->harness.tools, '/') = '\0';
	return true;
}

static uint64_t number(const char *option, const char *text)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-') {
		fprintf(stderr, "softcx-fuzz: --%s %s: not a number\n", option, text);
		exit(125);
	}
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"time", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 's'}, {"case", required_argument, NULL, 'c'},
		{"first", required_argument, NULL, 'f'}, {"count", required_argument, NULL, 'n'},
		{"quiet", no_argument, NULL, 'q'}, {"help", no_argument, NULL, 'h'}, {0}};
	const struct sigaction action = {.sa_handler = on_signal};
	static struct fuzz f;
	double seconds = 60;
	uint64_t one = UINT64_MAX, first = 0;
	unsigned count = 1;
	int c, rc = 1;

	f.setup.seed = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't')
			seconds = (double)number("time", optarg);
		else if (c == 's')
			f.setup.seed = number("seed", optarg);
		else if (c == 'c')
			one = number("case", optarg);
		else if (c == 'f')
			first = number("first", optarg);
		else if (c == 'n')
			count = (unsigned)number("count", optarg);
		else if (c == 'q')
			f.quiet = true;
		else {
			fputs("Usage: softcx-fuzz [--time SECONDS] [--seed N] [--first CASE | --case CASE] "
			      "[--quiet]\n",
				c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 125;
		}
	}
	f.quiet |= !isatty(STDOUT_FILENO);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!find_tools(&f) || !harness_start(&f.harness, f.setup.seed, PATIENCE) || !record_all(&f) ||
		!harness_check_clean(&f.harness)) {
		printf("FAIL before the first case: %s\n", f.harness.what);
		harness_print_log(&f.harness);
	} else {
		printf("seed %llu, %u recorded conversations\n", (unsigned long long)f.setup.seed, f.nconvs);
		rc = one != UINT64_MAX ? run_cases(&f, one, count) : run(&f, seconds, first);
	}
	harness_remove(&f.harness);
	for (unsigned i = 0; i < f.nconvs; i++)
		conv_free(&f.convs[i]);
	return rc;
}
