/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - opens files that others may have made: only regular ones, without waiting for anybody.
 */
#ifndef UTIL_FILE_H
#define UTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * open(2) with @flags, O_CLOEXEC and no wait for the other end of a pipe. Returns the descriptor, or -errno;
 * -EINVAL: it is no regular file.
 */
int file_open(const char *path, int flags);

/**
 * The same for a path that has no symbolic link in any part of it: who may write to one of its
 * directories cannot make it lead to another file. -ELOOP: it has one.
 */
int file_open_no_links(const char *path, int flags);

/**
 * Opens the file of @fd once more, with @flags: locks and offsets of the new descriptor are its own. As
 * file_open(); -EACCES: this process may not open it so.
 */
int file_reopen(int fd, int flags);

/**
 * Makes descriptors 0 to 2 exist, for a program that was started without them: the next file that it opens
 * would become its stderr, and get its messages. Reading from 0, and writing to 1 or 2, is EBADF as before.
 * Call it before anything is opened. Ends the process if even /dev/null cannot be opened.
 */
void file_fill_standard(void);

/**
 * From now on writing to stderr does not wait for whoever reads it: EAGAIN, if that stands still. A pipe or a
 * terminal is opened once more, because other programs have the same open file, and a flag of it would be
 * theirs too; so it is for a pipe that this process may not open, and a socket. A terminal that it may not
 * open stays as it is.
 */
void file_unblock_stderr(void);

/** Why a file cannot be opened, a clause: of an error of these functions. */
const char *file_error(int error);

/**
 * A file in memory of @size bytes that outlives this process for as long as another one has it open, and a
 * *@mapping of all of it. Nobody can change its size, so stores into the mapping do not fail. Returns the
 * descriptor, or -errno.
 */
int file_new_sealed(const char *name, size_t size, void **mapping);
/** A *@mapping of such a file, @fd, which anybody may have made. -EBADMSG: it is none, or of another size. */
int file_map_sealed(int fd, size_t size, void **mapping);

/** Reads from @fd until its end, at most @size bytes. Returns their number, or -errno. */
long file_read(int fd, void *bytes, size_t size);
/** The same from byte @off of the file on; the offset of @fd stays where it is. */
long file_read_at(int fd, uint64_t off, void *bytes, size_t size);

#endif
