/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/fuzz/harness.h"
#include "util/array.h"
#include "util/tree.h"

#include <dirent.h>
#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

__attribute__((format(printf, 2, 3))) static bool wrong(struct harness *harness, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(harness->what, sizeof(harness->what), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- processes -------------------------------------------------------------------------- */

/** Runs "softcx @verb --dir ... " and the words that follow, up to NULL; @record: where to write its
 * conversation. */
static pid_t spawn(struct harness *harness, const char *log, const char *record, const char *const words[])
{
	char tool[PATH_MAX + 16], path[PATH_MAX], library[PATH_MAX + 32];
	const char *argv[24] = {"softcx", words[0], "--dir", harness->dir};
	pid_t parent = getpid(), pid;

	for (unsigned i = 1; words[i] && i < 20; i++)
		argv[3 + i] = words[i];
	snprintf(tool, sizeof(tool), "%s/../softcx", harness->tools);
	fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(125);
	setpgid(0, 0);
	snprintf(path, sizeof(path), "%s/%s", harness->dir, log);
	if (!freopen(path, "a", stdout) || dup2(fileno(stdout), 2) < 0 || !freopen("/dev/null", "r", stdin))
		_exit(125);
	snprintf(path, sizeof(path), "%s/shared", harness->dir);
	setenv("SOFTCX_FUZZ_SHARED", path, 1);
	/* the verdicts on the NIC; programs bring their own */
	setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 1);
	setenv("ASAN_OPTIONS", "abort_on_error=1:handle_abort=1:detect_leaks=1:verify_asan_link_order=0", 1);
	if (record) {
		snprintf(library, sizeof(library), "%s/libsoftcx-record.so", harness->tools);
		setenv("SOFTCX_RECORD", record, 1);
		setenv("LD_PRELOAD", library, 1);
	}
	execv(tool, (char **)(uintptr_t)argv);
	_exit(127);
}

/** Waits for the end of a process. False: it did not come, and it was killed. */
static bool reap(pid_t pid, int *status, double seconds)
{
	for (int i = 0; i < seconds * 100; i++) {
		pid_t got = waitpid(pid, status, WNOHANG);

		if (got == pid || (got < 0 && errno == ECHILD))
			return true;
		usleep(10000);
	}
	kill(-pid, SIGKILL);
	waitpid(pid, status, 0);
	return false;
}

static void status_text(int status, char text[static 64])
{
	if (WIFSIGNALED(status))
		snprintf(text, 64, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, 64, "exit status %d", WEXITSTATUS(status));
}

/* ---- questions -------------------------------------------------------------------------- */

/** The answer to "status", or NULL. */
static struct json_object *ask_status(const struct harness *harness)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct pollfd input = {.fd = fd, .events = POLLIN};
	static char text[65536];
	ssize_t n = -1;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_CONTROL, harness->dir);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 &&
		send(fd, "status", 6, MSG_NOSIGNAL) == 6 &&
		poll(&input, 1, (int)harness->patience * 1000) == 1)
		n = recv(fd, text, sizeof(text) - 1, 0);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	return json_tokener_parse(text);
}

/** Objects of every kind, as text to be compared. */
static char *object_counts(const struct harness *harness)
{
	static const char *const kinds[] = {"pds", "mkeys", "uars", "cqs", "qps", "srqs", "mems"};
	struct json_object *status = ask_status(harness), *devs, *o;
	char *text = NULL;
	size_t size;
	FILE *f = status ? open_memstream(&text, &size) : NULL;

	if (f && json_object_object_get_ex(status, "files", &o))
		fprintf(f, "files %s", json_object_get_string(o));
	if (f && json_object_object_get_ex(status, "cm", &o))
		fprintf(f, ", cm %s", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	if (f && json_object_object_get_ex(status, "devices", &devs))
		for (size_t i = 0; i < json_object_array_length(devs); i++)
			for (size_t k = 0; k < COUNT(kinds); k++)
				if (json_object_object_get_ex(
					    json_object_array_get_idx(devs, i), kinds[k], &o))
					fprintf(f, ", %s %s", kinds[k], json_object_get_string(o));
	if (f)
		fclose(f);
	json_object_put(status);
	return text;
}

static unsigned count_fds(pid_t pid)
{
	char path[32];
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/** True if the NIC has memory of a replayed application mapped. */
static bool maps_arena(pid_t pid)
{
	char path[32], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "softcx-fuzz-") != NULL && strstr(line, "memfd:") != NULL;
	if (f)
		fclose(f);
	return found;
}

bool harness_check(struct harness *harness)
{
	struct json_object *status;
	char how[64];
	int st;

	if (waitpid(harness->nic, &st, WNOHANG) == harness->nic) {
		harness->nic = 0;
		status_text(st, how);
		return wrong(harness, "the NIC has ended: %s", how);
	}
	status = ask_status(harness);
	if (!status)
		return wrong(harness, "the NIC does not answer");
	json_object_put(status);
	for (int i = 0; i < (int)harness->patience * 100; i++) {
		if (waitpid(harness->bystander, &st, WNOHANG) == harness->bystander) {
			harness->bystander = 0;
			status_text(st, how);
			return wrong(harness, "the bystander has ended: %s; its messages are below", how);
		}
		if (__atomic_load_n(&harness->shared->rounds, __ATOMIC_RELAXED) != harness->rounds) {
			harness->rounds = harness->shared->rounds;
			return true;
		}
		usleep(10000);
	}
	return wrong(harness, "the bystander does not get on");
}

bool harness_check_clean(struct harness *harness)
{
	bool same = false, fds = false, maps = false;
	char *counts = NULL;

	if (!harness_check(harness))
		return false;
	/* the NIC hears of the end of a process a moment later */
	for (int i = 0; i < (int)harness->patience * 100 && !(same && fds && maps); i++) {
		free(counts);
		counts = object_counts(harness);
		if (!counts)
			return wrong(harness, "the NIC does not answer");
		same = strcmp(counts, harness->counts) == 0;
		fds = count_fds(harness->nic) <= harness->fds;
		maps = !maps_arena(harness->nic);
		if (!(same && fds && maps))
			usleep(10000);
	}
	if (!same)
		wrong(harness, "objects are left over: %s; at the start: %s", counts, harness->counts);
	else if (!fds)
		wrong(harness, "the NIC has %u descriptors open, %u at the start", count_fds(harness->nic),
			harness->fds);
	else if (!maps)
		wrong(harness, "the NIC still maps memory of a program that has ended");
	free(counts);
	return same && fds && maps;
}

/* ---- life ------------------------------------------------------------------------------- */

bool harness_start(struct harness *harness, uint64_t seed, unsigned patience)
{
	char path[96], seed_text[24], bystander[PATH_MAX + 16];
	char tools[PATH_MAX];
	int fd;

	memcpy(tools, harness->tools, sizeof(tools));
	*harness = (struct harness){.seed = seed, .patience = patience, .dir = "/tmp/softcx-fuzz-XXXXXX"};
	memcpy(harness->tools, tools, sizeof(tools));
	if (!mkdtemp(harness->dir))
		return wrong(harness, "%s: %s", harness->dir, strerror(errno));
	snprintf(path, sizeof(path), "%s/shared", harness->dir);
	setenv("SOFTCX_FUZZ_SHARED", path, 1);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*harness->shared)) < 0)
		return wrong(harness, "%s: %s", path, strerror(errno));
	close(fd);
	harness->shared = fuzz_shared_map();
	if (!harness->shared)
		return wrong(harness, "%s: %s", path, strerror(errno));
	snprintf(seed_text, sizeof(seed_text), "%llu", (unsigned long long)seed);
	harness->nic = spawn(harness, "nic.log", NULL, (const char *[]){"nic", "--seed", seed_text, NULL});
	for (int i = 0; i < (int)harness->patience * 100 && !harness->counts; i++) {
		usleep(10000);
		harness->counts = object_counts(harness);
	}
	if (!harness->counts)
		return wrong(harness, "the NIC does not start");
	snprintf(bystander, sizeof(bystander), "%s/fuzz-bystander", harness->tools);
	harness->bystander = spawn(harness, "bystander.log", NULL, (const char *[]){"run", bystander, NULL});
	/* When it makes rounds, it has made all its objects. */
	if (!harness_check(harness))
		return false;
	free(harness->counts);
	harness->counts = object_counts(harness);
	harness->fds = count_fds(harness->nic);
	return harness->counts || wrong(harness, "the NIC does not answer");
}

static bool end(struct harness *harness, pid_t *pid, const char *name)
{
	int status = 0;
	char how[64];

	if (*pid <= 0)
		return true;
	kill(*pid, SIGTERM);
	if (!reap(*pid, &status, harness->patience))
		snprintf(how, sizeof(how), "it does not end");
	else
		status_text(status, how);
	*pid = 0;
	return status == 0 || wrong(harness, "%s ended badly: %s", name, how);
}

bool harness_stop(struct harness *harness)
{
	return end(harness, &harness->bystander, "the bystander") && end(harness, &harness->nic, "the NIC");
}

void harness_remove(struct harness *harness)
{
	pid_t *all[] = {&harness->app[0], &harness->app[1], &harness->bystander, &harness->nic};
	char what[HARNESS_WHAT];

	memcpy(what, harness->what, sizeof(what));
	for (unsigned i = 0; i < COUNT(all); i++)
		end(harness, all[i], "");
	memcpy(harness->what, what, sizeof(what));
	if (harness->shared)
		munmap(harness->shared, sizeof(*harness->shared));
	free(harness->counts);
	tree_remove(harness->dir);
}

bool harness_start_apps(struct harness *harness)
{
	char path[PATH_MAX + 16], seed[24];

	snprintf(path, sizeof(path), "%s/fuzz-wqe", harness->tools);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)harness->seed);
	for (unsigned i = 0; i < FUZZ_APPS; i++) {
		harness->shared->app[i].qpn = 0;
		harness->app[i] = spawn(
			harness, "app.log", NULL, (const char *[]){"run", path, i ? "1" : "0", seed, NULL});
	}
	return true;
}

bool harness_stop_apps(struct harness *harness)
{
	bool ok = true;

	for (unsigned i = 0; i < FUZZ_APPS; i++)
		ok &= end(harness, &harness->app[i], "an application with wild queues");
	return ok;
}

pid_t harness_record(struct harness *harness, const char *command, unsigned n)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/conversation%u", harness->dir, n);
	return spawn(
		harness, "recorded.log", path, (const char *[]){"run", "/bin/bash", "-c", command, NULL});
}

bool harness_recorded(struct harness *harness, pid_t pid, unsigned n, struct conv *conv)
{
	char path[96];
	int status;

	snprintf(path, sizeof(path), "%s/conversation%u", harness->dir, n);
	reap(pid, &status, harness->patience);
	kill(-pid, SIGKILL);
	return conv_load(conv, path) == 0;
}

static void print_tail(const struct harness *harness, const char *name, unsigned lines)
{
	char command[160];

	printf("---- %s\n", name);
	fflush(stdout);
	snprintf(command, sizeof(command), "tail -n %u %s/%s", lines, harness->dir, name);
	if (system(command) != 0)
		puts("(nothing)");
}

void harness_print_log(const struct harness *harness)
{
	print_tail(harness, "recorded.log", 5);
	print_tail(harness, "bystander.log", 10);
	print_tail(harness, "app.log", 10);
	print_tail(harness, "nic.log", 80);
}
