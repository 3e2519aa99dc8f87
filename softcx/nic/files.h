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

#endif
