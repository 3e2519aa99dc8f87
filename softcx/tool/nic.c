/* SPDX-License-Identifier: BSD-2-Clause */
#include "costs/costs.h"
#include "softcx/devices/profile.h"
#include "softcx/proto/proto.h"
#include "softcx/tool/tool.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINGER_SECONDS = 3 };

char tool_dir[PATH_MAX];

void tool_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("softcx: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(125);
}

void tool_find_part(char path[static PATH_MAX], const char *in_tree, const char *installed)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		if (snprintf(path, PATH_MAX, "%s/%s", self, in_tree) < PATH_MAX && access(path, R_OK) == 0)
			return;
	}
	if (access(installed, R_OK) < 0)
		tool_die("%s: %s", installed, strerror(errno));
	strcpy(path, installed); /* a name that was compiled in */
}

void tool_set_dir(const char *option)
{
	char name[SOFTCX_MAX_DIR + 1];
	const char *given = option ? option : name;

	if (!option && softcx_dir(name, sizeof(name)) < 0)
		tool_die("the directory's name is longer than %d bytes: choose another with --dir",
			SOFTCX_MAX_DIR);
	if (mkdir(given, 0755) < 0 && errno != EEXIST)
		tool_die("%s: %s", given, strerror(errno));
	if (!realpath(given, tool_dir))
		tool_die("%s: %s", given, strerror(errno));
	if (strlen(tool_dir) > SOFTCX_MAX_DIR)
		tool_die("%s: longer than %d bytes: choose another with --dir", tool_dir, SOFTCX_MAX_DIR);
}

/* ---- talking to the NIC ----------------------------------------------------------------- */

int tool_nic_connect(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		tool_die("socket: %s", strerror(errno));
	if (snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_CONTROL, tool_dir) >=
		(int)sizeof(sun.sun_path))
		tool_die("%s: name too long", tool_dir);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	if (errno != ENOENT && errno != ECONNREFUSED)
		tool_die("%s: %s", sun.sun_path, strerror(errno));
	close(fd);
	return -1;
}

bool tool_nic_ask(int fd, const char *word, char *answer, size_t size)
{
	ssize_t n;

	if (send(fd, word, strlen(word), MSG_NOSIGNAL) < 0)
		return false;
	n = recv(fd, answer, size - 1, 0);
	if (n <= 0)
		return false;
	answer[n] = '\0';
	return true;
}

struct json_object *tool_nic_status(int fd)
{
	static char text[65536];

	return tool_nic_ask(fd, "status", text, sizeof(text)) ? json_tokener_parse(text) : NULL;
}

int tool_no_nic(void)
{
	fprintf(stderr, "softcx: no NIC runs in %s\n", tool_dir);
	return 1;
}

/* ---- starting one ----------------------------------------------------------------------- */

/* The NIC would report a mistake too, but in its log. */
void tool_nic_hosts(struct tool_nic_options *opt)
{
	const char *list = opt->options.text[OPTION_HOSTS];
	char why[160];

	if (hosts_parse(&opt->hosts, list, (unsigned)opt->options.number[OPTION_DEVICES], why, sizeof(why)) <
		0)
		tool_die("--%s: %s", list ? "hosts" : "devices", why);
	if (hosts_set_dir(&opt->hosts, tool_dir) < 0)
		tool_die("%s, with the name of a host: longer than %d bytes: choose another with --dir",
			tool_dir, SOFTCX_MAX_DIR);
	if (options_check_pu(&opt->options, opt->hosts.ndevs, why, sizeof(why)) < 0)
		tool_die("%s", why);
}

static void set_number(struct options *o, enum option_id id, char text[static 16], unsigned n)
{
	char why[64];

	snprintf(text, 16, "%u", n);
	options_set(o, id, text, why, sizeof(why));
}

void tool_nic_device(const struct tool_nic_options *opt)
{
	const char *name = options_device(&opt->options);
	char path[PATH_MAX], why[PROFILE_WHY];
	struct profile p;

	if (profile_find(name, path, sizeof(path)) < 0)
		tool_die("--device: a name of at most %d bytes", PATH_MAX);
	if (profile_read(path, &p, why) < 0)
		tool_die("--device %s: %s", name, why);
}

void tool_nic_clock(const struct tool_nic_options *opt)
{
	const char *name = opt->options.text[OPTION_CLOCK];
	char path[PATH_MAX], why[160];
	struct costs costs;

	if (name && costs_find(name, path, sizeof(path)) < 0)
		tool_die("--clock: a name of at most %d bytes", PATH_MAX);
	if (name && costs_read(path, &costs, why, sizeof(why)) < 0)
		tool_die("--clock %s: %s: %s", name, path, why);
}

void tool_nic_exec(const struct tool_nic_options *opt, const char *nic, int ready_fd, unsigned linger)
{
	struct options all = opt->options;
	char log[PATH_MAX], fd_text[16], linger_text[16];
	char *argv[OPTIONS + 2] = {(char *)(uintptr_t)nic};
	int fd, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	snprintf(log, sizeof(log), "%.*s/nic.log", PATH_MAX - 16, tool_dir);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	dup2(null, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	all.text[OPTION_DIR] = tool_dir;
	set_number(&all, OPTION_READY_FD, fd_text, (unsigned)ready_fd);
	if (linger)
		set_number(&all, OPTION_LINGER, linger_text, linger);
	if (options_args(&all, VERB_NIC, argv + 1) >= 0)
		execv(nic, argv);
	fprintf(stderr, "%s: %s\n", nic, strerror(errno));
	_exit(127);
}

/** Starts a NIC in the background and waits until it is ready. */
static void nic_spawn(const struct tool_nic_options *opt)
{
	char nic[PATH_MAX], line[16];
	int ready[2], status;
	pid_t pid;

	tool_find_part(nic, "nic/softcx-nic", SOFTCX_LIBEXECDIR "/softcx-nic");
	if (pipe(ready) < 0)
		tool_die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		tool_die("fork: %s", strerror(errno));
	if (pid == 0) {
		/* Fork twice, so that the NIC is not a child of the tool. */
		setsid();
		if (fork() != 0)
			_exit(0);
		close(ready[0]);
		tool_nic_exec(opt, nic, ready[1], LINGER_SECONDS);
	}
	close(ready[1]);
	waitpid(pid, &status, 0);
	if (read(ready[0], line, sizeof(line)) <= 0)
		tool_die("the NIC did not start; see %s/nic.log", tool_dir);
	close(ready[0]);
}

static bool same_hosts(struct json_object *running, const struct hosts *wanted)
{
	struct json_object *name, *devices;

	if (json_object_array_length(running) != wanted->n)
		return false;
	for (unsigned i = 0; i < wanted->n; i++) {
		struct json_object *host = json_object_array_get_idx(running, i);

		if (!json_object_object_get_ex(host, "devices", &devices) ||
			json_object_get_int64(devices) != wanted->host[i].ndevs ||
			!json_object_object_get_ex(host, "name", &name) ||
			strcmp(json_object_get_string(name), wanted->host[i].name) != 0)
			return false;
	}
	return true;
}

/* Name of the first option that is given and that the running NIC does not have; or NULL. */
static const char *differing_option(const struct tool_nic_options *opt, struct json_object *status)
{
	static const struct {
		enum option_id id;
		const char *key; /* of a flag: its value in the status */
		bool when_given;
	} flags[] = {
		{OPTION_LENIENT, "lenient", true},
		{OPTION_NO_INDEX_CHECK, "index_check", false},
		{OPTION_NO_QPN_CHECK, "qpn_check", false},
		{OPTION_NO_SYNC_FENCE, "sync_fence", false},
	};
	const struct options *o = &opt->options;
	const char *clock = o->text[OPTION_CLOCK], *hosts = o->text[OPTION_HOSTS];
	const char *device = o->text[OPTION_DEVICE];
	struct json_object *v;

	if (options_given(o, OPTION_SEED) && json_object_object_get_ex(status, "seed", &v) &&
		json_object_get_uint64(v) != o->number[OPTION_SEED])
		return "seed";
	if (options_given(o, OPTION_PU) && json_object_object_get_ex(status, "pu", &v) &&
		json_object_get_uint64(v) != o->number[OPTION_PU])
		return "pu";
	for (size_t i = 0; i < COUNT(flags); i++)
		if (options_given(o, flags[i].id) && json_object_object_get_ex(status, flags[i].key, &v) &&
			json_object_get_boolean(v) != flags[i].when_given)
			return option_table[flags[i].id].name;
	if (device && (!json_object_object_get_ex(status, "device", &v) ||
			      strcmp(json_object_get_string(v), device) != 0))
		return "device";
	if (clock && (!json_object_object_get_ex(status, "clock", &v) || !v ||
			     strcmp(json_object_get_string(v), clock) != 0))
		return "clock";
	if ((hosts || options_given(o, OPTION_DEVICES)) && json_object_object_get_ex(status, "hosts", &v) &&
		!same_hosts(v, &opt->hosts))
		return hosts ? "hosts" : "devices";
	return NULL;
}

static void check_same(int fd, const struct tool_nic_options *opt)
{
	struct json_object *status = tool_nic_status(fd);
	const char *differs = status ? differing_option(opt, status) : NULL;

	json_object_put(status);
	if (differs)
		tool_die("a NIC with another --%s already runs in %s: stop it (softcx stop) or use another "
			 "--dir",
			differs, tool_dir);
}

int tool_nic_hold(const struct tool_nic_options *opt)
{
	char path[PATH_MAX], answer[8];
	int fd, high, start;

	snprintf(path, sizeof(path), "%.*s/start.lock", PATH_MAX - 16, tool_dir);
	start = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (start < 0 && errno != EACCES)
		tool_die("%s: %s", path, strerror(errno));
	if (start >= 0)
		flock(start, LOCK_EX);
	for (int tries = 0;; tries++) {
		fd = tool_nic_connect();
		if (fd >= 0) {
			check_same(fd, opt);
			if (tool_nic_ask(fd, "hold", answer, sizeof(answer)))
				break;
			close(fd);
		}
		if (start < 0)
			tool_die("%s: no NIC runs there, and this user may not start one", tool_dir);
		if (tries == 3)
			tool_die("%s: the NIC there ends as soon as it is started; see nic.log", tool_dir);
		nic_spawn(opt);
	}
	if (start >= 0)
		close(start);
	/* Inherited by the command, out of the way of descriptors it may count on. */
	high = fcntl(fd, F_DUPFD, 500);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	return fd;
}

void tool_nic_enter(int fd, const char *name)
{
	struct json_object *status = tool_nic_status(fd), *hosts, *o;
	char known[HOSTS_MAX * (SOFTCX_MAX_HOST + 2)] = "";
	size_t n = 0;

	if (!status || !json_object_object_get_ex(status, "hosts", &hosts))
		tool_die("the NIC in %s does not answer", tool_dir);
	for (size_t i = 0; i < json_object_array_length(hosts); i++) {
		struct json_object *host = json_object_array_get_idx(hosts, i);

		if (!json_object_object_get_ex(host, "name", &o))
			continue;
		n += (size_t)snprintf(known + n, sizeof(known) - n, " %s", json_object_get_string(o));
		if (strcmp(json_object_get_string(o), name) == 0 &&
			json_object_object_get_ex(host, "dir", &o)) {
			snprintf(tool_dir, sizeof(tool_dir), "%s", json_object_get_string(o));
			json_object_put(status);
			return;
		}
	}
	tool_die("--host %s: the hosts of the NIC in %s are%s", name, tool_dir, known);
}
