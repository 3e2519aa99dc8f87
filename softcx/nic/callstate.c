/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/hw.h"
#include "softcx/nic/files.h"
#include "softcx/nic/hardware.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Memory that only its process can reach: it cannot be shared (driver/mem.h lists what
 * cannot), and process_vm_readv(2) is forbidden here. A thread of the driver copies on request (struct
 * softcx_copy). Each copy waits for that thread, for a second at most; then the memory counts as gone.
 */

enum { PATIENCE_MS = 1000 };

/* Ranges of one process share a socket: one question at a time, of all threads that execute queues. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

struct remote_copy {
	struct hw_mem mem;
	int sock; /* -1: the process has gone */
};

static bool reads(pid_t pid, uint64_t va)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {(void *)(uintptr_t)va, 1};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1;
}

/** Some system call filters kill a process that makes a call they do not know. So a child tries it. */
static bool may_try(void)
{
	static enum { UNKNOWN, YES, NO } answer;
	char byte = 0;
	int status;
	pid_t pid;

	if (answer == UNKNOWN && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER) {
		pid = fork();
		if (pid == 0)
			_exit(!reads(getpid(), (uintptr_t)&byte));
		answer = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? YES : NO;
	} else if (answer == UNKNOWN) {
		answer = YES;
	}
	return answer == YES;
}

/* True if process_vm_readv(2) reaches the byte at @va of process @pid. */
static bool remote_copy_needless(pid_t pid, uint64_t va)
{
	return may_try() && reads(pid, va);
}

static void remote_copy_release(struct hw_mem *mem)
{
	struct remote_copy *rc = mem->priv;

	if (rc->sock >= 0)
		close(rc->sock);
	free(rc);
}

/** One request and its answer; answers to earlier ones that came too late are skipped. */
static bool remote_copy_ask(int sock, const struct softcx_copy *copy, void *buf)
{
	struct softcx_copied copied;
	struct iovec out[2] = {{(void *)(uintptr_t)copy, sizeof(*copy)}, {buf, copy->store ? copy->len : 0}};
	struct iovec in[2] = {{&copied, sizeof(copied)}, {buf, copy->store ? 0 : copy->len}};
	struct msghdr msg = {.msg_iov = out, .msg_iovlen = 2};
	struct pollfd pfd = {.fd = sock, .events = POLLIN};
	ssize_t n;

	if (sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return false;
	do {
		if (poll(&pfd, 1, PATIENCE_MS) != 1)
			return false;
		msg = (struct msghdr){.msg_iov = in, .msg_iovlen = 2};
		n = recvmsg(sock, &msg, MSG_DONTWAIT);
		if (n < (ssize_t)sizeof(copied))
			return false;
	} while (copied.id != copy->id);
	return copied.rc == 0 && (size_t)n == sizeof(copied) + in[1].iov_len;
}

static bool remote_copy_reach(struct hw_mem *mem, uint64_t va, void *buf, size_t len, bool store)
{
	struct remote_copy *rc = mem->priv;
	static uint32_t id;
	bool lives;

	pthread_mutex_lock(&asking);
	for (size_t done = 0, n; done < len && rc->sock >= 0; done += n) {
		struct softcx_copy copy = {.va = va + done, .store = store, .id = ++id};

		n = len - done < SOFTCX_MAX_COPY ? len - done : SOFTCX_MAX_COPY;
		copy.len = (uint32_t)n;
		if (remote_copy_ask(rc->sock, &copy, (char *)buf + done))
			continue;
		close(rc->sock);
		rc->sock = -1;
	}
	lives = rc->sock >= 0;
	pthread_mutex_unlock(&asking);
	return lives;
}

/* A hw_mem with one reference. @sock stays the caller's. */
static int remote_copy_new(struct hw_mem **mem, uint64_t va, uint64_t len, bool writable, pid_t pid, int sock)
{
	struct remote_copy *rc = calloc(1, sizeof(*rc));

	if (!rc)
		return -ENOMEM;
	rc->mem = (struct hw_mem){.va = va,
		.len = len,
		.pid = pid,
		.writable = writable,
		.refs = 1,
		.reach = remote_copy_reach,
		.release = remote_copy_release,
		.priv = rc};
	rc->sock = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (rc->sock < 0) {
		free(rc);
		return -errno;
	}
	*mem = &rc->mem;
	return 0;
}

static const struct ib_uverbs_attr *attrs_of(const struct nic_call *call, unsigned *n)
{
	const struct ib_uverbs_ioctl_hdr *hdr = (const void *)call->data;

	*n = hdr->num_attrs;
	return hdr->attrs;
}

/** True if header, attributes and the data that they point at are all there, and nothing else. */
static bool ioctl_complete(const struct nic_call *call)
{
	const struct ib_uverbs_ioctl_hdr *hdr = (const void *)call->data;
	size_t expect;

	if (call->size < sizeof(*hdr))
		return false;
	expect = sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]);
	if (hdr->length != expect || call->req.len != expect || call->size < expect)
		return false;
	for (unsigned i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].len > sizeof(hdr->attrs[i].data))
			expect += hdr->attrs[i].len;
	return call->size == expect;
}

struct nic_call *call_new(const struct files *files, pid_t pid, const struct softcx_request *req,
	const void *bytes, size_t size)
{
	struct nic_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	*call = (struct nic_call){.files = files, .pid = pid, .req = *req, .size = size};
	call->data = malloc(size + 1);
	if (call->data) {
		memcpy(call->data, bytes, size);
		if (req->op == SOFTCX_IOCTL ? ioctl_complete(call)
					    : size == (req->op == SOFTCX_WRITE ? req->len : 0))
			return call;
		errno = EPROTO;
	}
	call_free(call);
	return NULL;
}

static void clear_pieces(struct nic_call *call)
{
	for (unsigned i = 0; i < call->npiece_fds; i++)
		close(call->piece_fds[i]);
	free(call->piece_fds);
	free(call->pieces);
	call->piece_fds = NULL;
	call->pieces = NULL;
	call->npieces = call->npiece_fds = 0;
}

void call_drop_fds(struct nic_call *call)
{
	for (unsigned i = 0; i < call->nfds; i++)
		close(call->fds[i]);
	call->nfds = 0;
}

void call_restart(struct nic_call *call)
{
	call_drop_fds(call);
	call->stores_size = 0;
	call->nstores = 0;
}

void call_free(struct nic_call *call)
{
	if (!call)
		return;
	for (unsigned i = 0; i < call->nanswers; i++) {
		hw_mem_put(call->answers[i].mem);
		if (call->answers[i].fd >= 0)
			close(call->answers[i].fd);
	}
	call_drop_fds(call);
	clear_pieces(call);
	free(call->answers);
	free(call->stores);
	free(call->data);
	free(call);
}

/* ---- answers ---------------------------------------------------------------------------- */

static int add_pieces(struct nic_call *call, const struct softcx_request *req, const struct softcx_seg *segs,
	const int *fds, unsigned nfds)
{
	struct mm_piece *pieces;
	int *all;

	pieces = realloc(call->pieces, (call->npieces + req->count) * sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	call->pieces = pieces;
	for (unsigned i = 0; i < req->count; i++) {
		if (segs[i].fd >= (int)nfds)
			return -EPROTO;
		pieces[call->npieces++] = (struct mm_piece){.va = segs[i].va,
			.len = segs[i].len,
			.offset = segs[i].offset,
			.fd = segs[i].fd < 0 ? -1 : fds[segs[i].fd]};
	}
	all = realloc(call->piece_fds, (call->npiece_fds + nfds + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	call->piece_fds = all;
	for (unsigned i = 0; i < nfds; i++)
		all[call->npiece_fds++] = fds[i];
	return 0;
}

/**
 * Descriptors of memory are never sockets: a file's own socket, kept here, would never reach its end of file.
 * The socket of remote copy has another type than that of a file.
 */
static bool unfit(const int *fds, unsigned n, bool socket)
{
	socklen_t len = sizeof(int);
	struct stat st;
	int type;

	if (socket)
		return n != 1 || getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
		       type != SOCK_SEQPACKET;

	for (unsigned i = 0; i < n; i++)
		if (fstat(fds[i], &st) < 0 || S_ISSOCK(st.st_mode))
			return true;
	return false;
}

static int map_pieces(struct nic_call *call, struct call_answer *answer)
{
	struct hardware *hardware = call->files->hardware;
	int rc;

	hardware_leave(hardware);
	rc = mm_new(&answer->mem, answer->va, answer->len, answer->flags & SOFTCX_WRITABLE, call->pid,
		call->pieces, call->npieces);
	hardware_enter(hardware);
	if (rc == 0)
		mm_add(answer->mem);
	return rc;
}

static int answer_mem(struct nic_call *call, struct call_answer *answer, const struct softcx_request *req,
	const void *bytes, size_t size, const int *fds, unsigned nfds)
{
	int rc = 0;

	if (req->count > size / sizeof(struct softcx_seg) || size != req->count * sizeof(struct softcx_seg) ||
		req->rc > 0 || (req->rc == 0 && req->count == 0) || (req->rc < 0 && nfds) ||
		unfit(fds, nfds, req->flags & SOFTCX_COPY_SOCKET))
		rc = -EPROTO;
	if (rc == 0 && req->rc == 0)
		rc = add_pieces(call, req, bytes, fds, nfds);
	if (rc < 0) {
		for (unsigned i = 0; i < nfds; i++)
			close(fds[i]);
		return rc;
	}
	if (req->rc == 0 && (req->flags & SOFTCX_MORE))
		return 1;
	if (req->rc < 0)
		answer->rc = req->rc;
	else if (req->flags & SOFTCX_COPY_SOCKET && call->npieces == 1)
		answer->rc = remote_copy_new(&answer->mem, answer->va, answer->len,
			answer->flags & SOFTCX_WRITABLE, call->pid, call->pieces[0].fd);
	else if (call->pieces[0].fd < 0 && (answer->flags & SOFTCX_DIRECT || call->remote_copy))
		answer->rc = -EFAULT;
	else if (call->pieces[0].fd < 0 && !remote_copy_needless(call->pid, answer->va))
		call->remote_copy = true;
	else
		answer->rc = map_pieces(call, answer);
	clear_pieces(call);
	return answer->rc == -EINVAL ? -EPROTO : 0;
}

static int add_answer(struct nic_call *call, const struct call_answer *answer)
{
	struct call_answer *grown = realloc(call->answers, (call->nanswers + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	call->answers = grown;
	grown[call->nanswers++] = *answer;
	return 0;
}

int call_presume_stat(struct nic_call *call, int fd, const struct stat *st)
{
	return add_answer(
		call, &(struct call_answer){
			      .kind = SOFTCX_NEED_STAT, .va = (uint64_t)(int64_t)fd, .st = *st, .fd = -1});
}

int call_answer(struct nic_call *call, const struct softcx_request *req, const void *bytes, size_t size,
	const int *fds, unsigned nfds)
{
	struct call_answer answer = {.kind = call->need.kind,
		.flags = call->need.flags & ~(uint32_t)SOFTCX_REMOTE_COPY,
		.va = call->need.va,
		.len = call->need.len,
		.fd = -1};
	int rc = 0;

	if (answer.kind == SOFTCX_NEED_MEM && req->op == SOFTCX_MEM) {
		rc = answer_mem(call, &answer, req, bytes, size, fds, nfds);
		if (rc != 0)
			return rc;
		if (answer.rc == 0 && !answer.mem) { /* to be asked once more */
			call->need.kind = 0;
			return 0;
		}
	} else {
		bool send = answer.flags & SOFTCX_SEND_FD && req->rc == 0;

		if (answer.kind != SOFTCX_NEED_STAT || req->op != SOFTCX_STAT || size != sizeof(answer.st) ||
			req->rc > 0 || nfds != send) {
			for (unsigned i = 0; i < nfds; i++)
				close(fds[i]);
			return -EPROTO;
		}
		answer.fd = send ? fds[0] : -1;
		answer.rc = req->rc;
		memcpy(&answer.st, bytes, sizeof(answer.st));
	}
	if (add_answer(call, &answer) < 0) {
		hw_mem_put(answer.mem);
		if (answer.fd >= 0)
			close(answer.fd);
		return -ENOMEM;
	}
	call->need.kind = 0;
	return 0;
}

/** The answer to this question, or NULL after noting that it must be asked. */
static struct call_answer *callstate_ask(
	struct nic_call *call, uint32_t kind, uint64_t va, uint64_t len, uint32_t flags)
{
	for (unsigned i = 0; i < call->nanswers; i++) {
		struct call_answer *a = &call->answers[i];

		if (a->kind == kind && a->va == va && a->len == len && a->flags == flags)
			return a;
	}
	if (kind == SOFTCX_NEED_MEM && call->remote_copy)
		flags |= SOFTCX_REMOTE_COPY;
	call->need = (struct softcx_reply){.kind = kind, .flags = flags, .va = va, .len = len};
	return NULL;
}

/* ---- what handlers see ------------------------------------------------------------------ */

pid_t nic_call_pid(const struct nic_call *call)
{
	return call->pid;
}

const void *nic_call_bytes(const struct nic_call *call, size_t *len)
{
	*len = call->req.len;
	return call->data;
}

uint64_t nic_call_va(const struct nic_call *call)
{
	return call->req.va;
}

const void *nic_call_attr(const struct nic_call *call, unsigned i)
{
	size_t pos = call->req.len;
	const struct ib_uverbs_attr *attrs;
	unsigned n;

	attrs = attrs_of(call, &n);
	if (i >= n || attrs[i].len <= sizeof(attrs[i].data))
		return NULL;
	for (unsigned k = 0; k < i; k++)
		if (attrs[k].len > sizeof(attrs[k].data))
			pos += attrs[k].len;
	return call->data + pos;
}

void call_store_remotely(const struct nic_call *call)
{
	uint8_t *p = call->stores;

	for (uint64_t i = 0; i < call->nstores; i++) {
		struct softcx_store store;
		struct iovec from, to;

		memcpy(&store, p, sizeof(store));
		p += sizeof(store);
		if (store.fd >= 0)
			continue;
		from = (struct iovec){p, store.len};
		to = (struct iovec){(void *)(uintptr_t)store.va, store.len};
		process_vm_writev(call->pid, &from, 1, &to, 1, 0);
		p += (store.len + 7) & ~7U;
	}
}

/* Appends a store that BODY bytes follow. Clears them, and points *AT at them. */
static int append_store(struct nic_call *call, const struct softcx_store *head, size_t body, uint8_t **at)
{
	size_t size = call->stores_size + sizeof(*head) + body;
	uint8_t *grown;

	if (size > SOFTCX_MAX_MSG - sizeof(struct softcx_reply))
		return -E2BIG;
	grown = realloc(call->stores, size);
	if (!grown)
		return -ENOMEM;
	call->stores = grown;
	memcpy(grown + call->stores_size, head, sizeof(*head));
	*at = grown + call->stores_size + sizeof(*head);
	memset(*at, 0, body);
	call->stores_size = size;
	call->nstores++;
	return 0;
}

int nic_call_store(struct nic_call *call, uint64_t va, const void *bytes, size_t len)
{
	uint8_t *at;
	int rc;

	if (len > SOFTCX_MAX_MSG)
		return -E2BIG;
	rc = append_store(call, &(struct softcx_store){.va = va, .len = (uint32_t)len, .fd = -1},
		(len + 7) & ~7UL, &at);
	if (rc == 0 && len > 0)
		memcpy(at, bytes, len);
	return rc;
}

int nic_call_fd(struct nic_call *call, uint64_t va, int fd)
{
	int rc = call->nfds == SOFTCX_MAX_FDS ? -E2BIG : 0;
	uint8_t *at;

	if (rc == 0)
		rc = append_store(call,
			&(struct softcx_store){.va = va, .len = sizeof(int), .fd = (int)call->nfds}, 0, &at);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	call->fds[call->nfds++] = fd;
	return 0;
}

int nic_call_mem(
	struct nic_call *call, uint64_t va, uint64_t len, bool writable, bool direct, struct hw_mem **mem)
{
	struct call_answer *a;

	if (len == 0 || va + len < va)
		return -EFAULT;
	a = callstate_ask(call, SOFTCX_NEED_MEM, va, len,
		(writable ? SOFTCX_WRITABLE : 0) | (direct ? SOFTCX_DIRECT : 0));
	if (!a)
		return NIC_AGAIN;
	if (a->rc < 0)
		return a->rc;
	*mem = hw_mem_get(a->mem);
	return 0;
}

int nic_call_fstat(struct nic_call *call, int fd, struct stat *st)
{
	struct call_answer *a = callstate_ask(call, SOFTCX_NEED_STAT, (uint64_t)(int64_t)fd, 0, 0);

	if (!a)
		return NIC_AGAIN;
	*st = a->st;
	return a->rc;
}

int nic_call_take_fd(struct nic_call *call, int fd, int *copy)
{
	struct call_answer *a =
		callstate_ask(call, SOFTCX_NEED_STAT, (uint64_t)(int64_t)fd, 0, SOFTCX_SEND_FD);

	if (!a)
		return NIC_AGAIN;
	if (a->rc < 0)
		return a->rc;
	*copy = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
	return *copy < 0 ? -errno : 0;
}

int nic_call_ucma_file(struct nic_call *call, int fd, struct ucma_file **file)
{
	struct stat st;
	int rc = nic_call_fstat(call, fd, &st);

	if (rc != 0)
		return rc;
	*file = S_ISSOCK(st.st_mode) ? files_find_ucma(call->files, st.st_ino) : NULL;
	return *file ? 0 : -EINVAL;
}
