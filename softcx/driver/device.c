/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/device.h"
#include "util/cleanup.h"

#include "softcx/driver/channel.h"
#include "softcx/driver/creds.h"
#include "softcx/driver/fair-lock.h"
#include "softcx/driver/guard.h"
#include "softcx/driver/mem.h"
#include "softcx/driver/remote-copy.h"
#include "softcx/driver/sys.h"
#include "softcx/proto/paths.h"
#include "softcx/proto/proto.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DEV_DIR "/dev/infiniband/"

static struct fair_lock lock;
/* Messages of the call under way. Static, so never on a page that is being converted. */
static uint8_t inbox[SOFTCX_MAX_MSG];
static struct softcx_seg outbox[SOFTCX_MAX_MSG / 2 / sizeof(struct softcx_seg)];

/* ---- names ------------------------------------------------------------------------------ */

const char *dev_name(const char *path)
{
	const char *name, *digit;

	if (!path || strncmp(path, DEV_DIR, strlen(DEV_DIR)) != 0)
		return NULL;
	name = path + strlen(DEV_DIR);
	if (strcmp(name, "rdma_cm") == 0)
		return name;
	if (strncmp(name, "uverbs", 6) != 0 || !name[6] || strlen(name) > 8)
		return NULL;
	for (digit = name + 6; *digit; digit++)
		if (*digit < '0' || *digit > '9')
			return NULL;
	return name;
}

static dev_t name_to_rdev(const char *name)
{
	return strcmp(name, "rdma_cm") == 0 ? SOFTCX_RDMA_CM_DEV
					    : SOFTCX_UVERBS_DEV((unsigned)strtoul(name + 6, NULL, 10));
}

static int socket_address(const char *name, struct sockaddr_un *sun)
{
	char dir[SOFTCX_MAX_DIR + 1];
	int rc = softcx_dir(dir, sizeof(dir));

	if (rc < 0)
		return rc;
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	if (snprintf(sun->sun_path, sizeof(sun->sun_path), "%s/" SOFTCX_SOCKET_PREFIX "%s", dir, name) >=
		(int)sizeof(sun->sun_path))
		return -ENAMETOOLONG;
	return 0;
}

/** The device's name when the far end of socket @fd is a NIC's, else NULL. */
static const char *peer_device(int fd, struct sockaddr_un *sun)
{
	socklen_t len = sizeof(*sun);
	const char *base;

	memset(sun, 0, sizeof(*sun));
	if (getpeername(fd, (struct sockaddr *)sun, &len) < 0 || sun->sun_family != AF_UNIX ||
		memchr(sun->sun_path, '\0', sizeof(sun->sun_path)) == NULL)
		return NULL;
	base = strrchr(sun->sun_path, '/');
	if (!base || strncmp(base + 1, SOFTCX_SOCKET_PREFIX, strlen(SOFTCX_SOCKET_PREFIX)) != 0)
		return NULL;
	base += 1 + strlen(SOFTCX_SOCKET_PREFIX);
	return strcmp(base, "control") == 0 ? NULL : base;
}

bool dev_is(int fd, dev_t *rdev)
{
	struct sockaddr_un sun;
	int saved = errno;
	const char *name = peer_device(fd, &sun);

	errno = saved;
	if (name && rdev)
		*rdev = name_to_rdev(name);
	return name != NULL;
}

int dev_stat(const char *name, dev_t *rdev)
{
	struct sockaddr_un sun;
	struct stat st;
	int rc = socket_address(name, &sun);

	if (rc < 0)
		return rc;
	if (sys_stat(sun.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -ENOENT;
	*rdev = name_to_rdev(name);
	return 0;
}

/*
 * Files that were asked for lately. Any thread may read and write: a number is that of one socket for ever.
 */
static _Atomic uint64_t known[256];

uint64_t dev_file(int fd)
{
	int saved = errno;
	uint64_t file = sys_socket_cookie(fd);
	_Atomic uint64_t *place = &known[file % COUNT(known)];

	if (file && atomic_load_explicit(place, memory_order_relaxed) != file) {
		if (dev_is(fd, NULL) && sys_socket_cookie(fd) == file)
			atomic_store_explicit(place, file, memory_order_relaxed);
		else
			file = 0;
	}
	errno = saved;
	return file;
}

/* ---- calls ------------------------------------------------------------------------------ */

/** Answers NEED_MEM, in as many packets as its descriptors take. */
static int answer_mem(struct channel *ch, const struct softcx_reply *need)
{
	struct softcx_request req = {.op = SOFTCX_MEM, .va = need->va, .len = need->len};
	struct mem_list list;
	unsigned i = 0;
	int rc, sock = -1;

	rc = mem_resolve(
		need->va, need->len, need->flags & SOFTCX_WRITABLE, need->flags & SOFTCX_DIRECT, &list);
	if (rc < 0) {
		req.rc = rc;
		return channel_send(ch, &(struct iovec){&req, sizeof(req)}, 1, NULL, 0);
	}
	if (need->flags & SOFTCX_REMOTE_COPY && list.pieces[0].fd < 0)
		sock = remote_copy_socket();
	do {
		struct iovec iov[2] = {{&req, sizeof(req)}, {outbox, 0}};
		int fds[SOFTCX_MAX_FDS];
		unsigned n, nfds = 0;

		for (n = 0; i < list.n && n < COUNT(outbox); i++, n++) {
			const struct mem_piece *p = &list.pieces[i];
			int fd = p->fd >= 0 ? p->fd : sock;
			unsigned k;

			for (k = 0; fd >= 0 && k < nfds && fds[k] != fd; k++)
				;
			if (fd >= 0 && k == nfds) {
				if (nfds == SOFTCX_MAX_FDS)
					break;
				fds[nfds++] = fd;
			}
			outbox[n] = (struct softcx_seg){
				.va = p->va, .len = p->len, .offset = p->offset, .fd = fd < 0 ? -1 : (int)k};
		}
		req.count = n;
		req.flags = i < list.n ? SOFTCX_MORE : sock >= 0 ? SOFTCX_COPY_SOCKET : 0;
		iov[1].iov_len = n * sizeof(outbox[0]);
		rc = channel_send(ch, iov, 2, fds, nfds);
	} while (rc == 0 && i < list.n);
	mem_list_done(&list);
	return rc;
}

static int answer_stat(struct channel *ch, int fd, bool send)
{
	struct softcx_request req = {.op = SOFTCX_STAT};
	struct stat st;

	memset(&st, 0, sizeof(st));
	if (sys_fstat(fd, &st) < 0)
		req.rc = -errno;
	return channel_send(
		ch, (struct iovec[]){{&req, sizeof(req)}, {&st, sizeof(st)}}, 2, &fd, send && req.rc == 0);
}

/** Plain stores: a page that another thread is converting makes them wait, where the kernel would say EFAULT.
 */
static int apply_stores(const struct softcx_reply *reply, ssize_t len, const int *fds, unsigned nfds)
{
	size_t pos = sizeof(*reply);

	for (uint64_t i = 0; i < reply->count; i++) {
		struct softcx_store store;

		if (pos + sizeof(store) > (size_t)len)
			return -EIO;
		memcpy(&store, inbox + pos, sizeof(store));
		pos += sizeof(store);
		if (store.fd >= 0) {
			if ((unsigned)store.fd >= nfds)
				return -EIO;
			memcpy((void *)(uintptr_t)store.va, &fds[store.fd], sizeof(int));
			continue;
		}
		if (pos + store.len > (size_t)len)
			return -EIO;
		memcpy((void *)(uintptr_t)store.va, inbox + pos, store.len);
		pos += (store.len + 7) & ~7U;
	}
	return 0;
}

/* ---- ioctls that name descriptors -------------------------------------------------------- */

/* What the NIC asked for lately. An ioctl of one kind mostly names the same descriptors. */
static struct asked {
	uint64_t file; /* 0: nothing */
	uint32_t number;
	int fd;
} asked[8];
static unsigned nasked; /* so far */

/* Object and method */
static uint32_t ioctl_number(const struct iovec *iov)
{
	const struct ib_uverbs_ioctl_hdr *hdr = iov[1].iov_base;

	return (uint32_t)hdr->object_id << 16 | hdr->method_id;
}

static void note_asked(const struct channel *ch, const struct iovec *iov, int fd)
{
	asked[nasked++ % COUNT(asked)] =
		(struct asked){.file = ch->file, .number = ioctl_number(iov), .fd = fd};
}

/* Up to SOFTCX_MAX_STATS go into @stats, which @iov of ioctl @iov[0] has room for. */
static void add_stats(const struct channel *ch, struct iovec *iov, size_t *niov, struct softcx_stat *stats)
{
	struct softcx_request *req = iov[0].iov_base;
	unsigned n = 0;

	for (unsigned i = 1; i <= COUNT(asked) && n < SOFTCX_MAX_STATS; i++) {
		const struct asked *a = &asked[(nasked - i) % COUNT(asked)];

		if (a->file != ch->file || a->number != ioctl_number(iov))
			continue;
		memset(&stats[n], 0, sizeof(stats[n]));
		stats[n].fd = a->fd;
		n += sys_fstat(a->fd, &stats[n].st) == 0;
	}
	if (!n)
		return;
	req->flags |= SOFTCX_WITH_STAT;
	req->count = n;
	iov[(*niov)++] = (struct iovec){stats, n * sizeof(*stats)};
}

/* It may have been closed, and be something else by now. */
static void drain(int fd, uint64_t file)
{
	int held = channel_hold(fd, file);

	if (held >= 0)
		recv(held, &(char){0}, 1, MSG_DONTWAIT);
	channel_release(held, fd);
}

/**
 * One call with the lock held: sends it, answers the NIC's questions, applies the result. @iov begins with
 * the request, and that of an ioctl has room for one more.
 */
static int call_locked(
	int fd, uint64_t file, struct iovec *iov, size_t niov, struct softcx_reply *reply, int *map_fd)
{
	struct softcx_request *req = iov[0].iov_base;
	struct channel *ch;
	int fds[SOFTCX_MAX_FDS], rc;
	struct softcx_stat stats[SOFTCX_MAX_STATS];
	unsigned nfds;
	ssize_t n;

	rc = channel_get(fd, file, &ch);
	if (rc == 0) {
		req->flags = ch->creds == creds_now() ? 0 : SOFTCX_NEW_CREDS;
		if (req->op == SOFTCX_IOCTL)
			add_stats(ch, iov, &niov, stats);
		rc = channel_send(ch, iov, niov, NULL, 0);
	}
	while (rc == 0) {
		n = channel_recv(ch, inbox, sizeof(inbox), fds, &nfds);
		if (n < 0) {
			channel_drop(ch);
			return -EIO;
		}
		memcpy(reply, inbox, sizeof(*reply));
		if (reply->kind == SOFTCX_NEED_MEM) {
			rc = answer_mem(ch, reply);
		} else if (reply->kind == SOFTCX_NEED_STAT) {
			if (req->op == SOFTCX_IOCTL && !(reply->flags & SOFTCX_SEND_FD))
				note_asked(ch, iov, (int)reply->va);
			rc = answer_stat(ch, (int)reply->va, reply->flags & SOFTCX_SEND_FD);
		} else {
			rc = apply_stores(reply, n, fds, nfds);
			if (map_fd && nfds == 1)
				*map_fd = fds[0];
			if (reply->flags & SOFTCX_DRAIN)
				drain(fd, file);
			break;
		}
	}
	return rc;
}

/* If another thread closes the file meanwhile, the NIC hangs up: as if it had been closed before the call. */
static int64_t call(
	int fd, uint64_t file, struct iovec *iov, size_t niov, struct softcx_reply *reply, int *map_fd)
{
	int state, rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	fair_lock(&lock);
	rc = call_locked(fd, file, iov, niov, reply, map_fd);
	if (rc == -EIO && sys_socket_cookie(fd) != file)
		rc = -EBADF;
	fair_unlock(&lock);
	pthread_setcancelstate(state, NULL);
	return rc < 0 ? rc : reply->rc;
}

/* A descriptor of its own for the time that a call blocks. */
struct wait {
	int held, fd;
};

static void wait_end(struct wait *w)
{
	if (w->held >= 0)
		channel_release(w->held, w->fd);
}

ssize_t dev_write(int fd, uint64_t file, const void *buf, size_t len)
{
	struct softcx_request req = {.op = SOFTCX_WRITE, .va = (uintptr_t)buf, .len = len};
	struct iovec iov[2] = {{&req, sizeof(req)}, {(void *)(uintptr_t)buf, len}};
	struct softcx_reply reply = {0};
	CLEANUP(wait_end) struct wait w = {.held = -1, .fd = fd};

	for (;;) {
		int64_t rc = call(w.held >= 0 ? w.held : fd, file, iov, 2, &reply, NULL);
		ssize_t n;

		if (rc != -EAGAIN || !(reply.flags & SOFTCX_WAIT))
			return rc;
		/*
		 * Peeking blocks, is interrupted, restarted and cancelled as the write() would be, and
		 * honours O_NONBLOCK. A blocked system call keeps its file open if another thread closes the
		 * descriptor meanwhile, and goes on with it: so it has a descriptor of its own. A cancelled
		 * thread unwinds, which ends the wait (-fexceptions).
		 */
		if (w.held < 0)
			w.held = channel_hold(fd, file);
		if (w.held < 0)
			return -EBADF;
		n = recv(w.held, &(char){0}, 1, MSG_PEEK);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
}

int dev_ioctl(int fd, uint64_t file, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct softcx_request req = {.op = SOFTCX_IOCTL, .va = (uintptr_t)hdr, .len = hdr->length};
	struct iovec iov[3 + 256] = {{&req, sizeof(req)}, {hdr, hdr->length}};
	struct softcx_reply reply = {0};
	unsigned niov = 2;

	if (hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]) || hdr->num_attrs > 256)
		return -EINVAL;
	for (unsigned i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].len > sizeof(hdr->attrs[i].data))
			iov[niov++] =
				(struct iovec){(void *)(uintptr_t)hdr->attrs[i].data, hdr->attrs[i].len};
	return (int)call(fd, file, iov, niov, &reply, NULL);
}

int dev_mmap(int fd, uint64_t file, uint64_t offset, uint64_t len, int *map_fd, uint64_t *map_offset)
{
	struct softcx_request req = {.op = SOFTCX_MMAP, .va = offset, .len = len};
	struct iovec iov = {&req, sizeof(req)};
	struct softcx_reply reply = {0};
	int64_t rc;

	*map_fd = -1;
	rc = call(fd, file, &iov, 1, &reply, map_fd);
	*map_offset = reply.va;
	return rc < 0 ? (int)rc : *map_fd < 0 ? -EIO : 0;
}

static void send_guard(const struct channel *ch, uint64_t offset, int uffd, uint32_t flags)
{
	struct softcx_request req = {.op = SOFTCX_GUARD, .va = offset, .flags = flags};

	channel_send(ch, &(struct iovec){&req, sizeof(req)}, 1, &uffd, uffd >= 0);
}

void dev_mapped(int fd, uint64_t file, uint64_t offset, uint64_t len, void *addr, int map_fd)
{
	struct channel *ch;
	int state, held, uffd;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	fair_lock(&lock);
	held = channel_hold(fd, file);
	if (held >= 0 && channel_get(held, file, &ch) == 0) {
		uffd = guard_new(ch->file, offset, addr, len, map_fd, held == fd ? -1 : held);
		ch->stays = true;
		held = -1;
		if (uffd >= 0) {
			send_guard(ch, offset, uffd, 0);
			sys_close(uffd);
		}
	}
	channel_release(held, fd);
	fair_unlock(&lock);
	pthread_setcancelstate(state, NULL);
}

void dev_unmap(const void *addr, size_t len)
{
	int state;

	if (!guard_any(addr, len))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	fair_lock(&lock);
	guard_unmapped(addr, len);
	fair_unlock(&lock);
	pthread_setcancelstate(state, NULL);
}

int dev_open(const char *name, int flags)
{
	struct sockaddr_un sun;
	struct channel *ch;
	int state, fd, rc = socket_address(name, &sun);

	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0), 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		rc = errno == ECONNREFUSED ? -ENODEV : -errno;
		sys_close(fd);
		return rc;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	fair_lock(&lock);
	rc = channel_new(fd, true, &ch);
	fair_unlock(&lock);
	pthread_setcancelstate(state, NULL);
	if (rc < 0) {
		sys_close(fd);
		return rc;
	}
	if (flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	return fd;
}

/* ---- fork ------------------------------------------------------------------------------- */

void dev_fork_prepare(void)
{
	fair_lock(&lock);
}

void dev_fork_parent(void)
{
	fair_unlock(&lock);
}

/** The parent's channel takes this message from anyone. */
static void guard_inherited(const struct guard *guard, int uffd)
{
	const struct channel *ch = channel_find(guard->file);

	if (ch)
		send_guard(ch, guard->offset, uffd, SOFTCX_INHERIT);
}

void dev_fork_child(void)
{
	guard_fork_child(guard_inherited);
	remote_copy_fork_child();
	channels_fork_child();
	fair_lock_fork_child(&lock);
}
