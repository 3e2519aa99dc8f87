/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.h - open device files. See proto.h for what travels on the sockets.
 *
 * A file has a connection, whose life is the file's, and one command channel for each process image that
 * uses it. Calls of one channel follow one another; a call that waits for an answer about memory does not
 * hold up the others.
 */
#ifndef SOFTCX_NIC_FILES_H
#define SOFTCX_NIC_FILES_H

#include "call.h"
#include "loop.h"

/** What the files belong to. */
struct files {
	struct loop *loop;
	struct hw_dev *const *devs;
	struct ucma_net *net;
	struct file *first; /* of the open ones */
	unsigned count;
};

/** Opens device @dev, or rdma_cm when @dev is negative, for the accepted connection @fd, which it takes over. */
int files_add(struct files *files, int dev, int fd);
/** Closes all files. */
void files_clear(struct files *files);
/** The rdma_cm file whose application end is socket inode @ino, or NULL. */
struct ucma_file *files_find_ucma(const struct files *files, ino_t ino);

#endif
