/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/fuzz/harness.h"
#include "util/array.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
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

__attribute__((format(printf, 2, 3))) static bool wrong(struct farm *farm, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(farm->what, sizeof(farm->what), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- processes -------------------------------------------------------------------------- */

/** Runs "softcx @verb --dir ... " and the words that follow, up to NULL; @record: where to write its
 * conversation. */
static pid_t spawn(struct farm *farm, const char *log, const char *record, const char *const words[])
{
	char tool[PATH_MAX + 16], path[PATH_MAX], library[PATH_MAX + 32];
	const char *argv[24] = {"softcx", words[0], "--dir", farm->dir};
	pid_t parent = getpid(), pid;

	for (unsigned i = 1; words[i] && i < 20; i++)
		argv[3 + i] = words[i];
	snprintf(tool, sizeof(tool), "%s/../softcx", farm->tools);
	fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(125);
	setpgid(0, 0);
	snprintf(path, sizeof(path), "%s/%s", farm->dir, log);
	if (!freopen(path, "a", stdout) || dup2(fileno(stdout), 2) < 0 || !freopen("/dev/null", "r", stdin))
		_exit(125);
	snprintf(path, sizeof(path), "%s/shared", farm->dir);
	setenv("SOFTCX_FUZZ_SHARED", path, 1);
	/* the verdicts on the NIC; programs bring their own */
	setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 1);
	setenv("ASAN_OPTIONS", "abort_on_error=1:handle_abort=1:detect_leaks=1:verify_asan_link_order=0", 1);
	if (record) {
		snprintf(library, sizeof(library), "%s/libsoftcx-record.so", farm->tools);
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

/** What "status" says, or NULL. */
static struct json_object *ask_status(const struct farm *farm)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct pollfd input = {.fd = fd, .events = POLLIN};
	static char text[65536];
	ssize_t n = -1;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_CONTROL, farm->dir);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 &&
		send(fd, "status", 6, MSG_NOSIGNAL) == 6 && poll(&input, 1, (int)farm->patience * 1000) == 1)
		n = recv(fd, text, sizeof(text) - 1, 0);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	return json_tokener_parse(text);
}

/** Objects of every kind, as text to be compared. */
static char *object_counts(const struct farm *farm)
{
	static const char *const kinds[] = {"pds", "mkeys", "uars", "cqs", "qps", "srqs", "mems"};
	struct json_object *status = ask_status(farm), *devs, *o;
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

/** Whether the NIC has memory of a replayed application mapped. */
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

bool farm_check(struct farm *farm)
{
	struct json_object *status;
	char how[64];
	int st;

	if (waitpid(farm->nic, &st, WNOHANG) == farm->nic) {
		farm->nic = 0;
		status_text(st, how);
		return wrong(farm, "the NIC has ended: %s", how);
	}
	status = ask_status(farm);
	if (!status)
		return wrong(farm, "the NIC does not answer");
	json_object_put(status);
	for (int i = 0; i < (int)farm->patience * 100; i++) {
		if (waitpid(farm->bystander, &st, WNOHANG) == farm->bystander) {
			farm->bystander = 0;
			status_text(st, how);
			return wrong(farm, "the bystander has ended: %s; see what it says below", how);
		}
		if (__atomic_load_n(&farm->shared->rounds, __ATOMIC_RELAXED) != farm->rounds) {
			farm->rounds = farm->shared->rounds;
			return true;
		}
		usleep(10000);
	}
	return wrong(farm, "the bystander does not get on");
}

bool farm_check_clean(struct farm *farm)
{
	bool same = false, fds = false, maps = false;
	char *counts = NULL;

	if (!farm_check(farm))
		return false;
	/* the NIC hears of the end of a process a moment later */
	for (int i = 0; i < (int)farm->patience * 100 && !(same && fds && maps); i++) {
		free(counts);
		counts = object_counts(farm);
		if (!counts)
			return wrong(farm, "the NIC does not answer");
		same = strcmp(counts, farm->counts) == 0;
		fds = count_fds(farm->nic) <= farm->fds;
		maps = !maps_arena(farm->nic);
		if (!(same && fds && maps))
			usleep(10000);
	}
	if (!same)
		wrong(farm, "objects are left over: %s; at the start: %s", counts, farm->counts);
	else if (!fds)
		wrong(farm, "the NIC has %u descriptors open, %u at the start", count_fds(farm->nic),
			farm->fds);
	else if (!maps)
		wrong(farm, "the NIC still maps memory of a program that has ended");
	free(counts);
	return same && fds && maps;
}

/* ---- life ------------------------------------------------------------------------------- */

bool farm_start(struct farm *farm, uint64_t seed, unsigned patience)
{
	char path[96], seed_text[24], bystander[PATH_MAX + 16];
	char tools[PATH_MAX];
	int fd;

	memcpy(tools, farm->tools, sizeof(tools));
	*farm = (struct farm){.seed = seed, .patience = patience, .dir = "/tmp/softcx-fuzz-XXXXXX"};
	memcpy(farm->tools, tools, sizeof(tools));
	if (!mkdtemp(farm->dir))
		return wrong(farm, "%s: %s", farm->dir, strerror(errno));
	snprintf(path, sizeof(path), "%s/shared", farm->dir);
	setenv("SOFTCX_FUZZ_SHARED", path, 1);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*farm->shared)) < 0)
		return wrong(farm, "%s: %s", path, strerror(errno));
	close(fd);
	farm->shared = fuzz_shared_map();
	if (!farm->shared)
		return wrong(farm, "%s: %s", path, strerror(errno));
	snprintf(seed_text, sizeof(seed_text), "%llu", (unsigned long long)seed);
	farm->nic = spawn(farm, "nic.log", NULL, (const char *[]){"nic", "--seed", seed_text, NULL});
	for (int i = 0; i < (int)farm->patience * 100 && !farm->counts; i++) {
		usleep(10000);
		farm->counts = object_counts(farm);
	}
	if (!farm->counts)
		return wrong(farm, "the NIC does not start");
	snprintf(bystander, sizeof(bystander), "%s/fuzz-bystander", farm->tools);
	farm->bystander = spawn(farm, "bystander.log", NULL, (const char *[]){"run", bystander, NULL});
	/* When it makes rounds, it has made all its objects. */
	if (!farm_check(farm))
		return false;
	free(farm->counts);
	farm->counts = object_counts(farm);
	farm->fds = count_fds(farm->nic);
	return farm->counts || wrong(farm, "the NIC does not answer");
}

static bool end(struct farm *farm, pid_t *pid, const char *name)
{
	int status = 0;
	char how[64];

	if (*pid <= 0)
		return true;
	kill(*pid, SIGTERM);
	if (!reap(*pid, &status, farm->patience))
		snprintf(how, sizeof(how), "it does not end");
	else
		status_text(status, how);
	*pid = 0;
	return status == 0 || wrong(farm, "%s ended badly: %s", name, how);
}

bool farm_stop(struct farm *farm)
{
	return end(farm, &farm->bystander, "the bystander") && end(farm, &farm->nic, "the NIC");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void farm_remove(struct farm *farm)
{
	pid_t *all[] = {&farm->app[0], &farm->app[1], &farm->bystander, &farm->nic};
	char what[FARM_WHAT];

	memcpy(what, farm->what, sizeof(what));
	for (unsigned i = 0; i < COUNT(all); i++)
		end(farm, all[i], "");
	memcpy(farm->what, what, sizeof(what));
	if (farm->shared)
		munmap(farm->shared, sizeof(*farm->shared));
	free(farm->counts);
	nftw(farm->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool farm_start_apps(struct farm *farm)
{
	char path[PATH_MAX + 16], seed[24];

	snprintf(path, sizeof(path), "%s/fuzz-wqe", farm->tools);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)farm->seed);
	for (unsigned i = 0; i < FUZZ_APPS; i++) {
		farm->shared->app[i].qpn = 0;
		farm->app[i] = spawn(
			farm, "app.log", NULL, (const char *[]){"run", path, i ? "1" : "0", seed, NULL});
	}
	return true;
}

bool farm_stop_apps(struct farm *farm)
{
	bool ok = true;

	for (unsigned i = 0; i < FUZZ_APPS; i++)
		ok &= end(farm, &farm->app[i], "an application with wild queues");
	return ok;
}

pid_t farm_record(struct farm *farm, const char *command, unsigned n)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/conversation%u", farm->dir, n);
	return spawn(farm, "recorded.log", path, (const char *[]){"run", "/bin/bash", "-c", command, NULL});
}

bool farm_recorded(struct farm *farm, pid_t pid, unsigned n, struct conv *conv)
{
	char path[96];
	int status;

	snprintf(path, sizeof(path), "%s/conversation%u", farm->dir, n);
	reap(pid, &status, farm->patience);
	kill(-pid, SIGKILL);
	return conv_load(conv, path) == 0;
}

static void print_tail(const struct farm *farm, const char *name, unsigned lines)
{
	char command[160];

	printf("---- %s\n", name);
	fflush(stdout);
	snprintf(command, sizeof(command), "tail -n %u %s/%s", lines, farm->dir, name);
	if (system(command) != 0)
		puts("(nothing)");
}

void farm_print_log(const struct farm *farm)
{
	print_tail(farm, "recorded.log", 5);
	print_tail(farm, "bystander.log", 10);
	print_tail(farm, "app.log", 10);
	print_tail(farm, "nic.log", 80);
}
