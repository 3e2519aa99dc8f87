/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/fair-lock.h"
#include "softcx/driver/internal.h"
#include "softcx/proto/proto.h"
#include "util/array.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * The command channels of this process (proto.h). An open file is known by the cookie of its
 * socket, a number that no other one gets.
 *
 * Files may be many, and a channel takes a descriptor of the NIC: so those that were not used for the longest
 * time are closed, and opened again when they are.
 */

/* That of one file. */
struct channel {
	uint64_t file; /* cookie of the file's socket; 0: free */
	uint64_t self; /* cookie of @fd: applications close descriptors they never opened */
	int fd;
	unsigned creds; /* creds_now() when it began */
	bool stays;     /* pages of the file are mapped: a forked child reports them here */
	uint64_t used;  /* of the uses so far, the last one */
};

enum {
	CHANNELS_OPEN = 32, /* and those that stay */
	LOOKS = 10          /* for an answer, before the thread sleeps: some microseconds */
};

static struct channel channels[4096];
static unsigned nchannels; /* used slots are below this */
static unsigned nopen;     /* used slots */
static uint64_t uses;
static uint64_t image; /* see proto.h; 0: not chosen yet */

/*
 * A descriptor of the file that no other thread knows of: a system call keeps its file open until it returns.
 * @fd itself where there is no room for another one. -EBADF: it is closed, or it is something else by now.
 */
static int channel_hold(int fd, uint64_t file)
{
	int held = fcntl(fd, F_DUPFD_CLOEXEC, SYS_OUT_OF_THE_WAY);

	if (held < 0 && errno != EBADF)
		held = fd;
	if (held >= 0 && sys_socket_cookie(held) == file)
		return held;
	if (held >= 0 && held != fd)
		sys_close(held);
	return -EBADF;
}

/* Closes it. Fine with an error in @held. */
static void channel_release(int held, int fd)
{
	if (held >= 0 && held != fd)
		sys_close(held);
}

/* ---- life ------------------------------------------------------------------------------- */

static void channel_drop(struct channel *ch)
{
	if (sys_socket_cookie(ch->fd) == ch->self)
		sys_close(ch->fd);
	memset(ch, 0, sizeof(*ch));
	nopen--;
	while (nchannels && !channels[nchannels - 1].file)
		nchannels--;
}

/** The NIC hangs up when the file's last descriptor is gone. */
static void channels_sweep(void)
{
	for (unsigned i = nchannels; i-- > 0;) {
		struct pollfd pfd = {.fd = channels[i].fd, .events = POLLIN};

		if (channels[i].file &&
			(poll(&pfd, 1, 0) != 0 || sys_socket_cookie(channels[i].fd) != channels[i].self))
			channel_drop(&channels[i]);
	}
}

/** Closes the one that was not used for the longest time. False: all stay. */
static bool drop_oldest(void)
{
	struct channel *oldest = NULL;

	for (unsigned i = 0; i < nchannels; i++)
		if (channels[i].file && !channels[i].stays && (!oldest || channels[i].used < oldest->used))
			oldest = &channels[i];
	if (oldest)
		channel_drop(oldest);
	return oldest != NULL;
}

/** Makes room for one more. */
static void channels_trim(void)
{
	if (nopen < CHANNELS_OPEN)
		return;
	channels_sweep();
	if (nopen >= CHANNELS_OPEN)
		drop_oldest();
}

static int send_hello(int fd, int channel, bool opener)
{
	struct softcx_hello hello = {.version = SOFTCX_VERSION, .opener = opener};
	struct iovec iov = {&hello, sizeof(hello)};
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	const char *think = getenv("SOFTCX_THINK");
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return -errno;
	hello.ino = st.st_ino;
	hello.think_ns = think ? (uint32_t)strtoul(think, NULL, 10) : 0;
	hello.in_turn = getenv("SOFTCX_IN_TURN") != NULL;
	hello.creds = creds_now();
	if (!image && getrandom(&image, sizeof(image), 0) != sizeof(image))
		image = 0;
	hello.image = image;
	softcx_put_fds(&msg, &control.hdr, &channel, 1);
	while (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0) {
		struct pollfd pfd = {.fd = fd, .events = POLLOUT};

		if (errno == EAGAIN)
			poll(&pfd, 1, -1);
		else if (errno != EINTR)
			return errno == EPIPE ? -EIO : -errno;
	}
	return 0;
}

/* Opens the channel of file @fd; @opener: which this process has just opened. -EIO: the NIC is gone. */
static int channel_new(int fd, bool opener, struct channel **out)
{
	struct ucred nic;
	socklen_t len = sizeof(nic);
	struct channel *ch = NULL;
	int pair[2], rc;

	channels_trim();
	for (unsigned i = 0; i < COUNT(channels) && !ch; i++)
		if (!channels[i].file)
			ch = &channels[i];
	if (!ch)
		return -ENFILE;
	/* A kernel needs no descriptor for a call: those of other channels make room */
	while (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		if (errno != EMFILE || !drop_oldest())
			return -errno;
	/* The NIC sees the sender of each message. */
	setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
	rc = send_hello(fd, pair[1], opener);
	sys_close(pair[1]);
	if (rc < 0) {
		sys_close(pair[0]);
		return rc;
	}
	/* Yama lets only ancestors reach a process's memory, unless it names another one. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &nic, &len) == 0)
		prctl(PR_SET_PTRACER, nic.pid, 0, 0, 0);
	ch->fd = sys_moved_high(pair[0]);
	ch->file = sys_socket_cookie(fd);
	ch->self = sys_socket_cookie(ch->fd);
	ch->creds = creds_now();
	ch->used = ++uses;
	nopen++;
	if (ch - channels >= nchannels)
		nchannels = (unsigned)(ch - channels) + 1;
	*out = ch;
	return 0;
}

/* The channel of @file, which @fd is; opens one if there is none. */
static int channel_get(int fd, uint64_t file, struct channel **out)
{
	bool stays = false;
	int held, rc;

	for (unsigned i = 0; i < nchannels; i++) {
		if (channels[i].file != file)
			continue;
		if (sys_socket_cookie(channels[i].fd) == channels[i].self) {
			*out = &channels[i];
			channels[i].used = ++uses;
			return 0;
		}
		stays = channels[i].stays;
		channel_drop(&channels[i]);
		break;
	}
	held = channel_hold(fd, file);
	rc = held < 0 ? held : channel_new(held, false, out);
	channel_release(held, fd);
	if (rc == 0)
		(*out)->stays = stays;
	return rc;
}

/* ---- packets ---------------------------------------------------------------------------- */

/* Sends one packet. -EFAULT when the application's buffers are not readable. */
static int channel_send(
	const struct channel *ch, struct iovec *iov, size_t niov, const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(SOFTCX_MAX_FDS * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = niov};

	softcx_put_fds(&msg, &control.hdr, fds, nfds);
	while (sendmsg(ch->fd, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ? -EIO
			       : errno == EMSGSIZE                   ? -E2BIG
								     : -errno;
	return 0;
}

/** The NIC has most answers sooner than a thread that sleeps would be woken. A call that succeeds leaves
 * errno alone. */
static ssize_t receive(int fd, struct msghdr *msg)
{
	int saved = errno;

	for (unsigned looks = 0;; looks++) {
		ssize_t n = recvmsg(fd, msg, MSG_CMSG_CLOEXEC | (looks < LOOKS ? MSG_DONTWAIT : 0));

		if (n >= 0)
			errno = saved;
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n;
		sched_yield();
	}
}

/* Receives one packet; @fds has room for SOFTCX_MAX_FDS. Its length, or -EIO: the NIC is gone. */
static ssize_t channel_recv(const struct channel *ch, void *buf, size_t size, int *fds, unsigned *nfds)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(SOFTCX_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = {buf, size};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg;
	ssize_t n;

	n = receive(ch->fd, &msg);
	*nfds = 0;
	if (n < (ssize_t)sizeof(struct softcx_reply))
		return -EIO;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
		*nfds = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(cmsg), *nfds * sizeof(int));
	}
	return n;
}

/* ---- fork ------------------------------------------------------------------------------- */

/* The channel of @file that this process, or the parent of a forked one, has; NULL: none. */
static struct channel *channel_find(uint64_t file)
{
	for (unsigned i = 0; i < nchannels; i++)
		if (channels[i].file == file && sys_socket_cookie(channels[i].fd) == channels[i].self)
			return &channels[i];
	return NULL;
}

/* In a forked child: forgets those of the parent. */
static void channels_fork_child(void)
{
	while (nchannels)
		channel_drop(&channels[nchannels - 1]);
	image = 0;
}

/*
 * A thread that copies to and from memory of this process on request of the NIC (struct
 * softcx_copy), where the NIC may not do that itself. The first registration of such memory starts it.
 */

static int ours = -1, theirs = -1;

static ssize_t transfer(int sock, void *head, size_t head_len, void *body, size_t len, int flags)
{
	struct iovec iov[2] = {{head, head_len}, {body, len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	return flags < 0 ? sendmsg(sock, &msg, MSG_NOSIGNAL) : recvmsg(sock, &msg, flags);
}

/** The kernel reads and writes the memory, so an access to a page that is unmapped is EFAULT and not a fault.
 */
static void *serve(void *arg)
{
	int sock = (int)(intptr_t)arg;
	struct softcx_copy copy;

	while (recv(sock, &copy, sizeof(copy), MSG_PEEK) == (ssize_t)sizeof(copy)) {
		struct softcx_copied copied = {.id = copy.id};
		void *body = (void *)(uintptr_t)copy.va;
		size_t len = copy.store ? copy.len : 0;
		ssize_t n = transfer(sock, &copy, sizeof(copy), body, len, 0);

		if (n != (ssize_t)(sizeof(copy) + len))
			copied.rc = EFAULT;
		else if (!copy.store && transfer(sock, &copied, sizeof(copied), body, copy.len, -1) >= 0)
			continue;
		else if (!copy.store)
			copied.rc = EFAULT;
		if (send(sock, &copied, sizeof(copied), MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

/* The NIC's end of the socket that the thread serves, which this module keeps; or a negative errno. */
static int remote_copy_socket(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int pair[2], rc;

	if (theirs >= 0)
		return theirs;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		pair[i] = sys_moved_high(pair[i]);
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, serve, (void *)(intptr_t)pair[0]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		sys_close(pair[0]);
		sys_close(pair[1]);
		return -rc;
	}
	ours = pair[0];
	theirs = pair[1];
	return theirs;
}

static void remote_copy_fork_child(void)
{
	if (theirs < 0)
		return;
	sys_close(ours);
	sys_close(theirs);
	ours = theirs = -1;
}

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
