/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file-watch.h - whether the pages of a file are still those that they were when somebody pinned them. They
 * are not if the file was cut, or holes were made in it: what comes to these places later are other pages,
 * and a NIC goes on to read the old ones.
 *
 * An inotify instance, whose descriptor outlives the daemon, so that it also sees what happens while none
 * runs. Each watch ends at the first event, so there is nothing to be read and remembered: what is still
 * watched has not changed. Linux raises IN_MODIFY for truncate(2) (fs/attr.c, notify_change()) and for
 * fallocate(2) and MADV_REMOVE (fs/open.c, vfs_fallocate()), and not for stores into mappings. It also does
 * for write(2), after which pages are the same and pinned once more for nothing.
 *
 * A file that never had a name, such as a memfd, cannot be watched: since Linux 6.14 its own descriptor
 * raises nothing (fs/file_table.c, alloc_file_pseudo()), so holes would not be seen.
 *
 * Thread rules: any thread.
 */
#ifndef RNIC_FILE_WATCH_H
#define RNIC_FILE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/** A descriptor without watches, the caller's to close; or -errno. */
int file_watch_new(void);
/** Watches the file of @fd from now on: a number, which another file or a later watch of this one does not
 * have; 0: it cannot be watched. */
uint32_t file_watch_add(int watches, int fd);
/** True if nothing has happened to the file with watch @number since that was added. */
bool file_watch_holds(int watches, uint32_t number);

#endif
