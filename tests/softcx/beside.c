/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softcx-beside TOOL - commands and WQEs at the same time: to be run under `softcx run`.
 *
 * Processes write and read back without a pause, and compare: one inside the first device, and with two
 * devices one from each to the other. Beside them, devices are opened, queues are connected and destroyed
 * with WQEs in them, processes end with everything open, the status is asked for and a trace is read. No
 * object may be left over. With the NIC under ThreadSanitizer this shows that its threads share nothing
 * without order.
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

static unsigned from, to; /* devices of the next path */

/* A queue pair on one device, connected to one on the other, or to itself. */
struct path {
	struct rc rc, far;
	struct ibv_qp *qp, *far_qp;
	struct rc_peer peer;
};

static void open_path(struct path *p)
{
	struct rc_peer self;

	rc_open(&p->rc, from, MEM, MAP_SHARED, 2 * DEPTH);
	p->qp = rc_qp(&p->rc, DEPTH);
	self = p->peer = rc_self(&p->rc, p->qp);
	p->far_qp = NULL;
	if (to != from) {
		rc_open(&p->far, to, MEM, MAP_SHARED, 1);
		p->far_qp = rc_qp(&p->far, 1);
		p->peer = rc_self(&p->far, p->far_qp);
		rc_connect(p->far_qp, &self);
	}
	rc_connect(p->qp, &p->peer);
}

static void close_path(struct path *p)
{
	if (ibv_destroy_qp(p->qp) != 0 || (p->far_qp && ibv_destroy_qp(p->far_qp) != 0))
		rc_die("ibv_destroy_qp");
	rc_close(&p->rc);
	if (p->far_qp)
		rc_close(&p->far);
}

/* Writes one half of its memory into the other half at the end of the path, and reads it back. */
static int write_and_compare(void)
{
	uint64_t n = 0;
	struct path p;

	open_path(&p);
	for (; !stopped || n == 0; n++) {
		memset(p.rc.mem, (int)(n % 251), HALF);
		rc_post(&p.rc, p.qp, IBV_WR_RDMA_WRITE, 0, &p.peer, HALF, HALF);
		rc_expect(&p.rc, IBV_WC_SUCCESS);
		memset(p.rc.mem, 0xff, HALF);
		rc_post(&p.rc, p.qp, IBV_WR_RDMA_READ, 0, &p.peer, HALF, HALF);
		rc_expect(&p.rc, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < HALF; i++)
			if (p.rc.mem[i] != n % 251)
				rc_die("byte %u of round %" PRIu64 " is %#x", i, n, p.rc.mem[i]);
	}
	close_path(&p);
	printf("%" PRIu64 " times written and read beside commands, from device %u to %u\n", n, from, to);
	return 0;
}

/* ---- commands --------------------------------------------------------------------------- */

/* With unfinished WQEs. */
static void start_some(struct path *p)
{
	open_path(p);
	for (unsigned i = 0; i < DEPTH; i++)
		rc_post(&p->rc, p->qp, IBV_WR_RDMA_WRITE, 0, &p->peer, HALF, HALF);
}

static void open_and_close(void)
{
	struct path p;

	start_some(&p);
	close_path(&p);
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
	struct path p;

	start_some(&p);
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

/* Objects of all devices: none may be left over. */
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
		for (; at; at = strstr(at, key)) {
			at += strlen(key);
			sum += strtol(at, NULL, 10);
		}
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

static unsigned count_devices(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	return (unsigned)n;
}

static pid_t start_writer(unsigned device, unsigned far)
{
	from = device;
	to = far;
	return child(write_and_compare);
}

int main(int argc, char **argv)
{
	pid_t writers[3], tracer = 0;
	unsigned devices = count_devices(), nwriters = 0;
	long before;

	if (argc != 2) {
		fprintf(stderr, "usage: beside TOOL\n");
		return 2;
	}
	tool = argv[1];
	before = objects();
	signal(SIGTERM, on_stop);
	writers[nwriters++] = start_writer(0, 0);
	if (devices > 1) {
		writers[nwriters++] = start_writer(0, 1);
		writers[nwriters++] = start_writer(1, 0);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		from = i % devices;
		to = i / 2 % devices;
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
	while (nwriters--) {
		kill(writers[nwriters], SIGTERM);
		expect_good_end(writers[nwriters], "a writer");
	}
	/* The NIC hears of the end of a process a moment later than its parent */
	for (unsigned i = 0; i < 500 && objects() != before; i++)
		usleep(10000);
	if (objects() != before)
		rc_die("%ld objects, %ld before", objects(), before);
	printf("ok   commands and WQEs do not disturb each other\n");
	return 0;
}
