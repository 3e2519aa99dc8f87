/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/channel.h"

#include "softcx/driver/creds.h"
#include "softcx/driver/sys.h"
#include "softcx/proto/fds.h"
#include "softcx/proto/proto.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
	CHANNELS_OPEN = 32, /* and those that stay */
	LOOKS = 10          /* for an answer, before the thread sleeps: some microseconds */
};

static struct channel channels[4096];
static unsigned nchannels; /* used slots are below this */
static unsigned nopen;     /* used slots */
static uint64_t uses;
static uint64_t image; /* see proto.h; 0: not chosen yet */

int channel_hold(int fd, uint64_t file)
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

void channel_release(int held, int fd)
{
	if (held >= 0 && held != fd)
		sys_close(held);
}

/* ---- life ------------------------------------------------------------------------------- */

void channel_drop(struct channel *ch)
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

int channel_new(int fd, bool opener, struct channel **out)
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

int channel_get(int fd, uint64_t file, struct channel **out)
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

int channel_send(const struct channel *ch, struct iovec *iov, size_t niov, const int *fds, unsigned nfds)
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

ssize_t channel_recv(const struct channel *ch, void *buf, size_t size, int *fds, unsigned *nfds)
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

struct channel *channel_find(uint64_t file)
{
	for (unsigned i = 0; i < nchannels; i++)
		if (channels[i].file == file && sys_socket_cookie(channels[i].fd) == channels[i].self)
			return &channels[i];
	return NULL;
}

void channels_fork_child(void)
{
	while (nchannels)
		channel_drop(&channels[nchannels - 1]);
	image = 0;
}
