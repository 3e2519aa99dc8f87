/* SPDX-License-Identifier: BSD-2-Clause */
/* softcx.c - the tool: runs programs on the emulated network adapter. */
#include "softcx/hostable.h"
#include "softcx/paths.h"
#include "softcx/proto.h"
#include "softcx/tool-objects.h"
#include "softcx/tool-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
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

static char dir[PATH_MAX]; /* of the NIC, absolute */

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("softcx: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(125); /* as env(1) and timeout(1): the failure is ours, not the command's */
}

static void usage(FILE *to)
{
	fputs("Usage: softcx run [OPTION...] COMMAND [ARGUMENT...]\n"
	      "       softcx nic [OPTION...]\n"
	      "       softcx status [--objects | --json] [--dir DIR]\n"
	      "       softcx trace [--qp N]... [--pid P] [--count N] [--json | --pcapng FILE]\n"
	      "                    [--dir DIR]\n"
	      "       softcx fault [--dir DIR] add FAULT [OPTION...] | list [--json] | clear [ID]\n"
	      "       softcx stop [--dir DIR]\n"
	      "An emulated ConnectX network adapter under the ordinary RDMA libraries.\n\n"
	      "  run      run COMMAND on it; starts a NIC if none runs, which ends soon after its last user\n"
	      "  nic      be the NIC, in the foreground\n"
	      "  status   what lives in the NIC\n"
	      "  trace    print send WQEs as they leave their queues\n"
	      "  fault    make the NIC fail on demand: softcx(1) has the list\n"
	      "  stop     end the NIC\n\n"
	      "Options of run and nic:\n"
	      "  --dir DIR          where the NIC lives (default: $SOFTCX_DIR, $XDG_RUNTIME_DIR/softcx,\n"
	      "                     /tmp/softcx-UID)\n"
	      "  --seed N           of every choice that the hardware is free to make (default 1)\n"
	      "  --lenient          always make the friendliest choice\n"
	      "  --no-index-check   execute WQEs whose index field is wrong\n"
	      "  --no-qpn-check     execute WQEs whose QPN field is wrong\n"
	      "  --devices N        number of devices (default 1)\n"
	      "Options of run:\n"
	      "  --leak-check       say what COMMAND did not destroy; if it succeeded, exit with 3 then\n"
	      "Options of status:\n"
	      "  --objects          every object of every open file\n"
	      "  --json             all of it as JSON\n"
	      "Options of trace:\n"
	      "  --qp N             only this queue pair; may be repeated\n"
	      "  --pid P            only queue pairs of this process\n"
	      "  --count N          end after N WQEs\n"
	      "  --json             a JSON object on each line\n"
	      "  --pcapng FILE      write what was sent to FILE for Wireshark (-: standard output)\n"
	      "Options of nic:\n"
	      "  --linger SECONDS   end when there was no client for so long (default: never)\n"
	      "  --ready-fd FD      write a line to FD when ready\n",
		to);
}

/* ---- places ----------------------------------------------------------------------------- */

/** Path of a part of softcx: beside this program in a build tree, else where it was installed. */
static void find_part(char path[static PATH_MAX], const char *in_tree, const char *installed)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		if (snprintf(path, PATH_MAX, "%s/%s", self, in_tree) < PATH_MAX && access(path, R_OK) == 0)
			return;
	}
	snprintf(path, PATH_MAX, "%s", installed);
	if (access(path, R_OK) < 0)
		die("%s: %s", path, strerror(errno));
}

static void set_dir(const char *option)
{
	char name[SOFTCX_MAX_DIR + 1];
	const char *given = option ? option : name;

	if (!option && softcx_dir(name, sizeof(name)) < 0)
		die("the directory's name is longer than %d bytes: choose another with --dir",
			SOFTCX_MAX_DIR);
	if (mkdir(given, 0755) < 0 && errno != EEXIST)
		die("%s: %s", given, strerror(errno));
	if (!realpath(given, dir))
		die("%s: %s", given, strerror(errno));
	if (strlen(dir) > SOFTCX_MAX_DIR)
		die("%s: longer than %d bytes: choose another with --dir", dir, SOFTCX_MAX_DIR);
}

/* ---- talking to the NIC ----------------------------------------------------------------- */

/** A control connection, or -1 when no NIC runs. */
static int nic_connect(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket: %s", strerror(errno));
	if (snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_CONTROL, dir) >=
		(int)sizeof(sun.sun_path))
		die("%s: name too long", dir);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	if (errno != ENOENT && errno != ECONNREFUSED)
		die("%s: %s", sun.sun_path, strerror(errno));
	close(fd);
	return -1;
}

/** Sends a word and receives the answer. False when the NIC went away meanwhile. */
static bool nic_ask(int fd, const char *word, char *answer, size_t size)
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

static struct json_object *nic_status(int fd)
{
	static char text[65536];

	return nic_ask(fd, "status", text, sizeof(text)) ? json_tokener_parse(text) : NULL;
}

/* ---- run -------------------------------------------------------------------------------- */

struct nic_options {
	char *argv[16]; /* for softcx-nic, from [1] on */
	int argc;
	const char *seed;
	bool lenient, no_index_check, no_qpn_check;
	const char *devices;
};

/** Starts a NIC in the background and waits until it is ready. Its messages go to nic.log. */
static void nic_spawn(struct nic_options *opt)
{
	char nic[PATH_MAX], log[PATH_MAX], fd_text[16], linger[16], line[16];
	int ready[2], status;
	pid_t pid;

	find_part(nic, "nic/softcx-nic", SOFTCX_LIBEXECDIR "/softcx-nic");
	snprintf(log, sizeof(log), "%.*s/nic.log", PATH_MAX - 16, dir);
	if (pipe(ready) < 0)
		die("pipe: %s", strerror(errno));
	snprintf(fd_text, sizeof(fd_text), "%d", ready[1]);
	snprintf(linger, sizeof(linger), "%d", LINGER_SECONDS);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		/* Twice: the NIC is nobody's child. */
		setsid();
		if (fork() != 0)
			_exit(0);
		close(ready[0]);
		dup2(null, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		opt->argv[0] = nic;
		opt->argv[opt->argc++] = (char[]){"--dir"};
		opt->argv[opt->argc++] = dir;
		opt->argv[opt->argc++] = (char[]){"--linger"};
		opt->argv[opt->argc++] = linger;
		opt->argv[opt->argc++] = (char[]){"--ready-fd"};
		opt->argv[opt->argc++] = fd_text;
		opt->argv[opt->argc] = NULL;
		execv(nic, opt->argv);
		fprintf(stderr, "%s: %s\n", nic, strerror(errno));
		_exit(127);
	}
	close(ready[1]);
	waitpid(pid, &status, 0);
	if (read(ready[0], line, sizeof(line)) <= 0)
		die("the NIC did not start; see %s", log);
	close(ready[0]);
}

static void check_same(int fd, const struct nic_options *opt)
{
	struct json_object *status = nic_status(fd), *o;
	const char *differs = NULL;

	if (!status)
		return;
	if (opt->seed && json_object_object_get_ex(status, "seed", &o) &&
		json_object_get_uint64(o) != strtoull(opt->seed, NULL, 0))
		differs = "--seed";
	if (opt->lenient && json_object_object_get_ex(status, "lenient", &o) && !json_object_get_boolean(o))
		differs = "--lenient";
	if (opt->no_index_check && json_object_object_get_ex(status, "index_check", &o) &&
		json_object_get_boolean(o))
		differs = "--no-index-check";
	if (opt->no_qpn_check && json_object_object_get_ex(status, "qpn_check", &o) &&
		json_object_get_boolean(o))
		differs = "--no-qpn-check";
	if (opt->devices && json_object_object_get_ex(status, "devices", &o) &&
		json_object_array_length(o) != strtoull(opt->devices, NULL, 0))
		differs = "--devices";
	json_object_put(status);
	if (differs)
		die("a NIC with another %s already runs in %s: stop it (softcx stop) or use another --dir",
			differs, dir);
}

/**
 * A control connection that keeps the NIC alive as long as it is open, that is, until the command and whatever
 * it leaves behind have ended. Two starters at once: one starts the NIC, the other finds it.
 */
static int nic_hold(struct nic_options *opt)
{
	char path[PATH_MAX], answer[8];
	int fd, high, start;

	snprintf(path, sizeof(path), "%.*s/start.lock", PATH_MAX - 16, dir);
	start = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (start < 0)
		die("%s: %s", path, strerror(errno));
	flock(start, LOCK_EX);
	for (int tries = 0;; tries++) {
		fd = nic_connect();
		if (fd >= 0) {
			check_same(fd, opt);
			if (nic_ask(fd, "hold", answer, sizeof(answer)))
				break;
			close(fd);
		}
		if (tries == 3)
			die("%s: the NIC there ends as soon as it is started; see nic.log", dir);
		nic_spawn(opt);
	}
	close(start);
	/* Inherited by the command, out of the way of descriptors it may count on. */
	high = fcntl(fd, F_DUPFD, 500);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	return fd;
}

static void set_env(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0)
		die("%s: %s", name, strerror(errno));
}

/** Adds @value to the list in environment variable @name. */
static void add_env(const char *name, const char *value, bool first)
{
	const char *old = getenv(name);
	char *both;

	if (!old || !*old) {
		set_env(name, value);
	} else if (!strstr(old, value)) {
		if (asprintf(&both, "%s:%s", first ? value : old, first ? old : value) < 0)
			die("out of memory");
		set_env(name, both);
		free(both);
	}
}

static int run(char **argv, struct nic_options *opt, bool leak_check)
{
	char driver[PATH_MAX], path[PATH_MAX], sysfs[PATH_MAX + 8], why[256];

	if (!argv[0]) {
		usage(stderr);
		return 125;
	}
	if (hostable_find(argv[0], path, sizeof(path)) < 0) {
		fprintf(stderr, "softcx: %s: %s\n", argv[0], strerror(errno));
		return errno == ENOENT ? 127 : 126;
	}
	if (!hostable_check(path, why, sizeof(why)))
		die("%s %s", path, why);
	find_part(driver, "driver/libsoftcx-driver.so", SOFTCX_LIBDIR "/libsoftcx-driver.so");
	nic_hold(opt);
	snprintf(sysfs, sizeof(sysfs), "%s/" SOFTCX_SYSFS, dir);
	set_env("SOFTCX_DIR", dir);
	set_env("SYSFS_PATH", sysfs);
	add_env("LD_PRELOAD", driver, true);
	/* AddressSanitizer insists on being the first library; ours only passes calls on to it. */
	add_env("ASAN_OPTIONS", "verify_asan_link_order=0", false);
	if (leak_check) {
		int fd = nic_connect();

		if (fd < 0)
			die("the NIC has ended");
		return tool_run_watched(fd, path, argv);
	}
	execv(path, argv);
	fprintf(stderr, "softcx: %s: %s\n", path, strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

/* ---- status, stop ----------------------------------------------------------------------- */

static int64_t get(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : 0;
}

static void print_status(struct json_object *o)
{
	static const char *const kinds[] = {"pds", "mkeys", "uars", "cqs", "qps", "srqs", "mems"};
	struct json_object *devs;

	printf("NIC      process %lld in %s, seed %lld%s%s%s\n", (long long)get(o, "pid"), dir,
		(long long)get(o, "seed"), get(o, "lenient") ? ", lenient" : "",
		get(o, "index_check") ? "" : ", no index check", get(o, "qpn_check") ? "" : ", no QPN check");
	printf("files    %lld open\n", (long long)get(o, "files"));
	if (!json_object_object_get_ex(o, "devices", &devs))
		return;
	for (size_t i = 0; i < json_object_array_length(devs); i++) {
		struct json_object *dev = json_object_array_get_idx(devs, i), *name;

		if (!json_object_object_get_ex(dev, "name", &name))
			continue;
		printf("%-8s", json_object_get_string(name));
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			printf("%s%lld %s", k ? ", " : " ", (long long)get(dev, kinds[k]), kinds[k]);
		printf("; since start %lld WQEs, %lld CQEs, %lld bytes\n", (long long)get(dev, "wqes"),
			(long long)get(dev, "cqes"), (long long)get(dev, "bytes"));
	}
}

static int no_nic(void)
{
	fprintf(stderr, "softcx: no NIC runs in %s\n", dir);
	return 1;
}

static int status(bool objects, bool json)
{
	int fd = nic_connect();
	struct json_object *o = fd < 0            ? NULL
				: objects || json ? tool_ask_json(fd, "objects")
						  : nic_status(fd);
	struct json_object *files;

	if (!o)
		return no_nic();
	if (json) {
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	} else {
		print_status(o);
		if (json_object_object_get_ex(o, "open_files", &files))
			tool_print_files(stdout, files);
	}
	json_object_put(o);
	return 0;
}

static int trace(const struct trace_options *opt)
{
	int fd = nic_connect();

	return fd < 0 ? no_nic() : tool_trace(fd, opt);
}

/* ---- fault ------------------------------------------------------------------------------ */

static void print_faults(struct json_object *all)
{
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		struct json_object *o = json_object_array_get_idx(all, i);

		json_object_object_foreach(o, key, v)
			printf("%s%s %s", strcmp(key, "id") == 0 ? "" : ", ", key, json_object_get_string(v));
		putchar('\n');
	}
}

/** The words go to the NIC as they are, which knows what they mean. */
static int fault(char **words, bool json)
{
	static char answer[65536];
	char text[1000] = "fault";
	size_t len = strlen(text);
	struct json_object *all;
	int fd = nic_connect();

	if (fd < 0)
		return no_nic();
	for (; *words; words++) {
		if (strcmp(*words, "--json") == 0) {
			json = true;
			continue;
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", *words);
		if (len >= sizeof(text))
			die("fault: too many words");
	}
	if (!nic_ask(fd, text, answer, sizeof(answer)))
		die("the NIC in %s does not answer", dir);
	if (answer[0] != '+') {
		fprintf(stderr, "softcx: fault: %s\n", answer + 1);
		return 1;
	}
	all = answer[1] == '[' ? json_tokener_parse(answer + 1) : NULL;
	if (!all) {
		if (answer[1])
			puts(answer + 1);
	} else if (json) {
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	} else {
		print_faults(all);
	}
	json_object_put(all);
	return 0;
}

static int stop(void)
{
	char answer[8];
	int fd = nic_connect();

	if (fd < 0)
		return no_nic();
	/* The end of the connection is the end of the NIC. */
	nic_ask(fd, "stop", answer, sizeof(answer));
	return 0;
}

/* ---- command line ----------------------------------------------------------------------- */

static uint64_t check_number(const char *name, const char *value)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, 0);
	if (errno || end == value || *end || *value == '-')
		die("--%s %s: not a number", name, value);
	return n;
}

static uint32_t check_range(const char *name, const char *value, uint32_t most)
{
	uint64_t n = check_number(name, value);

	if (n == 0 || n > most)
		die("--%s %s: not from 1 to %u", name, value, most);
	return (uint32_t)n;
}

static void pass_on(struct nic_options *opt, const char *name, char *value)
{
	char *option;

	if (opt->argc + 8 >= (int)(sizeof(opt->argv) / sizeof(opt->argv[0])))
		die("too many options");
	if (asprintf(&option, value ? "--%s=%s" : "--%s", name, value) < 0)
		die("out of memory");
	opt->argv[opt->argc++] = option;
}

int main(int argc, char **argv)
{
	enum {
		DIR_ = 1,
		SEED,
		LENIENT,
		NO_INDEX,
		NO_QPN,
		DEVICES,
		JSON,
		OBJECTS,
		LEAKS,
		QP,
		PID,
		COUNT,
		PCAPNG,
		HELP
	};
	static const struct option options[] = {
		{"dir", required_argument, NULL, DIR_},
		{"seed", required_argument, NULL, SEED},
		{"lenient", no_argument, NULL, LENIENT},
		{"no-index-check", no_argument, NULL, NO_INDEX},
		{"no-qpn-check", no_argument, NULL, NO_QPN},
		{"devices", required_argument, NULL, DEVICES},
		{"json", no_argument, NULL, JSON},
		{"objects", no_argument, NULL, OBJECTS},
		{"leak-check", no_argument, NULL, LEAKS},
		{"qp", required_argument, NULL, QP},
		{"pid", required_argument, NULL, PID},
		{"count", required_argument, NULL, COUNT},
		{"pcapng", required_argument, NULL, PCAPNG},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	struct nic_options opt = {.argc = 1};
	const char *verb = argc > 1 ? argv[1] : "", *dir_option = NULL;
	struct trace_options filter = {0};
	bool objects = false, leak_check = false;
	int c;

	if (strcmp(verb, "nic") == 0) {
		char nic[PATH_MAX];

		find_part(nic, "nic/softcx-nic", SOFTCX_LIBEXECDIR "/softcx-nic");
		argv[1] = nic;
		execv(nic, argv + 1);
		die("%s: %s", nic, strerror(errno));
	}
	if (strcmp(verb, "--help") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(verb, "run") != 0 && strcmp(verb, "status") != 0 && strcmp(verb, "trace") != 0 &&
		strcmp(verb, "fault") != 0 && strcmp(verb, "stop") != 0) {
		usage(stderr);
		return 125;
	}
	argv[1] = argv[0];
	/* '+': the command's options are the command's */
	while ((c = getopt_long(argc - 1, argv + 1, "+", options, NULL)) != -1) {
		switch (c) {
		case DIR_:
			dir_option = optarg;
			break;
		case SEED:
			check_number("seed", optarg);
			opt.seed = optarg;
			pass_on(&opt, "seed", optarg);
			break;
		case LENIENT:
			opt.lenient = true;
			pass_on(&opt, "lenient", NULL);
			break;
		case NO_INDEX:
			opt.no_index_check = true;
			pass_on(&opt, "no-index-check", NULL);
			break;
		case NO_QPN:
			opt.no_qpn_check = true;
			pass_on(&opt, "no-qpn-check", NULL);
			break;
		case DEVICES:
			check_number("devices", optarg);
			opt.devices = optarg;
			pass_on(&opt, "devices", optarg);
			break;
		case JSON:
			filter.json = true;
			break;
		case OBJECTS:
			objects = true;
			break;
		case LEAKS:
			leak_check = true;
			break;
		case QP:
			if (filter.nqpns == SOFTCX_TRACE_QPS)
				die("--qp: at most %d", SOFTCX_TRACE_QPS);
			filter.qpns[filter.nqpns++] = check_range("qp", optarg, 0xffffff);
			break;
		case PID:
			filter.pid = check_range("pid", optarg, INT32_MAX);
			break;
		case PCAPNG:
			filter.pcapng = optarg;
			break;
		case COUNT:
			filter.count = check_range("count", optarg, UINT32_MAX);
			break;
		case HELP:
			usage(stdout);
			return 0;
		default:
			return 125;
		}
	}
	set_dir(dir_option);
	if (strcmp(verb, "run") == 0)
		return run(argv + 1 + optind, &opt, leak_check);
	if (strcmp(verb, "fault") == 0)
		return fault(argv + 1 + optind, filter.json);
	if (strcmp(verb, "trace") == 0)
		return trace(&filter);
	return strcmp(verb, "status") == 0 ? status(objects, filter.json) : stop();
}
