/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softcx-beside TOOL - commands and WQEs at the same time: to be run under `softcx run`.
 *
 * One process writes and reads back without a pause, and compares. Beside it, devices are opened, queues are
 * connected and destroyed with WQEs in them, processes end with everything open, the status is asked for and
 * a trace is read. No object may be left over. With the NIC under ThreadSanitizer this shows that its two
 * threads share nothing without order.
 */
#include "tests/lib/rc.h"
#include "util/array.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 150, EVERY = 10, DEPTH = 16, MEM = 8192, HALF = MEM / 2 };

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* ---- WQEs ------------------------------------------------------------------------------- */

/* Writes one half of its memory into the other, and reads it back. */
static int write_and_compare(void)
{
	struct rc_peer self;
	struct ibv_qp *qp;
	uint64_t n = 0;
	struct rc rc;

	rc_open(&rc, 0, MEM, MAP_SHARED, 2 * DEPTH);
	qp = rc_qp(&rc, DEPTH);
	self = rc_self(&rc, qp);
	rc_connect(qp, &self);
	for (; !stopped || n == 0; n++) {
		memset(rc.mem, (int)(n % 251), HALF);
		rc_post(&rc, qp, IBV_WR_RDMA_WRITE, 0, &self, HALF, HALF);
		rc_expect(&rc, IBV_WC_SUCCESS);
		memset(rc.mem, 0xff, HALF);
		rc_post(&rc, qp, IBV_WR_RDMA_READ, 0, &self, HALF, HALF);
		rc_expect(&rc, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < HALF; i++)
			if (rc.mem[i] != n % 251)
				rc_die("byte %u of round %" PRIu64 " is %#x", i, n, rc.mem[i]);
	}
	ibv_destroy_qp(qp);
	rc_close(&rc);
	printf("%" PRIu64 " times written and read beside commands\n", n);
	return 0;
}

/* ---- commands --------------------------------------------------------------------------- */

/* A queue pair with unfinished WQEs. */
static struct ibv_qp *start_some(struct rc *rc)
{
	struct rc_peer self;
	struct ibv_qp *qp;

	rc_open(rc, 0, MEM, MAP_SHARED, 2 * DEPTH);
	qp = rc_qp(rc, DEPTH);
	self = rc_self(rc, qp);
	rc_connect(qp, &self);
	for (unsigned i = 0; i < DEPTH; i++)
		rc_post(rc, qp, IBV_WR_RDMA_WRITE, 0, &self, HALF, HALF);
	return qp;
}

static void open_and_close(void)
{
	struct rc rc;

	if (ibv_destroy_qp(start_some(&rc)) != 0)
		rc_die("ibv_destroy_qp");
	rc_close(&rc);
}

static pid_t child(int (*run)(void))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		rc_die("fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	exit(run());
}

static int end_with_all_open(void)
{
	struct rc rc;

	start_some(&rc);
	_exit(0);
}

static void expect_good_end(pid_t pid, const char *what)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status != 0)
		rc_die("%s ends with %#x", what, status);
}

/* ---- the tool --------------------------------------------------------------------------- */

static const char *tool;

/* Objects of the device: none may be left over. */
static long objects(void)
{
	static const char *const kinds[] = {"pds", "mkeys", "uars", "cqs", "qps", "srqs", "mems"};
	char command[512], text[8192];
	long sum = 0;
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "unset LD_PRELOAD; %s status --json", tool);
	f = popen(command, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	if (!f || pclose(f) != 0)
		rc_die("%s", command);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		char key[16];
		const char *at;

		snprintf(key, sizeof(key), "\"%s\":", kinds[i]);
		at = strstr(text, key);
		if (!at)
			rc_die("no %s in the status", kinds[i]);
		sum += strtol(at + strlen(key), NULL, 10);
	}
	return sum;
}

/* Ends when the NIC has executed some WQEs. */
static int read_trace(void)
{
	char command[512];

	snprintf(command, sizeof(command), "unset LD_PRELOAD; %s trace --count 500 >/dev/null", tool);
	return system(command) != 0; /* NOLINT(cert-env33-c): a fixed command of the test */
}

int main(int argc, char **argv)
{
	pid_t writer, tracer = 0;
	long before;

	if (argc != 2) {
		fprintf(stderr, "usage: beside TOOL\n");
		return 2;
	}
	tool = argv[1];
	before = objects();
	signal(SIGTERM, on_stop);
	writer = child(write_and_compare);
	for (unsigned i = 0; i < ROUNDS; i++) {
		open_and_close();
		if (i % EVERY)
			continue;
		if (tracer)
			expect_good_end(tracer, "a trace");
		tracer = child(read_trace);
		expect_good_end(child(end_with_all_open), "a process");
		objects();
	}
	expect_good_end(tracer, "a trace");
	kill(writer, SIGTERM);
	expect_good_end(writer, "the writer");
	/* The NIC hears of the end of a process a moment later than its parent */
	for (unsigned i = 0; i < 500 && objects() != before; i++)
		usleep(10000);
	if (objects() != before)
		rc_die("%ld objects, %ld before", objects(), before);
	printf("ok   commands and WQEs do not disturb each other\n");
	return 0;
}
