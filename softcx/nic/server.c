/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/server.h"

#include "softcx/nic/descriptors.h"
#include "softcx/nic/event-loop.h"
#include "softcx/nic/fault.h"
#include "softcx/nic/files.h"
#include "softcx/nic/hardware.h"
#include "softcx/nic/ident.h"
#include "softcx/nic/mm.h"
#include "softcx/nic/objects.h"
#include "softcx/nic/sysfs.h"
#include "softcx/nic/trace.h"
#include "softcx/proto/call.h"
#include "softcx/proto/fds.h"
#include "softcx/proto/proto.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

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

struct control {
	struct source source; /* first */
	struct server *server;
	bool hold;
	struct tracer *tracer; /* or NULL */
	struct watch *watch;   /* or NULL */
	LIST_ENTRY(control) link;
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
	LIST_HEAD(, control) controls;
	struct tracers tracers;
	struct watches watches;
	unsigned holds;
	volatile sig_atomic_t stop;
	uint64_t alone_since; /* no client; 0: there is one */
};

uint64_t nic_now(void)
{
	return clock_ns();
}

/* ---- control ---------------------------------------------------------------------------- */

static struct json_object *device_status(const struct server *s, unsigned dev)
{
	struct json_object *o = json_object_new_object();
	const struct host *host = ident_host(dev);
	char label[SOFTCX_MAX_LABEL], folder[PATH_MAX];
	struct hw_counts c;

	hw_counts(s->devs[dev], &c);
	json_object_object_add(o, "name", json_object_new_string(ident_dev(dev, label)));
	snprintf(folder, sizeof(folder), "%s/" SOFTCX_SYSFS "/class/infiniband/mlx5_%u", host->dir,
		dev - host->first);
	json_object_object_add(o, "sysfs", json_object_new_string(folder));
	json_object_object_add(o, "pds", json_object_new_int64(c.pds));
	json_object_object_add(o, "mkeys", json_object_new_int64(c.mkeys));
	json_object_object_add(o, "uars", json_object_new_int64(c.uars));
	json_object_object_add(o, "uars_asleep", json_object_new_int64(c.uars_asleep));
	json_object_object_add(o, "cqs", json_object_new_int64(c.cqs));
	json_object_object_add(o, "qps", json_object_new_int64(c.qps));
	json_object_object_add(o, "srqs", json_object_new_int64(c.srqs));
	json_object_object_add(o, "mems", json_object_new_int64(c.mems));
	json_object_object_add(o, "wqes", json_object_new_uint64(c.wqes));
	json_object_object_add(o, "cqes", json_object_new_uint64(c.cqes));
	json_object_object_add(o, "uars_woken", json_object_new_uint64(c.uars_woken));
	json_object_object_add(o, "passes", json_object_new_uint64(c.passes));
	json_object_object_add(o, "bytes", json_object_new_uint64(c.bytes));
	return o;
}

static struct json_object *host_status(const struct host *host)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(host->name));
	json_object_object_add(o, "dir", json_object_new_string(host->dir));
	json_object_object_add(o, "devices", json_object_new_int64(host->ndevs));
	return o;
}

static struct json_object *server_status(const struct server *s)
{
	struct json_object *o = json_object_new_object(), *devs = json_object_new_array();
	struct json_object *cm = json_object_new_object(), *hosts = json_object_new_array();
	struct ucma_counts ids;

	json_object_object_add(o, "pid", json_object_new_int(getpid()));
	json_object_object_add(o, "dir", json_object_new_string(s->dir));
	json_object_object_add(o, "device", json_object_new_string(s->cfg.device));
	json_object_object_add(o, "seed", json_object_new_uint64(s->cfg.hw.seed));
	json_object_object_add(o, "pu", json_object_new_int64(s->cfg.pus));
	json_object_object_add(o, "lenient", json_object_new_boolean(s->cfg.hw.lenient));
	json_object_object_add(o, "index_check", json_object_new_boolean(!s->cfg.hw.no_index_check));
	json_object_object_add(o, "sync_fence", json_object_new_boolean(!s->cfg.hw.no_sync_fence));
	json_object_object_add(o, "message_limit", json_object_new_boolean(!s->cfg.hw.no_msg_limit));
	json_object_object_add(o, "qpn_check", json_object_new_boolean(!s->cfg.hw.no_qpn_check));
	json_object_object_add(o, "clock", s->cfg.clock ? json_object_new_string(s->cfg.clock) : NULL);
	json_object_object_add(o, "files", json_object_new_int64(s->files.count));
	for (unsigned i = 0; i < s->cfg.hosts->n; i++)
		json_object_array_add(hosts, host_status(&s->cfg.hosts->host[i]));
	json_object_object_add(o, "hosts", hosts);
	for (unsigned i = 0; i < s->cfg.hosts->ndevs; i++)
		json_object_array_add(devs, device_status(s, i));
	json_object_object_add(o, "devices", devs);
	ucma_counts(s->files.net, &ids);
	json_object_object_add(cm, "ids", json_object_new_int64(ids.ids));
	json_object_object_add(cm, "listeners", json_object_new_int64(ids.listeners));
	json_object_object_add(cm, "connections", json_object_new_int64(ids.connections));
	json_object_object_add(o, "cm", cm);
	json_object_object_add(o, "tracing", json_object_new_boolean(!LIST_EMPTY(&s->tracers.list)));
	return o;
}

static void send_status(const struct server *s, int fd)
{
	struct json_object *o = server_status(s);
	const char *text =
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	json_object_put(o);
}

/** Text of any length: in a file whose descriptor goes with one byte. Puts @o. */
static void send_file(int fd, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	int file = memfd_create("softcx-json", MFD_CLOEXEC);
	size_t len = strlen(text);
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {(char[]){"+"}, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	softcx_put_fds(&msg, &control.hdr, &file, 1);
	if (file >= 0 && pwrite(file, text, len, 0) == (ssize_t)len)
		sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		send(fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (file >= 0)
		close(file);
	json_object_put(o);
}

static void send_objects(const struct server *s, int fd)
{
	struct json_object *o = server_status(s);

	json_object_object_add(o, "open_files", objects_of_files(&s->files));
	send_file(fd, o);
}

static int start_watch(struct control *c)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	if (getsockopt(c->source.fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	watch_free(c->watch);
	c->watch = NULL;
	return watch_new(&c->server->watches, cred.pid, &c->watch);
}

static bool control_input(struct source *source)
{
	struct control *c = (struct control *)source;
	char word[16 * (SOFTCX_TRACE_QPS + 2)] = "";
	ssize_t n = recv(source->fd, word, sizeof(word) - 1, MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (strcmp(word, "status") == 0) {
		send_status(c->server, source->fd);
	} else if (strcmp(word, "stop") == 0) {
		c->server->stop = 1;
	} else if (strcmp(word, "hold") == 0) {
		c->server->holds += !c->hold;
		c->hold = true;
		send(source->fd, "ok", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strncmp(word, "fault ", 6) == 0) {
		faults_command(&c->server->faults, word + 6, source->fd);
	} else if (strcmp(word, "objects") == 0) {
		send_objects(c->server, source->fd);
	} else if (strcmp(word, "watch") == 0 && start_watch(c) == 0) {
		send(source->fd, "ok", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strcmp(word, "left") == 0 && c->watch) {
		send_file(source->fd, watch_report(c->watch, &c->server->files));
	} else if (strncmp(word, "trace", 5) == 0 && !c->tracer) {
		return tracer_new(&c->server->tracers, source->fd, word + 5, &c->tracer) == 0;
	} else if (strcmp(word, "end") == 0 && c->tracer) {
		tracer_end(c->tracer);
	} else {
		send(source->fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return true;
}

static void control_destroy(struct source *source)
{
	struct control *c = (struct control *)source;

	c->server->holds -= c->hold;
	tracer_free(c->tracer);
	watch_free(c->watch);
	LIST_REMOVE(c, link);
	free(c);
}

static int control_add(struct server *s, int fd)
{
	struct control *c = calloc(1, sizeof(*c));
	int rc = c ? 0 : -ENOMEM;

	if (rc == 0) {
		*c = (struct control){
			.source = {.fd = fd, .rank = 1, .input = control_input, .destroy = control_destroy},
			.server = s};
		rc = event_loop_add(&s->loop, &c->source);
	}
	if (rc < 0) {
		free(c);
		close(fd);
		return rc;
	}
	LIST_INSERT_HEAD(&s->controls, c, link);
	return 0;
}

/* ---- listeners -------------------------------------------------------------------------- */

static bool listener_input(struct source *source)
{
	struct listener *l = (struct listener *)source;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), rc;

	if (fd < 0)
		return true;
	rc = l->dev == CONTROL ? control_add(l->server, fd)
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
		uint8_t gids[16][16] = {{0}};
		unsigned ngids;

		hw.seed += i;
		host += i == s->cfg.hosts->host[host].first + s->cfg.hosts->host[host].ndevs;
		if (i != s->cfg.hosts->host[host].first)
			hw.port_of = s->devs[s->cfg.hosts->host[host].first];
		hw.lid = ident_lid(i);
		ident_gids(hw.profile, i, gids, &ngids);
		rc = hw_dev_new(&s->devs[i], &hw, (const uint8_t(*)[16])gids, ngids);
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
	tracers_init(&s->tracers, &s->files, cfg->hosts->ndevs);
	watches_init(&s->watches, &s->files);
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
	struct control *c;

	if (!s)
		return;
	for (unsigned i = 0; i < s->nlisteners; i++)
		event_loop_remove(&s->loop, &s->listeners[i]->source);
	LIST_FOREACH (c, &s->controls, link)
		event_loop_remove(&s->loop, &c->source);
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
	if (s->files.count || s->holds)
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
	while (!s->stop) {
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
	int rc = hardware_start(&s->hardware, s->devs, s->cfg.hosts, &s->tracers);

	if (rc < 0)
		return rc;
	run_commands(s);
	hardware_stop(&s->hardware);
	return 0;
}
