/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/server.h"

#include "softcx/nic/event-loop.h"
#include "softcx/nic/fault.h"
#include "softcx/nic/files.h"
#include "softcx/nic/hardware.h"
#include "softcx/nic/ident.h"
#include "softcx/nic/mm.h"
#include "softcx/nic/sysfs.h"
#include "softcx/proto/call.h"
#include "softcx/proto/proto.h"
#include "softcx/uverbs/uverbs.h"
#include "util/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/*
 * How many descriptors this process may have: a NIC has none, and many of its objects here
 * have some.
 */

enum { CHANNELS_PART = 5, FOR_EVENTS = 16 /* descriptors that nothing else may have */ };

static char folder[SOFTCX_MAX_DIR + 16]; /* "": there is none */

static rlim_t most(void)
{
	FILE *f = fopen("/proc/sys/fs/nr_open", "re");
	unsigned long n = 0;

	if (f && fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

/* Raises the limit as far as it goes. */
static void descriptors_allow(void)
{
	struct rlimit limit;

	limit.rlim_cur = limit.rlim_max = most();
	if (limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void empty_folder(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
}

/*
 * Lets completion channels be named pipes in a folder below @dir, once others have a fifth of what is allowed
 * (uverbs_channels_name()). Pipes of a NIC that was killed go. 0 or a negative errno.
 */
static int descriptors_save(const char *dir)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (snprintf(folder, sizeof(folder), "%s/channels", dir) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	empty_folder();
	if (limit.rlim_cur > FOR_EVENTS && limit.rlim_cur + FOR_EVENTS > limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max - FOR_EVENTS;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	uverbs_channels_name(folder, (unsigned)(limit.rlim_cur / CHANNELS_PART));
	return 0;
}

/* Removes the folder, after all files were closed. Fine without one. */
static void descriptors_done(void)
{
	if (folder[0])
		rmdir(folder);
}

#define SEC 1000000000ULL
#define NEXT_CALL 20000 /* ns to wait for it without sleeping */

enum { CONTROL = -2 }; /* what a listener has in place of a device */

struct listener {
	struct source source; /* first */
	struct server *server;
	unsigned host;
	int dev; /* as files_add(), or CONTROL */
	char path[108];
};

struct server {
	struct server_config cfg;
	const char *dir;
	int lock_fd;
	struct hw_dev *devs[HOSTS_MAX_DEVS];
	struct ucma_net *net;
	struct faults faults;
	struct hardware hardware;
	struct hw_dev_watch watch[HOSTS_MAX_DEVS];
	struct event_loop loop;
	struct files files;
	struct listener *listeners[HOSTS_MAX_DEVS + 2 * HOSTS_MAX];
	unsigned nlisteners;
	struct controls controls;
	volatile sig_atomic_t stop;
	uint64_t alone_since; /* no client; 0: there is one */
};

uint64_t nic_now(void)
{
	return clock_ns();
}

/* ---- listeners -------------------------------------------------------------------------- */

static bool listener_input(struct source *source)
{
	struct listener *l = (struct listener *)source;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), rc;

	if (fd < 0)
		return true;
	rc = l->dev == CONTROL ? controls_add(&l->server->controls, fd)
			       : files_add(&l->server->files, l->host, l->dev, fd);
	if (rc < 0)
		fprintf(stderr, "softcx-nic: %s cannot be opened: %s\n", l->path, strerror(-rc));
	return true;
}

static void listener_destroy(struct source *source)
{
	struct listener *l = (struct listener *)source;

	unlink(l->path);
	free(l);
}

static int listen_on(struct server *s, const struct host *host, const char *name, int dev)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct listener *l = calloc(1, sizeof(*l));
	int rc = 0;

	if (!l)
		return -ENOMEM;
	*l = (struct listener){.source = {.rank = 1, .input = listener_input, .destroy = listener_destroy},
		.server = s,
		.host = (unsigned)(host - s->cfg.hosts->host),
		.dev = dev};
	if (snprintf(l->path, sizeof(l->path), "%s/" SOFTCX_SOCKET_PREFIX "%s", host->dir, name) >=
		(int)sizeof(l->path)) {
		free(l);
		return -ENAMETOOLONG;
	}
	memcpy(sun.sun_path, l->path, sizeof(sun.sun_path));
	unlink(l->path);
	l->source.fd = socket(
		AF_UNIX, (dev == CONTROL ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->source.fd < 0 || bind(l->source.fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
		chmod(l->path, 0666) < 0 || listen(l->source.fd, 1024) < 0)
		rc = -errno;
	if (rc == 0)
		rc = event_loop_add(&s->loop, &l->source);
	if (rc < 0) {
		if (l->source.fd >= 0)
			close(l->source.fd);
		listener_destroy(&l->source);
		return rc;
	}
	s->listeners[s->nlisteners++] = l;
	return 0;
}

/* ---- life ------------------------------------------------------------------------------- */

/** The directory belongs to the process that holds the lock on its file. */
static int take_dir(struct server *s)
{
	char path[SOFTCX_MAX_DIR + 16];

	if (snprintf(path, sizeof(path), "%s/lock", s->dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (s->lock_fd < 0)
		return -errno;
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	return 0;
}

static int make_devices(struct server *s)
{
	int rc = 0;

	for (unsigned i = 0, host = 0; i < s->cfg.hosts->ndevs && rc == 0; i++) {
		struct hw_config hw = s->cfg.hw;
		struct hw_gid gids[HW_GIDS] = {0};
		unsigned ngids;

		hw.seed += i;
		host += i == s->cfg.hosts->host[host].first + s->cfg.hosts->host[host].ndevs;
		if (i != s->cfg.hosts->host[host].first)
			hw.port_of = s->devs[s->cfg.hosts->host[host].first];
		hw.lid = ident_lid(i);
		ident_gids(hw.profile, i, gids, &ngids);
		rc = hw_dev_new(&s->devs[i], &hw, gids, ngids);
	}
	return rc < 0 ? rc : ucma_net_new(&s->net, s->devs, s->cfg.hosts->ndevs);
}

static int make_sockets(struct server *s, unsigned number)
{
	const struct host *host = &s->cfg.hosts->host[number];
	int rc = listen_on(s, host, "rdma_cm", FILES_RDMA_CM);

	for (unsigned i = 0; i < host->ndevs && rc == 0; i++) {
		char name[24];

		snprintf(name, sizeof(name), "uverbs%u", i);
		rc = listen_on(s, host, name, (int)(host->first + i));
	}
	return rc;
}

/* The control socket of the first host comes last: a client that can reach it finds everything in place. */
static int make_all_sockets(struct server *s)
{
	int rc = 0;

	for (unsigned i = s->cfg.hosts->n; i-- > 0 && rc == 0;) {
		rc = make_sockets(s, i);
		if (rc == 0)
			rc = listen_on(s, &s->cfg.hosts->host[i], "control", CONTROL);
	}
	return rc;
}

static void on_served(void *arg)
{
	struct server *s = arg;

	hardware_between(&s->hardware);
}

/* What came of it in the connection manager is for the command thread. */
static void on_device_event(void *arg, int event)
{
	struct server *s = arg;

	(void)event;
	event_loop_wake(&s->loop);
}

static void watch_devices(struct server *s)
{
	for (unsigned i = 0; i < s->cfg.hosts->ndevs; i++) {
		s->watch[i] = (struct hw_dev_watch){.on_event = on_device_event, .arg = s};
		hw_dev_watch(s->devs[i], &s->watch[i]);
	}
}

static void unwatch_devices(struct server *s)
{
	for (unsigned i = 0; i < s->cfg.hosts->ndevs; i++)
		if (s->watch[i].on_event)
			hw_dev_unwatch(&s->watch[i]);
}

int server_new(struct server **server, const struct server_config *cfg)
{
	struct server *s;
	int rc;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	ident_init(cfg->hosts);
	s->dir = cfg->hosts->host[0].dir;
	s->loop.epoll = s->loop.wake = s->lock_fd = -1;
	hardware_init(&s->hardware, cfg->pus);
	s->files = (struct files){.loop = &s->loop, .hardware = &s->hardware, .devs = s->devs};
	controls_init(&s->controls, &s->cfg, &s->loop, &s->files, &s->faults);
	descriptors_allow();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); /* naps are shorter than the default slack of 50 us */
	rc = take_dir(s);
	if (rc == 0)
		rc = descriptors_save(s->dir);
	if (rc == 0)
		rc = mm_init();
	if (rc == 0)
		rc = event_loop_init(&s->loop);
	if (rc == 0)
		rc = make_devices(s);
	s->loop.between = on_served;
	s->loop.arg = s;
	if (rc == 0) {
		watch_devices(s);
		faults_init(&s->faults, s->devs, cfg->hosts->ndevs);
		s->files.net = s->net;
		s->files.kills = &s->faults.kills;
		for (unsigned i = 0; i < cfg->hosts->n && rc == 0; i++)
			rc = sysfs_write(&cfg->hosts->host[i], cfg->hw.profile);
	}
	if (rc == 0)
		rc = make_all_sockets(s);
	if (rc < 0) {
		server_free(s);
		return rc;
	}
	*server = s;
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->nlisteners; i++)
		event_loop_remove(&s->loop, &s->listeners[i]->source);
	controls_clear(&s->controls);
	files_clear(&s->files);
	event_loop_done(&s->loop);
	descriptors_done();
	if (s->net)
		ucma_net_free(s->net);
	faults_deinit(&s->faults);
	unwatch_devices(s);
	for (unsigned i = 0; i < HOSTS_MAX_DEVS; i++)
		if (s->devs[i])
			hw_dev_free(s->devs[i]);
	for (struct mm_released *gone; (gone = mm_take_released());)
		mm_unmap(gone);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s);
}

void server_stop(struct server *s)
{
	s->stop = 1;
	event_loop_wake(&s->loop);
}

/* ---- the loop --------------------------------------------------------------------------- */

static bool forsaken(struct server *s, uint64_t now)
{
	if (s->files.count || s->controls.holds)
		s->alone_since = 0;
	else if (!s->alone_since)
		s->alone_since = now;
	return s->cfg.linger && s->alone_since && now - s->alone_since >= s->cfg.linger * SEC;
}

/* Nanoseconds until the server is forsaken, if nobody comes. */
static uint64_t linger_ns(const struct server *s, uint64_t now)
{
	uint64_t end = s->alone_since + s->cfg.linger * SEC;

	if (!s->cfg.linger || !s->alone_since)
		return UINT64_MAX;
	return end > now ? end - now : 0;
}

/* A program that was answered often calls again at once. If this thread slept, to wake it would take an
 * interrupt of its core, in the time of the program. Who shares the core runs meanwhile. */
static void await(struct server *s, uint64_t timeout_ns)
{
	const bool served = s->loop.nready > 0;
	const uint64_t end = nic_now() + NEXT_CALL;

	while (served && nic_now() < end) {
		if (event_loop_wait(&s->loop, 0) > 0)
			return;
		sched_yield();
	}
	event_loop_wait(&s->loop, timeout_ns);
}

static void run_commands(struct server *s)
{
	while (!s->stop && !s->controls.stop) {
		uint64_t timer = ucma_net_timers(s->net), now = nic_now(), left, due = uverbs_timers(now);

		if (forsaken(s, now))
			break;
		left = linger_ns(s, now);
		timer = due < timer ? due : timer;
		hardware_leave(&s->hardware);
		await(s, left < timer ? left : timer);
		hardware_enter(&s->hardware);
		event_loop_serve(&s->loop);
	}
}

int server_run(struct server *s)
{
	int rc = hardware_start(&s->hardware, s->devs, s->cfg.hosts, &s->controls.tracers);

	if (rc < 0)
		return rc;
	run_commands(s);
	hardware_stop(&s->hardware);
	return 0;
}
