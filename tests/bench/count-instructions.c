/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count-instructions PID - counts the instructions that the first thread of a process executes until SIGTERM,
 * in single steps: exact, without counters of the processor, and whatever else the machine does. The kernel's
 * are not counted. Prints {"instructions": N}.
 */
#include "tools/common/tool.h"
#include "util/number.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum { LET_GO_MS = 100 };

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* False: it has ended */
static bool wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return false;
		/* It waits in the kernel for its next step */
		if (stopped && ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
			return false;
	}
	return WIFSTOPPED(status);
}

static void pass_on(pid_t pid, int status)
{
	int sig = WSTOPSIG(status);

	ptrace(PTRACE_CONT, pid, 0, sig == SIGTRAP ? 0 : sig);
}

/* The step that was interrupted may still end with SIGTRAP, which would kill a process that nobody traces */
static void let_go(pid_t pid)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int status = 0;

	ptrace(PTRACE_CONT, pid, 0, 0);
	for (unsigned i = 0; i < LET_GO_MS; i++) {
		if (waitpid(pid, &status, __WALL | WNOHANG) == pid && WIFSTOPPED(status))
			pass_on(pid, status);
		nanosleep(&nap, NULL);
	}
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) &&
		status >> 16 != PTRACE_EVENT_STOP)
		pass_on(pid, status);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = on_signal};
	uint64_t count = 0, pid;

	if (argc != 2 || number_parse(argv[1], 1, INT32_MAX, &pid) < 0)
		return tool_complain("usage: count-instructions PID");
	sigaction(SIGTERM, &act, NULL);
	if (ptrace(PTRACE_SEIZE, (pid_t)pid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, (pid_t)pid, 0, 0) < 0 ||
		!wait_for((pid_t)pid))
		return tool_complain("process %" PRIu64 ": %s", pid, strerror(errno));
	fputs("counting\n", stderr);
	for (; !stopped; count++)
		if (ptrace(PTRACE_SINGLESTEP, (pid_t)pid, 0, 0) < 0 || !wait_for((pid_t)pid))
			return tool_complain("process %" PRIu64 " has ended", pid);
	let_go((pid_t)pid);
	printf("{\"instructions\": %" PRIu64 "}\n", count);
	return tool_flush();
}
