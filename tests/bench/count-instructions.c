/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count-instructions PID - counts the instructions that the threads of a process execute until SIGTERM, in
 * single steps: exact, without counters of the processor, and whatever else the machine does. The kernel's
 * are not counted. Prints {"instructions": N, "threads": {"NAME": N, ...}}; threads with one name are one.
 */
#include "tools/common/tool.h"
#include "util/number.h"
#include "util/output.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum { LET_GO_MS = 100, THREADS = 256 };

static struct thread {
	pid_t tid;
	char name[17];
	uint64_t count;
	bool ended;
} threads[THREADS];
static unsigned nthreads;
static uint64_t process;
static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static struct thread *find(pid_t tid)
{
	struct thread *t = threads;
	char path[64];
	FILE *f;

	for (; t < threads + nthreads; t++)
		if (t->tid == tid)
			return t;
	if (nthreads == THREADS)
		exit(tool_complain("more than %u threads", THREADS));
	nthreads++;
	t->tid = tid;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task/%d/comm", process, tid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%16s", t->name) != 1)
		strcpy(t->name, "?");
	if (f)
		fclose(f);
	return t;
}

/* Those that begin later are traced from their beginning */
static int seize_all(void)
{
	const struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task", process);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACECLONE) < 0 ||
			ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0) {
			closedir(dir);
			return -errno;
		}
		find(tid);
	}
	if (!dir)
		return -errno;
	closedir(dir);
	return 0;
}

/* The signal to go on with after a stop */
static int to_pass_on(int status)
{
	int sig = WSTOPSIG(status);

	return sig == SIGTRAP || status >> 16 ? 0 : sig;
}

/* False: nothing is left to count */
static bool count_step(void)
{
	struct thread *t;
	int status;
	pid_t tid = waitpid(-1, &status, __WALL);

	if (tid < 0)
		return errno == EINTR;
	t = find(tid);
	if (!WIFSTOPPED(status)) {
		t->ended = true;
		return tid != (pid_t)process;
	}
	t->count += WSTOPSIG(status) == SIGTRAP && status >> 16 == 0;
	return ptrace(PTRACE_SINGLESTEP, tid, 0, to_pass_on(status)) == 0 || errno == ESRCH;
}

/* The step that was interrupted may still end with SIGTRAP, which would kill a process that nobody traces. A
 * thread that waits in the kernel is in a step as well */
static void let_go(pid_t tid)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int status = 0;

	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return;
	ptrace(PTRACE_CONT, tid, 0, to_pass_on(status));
	for (unsigned i = 0; i < LET_GO_MS; i++) {
		if (waitpid(tid, &status, __WALL | WNOHANG) == tid && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, tid, 0, to_pass_on(status));
		nanosleep(&nap, NULL);
	}
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	while (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) &&
		status >> 16 != PTRACE_EVENT_STOP)
		ptrace(PTRACE_CONT, tid, 0, to_pass_on(status));
	ptrace(PTRACE_DETACH, tid, 0, 0);
}

static void print(void)
{
	const char *comma = "";
	uint64_t all = 0;

	for (unsigned i = 0; i < nthreads; i++)
		all += threads[i].count;
	printf("{\"instructions\": %" PRIu64 ", \"threads\": {", all);
	for (unsigned i = 0; i < nthreads; i++) {
		uint64_t count = 0;

		for (unsigned k = i; k < nthreads; k++)
			if (strcmp(threads[i].name, threads[k].name) == 0) {
				count += threads[k].count;
				threads[k].count = 0;
			}
		if (count)
			printf("%s\"%s\": %" PRIu64, comma, threads[i].name, count);
		comma = count ? ", " : comma;
	}
	puts("}}");
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = on_signal};
	int r;

	output_begin(2);
	if (argc != 2 || number_parse(argv[1], 1, INT32_MAX, &process) < 0)
		return tool_complain("usage: count-instructions PID");
	sigaction(SIGTERM, &act, NULL);
	r = seize_all();
	if (r < 0)
		return tool_complain("process %" PRIu64 ": %s", process, strerror(-r));
	fputs("counting\n", stderr);
	while (!stopped)
		if (!count_step())
			return tool_complain("process %" PRIu64 " has ended", process);
	for (unsigned i = 0; i < nthreads; i++)
		if (!threads[i].ended)
			let_go(threads[i].tid);
	print();
	return 0;
}
