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
#include "softcx/nic/kill.h"
#include "softcx/proto/call.h"

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

#endif
