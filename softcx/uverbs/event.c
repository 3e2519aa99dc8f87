/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct uverbs_channel {
	LIST_ENTRY(uverbs_channel) link;
	enum uverbs_channel_kind kind;
	unsigned refs;   /* objects that post here; the list itself holds none */
	int fd;          /* write end; -1: of a named pipe, which is opened for each use */
	uint64_t number; /* its name */
	dev_t dev;
	ino_t ino;
};

static struct {
	const char *dir; /* of named pipes; NULL: there are none */
	unsigned most;   /* write ends that are kept open */
	unsigned open;
	uint64_t last_number;
} pipes;

enum { PIPE_PATH = 160 };

/* Every event takes a buffer of a packet pipe: room for 256. */
enum { CH_PACKET_PIPE = 256 * 4096, CH_EVENT_MAX = 4096 };

void uverbs_channels_name(const char *dir, unsigned most)
{
	pipes.dir = dir;
	pipes.most = most;
}

static void pipe_path(const struct uverbs_channel *ch, char path[PIPE_PATH])
{
	if (ch->fd >= 0)
		snprintf(path, PIPE_PATH, "/proc/self/fd/%d", ch->fd);
	else
		snprintf(path, PIPE_PATH, "%s/%" PRIu64, pipes.dir, ch->number);
}

/*
 * What is between the soft and the hard limit is for this: an event that is lost for want of a descriptor
 * would leave its reader asleep for ever.
 */
static int open_for_event(const char *path, int flags)
{
	static pthread_mutex_t raising =
		PTHREAD_MUTEX_INITIALIZER; /* of several threads that execute queues */
	int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);
	struct rlimit before, all;

	if (fd >= 0 || errno != EMFILE)
		return fd;
	pthread_mutex_lock(&raising);
	if (getrlimit(RLIMIT_NOFILE, &before) == 0) {
		all = (struct rlimit){before.rlim_max, before.rlim_max};
		setrlimit(RLIMIT_NOFILE, &all);
		fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);
		setrlimit(RLIMIT_NOFILE, &before);
	}
	pthread_mutex_unlock(&raising);
	return fd;
}

/* -1 with ENXIO: a named pipe that nobody reads from */
static int write_end(const struct uverbs_channel *ch)
{
	char path[PIPE_PATH];

	if (ch->fd >= 0)
		return ch->fd;
	pipe_path(ch, path);
	return open_for_event(path, O_WRONLY);
}

static void write_end_done(const struct uverbs_channel *ch, int fd)
{
	if (fd >= 0 && fd != ch->fd)
		close(fd);
}

static void channel_free(struct uverbs_channel *ch)
{
	char path[PIPE_PATH];

	LIST_REMOVE(ch, link);
	if (ch->fd >= 0) {
		close(ch->fd);
		pipes.open--;
	} else {
		pipe_path(ch, path);
		unlink(path);
	}
	free(ch);
}

bool uverbs_channel_closed(const struct uverbs_channel *ch)
{
	struct pollfd p = {.fd = write_end(ch)};
	bool closed = p.fd < 0 ? errno == ENXIO : poll(&p, 1, 0) == 1 && (p.revents & POLLERR);

	write_end_done(ch, p.fd);
	return closed;
}

/* Channels whose last reader has gone and that nobody posts to any more. */
static void channels_sweep(struct uverbs_file *file)
{
	struct uverbs_channel *ch = LIST_FIRST(&file->channels);

	while (ch) {
		struct uverbs_channel *next = LIST_NEXT(ch, link);

		if (ch->refs == 0 && uverbs_channel_closed(ch))
			channel_free(ch);
		ch = next;
	}
}

static int open_pipe(struct uverbs_channel *ch, int *read_fd)
{
	bool packets = ch->kind != UVERBS_CH_COMP && ch->kind != UVERBS_CH_ASYNC;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -EMFILE;
	fcntl(fds[1], F_SETFL, O_NONBLOCK | (packets ? O_DIRECT : 0));
	if (packets)
		fcntl(fds[1], F_SETPIPE_SZ, CH_PACKET_PIPE);
	ch->fd = fds[1];
	pipes.open++;
	*read_fd = fds[0];
	return 0;
}

/* The application's descriptor is a write end as well: a pipe without one would be at its end. */
static int name_pipe(struct uverbs_channel *ch, int *read_fd)
{
	char path[PIPE_PATH];

	ch->fd = -1;
	ch->number = ++pipes.last_number;
	pipe_path(ch, path);
	if (mkfifo(path, 0600) < 0)
		return -EMFILE;
	*read_fd = open(path, O_RDWR | O_CLOEXEC);
	if (*read_fd < 0)
		unlink(path);
	return *read_fd < 0 ? -EMFILE : 0;
}

int uverbs_channel_new(
	struct uverbs_file *file, enum uverbs_channel_kind kind, int *read_fd, struct uverbs_channel **out)
{
	struct uverbs_channel *ch;
	struct stat st;
	bool named;
	int rc;

	channels_sweep(file);
	named = kind == UVERBS_CH_COMP && pipes.dir && pipes.open >= pipes.most;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	ch->kind = kind;
	rc = named ? name_pipe(ch, read_fd) : open_pipe(ch, read_fd);
	if (rc < 0) {
		free(ch);
		return rc;
	}
	fstat(*read_fd, &st);
	ch->dev = st.st_dev;
	ch->ino = st.st_ino;
	LIST_INSERT_HEAD(&file->channels, ch, link);
	*out = ch;
	return 0;
}

int uverbs_channel_find(struct uverbs_file *file, struct nic_call *call, int64_t fd,
	enum uverbs_channel_kind kind, struct uverbs_channel **out)
{
	struct uverbs_channel *ch;
	struct stat st;
	int r;

	if (fd < 0 || fd > INT32_MAX)
		return -EBADF;
	r = nic_call_fstat(call, (int)fd, &st);
	if (r)
		return r;
	LIST_FOREACH (ch, &file->channels, link) {
		if (ch->kind == kind && ch->dev == st.st_dev && ch->ino == st.st_ino) {
			/* each queue that is made asks for that of the context */
			LIST_REMOVE(ch, link);
			LIST_INSERT_HEAD(&file->channels, ch, link);
			*out = ch;
			return 0;
		}
	}
	return -EBADF;
}

void uverbs_channels_free(struct uverbs_file *file)
{
	while (!LIST_EMPTY(&file->channels))
		channel_free(LIST_FIRST(&file->channels));
}

unsigned uverbs_channels_count(const struct uverbs_file *file, enum uverbs_channel_kind kind)
{
	const struct uverbs_channel *ch;
	unsigned n = 0;

	LIST_FOREACH (ch, &file->channels, link)
		n += ch->kind == kind && !uverbs_channel_closed(ch);
	return n;
}

enum uverbs_channel_kind uverbs_channel_kind(const struct uverbs_channel *ch)
{
	return ch->kind;
}

struct uverbs_channel *uverbs_channel_get(struct uverbs_channel *ch)
{
	if (ch)
		ch->refs++;
	return ch;
}

void uverbs_channel_put(struct uverbs_channel *ch)
{
	if (ch)
		ch->refs--;
}

static size_t record_size(const struct uverbs_channel *ch)
{
	switch (ch->kind) {
	case UVERBS_CH_COMP:
		return sizeof(struct ib_uverbs_comp_event_desc);
	case UVERBS_CH_ASYNC:
		return sizeof(struct ib_uverbs_async_event_desc);
	default:
		return CH_EVENT_MAX; /* a read returns one packet, however short */
	}
}

/*
 * Reads every unread event with a description of its own, as the application's may block, and
 * writes back those that stay. A reader in between sees an empty channel for a moment, or gets
 * its event a little earlier than its turn.
 */
unsigned uverbs_channel_purge(struct uverbs_channel *ch, uint64_t key)
{
	struct {
		size_t len;
		uint8_t bytes[CH_EVENT_MAX];
	} *keep = NULL;
	unsigned gone = 0, kept = 0, room = 0;
	uint8_t event[CH_EVENT_MAX];
	char path[PIPE_PATH];
	ssize_t n;
	int fd;

	if (!ch)
		return 0;
	pipe_path(ch, path);
	fd = open_for_event(path, O_RDONLY);
	if (fd < 0)
		return 0;
	while ((n = read(fd, event, record_size(ch))) > 0) {
		if (n >= 8 && memcmp(event, &key, 8) == 0) {
			gone++;
			continue;
		}
		if (kept == room) {
			void *more = realloc(keep, (room ? 2 * room : 8) * sizeof(*keep));

			if (!more)
				break;
			keep = more;
			room = room ? 2 * room : 8;
		}
		keep[kept].len = (size_t)n;
		memcpy(keep[kept++].bytes, event, (size_t)n);
	}
	for (unsigned i = 0; i < kept; i++)
		uverbs_channel_post(ch, keep[i].bytes, keep[i].len);
	free(keep);
	close(fd);
	return gone;
}

bool uverbs_channel_post(struct uverbs_channel *ch, const void *event, size_t len)
{
	int fd = ch ? write_end(ch) : -1;
	bool queued = fd >= 0 && write(fd, event, len) == (ssize_t)len;

	if (ch)
		write_end_done(ch, fd);
	return queued;
}

/* Anything else, the application's device file first of all, must not be kept open here. */
static bool is_eventfd(int fd)
{
	char path[32], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return strcmp(name, "anon_inode:[eventfd]") == 0;
}

int uverbs_eventfd_take(struct nic_call *call, int64_t fd, int *copy)
{
	int r = fd < 0 || fd > INT32_MAX ? -EBADF : nic_call_take_fd(call, (int)fd, copy);

	if (r == 0 && !is_eventfd(*copy)) {
		close(*copy);
		r = -EINVAL;
	}
	return r;
}

void uverbs_eventfd_signal(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	/* A counter at its end stays there */
	if (poll(&p, 1, 0) == 1 && write(fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		return;
}

static int async_event_type(int event)
{
	switch (event) {
	case HW_EV_COMP_EST:
		return IBV_EVENT_COMM_EST;
	case HW_EV_SQ_DRAINED:
		return IBV_EVENT_SQ_DRAINED;
	case HW_EV_CQ_ERROR:
		return IBV_EVENT_CQ_ERR;
	case HW_EV_QP_REQ_ERR:
		return IBV_EVENT_QP_REQ_ERR;
	case HW_EV_QP_ACCESS_ERR:
		return IBV_EVENT_QP_ACCESS_ERR;
	case HW_EV_LAST_WQE:
		return IBV_EVENT_QP_LAST_WQE_REACHED;
	case HW_EV_SRQ_LIMIT:
		return IBV_EVENT_SRQ_LIMIT_REACHED;
	case HW_EV_PORT_UP:
		return IBV_EVENT_PORT_ACTIVE;
	case HW_EV_PORT_DOWN:
		return IBV_EVENT_PORT_ERR;
	case HW_EV_DEVICE_FATAL:
		return IBV_EVENT_DEVICE_FATAL;
	default:
		return IBV_EVENT_QP_FATAL;
	}
}

void uverbs_async_post(struct uverbs_channel *ch, uint64_t user_handle, int event, uint32_t *posted)
{
	struct ib_uverbs_async_event_desc desc = {
		.element = user_handle,
		.event_type = (uint32_t)async_event_type(event),
	};

	if (uverbs_channel_post(ch, &desc, sizeof(desc)))
		(*posted)++;
}

/* ib_uverbs_event_handler of Linux: the element is the port's number, which the device as a whole does not
 * have */
void uverbs_dev_event(void *arg, int event)
{
	struct uverbs_file *file = arg;
	struct uverbs_channel *ch;
	uint32_t posted = 0;

	LIST_FOREACH (ch, &file->channels, link)
		if (ch->kind == UVERBS_CH_ASYNC)
			uverbs_async_post(ch, event == HW_EV_DEVICE_FATAL ? 0 : 1, event, &posted);
}
