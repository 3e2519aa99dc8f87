/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/hw.h"
#include "softcx/nic/event-loop.h"
#include "softcx/nic/files.h"
#include "softcx/nic/hardware.h"
#include "softcx/proto/proto.h"
#include "softcx/uverbs/uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * Notices stores to doorbell pages that sleep (hw.h), through the userfaultfd of the process that
 * maps the page.
 */

enum { PAGE = 4096 };

struct guard {
	struct source source; /* first */
	struct hw_uar_guard guard;
	struct event_loop *loop;
	struct hw_uar *uar; /* NULL: gone */
};

static void guard_end(void *arg)
{
	struct guard *g = arg;

	g->uar = NULL;
	event_loop_remove(g->loop, &g->source);
}

/** The store is repeated when the page is back. False: this is no userfaultfd any more. */
static bool guard_input(struct source *source)
{
	struct guard *g = (struct guard *)source;
	struct uffd_msg msg[8];
	ssize_t n = read(source->fd, msg, sizeof(msg));

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n < (ssize_t)sizeof(msg[0])) {
		hw_uar_unguard(g->uar, &g->guard);
		return false;
	}
	hw_uar_wake(g->uar);
	for (size_t i = 0; i < (size_t)n / sizeof(msg[0]); i++) {
		struct uffdio_range page = {
			.start = msg[i].arg.pagefault.address & ~(uint64_t)(PAGE - 1), .len = PAGE};

		if (msg[i].event == UFFD_EVENT_PAGEFAULT)
			ioctl(source->fd, UFFDIO_WAKE, &page);
	}
	return true;
}

static void guard_destroy(struct source *source)
{
	free(source);
}

/** Descriptors come from applications: anything else could make this process wait. */
static bool is_userfaultfd(int fd)
{
	char path[32], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return strcmp(name, "anon_inode:[userfaultfd]") == 0;
}

/* Guards one mapping of @uar by @uffd, which it takes over unless it fails, until the page goes. */
static int guard_add(struct event_loop *loop, struct hw_uar *uar, int uffd)
{
	struct guard *g;
	int rc;

	if (!is_userfaultfd(uffd))
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct guard){
		.source = {.fd = uffd, .rank = 1, .input = guard_input, .destroy = guard_destroy},
		.guard = {.gone = guard_end, .arg = g},
		.loop = loop,
		.uar = uar,
	};
	rc = fcntl(uffd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -errno : event_loop_add(loop, &g->source);
	if (rc < 0) {
		free(g);
		return rc;
	}
	hw_uar_guard(uar, &g->guard);
	return 0;
}

struct channel {
	struct source source; /* first */
	struct file *file;
	pid_t pid;
	bool opener;
	bool used;
	struct nic_call *call; /* under way, waiting for an answer */
	LIST_ENTRY(channel) link;
};

static uint8_t inbox[SOFTCX_MAX_MSG];

static bool channel_send(struct channel *ch, const struct softcx_reply *reply, const void *bytes, size_t size,
	const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(SOFTCX_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov[2] = {{(void *)(uintptr_t)reply, sizeof(*reply)}, {(void *)(uintptr_t)bytes, size}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	int rc;

	softcx_put_fds(&msg, &control.hdr, fds, nfds);
	hardware_leave(ch->file->files->hardware);
	rc = sendmsg(ch->source.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
	hardware_enter(ch->file->files->hardware);
	if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
		file_complain(ch->file, ch->pid, "the answer cannot be sent: %s", strerror(-rc));
	return rc == 0;
}

/* A process that executes another program has another channel. */
static void channel_used(struct channel *ch)
{
	if (!ch->used || ch->file->user != ch->pid)
		file_used(ch->file, ch->pid);
	ch->used = true;
}

/**
 * The kernel takes write() commands only with the struct cred that opened the file (include/rdma/ib.h,
 * ib_safe_file_access: f_cred == current_cred): not from a forked child, not after exec, not from a process
 * that got the descriptor by SCM_RIGHTS, not after a change of ids or capabilities, even if they are the same
 * again. ioctl() has no such check. A process image has channels of its own, and knows of its changes
 * (driver/creds.h); those that it does not know of may show in its ids.
 */
static bool may_write(const struct channel *ch, const struct softcx_request *req, const struct ucred *now)
{
	const struct ucred *then = &ch->file->opener;

	if (ch->opener && !(req->flags & SOFTCX_NEW_CREDS) && now->uid == then->uid && now->gid == then->gid)
		return true;
	file_complain(ch->file, ch->pid,
		"write() refused (EACCES), as by the kernel: the file was opened by process %d with other "
		"credentials",
		(int)then->pid);
	return false;
}

/* mmap() is no command: it changes nothing that others see. */
static bool killed(const struct channel *ch, enum kill_moment moment, uint32_t op)
{
	const struct file *file = ch->file;

	if (!file->files->kills || op == SOFTCX_MMAP ||
		!kills_meet(file->files->kills, moment, file->program))
		return false;
	if (moment == KILL_AFTER)
		call_store_remotely(ch->call);
	if (kill(ch->pid, SIGKILL) < 0)
		fprintf(stderr, "softcx-nic: process %d cannot be killed: %s\n", (int)ch->pid,
			strerror(errno));
	return true;
}

static int64_t handle(struct channel *ch, struct nic_call *call, int *map_fd, uint64_t *map_offset)
{
	struct file *file = ch->file;

	switch (call->req.op) {
	case SOFTCX_WRITE:
		return file->dev < 0 ? ucma_write(file->ucma, call) : uverbs_write(file->uverbs, call);
	case SOFTCX_IOCTL:
		return file->dev < 0 ? -ENOTTY : uverbs_ioctl(file->uverbs, call);
	default:
		return file->dev < 0
			       ? -ENODEV
			       : uverbs_mmap(file->uverbs, call->req.va, call->req.len, map_fd, map_offset);
	}
}

/** Runs the call's handler and sends what comes of it. False: the channel is of no more use. */
static bool channel_run(struct channel *ch)
{
	struct nic_call *call = ch->call;
	struct softcx_reply reply = {.kind = SOFTCX_DONE};
	int map_fd = -1;
	bool ok;

	call_restart(call);
	reply.rc = handle(ch, call, &map_fd, &reply.va);
	if (reply.rc == NIC_AGAIN && call->need.kind)
		return channel_send(ch, &call->need, NULL, 0, NULL, 0);
	if (killed(ch, KILL_AFTER, call->req.op))
		return false;
	if (reply.rc < 0)
		call_drop_fds(call);
	if (ch->file->dev < 0 && reply.rc == -EAGAIN)
		reply.flags |= SOFTCX_WAIT;
	reply.flags |= file_drain(ch->file);
	reply.count = call->nstores;
	if (call->req.op == SOFTCX_MMAP && reply.rc == 0)
		ok = channel_send(ch, &reply, NULL, 0, &map_fd, 1);
	else
		ok = channel_send(ch, &reply, call->stores, call->stores_size, call->fds, call->nfds);
	call_free(call);
	ch->call = NULL;
	return ok;
}

static struct nic_call *call_with_stats(
	const struct channel *ch, const struct softcx_request *req, const uint8_t *bytes, size_t size)
{
	struct softcx_stat stats[SOFTCX_MAX_STATS];
	size_t len = req->count * sizeof(stats[0]);
	struct nic_call *call;

	errno = EPROTO;
	if (req->count > SOFTCX_MAX_STATS || size < len)
		return NULL;
	memcpy(stats, bytes + size - len, len);
	call = call_new(ch->file->files, ch->pid, req, bytes, size - len);
	for (unsigned i = 0; call && i < req->count; i++) {
		if (call_presume_stat(call, stats[i].fd, &stats[i].st) == 0)
			continue;
		call_free(call);
		call = NULL;
		errno = ENOMEM;
	}
	return call;
}

static bool channel_request(struct channel *ch, const struct softcx_request *req, const void *bytes,
	size_t size, const struct packet *p)
{
	if (req->op != SOFTCX_WRITE && req->op != SOFTCX_IOCTL && req->op != SOFTCX_MMAP) {
		file_complain(ch->file, ch->pid, "request %u where a call was due", req->op);
		return false;
	}
	channel_used(ch);
	if (killed(ch, KILL_BEFORE, req->op))
		return false;
	hardware_catch_up(ch->file->files->hardware);
	if (req->op == SOFTCX_WRITE && !may_write(ch, req, &p->cred))
		return channel_send(
			ch, &(struct softcx_reply){.kind = SOFTCX_DONE, .rc = -EACCES}, NULL, 0, NULL, 0);
	if (req->op == SOFTCX_IOCTL && req->flags & SOFTCX_WITH_STAT)
		ch->call = call_with_stats(ch, req, bytes, size);
	else
		ch->call = call_new(ch->file->files, ch->pid, req, bytes, size);
	if (!ch->call) {
		file_complain(ch->file, ch->pid, "call of %zu bytes: %s", size,
			errno == EPROTO ? "its parts do not fit together" : strerror(errno));
		return false;
	}
	return channel_run(ch);
}

/** See SOFTCX_GUARD. The page may have gone since; then there is nothing to guard. */
static void channel_guard(struct channel *ch, const struct softcx_request *req, struct packet *p)
{
	struct hw_uar *uar = ch->file->uverbs ? uverbs_page_at(ch->file->uverbs, req->va) : NULL;

	if (uar && req->flags & SOFTCX_INHERIT)
		hw_uar_mapped(uar);
	if (!uar || p->nfds != 1)
		return;
	p->nfds = 0;
	if (guard_add(ch->file->files->loop, uar, p->fds[0]) < 0)
		close(p->fds[0]);
}

static bool channel_input(struct source *source)
{
	struct channel *ch = (struct channel *)source;
	struct softcx_request req;
	struct packet p;
	int rc;

	packet_recv(ch->file->files->hardware, source->fd, inbox, sizeof(inbox), &p);
	if (p.len == -EAGAIN)
		return true;
	if (p.len <= 0) {
		packet_close(&p); /* an empty packet may have some */
		return false;
	}
	if ((size_t)p.len >= sizeof(req))
		memcpy(&req, inbox, sizeof(req));
	if (p.len == sizeof(req) && req.op == SOFTCX_GUARD) {
		channel_guard(ch, &req, &p);
		packet_close(&p);
		return true;
	}
	if ((size_t)p.len < sizeof(req) || p.truncated || p.cred.pid != ch->pid) {
		file_complain(ch->file, ch->pid, "message of %zd bytes from process %d dropped", p.len,
			(int)p.cred.pid);
		packet_close(&p);
		return false;
	}
	if (!ch->call) {
		packet_close(&p);
		return channel_request(ch, &req, inbox + sizeof(req), (size_t)p.len - sizeof(req), &p);
	}
	rc = call_answer(ch->call, &req, inbox + sizeof(req), (size_t)p.len - sizeof(req), p.fds, p.nfds);
	if (rc < 0)
		file_complain(ch->file, ch->pid, "answer about memory at 0x%llx not understood: %s",
			(unsigned long long)ch->call->need.va, strerror(-rc));
	return rc == 0 ? channel_run(ch) : rc > 0;
}

static void channel_destroy(struct source *source)
{
	free(source);
}

static void channel_remove(struct channel *ch)
{
	if (!ch->file)
		return;
	LIST_REMOVE(ch, link);
	call_free(ch->call);
	ch->call = NULL;
	event_loop_remove(ch->file->files->loop, &ch->source);
	ch->file = NULL;
}

static bool channel_source_input(struct source *source)
{
	if (!channel_input(source))
		channel_remove((struct channel *)source);
	return true;
}

/**
 * A channel is one end of a pair of an application's. A connection to this process, the file's own say, would
 * keep itself open for ever.
 */
static int check_channel(int fd, struct ucred *peer)
{
	socklen_t len = sizeof(*peer), type_len = sizeof(int);
	int type;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) < 0)
		return -errno;
	return type != SOCK_SEQPACKET || peer->pid == getpid() ? -EPROTOTYPE : 0;
}

int channel_add(struct file *file, int fd, bool opener, pid_t *pid)
{
	struct channel *ch = calloc(1, sizeof(*ch));
	struct ucred cred = {0};
	int rc = ch ? check_channel(fd, &cred) : -ENOMEM;

	if (rc == 0) {
		*ch = (struct channel){.source = {.fd = fd,
					       .rank = 1,
					       .input = channel_source_input,
					       .destroy = channel_destroy},
			.file = file,
			.pid = cred.pid,
			.opener = opener && cred.pid == file->opener.pid};
		rc = event_loop_add(file->files->loop, &ch->source);
	}
	if (rc < 0) {
		free(ch);
		close(fd);
		return rc;
	}
	LIST_INSERT_HEAD(&file->channels, ch, link);
	*pid = ch->pid;
	return 0;
}

void channels_clear(struct file *file)
{
	struct channel *ch;

	while ((ch = LIST_FIRST(&file->channels)))
		channel_remove(ch);
}
