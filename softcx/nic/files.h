/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.h - open device files. See proto.h for what travels on the sockets.
 *
 * A file has a connection, whose life is the file's, and one command channel for each process image that
 * uses it. Calls of one channel follow one another; a call that waits for an answer about memory does not
 * hold up the others.
 *
 * The caller of each function has the hardware (hardware.h); sources give it up while they receive, map and
 * send.
 */
#ifndef SOFTCX_NIC_FILES_H
#define SOFTCX_NIC_FILES_H

#include "softcx/nic/event-loop.h"
#include "softcx/nic/fault.h"
#include "softcx/nic/mm.h"
#include "softcx/proto/call.h"
#include "softcx/proto/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

/** An open file, as reports see it. */
struct file_view {
	unsigned host;
	int dev;                          /* of all hosts, or FILES_RDMA_CM */
	pid_t pid;                        /* who made the last call; who opened it, before the first */
	char program[16];                 /* its name, "" when it could not be read */
	unsigned mark;                    /* what files_hooks.opened returned */
	const struct uverbs_file *uverbs; /* one of these two */
	const struct ucma_file *ucma;
};

/** Called when files are opened and closed. */
struct files_hooks {
	unsigned (*opened)(void *arg, pid_t pid);
	void (*closing)(void *arg, const struct file_view *file); /* its objects are still there */
	void *arg;
};

/** All open files, and what they use. */
struct files {
	struct event_loop *loop;
	struct hardware *hardware;
	struct hw_dev *const *devs;
	struct ucma_net *net;
	struct file *first; /* of the open ones */
	unsigned count;
	struct files_hooks hooks; /* both set or none */
	struct kills *kills;
	unsigned users; /* changes when a file gets another user */
};

enum { FILES_RDMA_CM = -1 }; /* in place of a device */

/** Opens device @dev (of all hosts), or rdma_cm of @host, for the accepted connection @fd, which it takes
 * over. */
int files_add(struct files *files, unsigned host, int dev, int fd);
/** Closes all files. */
void files_clear(struct files *files);
/** The rdma_cm file whose application end is socket inode @ino, or NULL. */
struct ucma_file *files_find_ucma(const struct files *files, ino_t ino);

void files_each(const struct files *files, void (*fn)(void *arg, const struct file_view *file), void *arg);
/** The process that uses the file of a QP, as in file_view; 0 when there is none. */
pid_t files_qp_owner(const struct files *files, int dev, uint32_t qpn);

/*
 * What a driver sent on a socket of a device file: bytes, descriptors, and who it was (proto.h).
 */

struct hardware;

struct packet {
	ssize_t len;             /* bytes; a negative errno: nothing was received */
	int fds[SOFTCX_MAX_FDS]; /* of the receiver, until packet_close() */
	unsigned nfds;
	struct ucred cred; /* pid 0: none came with it */
	bool truncated;    /* it was larger, or had more descriptors */
};

/** Receives what is there, without waiting, into the @size bytes of @buf. The caller has the hardware, which
 * is given up meanwhile. */
void packet_recv(struct hardware *hardware, int fd, void *buf, size_t size, struct packet *p);
/** Closes the descriptors that nobody has taken over. */
void packet_close(struct packet *p);

/*
 * One open device file: what its connection (files.c) and its command channels (channel.c) share.
 *
 * The caller of each function has the hardware (hardware.h).
 */

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

/** A line on standard error about what process @pid did with the file. */
__attribute__((format(printf, 3, 4))) void file_complain(
	const struct file *file, pid_t pid, const char *fmt, ...);

/** After a command: SOFTCX_DRAIN, so that the driver takes the byte away, when the last event has gone; or 0.
 */
uint32_t file_drain(struct file *file);

/** Process @pid uses the file from now on: reports name it, since a file can outlive who opened it. */
void file_used(struct file *file, pid_t pid);
struct file_view file_view(const struct file *file);

/*
 * callstate.c: a call between its arrival and its answer: the other side of call.h. channel.c fills in what
 * the driver sent, runs the handler, and sends what call_need() or call_reply() built.
 */

/** A question of a handler and the answer of the process; kept until the call ends. */
struct call_answer {
	uint32_t kind; /* SOFTCX_NEED_MEM or SOFTCX_NEED_STAT */
	uint32_t flags;
	uint64_t va, len;
	int rc;
	struct hw_mem *mem;
	struct stat st;
	int fd; /* of SOFTCX_SEND_FD, or -1 */
};

struct nic_call {
	const struct files *files;
	pid_t pid;
	struct softcx_request req;
	uint8_t *data; /* what followed the request */
	size_t size;

	struct call_answer *answers;
	unsigned nanswers;
	bool remote_copy;         /* the process must copy the memory that is asked for */
	struct softcx_reply need; /* kind 0: nothing is being asked */
	struct mm_piece *pieces;  /* of the answer that is arriving */
	unsigned npieces;
	int *piece_fds;
	unsigned npiece_fds;

	uint8_t *stores; /* struct softcx_store and bytes, as the reply will carry them */
	size_t stores_size;
	uint64_t nstores;
	int fds[SOFTCX_MAX_FDS];
	unsigned nfds;
};

/** Copies @bytes. NULL without memory, or when the parts of the request do not fit together (errno EPROTO).
 */
struct nic_call *call_new(const struct files *files, pid_t pid, const struct softcx_request *req,
	const void *bytes, size_t size);
void call_free(struct nic_call *call); /* NULL is fine */
/** Notes the answer to a question about descriptor @fd that nobody has asked yet. -ENOMEM. */
int call_presume_stat(struct nic_call *call, int fd, const struct stat *st);

/** Stores into the memory of the process, which is about to die and will not read its reply. Without
 * descriptors; what process_vm_writev(2) does not reach is left as it is. */
void call_store_remotely(const struct nic_call *call);
/** Forgets stores of a run that ended with NIC_AGAIN. */
void call_restart(struct nic_call *call);

/**
 * Takes the process's answer to @call->need; @fds become the call's. 1: more packets follow, 0: run the
 * handler again, -EPROTO: malformed.
 */
int call_answer(struct nic_call *call, const struct softcx_request *req, const void *bytes, size_t size,
	const int *fds, unsigned nfds);

/** Drops descriptors that a failed call would have installed. */
void call_drop_fds(struct nic_call *call);

/*
 * channel.c: command channels of an open file: one for each process image that uses it, on which its calls
 * arrive and are answered one after the other (proto.h). A call that waits for an answer about memory does
 * not hold up those of other channels.
 *
 * A channel ends by itself when the process closes its end, or sends what is no call.
 */

/**
 * Adds the channel @fd, which it takes over; @opener: of the image that opened the file. Sets @pid to its
 * process. -EPROTOTYPE: no end of a pair of another process's sockets.
 */
int channel_add(struct file *file, int fd, bool opener, pid_t *pid);
/** Ends all channels of @file, and the calls that are under way. */
void channels_clear(struct file *file);

#endif
