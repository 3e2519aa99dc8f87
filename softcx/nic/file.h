/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - one open device file: what its connection (files.c) and its command channels (channel.c) share.
 *
 * The caller of each function has the hardware (hardware.h).
 */
#ifndef SOFTCX_NIC_FILE_H
#define SOFTCX_NIC_FILE_H

#include "softcx/nic/files.h"

#include <sys/queue.h>
#include <sys/socket.h>

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

/** Of an rdma_cm file, @file: it has events. poll() in the application learns that by a byte. */
void file_wake(void *file);
/** After a command: SOFTCX_DRAIN, so that the driver takes the byte away, when the last event has gone; or 0.
 */
uint32_t file_drain(struct file *file);

/** Process @pid uses the file from now on: reports name it, since a file can outlive who opened it. */
void file_used(struct file *file, pid_t pid);
struct file_view file_view(const struct file *file);

#endif
