/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/tool.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/number.h"
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
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * One run of a command under one seed, on a NIC that nothing else uses. The run is a process
 * that starts both, bounds the time, and ends all processes that they leave behind. Several may run at once.
 */

struct fuzz_command {
	char *const *argv;
	char path[PATH_MAX];
	const struct tool_nic_options *nic; /* without a seed */
	unsigned timeout;                   /* seconds */
	char base[PATH_MAX];                /* directory for those of the runs */
};

enum fuzz_why {
	FUZZ_PASSED,
	FUZZ_EXIT,      /* an exit status other than 0: @status */
	FUZZ_SIGNAL,    /* ended by signal @status */
	FUZZ_TIMEOUT,   /* did not end in time */
	FUZZ_SANITIZER, /* exit status 0, but a sanitizer's report in its output */
	FUZZ_NIC,       /* the NIC ended too early or badly: @status as in waitpid(2) */
	FUZZ_TROUBLE,   /* the run could not be made; its output has the reason */
	FUZZ_STOPPED,   /* by fuzz_run_stop() */
};

struct fuzz_result {
	enum fuzz_why why;
	int status;
	double seconds; /* of the command alone */
	double overall;
};

/* The parameters of a run, and then the run itself. */
struct fuzz_run {
	uint64_t seed;
	bool lenient;
	bool trace, trace_json; /* leaves what the NIC executed in the file "trace" of its directory */
	/* set by fuzz_run_start() */
	pid_t pid;
	int fd;             /* readable when it has ended */
	char dir[PATH_MAX]; /* of the NIC, with "output" of the command and "nic.log" */
};

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

/* 0 or a negative errno. */
static int fuzz_run_start(struct fuzz_run *run, const struct fuzz_command *cmd)
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

/* Waits for the end of a run. */
static struct fuzz_result fuzz_run_end(struct fuzz_run *run)
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

/* Ends it early; fuzz_run_end() is still to be called. */
static void fuzz_run_stop(const struct fuzz_run *run)
{
	kill(run->pid, SIGTERM);
}

/* Removes a directory and what is in it. */
static void fuzz_remove(const char *dir)
{
	tree_remove(dir);
}

/* Removes what it left in the file system. */
static void fuzz_run_clean(const struct fuzz_run *run)
{
	fuzz_remove(run->dir);
}

/* A failure in words, such as "exit status 3". */
static void fuzz_why_text(const struct fuzz_result *r, char *text, size_t size)
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

enum {
	AGAIN = 3, /* runs to see whether a failure repeats */
};

struct failure {
	uint64_t seed;
	struct fuzz_result result;
};

struct fuzz {
	const struct tool_fuzz_options *opt;
	struct fuzz_command cmd;
	struct fuzz_run *runs; /* opt->jobs of them; pid 0: free */
	unsigned nruns;
	uint64_t next, passed;
	bool out_of_seeds;
	struct failure *failures; /* by seed */
	size_t nfailures;
	double start, shown, seconds, overhead;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

bool tool_fuzz_seeds(const char *text, uint64_t *first, uint64_t *last)
{
	char from[24] = "1";
	const char *dash = strchr(text, '-');

	if (dash && snprintf(from, sizeof(from), "%.*s", (int)(dash - text), text) >= (int)sizeof(from))
		return false;
	return number_parse(from, 0, UINT64_MAX, first) == 0 &&
	       number_parse(dash ? dash + 1 : text, 0, UINT64_MAX, last) == 0 && *first <= *last;
}

/* ---- all seeds -------------------------------------------------------------------------- */

static void show_progress(struct fuzz *f, bool last)
{
	double t = now();
	uint64_t done = f->passed + f->nfailures;

	if (!isatty(STDERR_FILENO) || (!last && t - f->shown < 0.2))
		return;
	f->shown = t;
	fprintf(stderr, "\r%llu of %llu seeds, %zu failed, %.1f seeds/s\033[K", (unsigned long long)done,
		(unsigned long long)(f->opt->last - f->opt->first) + 1, f->nfailures,
		(double)done / (t - f->start + 1e-9));
	if (last)
		fputc('\n', stderr);
}

static void add_failure(struct fuzz *f, uint64_t seed, const struct fuzz_result *r)
{
	size_t at = f->nfailures;

	f->failures = realloc(f->failures, (f->nfailures + 1) * sizeof(*f->failures));
	if (!f->failures)
		tool_die("out of memory");
	for (; at > 0 && f->failures[at - 1].seed > seed; at--)
		f->failures[at] = f->failures[at - 1];
	f->failures[at] = (struct failure){seed, *r};
	f->nfailures++;
}

static bool may_start(const struct fuzz *f)
{
	return !f->out_of_seeds && !interrupted && (f->nfailures == 0 || f->opt->keep_going);
}

static void start_runs(struct fuzz *f)
{
	for (unsigned i = 0; i < f->opt->jobs && may_start(f); i++) {
		int rc;

		if (f->runs[i].pid)
			continue;
		f->runs[i] = (struct fuzz_run){.seed = f->next};
		rc = fuzz_run_start(&f->runs[i], &f->cmd);
		if (rc < 0)
			tool_die("fork: %s", strerror(-rc));
		f->nruns++;
		f->out_of_seeds = f->next++ == f->opt->last;
	}
}

/** Among several failures at once the one with the lowest seed is the first; those above it do not matter any
 * more. */
static void stop_above(struct fuzz *f)
{
	if (interrupted || (f->nfailures && !f->opt->keep_going))
		for (unsigned i = 0; i < f->opt->jobs; i++)
			if (f->runs[i].pid && (interrupted || f->runs[i].seed > f->failures[0].seed))
				fuzz_run_stop(&f->runs[i]);
}

/** Prints the output of the command under a seed that cannot be tried; does not return. */
__attribute__((noreturn)) static void give_up(const struct fuzz *f, const struct fuzz_run *run)
{
	char path[PATH_MAX + 16], text[400] = "";
	FILE *in;

	snprintf(path, sizeof(path), "%s/output", run->dir);
	in = fopen(path, "re");
	if (in) {
		text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
		fclose(in);
	}
	fuzz_remove(f->cmd.base);
	tool_die("seed %llu cannot be tried: %s", (unsigned long long)run->seed, text);
}

static void end_run(struct fuzz *f, struct fuzz_run *run)
{
	struct fuzz_result r = fuzz_run_end(run);

	f->nruns--;
	if (r.why == FUZZ_TROUBLE)
		give_up(f, run);
	fuzz_run_clean(run);
	run->pid = 0;
	if (r.why == FUZZ_STOPPED)
		return;
	f->overhead += r.overall - r.seconds;
	if (r.why == FUZZ_PASSED)
		f->passed++;
	else
		add_failure(f, run->seed, &r);
	stop_above(f);
}

static void run_all(struct fuzz *f)
{
	f->start = now();
	for (;;) {
		struct pollfd fds[OPTIONS_MAX_JOBS];

		start_runs(f);
		if (f->nruns == 0)
			break;
		for (unsigned i = 0; i < f->opt->jobs; i++)
			fds[i] = (struct pollfd){.fd = f->runs[i].pid ? f->runs[i].fd : -1, .events = POLLIN};
		if (poll(fds, f->opt->jobs, 1000) < 0 && interrupted)
			stop_above(f);
		for (unsigned i = 0; i < f->opt->jobs; i++)
			if (f->runs[i].pid && fds[i].revents)
				end_run(f, &f->runs[i]);
		show_progress(f, false);
	}
	f->seconds = now() - f->start;
	show_progress(f, true);
}

/* ---- the first failure ------------------------------------------------------------------ */

struct lines {
	char **line;
	size_t n;     /* kept, the last ones */
	size_t total; /* seen */
};

static struct lines read_lines(const char *dir, const char *name, size_t keep)
{
	struct lines l = {.line = calloc(keep + 1, sizeof(char *))};
	char path[PATH_MAX + 16], *text = NULL;
	size_t size = 0;
	ssize_t len;
	FILE *f;

	if (!l.line)
		tool_die("out of memory");
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && (len = getline(&text, &size, f)) > 0) {
		if (text[len - 1] == '\n')
			text[len - 1] = '\0';
		if (l.n == keep) {
			free(l.line[0]);
			memmove(l.line, l.line + 1, (keep - 1) * sizeof(char *));
			l.n--;
		}
		l.line[l.n++] = strdup(text);
		l.total++;
	}
	free(text);
	if (f)
		fclose(f);
	return l;
}

static void free_lines(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->line[i]);
	free(l->line);
}

struct findings {
	struct lines output, trace;
	struct fuzz_result again, lenient;
	unsigned runs, failed; /* with the trace */
	char *repeat;          /* command line */
};

/** Words as a shell takes them. */
static void quote(FILE *to, const char *word)
{
	if (*word &&
		strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_") ==
			strlen(word)) {
		fputs(word, to);
		return;
	}
	fputc('\'', to);
	for (; *word; word++)
		*word == '\'' ? fputs("'\\''", to) : fputc(*word, to);
	fputc('\'', to);
}

static char *command_line(const struct fuzz *f, uint64_t seed)
{
	char *text = NULL, *args[OPTIONS];
	size_t size;
	FILE *to = open_memstream(&text, &size);
	int n;

	if (!to)
		tool_die("out of memory");
	fprintf(to, "softcx run --dir \"$(mktemp -d)\" --seed %llu", (unsigned long long)seed);
	n = options_args(&f->cmd.nic->options, VERB_RUN, args);
	if (n < 0)
		tool_die("out of memory");
	for (int i = 0; i < n; i++) {
		fputc(' ', to);
		quote(to, args[i]);
		free(args[i]);
	}
	fputs(" --", to);
	for (char *const *word = f->cmd.argv; *word; word++) {
		fputc(' ', to);
		quote(to, *word);
	}
	fclose(to);
	return text;
}

static struct fuzz_result run_one(const struct fuzz *f, struct fuzz_run *run)
{
	int rc = fuzz_run_start(run, &f->cmd);

	if (rc < 0)
		tool_die("fork: %s", strerror(-rc));
	return fuzz_run_end(run);
}

static void look_closer(const struct fuzz *f, uint64_t seed, struct findings *found)
{
	struct fuzz_run lenient = {.seed = seed, .lenient = true};

	/* With the trace, until it fails once more. */
	do {
		struct fuzz_run run = {.seed = seed, .trace = true, .trace_json = f->opt->json};

		free_lines(&found->output);
		free_lines(&found->trace);
		found->again = run_one(f, &run);
		found->output = read_lines(run.dir, "output", f->opt->lines);
		found->trace = read_lines(run.dir, "trace", f->opt->lines);
		fuzz_run_clean(&run);
		found->runs++;
		found->failed += found->again.why != FUZZ_PASSED;
	} while (!found->failed && found->runs < AGAIN && !interrupted);
	found->lenient = run_one(f, &lenient);
	fuzz_run_clean(&lenient);
	found->repeat = command_line(f, seed);
}

/* ---- text ------------------------------------------------------------------------------- */

static void print_lines(const struct lines *l, const char *what, const char *unit)
{
	if (l->n < l->total)
		printf("---- %s, the last %zu of %zu %s\n", what, l->n, l->total, unit);
	else
		printf("---- %s\n", what);
	for (size_t i = 0; i < l->n; i++)
		puts(l->line[i]);
}

static void print_summary(const struct fuzz *f)
{
	uint64_t done = f->passed + f->nfailures;
	char why[120];

	for (size_t i = 0; i < f->nfailures; i++) {
		fuzz_why_text(&f->failures[i].result, why, sizeof(why));
		printf("seed %llu fails: %s\n", (unsigned long long)f->failures[i].seed, why);
	}
	printf("%llu seeds passed, %zu failed, in %.1f s; a NIC for each took %.1f ms\n",
		(unsigned long long)f->passed, f->nfailures, f->seconds,
		done ? 1000 * f->overhead / (double)done : 0);
}

static void print_findings(const struct fuzz *f, const struct findings *found)
{
	char why[120];

	print_lines(&found->output, "output of the command", "lines");
	print_lines(&found->trace, "what the NIC executed", "WQEs");
	printf("---- seed %llu\n", (unsigned long long)f->failures[0].seed);
	fuzz_why_text(&found->again, why, sizeof(why));
	if (found->failed)
		printf("once more: %s, see above\n", why);
	else
		printf("once more: passed %u times: it does not depend on the seed alone; above is a good "
		       "run\n",
			found->runs);
	fuzz_why_text(&found->lenient, why, sizeof(why));
	if (found->lenient.why == FUZZ_PASSED)
		printf("with --lenient: passed%s\n",
			found->failed ? ": only strictness breaks it" : ", which means little here");
	else
		printf("with --lenient: %s: it is not only strictness that breaks it\n", why);
	printf("to repeat it: %s\n", found->repeat);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static struct json_object *json_text(const char *text)
{
	return json_object_new_string(text);
}

static struct json_object *result_json(const struct fuzz_result *r)
{
	struct json_object *o = json_object_new_object();
	char why[120];

	fuzz_why_text(r, why, sizeof(why));
	json_object_object_add(o, "passed", json_object_new_boolean(r->why == FUZZ_PASSED));
	json_object_object_add(o, "why", json_text(why));
	if (r->why == FUZZ_EXIT || r->why == FUZZ_SIGNAL)
		json_object_object_add(
			o, r->why == FUZZ_EXIT ? "exit_status" : "signal", json_object_new_int(r->status));
	json_object_object_add(o, "seconds", json_object_new_double(r->seconds));
	return o;
}

static struct json_object *lines_json(const struct lines *l, bool json)
{
	struct json_object *o = json_object_new_array();

	for (size_t i = 0; i < l->n; i++)
		json_object_array_add(o, json ? json_tokener_parse(l->line[i]) : json_text(l->line[i]));
	return o;
}

static void print_json(const struct fuzz *f, const struct findings *found)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array(), *first;

	json_object_object_add(o, "first_seed", json_object_new_uint64(f->opt->first));
	json_object_object_add(o, "last_seed", json_object_new_uint64(f->opt->last));
	json_object_object_add(o, "passed", json_object_new_uint64(f->passed));
	for (size_t i = 0; i < f->nfailures; i++) {
		struct json_object *one = result_json(&f->failures[i].result);

		json_object_object_add(one, "seed", json_object_new_uint64(f->failures[i].seed));
		json_object_array_add(list, one);
	}
	json_object_object_add(o, "failed", list);
	json_object_object_add(o, "seconds", json_object_new_double(f->seconds));
	json_object_object_add(o, "interrupted", json_object_new_boolean(interrupted));
	if (found->runs) {
		first = result_json(&f->failures[0].result);
		json_object_object_add(first, "seed", json_object_new_uint64(f->failures[0].seed));
		json_object_object_add(first, "runs_again", json_object_new_int64(found->runs));
		json_object_object_add(first, "failed_again", json_object_new_int64(found->failed));
		json_object_object_add(first, "lenient", result_json(&found->lenient));
		json_object_object_add(first, "repeat", json_text(found->repeat));
		json_object_object_add(first, "output", lines_json(&found->output, false));
		json_object_object_add(first, "trace", lines_json(&found->trace, true));
		json_object_object_add(first, "wqes", json_object_new_uint64(found->trace.total));
		json_object_object_add(o, "first", first);
	}
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

/* ----------------------------------------------------------------------------------------- */

static void make_base(struct fuzz *f)
{
	const char *tmp = getenv("TMPDIR");

	if (snprintf(f->cmd.base, sizeof(f->cmd.base), "%s/softcx-fuzz-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
			(int)sizeof(f->cmd.base) ||
		!mkdtemp(f->cmd.base))
		tool_die("%s: %s", f->cmd.base, strerror(errno));
}

int tool_fuzz(char **argv, const struct tool_nic_options *opt, const struct tool_fuzz_options *options)
{
	struct fuzz f = {.opt = options,
		.cmd = {.argv = argv, .nic = opt, .timeout = options->timeout},
		.next = options->first};
	const struct sigaction action = {.sa_handler = on_signal};
	struct findings found = {0};
	int rc = tool_run_find(argv[0], f.cmd.path);

	if (rc)
		return rc;
	f.runs = calloc(options->jobs, sizeof(*f.runs));
	if (!f.runs)
		tool_die("out of memory");
	make_base(&f);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	run_all(&f);
	if (f.nfailures && !interrupted)
		look_closer(&f, f.failures[0].seed, &found);
	if (options->json) {
		print_json(&f, &found);
	} else {
		print_summary(&f);
		if (found.runs)
			print_findings(&f, &found);
	}
	fuzz_remove(f.cmd.base);
	free_lines(&found.output);
	free_lines(&found.trace);
	free(found.repeat);
	free(f.failures);
	free(f.runs);
	return interrupted ? 130 : f.nfailures > 0;
}
