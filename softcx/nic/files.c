/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/files.h"

#include "softcx/nic/callstate.h"
#include "softcx/nic/guard.h"
#include "softcx/nic/hardware.h"
#include "softcx/nic/ident.h"
#include "softcx/nic/packet.h"
#include "softcx/proto/fds.h"
#include "softcx/proto/proto.h"
#include "softcx/uverbs/fw.h"
#include "softcx/uverbs/qp.h"
#include "softcx/uverbs/uar.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

struct file {
	struct source source; /* first */
	struct files *files;
	unsigned host;
	int dev; /* of all hosts, or FILES_RDMA_CM */
	struct uverbs_file *uverbs;
	struct ucma_file *ucma;
	ino_t ino; /* of the application's end */
	struct ucred opener;
	uint64_t image; /* of the opener's hello, as the next */
	uint32_t creds;
	bool greeted;
	pid_t user;       /* of the last call */
	char program[16]; /* its */
	unsigned mark;    /* of files_hooks.opened */
	bool byte_out;    /* the application's end has a byte to read: events are queued */
	LIST_HEAD(, channel) channels;
	struct file *next, **prev;
};

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

__attribute__((format(printf, 3, 4))) static void complain(
	const struct file *file, pid_t pid, const char *fmt, ...)
{
	char what[160], name[SOFTCX_MAX_LABEL];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	fprintf(stderr, "softcx-nic: %s, process %d: %s\n", ident_file(file->host, file->dev, name), (int)pid,
		what);
}

/* ---- answers ---------------------------------------------------------------------------- */

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
		complain(ch->file, ch->pid, "the answer cannot be sent: %s", strerror(-rc));
	return rc == 0;
}

/* ---- events ----------------------------------------------------------------------------- */

static void file_wake(void *arg)
{
	struct file *file = arg;

	if (!file->byte_out && send(file->source.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		file->byte_out = true;
}

/** After a command: the byte goes when the last event has gone. */
static uint32_t file_drain(struct file *file)
{
	if (file->dev >= 0 || !file->byte_out || ucma_pending(file->ucma))
		return 0;
	file->byte_out = false;
	return SOFTCX_DRAIN;
}

/* ---- users ------------------------------------------------------------------------------ */

static void read_program(struct file *file)
{
	char path[32];
	ssize_t n;
	int fd;

	file->program[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)file->user);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, file->program, sizeof(file->program) - 1);
	file->program[n > 0 ? n : 0] = '\0';
	file->program[strcspn(file->program, "\n")] = '\0';
	close(fd);
}

/* A file can outlive who opened it: reports are about who uses it now. */
static void file_used(struct file *file, pid_t pid)
{
	file->user = pid;
	file->files->users++;
	read_program(file);
}

/* A process that executes another program has another channel. */
static void channel_used(struct channel *ch)
{
	if (!ch->used || ch->file->user != ch->pid)
		file_used(ch->file, ch->pid);
	ch->used = true;
}

/* ---- calls ------------------------------------------------------------------------------ */

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
	complain(ch->file, ch->pid,
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
		complain(ch->file, ch->pid, "request %u where a call was due", req->op);
		return false;
	}
	channel_used(ch);
	if (killed(ch, KILL_BEFORE, req->op))
		return false;
	if (req->op == SOFTCX_WRITE && !may_write(ch, req, &p->cred))
		return channel_send(
			ch, &(struct softcx_reply){.kind = SOFTCX_DONE, .rc = -EACCES}, NULL, 0, NULL, 0);
	if (req->op == SOFTCX_IOCTL && req->flags & SOFTCX_WITH_STAT)
		ch->call = call_with_stats(ch, req, bytes, size);
	else
		ch->call = call_new(ch->file->files, ch->pid, req, bytes, size);
	if (!ch->call) {
		complain(ch->file, ch->pid, "call of %zu bytes: %s", size,
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
		complain(ch->file, ch->pid, "message of %zd bytes from process %d dropped", p.len,
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
		complain(ch->file, ch->pid, "answer about memory at 0x%llx not understood: %s",
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

static int channel_add(struct file *file, int fd, bool opener)
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
	return 0;
}

/* ---- files ------------------------------------------------------------------------------ */

/* Whether write() is for the sender: see may_write(). */
static bool is_opener(struct file *file, const struct softcx_hello *hello)
{
	bool first = !file->greeted;

	file->greeted = true;
	if (first && hello->opener) {
		file->image = hello->image;
		file->creds = hello->creds;
		return true;
	}
	return hello->image && hello->image == file->image && hello->creds == file->creds;
}

static bool file_input(struct source *source)
{
	struct file *file = (struct file *)source;

	for (;;) {
		struct softcx_hello hello;
		struct packet p;
		int rc;

		packet_recv(file->files->hardware, source->fd, &hello, sizeof(hello), &p);
		if (p.len == -EAGAIN)
			return true;
		if (p.len <= 0)
			return false;
		if (p.len == sizeof(hello) && p.truncated && file->greeted) {
			/* the caller sees its channel end; the file has objects and goes on */
			complain(file, file->opener.pid, "no descriptor for a command channel");
			packet_close(&p);
			continue;
		}
		if (p.len != sizeof(hello) || hello.version != SOFTCX_VERSION || p.nfds != 1) {
			complain(file, file->opener.pid, "greeting of %zd bytes, version %u, not understood",
				p.len, p.len == sizeof(hello) ? hello.version : 0);
			packet_close(&p);
			return false;
		}
		file->ino = hello.ino;
		rc = channel_add(file, p.fds[0], is_opener(file, &hello));
		if (rc == 0 && file->uverbs)
			rc = uverbs_set_process(file->uverbs, LIST_FIRST(&file->channels)->pid,
				hello.think_ns, hello.in_turn != 0);
		if (rc < 0)
			complain(file, file->opener.pid, "no command channel: %s", strerror(-rc));
	}
}

static struct file_view file_view(const struct file *file)
{
	struct file_view view = {.host = file->host,
		.dev = file->dev,
		.pid = file->user,
		.mark = file->mark,
		.uverbs = file->uverbs,
		.ucma = file->ucma};

	memcpy(view.program, file->program, sizeof(view.program));
	return view;
}

/** Frees the file at once, not at the end of the round: its resources must be free for calls that follow. */
static void file_release(struct file *file)
{
	struct channel *ch;

	while ((ch = LIST_FIRST(&file->channels)))
		channel_remove(ch);
	if (file->files->hooks.closing && (file->uverbs || file->ucma)) {
		struct file_view view = file_view(file);

		file->files->hooks.closing(file->files->hooks.arg, &view);
	}
	if (file->uverbs)
		uverbs_close(file->uverbs);
	if (file->ucma)
		ucma_close(file->ucma);
	file->uverbs = NULL;
	file->ucma = NULL;
}

static void file_destroy(struct source *source)
{
	struct file *file = (struct file *)source;

	file_release(file);
	if (file->next)
		file->next->prev = file->prev;
	*file->prev = file->next;
	file->files->count--;
	free(file);
}

static bool file_source_input(struct source *source)
{
	if (file_input(source))
		return true;
	file_release((struct file *)source);
	return false;
}

int files_add(struct files *files, unsigned host, int dev, int fd)
{
	struct file *file = calloc(1, sizeof(*file));
	socklen_t len = sizeof(file->opener);
	int rc;

	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	file->source =
		(struct source){.fd = fd, .rank = 0, .input = file_source_input, .destroy = file_destroy};
	file->files = files;
	file->host = host;
	file->dev = dev;
	LIST_INIT(&file->channels);
	rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &file->opener, &len) < 0 ? -errno : 0;
	if (rc == 0) {
		file_used(file, file->opener.pid);
		if (files->hooks.opened)
			file->mark = files->hooks.opened(files->hooks.arg, file->opener.pid);
	}
	if (rc == 0)
		rc = dev < 0 ? ucma_open(files->net, host, file_wake, file, &file->ucma)
			     : uverbs_open(files->devs[dev], (unsigned)dev, &file->uverbs);
	file->next = files->first;
	file->prev = &files->first;
	if (file->next)
		file->next->prev = &file->next;
	files->first = file;
	files->count++;
	if (rc == 0)
		rc = event_loop_add(files->loop, &file->source);
	if (rc < 0) {
		close(fd);
		file_destroy(&file->source);
	}
	return rc;
}

void files_clear(struct files *files)
{
	for (struct file *file = files->first, *next; file; file = next) {
		next = file->next;
		event_loop_remove(files->loop, &file->source);
	}
}

struct ucma_file *files_find_ucma(const struct files *files, ino_t ino)
{
	for (struct file *file = files->first; file; file = file->next)
		if (file->ucma && file->ino == ino)
			return file->ucma;
	return NULL;
}

void files_each(const struct files *files, void (*fn)(void *arg, const struct file_view *file), void *arg)
{
	for (const struct file *file = files->first; file; file = file->next) {
		struct file_view view = file_view(file);

		if (view.uverbs || view.ucma)
			fn(arg, &view);
	}
}

pid_t files_qp_owner(const struct files *files, int dev, uint32_t qpn)
{
	const struct hw_qp *qp = hw_qp_find(files->devs[dev], qpn);

	for (const struct file *file = qp ? files->first : NULL; file; file = file->next) {
		if (file->dev != dev || !file->uverbs)
			continue;
		for (uint32_t h = 0; h < file->uverbs->table_len; h++) {
			const struct uverbs_obj *obj = file->uverbs->table[h];

			if (obj && ((obj->type == UVERBS_QP && ((const struct uverbs_qp *)obj)->hw == qp) ||
					   (obj->type == UVERBS_DEVX &&
						   ((const struct uverbs_devx *)obj)->qp == qp)))
				return file->user;
		}
	}
	return 0;
}
