/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/fuzz-run.h"

#include "softcx/tool/run.h"
#include "softcx/tool/trace.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static double now(void)
{
	return (double)clock_ns() / 1e9;
}

/* ---- inside a run ----------------------------------------------------------------------- */

/** Forks; the child ends when this process does. */
static pid_t fork_bound(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		tool_die("fork: %s", strerror(errno));
	if (pid == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent)
			_exit(125);
	}
	return pid;
}

static pid_t start_nic(const struct fuzz_run *run, const struct fuzz_command *cmd)
{
	struct tool_nic_options opt = *cmd->nic;
	char nic[PATH_MAX], seed[24], line[16];
	int ready[2];
	ssize_t n;
	pid_t pid;

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)run->seed);
	opt.options.text[OPTION_SEED] = seed;
	if (run->lenient)
		opt.options.text[OPTION_LENIENT] = "";
	tool_find_part(nic, "nic/softcx-nic", SOFTCX_LIBEXECDIR "/softcx-nic");
	if (pipe(ready) < 0)
		tool_die("pipe: %s", strerror(errno));
	pid = fork_bound();
	if (pid == 0) {
		setpgid(0, 0);
		close(ready[0]);
		tool_nic_exec(&opt, nic, ready[1], 0);
	}
	close(ready[1]);
	/* also when the run is to end: it soon will */
	do {
		n = read(ready[0], line, sizeof(line));
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		tool_die("the NIC did not start; see %s/nic.log", tool_dir);
	close(ready[0]);
	return pid;
}

static void redirect(int to, const char *name)
{
	char path[PATH_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", tool_dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || dup2(fd, to) < 0)
		tool_die("%s: %s", path, strerror(errno));
}

static bool tracing(void)
{
	struct json_object *status, *on;
	int fd = tool_nic_connect();
	bool yes;

	if (fd < 0)
		return false;
	status = tool_nic_status(fd);
	close(fd);
	yes = status && json_object_object_get_ex(status, "tracing", &on) && json_object_get_boolean(on);
	json_object_put(status);
	return yes;
}

static pid_t start_trace(const struct fuzz_run *run)
{
	const struct trace_options opt = {.json = run->trace_json};
	pid_t pid = fork_bound();

	if (pid == 0) {
		int fd = tool_nic_connect();

		setpgid(0, 0);
		redirect(1, "trace");
		_exit(fd < 0 ? 125 : tool_trace(fd, &opt));
	}
	for (int i = 0; i < 1000 && !tracing(); i++)
		usleep(2000);
	return pid;
}

static pid_t start_command(const struct fuzz_command *cmd)
{
	pid_t pid = fork_bound();

	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		/* A group of its own: its descendants end with it. */
		setpgid(0, 0);
		dup2(null, 0);
		tool_run_env();
		execv(cmd->path, cmd->argv);
		fprintf(stderr, "softcx: %s: %s\n", cmd->path, strerror(errno));
		_exit(126);
	}
	setpgid(pid, pid);
	return pid;
}

/** Until the command or the NIC ends, or it has taken too long, or the run is to end. What became of the
 * command. */
static struct fuzz_result wait_command(pid_t command, pid_t nic, unsigned timeout)
{
	struct pollfd fds[2] = {{.fd = (int)syscall(SYS_pidfd_open, command, 0), .events = POLLIN},
		{.fd = (int)syscall(SYS_pidfd_open, nic, 0), .events = POLLIN}};
	struct fuzz_result r = {.why = FUZZ_TIMEOUT};
	double start = now(), end = start + timeout;
	int status;

	if (fds[0].fd < 0 || fds[1].fd < 0)
		tool_die("pidfd_open: %s", strerror(errno));
	while (!stopped && now() < end) {
		poll(fds, 2, (int)((end - now()) * 1000) + 1);
		if (fds[0].revents || fds[1].revents)
			break;
	}
	r.seconds = now() - start;
	if (stopped)
		r.why = FUZZ_STOPPED;
	else if (fds[1].revents)
		r.why = FUZZ_NIC;
	if (!fds[0].revents || r.why == FUZZ_STOPPED)
		kill(-command, SIGKILL);
	waitpid(command, &status, 0);
	if (fds[0].revents && r.why == FUZZ_TIMEOUT) {
		r.why = WIFSIGNALED(status) ? FUZZ_SIGNAL : WEXITSTATUS(status) ? FUZZ_EXIT : FUZZ_PASSED;
		r.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	}
	close(fds[0].fd);
	close(fds[1].fd);
	return r;
}

static bool sanitizer_report(void)
{
	static const char *const marks[] = {"ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
		"WARNING: ThreadSanitizer", "runtime error: "};
	char path[PATH_MAX + 16], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/output", tool_dir);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &size, f) > 0)
		for (unsigned i = 0; i < COUNT(marks); i++)
			found |= strstr(line, marks[i]) != NULL;
	free(line);
	if (f)
		fclose(f);
	return found;
}

/** Orphans of the command become our children (subreaper), so those that left its process group are ended,
 * too. */
static void end_orphans(void)
{
	char path[64];
	pid_t pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (int round = 0; round < 100; round++) {
		f = fopen(path, "re");
		while (f && fscanf(f, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		if (f)
			fclose(f);
		if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
			return;
	}
}

static struct fuzz_result run_here(const struct fuzz_run *run, const struct fuzz_command *cmd)
{
	pid_t nic, tracer = -1, command;
	double start = now();
	struct fuzz_result r;
	int status = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	tool_set_dir(run->dir);
	redirect(1, "output");
	redirect(2, "output");
	nic = start_nic(run, cmd);
	if (run->trace)
		tracer = start_trace(run);
	command = start_command(cmd);
	r = wait_command(command, nic, cmd->timeout);
	kill(-command, SIGKILL);
	if (tracer > 0) {
		kill(tracer, SIGINT);
		waitpid(tracer, NULL, 0);
	}
	kill(nic, SIGTERM);
	waitpid(nic, &status, 0);
	/* before the command's fault, as it may be the reason for it */
	if (r.why != FUZZ_STOPPED && (r.why == FUZZ_NIC || status != 0)) {
		r.why = FUZZ_NIC;
		r.status = status;
	}
	end_orphans();
	if (r.why == FUZZ_PASSED && sanitizer_report())
		r.why = FUZZ_SANITIZER;
	r.overall = now() - start;
	return r;
}

/* ---- outside ---------------------------------------------------------------------------- */

int fuzz_run_start(struct fuzz_run *run, const struct fuzz_command *cmd)
{
	pid_t parent = getpid();
	int ends[2];

	if (snprintf(run->dir, sizeof(run->dir), "%s/%llu%s%s", cmd->base, (unsigned long long)run->seed,
		    run->lenient ? "l" : "", run->trace ? "t" : "") >= (int)sizeof(run->dir))
		return -ENAMETOOLONG;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fflush(NULL);
	run->pid = fork();
	if (run->pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (run->pid == 0) {
		const struct sigaction stop = {.sa_handler = on_stop};
		struct fuzz_result r;

		sigaction(SIGTERM, &stop, NULL);
		sigaction(SIGINT, &stop, NULL);
		prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
		if (getppid() != parent)
			_exit(125);
		close(ends[0]);
		r = run_here(run, cmd);
		_exit(write(ends[1], &r, sizeof(r)) == sizeof(r) ? 0 : 125);
	}
	close(ends[1]);
	run->fd = ends[0];
	return 0;
}

struct fuzz_result fuzz_run_end(struct fuzz_run *run)
{
	struct fuzz_result r;
	ssize_t n;

	do {
		n = read(run->fd, &r, sizeof(r));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(r))
		r = (struct fuzz_result){.why = FUZZ_TROUBLE};
	close(run->fd);
	while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

void fuzz_run_stop(const struct fuzz_run *run)
{
	kill(run->pid, SIGTERM);
}

void fuzz_remove(const char *dir)
{
	tree_remove(dir);
}

void fuzz_run_clean(const struct fuzz_run *run)
{
	fuzz_remove(run->dir);
}

void fuzz_why_text(const struct fuzz_result *r, char *text, size_t size)
{
	switch (r->why) {
	case FUZZ_PASSED:
		snprintf(text, size, "passed");
		break;
	case FUZZ_EXIT:
		snprintf(text, size, "exit status %d", r->status);
		break;
	case FUZZ_SIGNAL:
		snprintf(text, size, "signal %d (%s)", r->status, strsignal(r->status));
		break;
	case FUZZ_TIMEOUT:
		snprintf(text, size, "did not end within %.0f s", r->seconds);
		break;
	case FUZZ_SANITIZER:
		snprintf(text, size, "a sanitizer's report");
		break;
	case FUZZ_NIC:
		if (WIFSIGNALED(r->status))
			snprintf(text, size, "the NIC itself ended with signal %d (%s)", WTERMSIG(r->status),
				strsignal(WTERMSIG(r->status)));
		else
			snprintf(text, size, "the NIC itself ended with exit status %d",
				WEXITSTATUS(r->status));
		break;
	case FUZZ_TROUBLE:
		snprintf(text, size, "the run could not be made");
		break;
	case FUZZ_STOPPED:
		snprintf(text, size, "stopped");
		break;
	}
}
