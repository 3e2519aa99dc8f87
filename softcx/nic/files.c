/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/files.h"

#include "softcx/nic/hardware.h"
#include "softcx/nic/ident.h"
#include "softcx/uverbs/fw.h"
#include "softcx/uverbs/uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void take_fds(struct packet *p, const struct cmsghdr *c)
{
	const int *fds = (const int *)(const void *)CMSG_DATA(c);
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		if (p->nfds < SOFTCX_MAX_FDS) {
			p->fds[p->nfds++] = fds[i];
		} else {
			close(fds[i]);
			p->truncated = true;
		}
	}
}

void packet_recv(struct hardware *hardware, int fd, void *buf, size_t size, struct packet *p)
{
	/* Without credentials in it, it has room for some more descriptors, and the kernel fills it. */
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(SOFTCX_MAX_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {buf, size};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memset(p, 0, sizeof(*p));
	hardware_leave(hardware);
	p->len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (p->len < 0)
		p->len = -errno;
	hardware_enter(hardware);
	if (p->len < 0)
		return;
	p->truncated = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS) {
			take_fds(p, c);
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&p->cred, CMSG_DATA(c), sizeof(p->cred));
		}
	}
}

void packet_close(struct packet *p)
{
	for (unsigned i = 0; i < p->nfds; i++)
		close(p->fds[i]);
	p->nfds = 0;
}

void file_complain(const struct file *file, pid_t pid, const char *fmt, ...)
{
	char what[160], name[SOFTCX_MAX_LABEL];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	fprintf(stderr, "softcx-nic: %s, process %d: %s\n", ident_file(file->host, file->dev, name), (int)pid,
		what);
}

/* Of an rdma_cm file, @file: it has events. poll() in the application learns that by a byte. */
static void file_wake(void *arg)
{
	struct file *file = arg;

	if (!file->byte_out && send(file->source.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		file->byte_out = true;
}

uint32_t file_drain(struct file *file)
{
	if (file->dev >= 0 || !file->byte_out || ucma_pending(file->ucma))
		return 0;
	file->byte_out = false;
	return SOFTCX_DRAIN;
}

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

void file_used(struct file *file, pid_t pid)
{
	file->user = pid;
	file->files->users++;
	read_program(file);
}

struct file_view file_view(const struct file *file)
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

/* Whether write() is for the sender: see may_write() of channel.c. */
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
		pid_t pid;
		int rc;

		packet_recv(file->files->hardware, source->fd, &hello, sizeof(hello), &p);
		if (p.len == -EAGAIN)
			return true;
		if (p.len <= 0)
			return false;
		if (p.len == sizeof(hello) && p.truncated && file->greeted) {
			/* the caller sees its channel end; the file has objects and goes on */
			file_complain(file, file->opener.pid, "no descriptor for a command channel");
			packet_close(&p);
			continue;
		}
		if (p.len != sizeof(hello) || hello.version != SOFTCX_VERSION || p.nfds != 1) {
			file_complain(file, file->opener.pid,
				"greeting of %zd bytes, version %u, not understood", p.len,
				p.len == sizeof(hello) ? hello.version : 0);
			packet_close(&p);
			return false;
		}
		file->ino = hello.ino;
		rc = channel_add(file, p.fds[0], is_opener(file, &hello), &pid);
		if (rc == 0 && file->uverbs)
			rc = uverbs_set_process(file->uverbs, pid, hello.think_ns, hello.in_turn != 0);
		if (rc < 0)
			file_complain(file, file->opener.pid, "no command channel: %s", strerror(-rc));
	}
}

/** Frees the file at once, not at the end of the round: its resources must be free for calls that follow. */
static void file_release(struct file *file)
{
	channels_clear(file);
	if (file->files->hooks.closing && (file->uverbs || file->ucma)) {
		struct file_view view = file_view(file);

		file->files->hooks.closing(file->files->hooks.arg, &view);
	}
	hardware_catch_up(file->files->hardware);
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
