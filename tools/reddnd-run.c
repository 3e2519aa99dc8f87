/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnd-run - starts a service again when it dies, and keeps the descriptors that it stores meanwhile: for
 * machines without systemd, by the same protocol (sd_notify(3), sd_listen_fds(3), systemd.service(5)).
 */
#include "util/array.h"
#include "util/file.h"
#include "util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum {
	FIRST_FD = 3, /* SD_LISTEN_FDS_START */
	MAX_STORED = 192,
	NAME_MAX_BYTES = 255, /* of FDNAME= */
	MAX_TOGETHER = 16,    /* descriptors in one message */
	DELAY_MS = 200,
	HIGH = 256, /* out of the way of those that the service gets */
};

struct stored {
	char name[NAME_MAX_BYTES + 1];
	int fd;
};

static struct stored store[MAX_STORED];
static unsigned nstored;

static const char usage[] =
	"usage: reddnd-run [OPTIONS] COMMAND [ARGUMENT...]\n"
	"\n"
	"Runs COMMAND, and runs it again when it is killed or exits with status 75. It keeps the\n"
	"descriptors that COMMAND stores, as systemd does, and gives them to the next one. While it\n"
	"has any, it runs COMMAND again after each failure but status 1, a mistake of its user.\n"
	"\n"
	"  -h, --help      this text\n"
	"  -V, --version   the version\n"
	"\n"
	"SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 are passed on.\n"
	"\n"
	"Examples:\n"
	"  reddnd-run reddnd --config reddnd.conf\n";

/* ---- the store ---- */

static void forget(const char *name)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < nstored; i++) {
		if (strcmp(store[i].name, name) == 0)
			close(store[i].fd);
		else
			store[kept++] = store[i];
	}
	nstored = kept;
}

/* False also if the kernel cannot compare them */
static bool is_kept(int fd)
{
	pid_t self = getpid();
	bool same = false;

	for (unsigned i = 0; i < nstored && !same; i++)
		same = syscall(SYS_kcmp, self, self, KCMP_FILE, (unsigned long)fd,
			       (unsigned long)store[i].fd) == 0;
	return same;
}

/* As systemd (core/service.c, service_add_fd_store()): an open file that it has, by whatever name, is not
 * kept again */
static void keep(const char *name, int fd)
{
	int high;

	if (is_kept(fd))
		return;
	high = nstored < MAX_STORED ? fcntl(fd, F_DUPFD_CLOEXEC, HIGH) : -1;
	if (high < 0) {
		fprintf(stderr, "reddnd-run: no room for the descriptor \"%s\"\n", name);
		return;
	}
	store[nstored].fd = high;
	snprintf(store[nstored].name, sizeof(store[nstored].name), "%s", name);
	nstored++;
}

/* The value of @key in @text, lines of KEY=VALUE, which this changes; or NULL. */
static char *value_of(char *lines[], unsigned n, const char *key)
{
	size_t len = strlen(key);

	for (unsigned i = 0; i < n; i++)
		if (strncmp(lines[i], key, len) == 0 && lines[i][len] == '=')
			return lines[i] + len + 1;
	return NULL;
}

/* A name is in a list with colons (sd_listen_fds_with_names(3)). */
static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= NAME_MAX_BYTES && !strchr(name, ':');
}

static void obey(char *text, const int *fds, unsigned nfds)
{
	char *lines[16], *save, *name;
	unsigned n = 0;

	for (char *l = strtok_r(text, "\n", &save); l && n < COUNT(lines); l = strtok_r(NULL, "\n", &save))
		lines[n++] = l;
	name = value_of(lines, n, "FDNAME");
	name = name && is_name(name) ? name : (char[]){"stored"};
	if (value_of(lines, n, "FDSTOREREMOVE"))
		forget(name);
	else if (value_of(lines, n, "FDSTORE"))
		for (unsigned i = 0; i < nfds; i++)
			keep(name, fds[i]);
	/* BARRIER=1 comes with a descriptor whose end shows that all before it was read */
}

/* Messages of the service's main process only, as with NotifyAccess=main. */
static void take_message(int sock, pid_t service)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(MAX_TOGETHER * sizeof(int))];
	} control;
	char text[4096];
	struct iovec iov = {text, sizeof(text) - 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[MAX_TOGETHER];
	unsigned nfds = 0;
	pid_t sender = 0;

	if (n < 0)
		return;
	text[n] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			sender = ((const struct ucred *)(const void *)CMSG_DATA(c))->pid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			nfds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(fds, CMSG_DATA(c), nfds * sizeof(int));
		}
	}
	if (sender == service)
		obey(text, fds, nfds);
	for (unsigned i = 0; i < nfds; i++)
		close(fds[i]);
}

/* In a directory of its own: an abstract name anybody can take before, and anybody can send to it: many
 * messages, or descriptors whose last close() waits */
static char directory[sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof("/notify")];
static struct sockaddr_un notify = {.sun_family = AF_UNIX};

static void remove_socket(void)
{
	unlink(notify.sun_path);
	rmdir(directory);
}

static int make_socket(void)
{
	const char *tmp = getenv("TMPDIR");
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (snprintf(directory, sizeof(directory), "%s/reddnd-run-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
		(int)sizeof(directory)) {
		fprintf(stderr, "reddnd-run: TMPDIR is too long for a socket: %s\n", tmp);
		exit(EX_OSERR);
	}
	if (!mkdtemp(directory)) {
		fprintf(stderr, "reddnd-run: %s: %s\n", directory, strerror(errno));
		exit(EX_OSERR);
	}
	snprintf(notify.sun_path, sizeof(notify.sun_path), "%s/notify", directory);
	atexit(remove_socket);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) < 0 ||
		bind(fd, (struct sockaddr *)&notify, sizeof(notify)) < 0) {
		perror("reddnd-run: socket");
		exit(EX_OSERR);
	}
	return fd;
}

/* ---- the service ---- */

static void give_descriptors(void)
{
	char names[MAX_STORED * (NAME_MAX_BYTES + 1) + 1] = "", text[16];
	size_t len = 0;

	for (unsigned i = 0; i < nstored; i++) {
		len += (size_t)snprintf(
			names + len, sizeof(names) - len, "%s%s", i ? ":" : "", store[i].name);
		if (dup2(store[i].fd, FIRST_FD + (int)i) < 0)
			_exit(EX_OSERR);
	}
	if (!nstored)
		return;
	snprintf(text, sizeof(text), "%u", nstored);
	setenv("LISTEN_FDS", text, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	setenv("LISTEN_PID", text, 1);
}

/* What COMMAND gets: signals that are blocked, and stderr */
struct before {
	sigset_t signals;
	int messages;
};

static pid_t start(char **command, const struct before *before)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EX_OSERR);
	setenv("NOTIFY_SOCKET", notify.sun_path, 1);
	give_descriptors();
	dup2(before->messages, STDERR_FILENO);
	sigprocmask(SIG_SETMASK, &before->signals, NULL);
	execvp(command[0], command);
	fprintf(stderr, "reddnd-run: %s: %s\n", command[0], strerror(errno));
	_exit(127);
}

/* Waits for the end of @service, and stores what it sends until then. Returns its status, or, if it is @asked
 * to stop, sets that. */
static int watch(pid_t service, int sock, int signals, bool *asked)
{
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = sock, .events = POLLIN}};
	struct signalfd_siginfo info;
	int status;

	for (;;) {
		poll(fds, COUNT(fds), -1);
		if (fds[1].revents)
			take_message(sock, service);
		if (!fds[0].revents || read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo != SIGCHLD) {
			*asked |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
			kill(service, (int)info.ssi_signo);
		} else if (waitpid(service, &status, WNOHANG) == service) {
			while (poll(&fds[1], 1, 0) > 0) /* what it sent before */
				take_message(sock, service);
			return status;
		}
	}
}

/* What is stored ends with this process, so only what a restart cannot correct is a reason to (status 1, as
 * RestartPreventExitStatus= of the unit) */
static bool is_over(int status)
{
	if (!WIFEXITED(status) || WEXITSTATUS(status) == EX_TEMPFAIL)
		return false;
	return WEXITSTATUS(status) <= 1 || nstored == 0;
}

static int run(char **command)
{
	static const int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
	struct before before = {.messages = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, HIGH)};
	int sock, signals, status;
	bool asked = false;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT(passed); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &before.signals);
	/* Whoever reads stderr may leave, or stand still, or it is a file that may not grow. COMMAND ignores
	 * both too, SIGPIPE as with IgnoreSIGPIPE=yes, the default of systemd */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	file_unblock_stderr();
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) {
		perror("reddnd-run: signalfd");
		return EX_OSERR;
	}
	sock = make_socket();
	for (;;) {
		pid_t service = start(command, &before);

		if (service < 0) {
			perror("reddnd-run: fork");
			return EX_OSERR;
		}
		status = watch(service, sock, signals, &asked);
		if (asked || is_over(status))
			break;
		fprintf(stderr, "reddnd-run: %s ended by %s %d; it is started again with %u descriptor%s\n",
			command[0], WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), nstored,
			nstored == 1 ? "" : "s");
		nanosleep(&(struct timespec){.tv_nsec = DELAY_MS * 1000000L}, NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c;

	output_begin(EX_IOERR);
	while ((c = getopt_long(argc, argv, "+hV", options, NULL)) >= 0) {
		if (c == 'h')
			return fputs(usage, stdout), 0;
		if (c == 'V')
			return puts("reddnd-run " REDDND_VERSION), 0;
		return EX_USAGE;
	}
	if (optind == argc)
		return fputs(usage, stderr), EX_USAGE;
	return run(argv + optind);
}
