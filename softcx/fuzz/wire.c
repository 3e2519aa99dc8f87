/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/fuzz/wire.h"
#include "softcx/proto/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_FDS = 253, PATIENCE_MS = 300, QUESTIONS = 64 };

int wire_arena_init(struct wire_arena *arena)
{
	arena->fd = memfd_create("softcx-fuzz-arena", MFD_CLOEXEC);
	if (arena->fd < 0 || ftruncate(arena->fd, WIRE_ARENA) < 0)
		return -errno;
	arena->base = mmap(NULL, WIRE_ARENA, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
	return arena->base == MAP_FAILED ? -errno : 0;
}

void wire_arena_deinit(struct wire_arena *arena)
{
	munmap(arena->base, WIRE_ARENA);
	close(arena->fd);
}

/* ---- files ------------------------------------------------------------------------------ */

static bool send_packet(int fd, int patience_ms, const void *bytes, size_t len, const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(MOST_FDS * sizeof(int))];
	} control;
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	softcx_put_fds(&msg, &control.hdr, fds, nfds);
	while (sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		if ((errno != EAGAIN && errno != EINTR) || poll(&room, 1, patience_ms) <= 0)
			return false;
	return true;
}

void wire_hello(const struct wire_file *file, const struct softcx_hello *hello, size_t len, const int *fds,
	unsigned nfds)
{
	send_packet(file->sock, file->patience_ms, hello, len, fds, nfds);
}

bool wire_send(const struct wire_file *file, const void *bytes, size_t len, const int *fds, unsigned nfds)
{
	return file->chan >= 0 && send_packet(file->chan, file->patience_ms, bytes, len, fds, nfds);
}

int wire_open(struct wire_file *file, const char *dir, const char *device)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct softcx_hello hello = {.version = SOFTCX_VERSION, .opener = 1};
	struct stat st;
	int pair[2];

	memset(file, 0, sizeof(*file));
	file->sock = file->chan = -1;
	file->patience_ms = PATIENCE_MS;
	snprintf(file->device, sizeof(file->device), "%s", device);
	if (snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_SOCKET_PREFIX "%s", dir, device) >=
		(int)sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	file->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (file->sock < 0 || connect(file->sock, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
		fstat(file->sock, &st) < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		int rc = -errno;

		wire_close(file);
		return rc;
	}
	setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
	hello.ino = st.st_ino;
	file->chan = pair[0];
	wire_hello(file, &hello, sizeof(hello), &pair[1], 1);
	close(pair[1]);
	return 0;
}

static void close_channel(struct wire_file *file)
{
	if (file->chan >= 0)
		close(file->chan);
	file->chan = -1;
}

void wire_close(struct wire_file *file)
{
	close_channel(file);
	if (file->sock >= 0)
		close(file->sock);
	for (unsigned i = 0; i < file->nfds; i++)
		close(file->fds[i]);
	if (file->uar)
		munmap(file->uar, PAGE);
	file->sock = -1;
	file->nfds = 0;
	file->uar = NULL;
}

/* ---- answers ---------------------------------------------------------------------------- */

static bool send_segs(const struct wire_file *file, struct softcx_request req, const struct softcx_seg *segs,
	unsigned n, const int *fds, unsigned nfds)
{
	uint8_t packet[sizeof(req) + 8 * sizeof(*segs)];

	memcpy(packet, &req, sizeof(req));
	memcpy(packet + sizeof(req), segs, n * sizeof(*segs));
	return wire_send(file, packet, sizeof(req) + n * sizeof(*segs), fds, nfds);
}

static bool answer_mem(const struct wire_file *file, const struct wire_arena *arena,
	const struct softcx_reply *need, enum wire_answer how)
{
	uint64_t va = need->va & ~(uint64_t)(PAGE - 1);
	uint64_t len = ((need->va + need->len + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - va;
	struct softcx_request req = {.op = SOFTCX_MEM, .va = need->va, .len = need->len, .count = 1};
	struct softcx_seg seg[2] = {{.va = va, .len = len}};
	int fds[MOST_FDS], other;
	bool ok;

	for (unsigned i = 0; i < MOST_FDS; i++)
		fds[i] = arena->fd;
	if (len == 0 || len > WIRE_ARENA / 2)
		how = how == WIRE_RIGHT ? WIRE_NO_MEMORY : how;
	else
		seg[0].offset = va % (WIRE_ARENA / 2);
	switch (how) {
	case WIRE_NO_MEMORY:
		req.rc = -EFAULT;
		req.count = 0;
		return send_segs(file, req, seg, 0, NULL, 0);
	case WIRE_REFUSE_FDS:
		req.rc = -EFAULT;
		return send_segs(file, req, seg, 1, fds, 3);
	case WIRE_ODD_RESULT:
		req.rc = 1;
		return send_segs(file, req, seg, 1, fds, 1);
	case WIRE_PRIVATE:
		seg[0].fd = -1;
		return send_segs(file, req, seg, 1, NULL, 0);
	case WIRE_SHORT:
		seg[0].len = PAGE;
		return send_segs(file, req, seg, 1, fds, 1);
	case WIRE_GAP:
		req.count = 2;
		seg[1] = (struct softcx_seg){.va = va + len + PAGE, .len = PAGE};
		return send_segs(file, req, seg, 2, fds, 1);
	case WIRE_NO_FD:
		seg[0].fd = 1;
		return send_segs(file, req, seg, 1, fds, 1);
	case WIRE_BAD_FD:
		return send_segs(file, req, seg, 1, &file->sock, 1);
	case WIRE_SMALL_FILE:
		other = memfd_create("softcx-fuzz-small", MFD_CLOEXEC);
		ok = send_segs(file, req, seg, 1, &other, 1);
		close(other);
		return ok;
	case WIRE_HUGE:
		seg[0].va = 0;
		seg[0].len = UINT64_MAX & ~(uint64_t)(PAGE - 1);
		seg[0].offset = need->va;
		return send_segs(file, req, seg, 1, fds, 1);
	case WIRE_COUNT:
		req.count = (uint32_t)need->va | 0x10000000;
		return send_segs(file, req, seg, 1, fds, 1);
	case WIRE_MORE:
		req.flags = SOFTCX_MORE;
		for (unsigned i = 0; i < 400; i++)
			if (!send_segs(file, req, seg, 1, fds, 8))
				return false;
		return true;
	case WIRE_MANY_FDS:
		return send_segs(file, req, seg, 1, fds, MOST_FDS);
	case WIRE_CALL:
		req.op = SOFTCX_WRITE;
		return send_segs(file, req, seg, 1, NULL, 0);
	case WIRE_KIND:
		req.op = SOFTCX_STAT;
		return send_segs(file, req, seg, 1, NULL, 0);
	case WIRE_SILENCE:
		return false;
	default:
		return send_segs(file, req, seg, 1, fds, 1);
	}
}

/** A descriptor in a recorded command is a number of another process: the last one that was passed is taken
 * for it. */
static bool answer_stat(const struct wire_file *file, enum wire_answer how)
{
	struct softcx_request req = {.op = how == WIRE_KIND ? SOFTCX_MEM : SOFTCX_STAT};
	uint8_t packet[sizeof(req) + sizeof(struct stat)];
	struct stat st;

	memset(&st, 0, sizeof(st));
	if (how == WIRE_SILENCE)
		return false;
	if (how == WIRE_NO_MEMORY || fstat(file->nfds ? file->fds[file->nfds - 1] : file->sock, &st) < 0)
		req.rc = -EBADF;
	memcpy(packet, &req, sizeof(req));
	memcpy(packet + sizeof(req), &st, sizeof(st));
	return wire_send(file, packet, sizeof(packet) - (how == WIRE_SHORT ? 8 : 0), NULL, 0);
}

static void keep_fds(struct wire_file *file, const struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
		unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		int fds[MOST_FDS];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		for (unsigned i = 0; i < n; i++) {
			if (file->nfds == WIRE_FDS)
				close(fds[i]);
			else
				file->fds[file->nfds++] = fds[i];
		}
	}
}

/** The page behind the answer to an MMAP, if it is one that can be rung. */
static void map_uar(struct wire_file *file, const struct softcx_reply *reply)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file->fds[file->nfds - 1],
		(off_t)(reply->va & ~(uint64_t)(PAGE - 1)));

	if (page == MAP_FAILED)
		return;
	if (file->uar)
		munmap(file->uar, PAGE);
	file->uar = page;
}

/** One packet from the NIC; false when there is none. */
static bool receive(struct wire_file *file, struct softcx_reply *reply)
{
	static uint8_t inbox[SOFTCX_MAX_MSG];
	char control[CMSG_SPACE(SOFTCX_MAX_FDS * sizeof(int))];
	struct iovec iov = {inbox, sizeof(inbox)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct pollfd input = {.fd = file->chan, .events = POLLIN};
	unsigned before = file->nfds;

	if (poll(&input, 1, file->patience_ms) <= 0 ||
		recvmsg(file->chan, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < (ssize_t)sizeof(*reply))
		return false;
	memcpy(reply, inbox, sizeof(*reply));
	keep_fds(file, &msg);
	if (reply->kind == SOFTCX_DONE && reply->count == 0 && file->nfds == before + 1)
		map_uar(file, reply);
	if (reply->flags & SOFTCX_DRAIN)
		recv(file->sock, &(char){0}, 1, MSG_DONTWAIT);
	return true;
}

bool wire_finish(struct wire_file *file, struct wire_arena *arena, enum wire_answer how, int64_t *rc)
{
	struct softcx_reply reply;

	for (unsigned questions = 0; questions < QUESTIONS && file->chan >= 0; questions++) {
		bool ok = receive(file, &reply);

		if (ok && reply.kind == SOFTCX_DONE) {
			*rc = reply.rc;
			return true;
		}
		if (ok)
			ok = reply.kind == SOFTCX_NEED_MEM ? answer_mem(file, arena, &reply, how)
							   : answer_stat(file, how);
		if (!ok)
			break;
		how = WIRE_RIGHT;
	}
	close_channel(file);
	return false;
}
