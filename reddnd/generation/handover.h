/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover.h - files of regions without a path: descriptors that their owners have handed over, such as
 * memfds. They are kept here, so that the data outlives the process that made it. A file is its owner's, the
 * user whom the inode belongs to: whoever else becomes the owner of the region does not get it.
 *
 * A copy is a descriptor of its own (file_reopen()): a lock that an owner holds on its file ends with the
 * owner.
 *
 * Thread rules: one thread.
 */
#ifndef GENERATION_HANDOVER_H
#define GENERATION_HANDOVER_H

#include "reddnd/catalog/catalog.h"

enum { HANDOVERS_MAX = 64 };

struct handovers;

/** NULL: no memory. */
struct handovers *handovers_new(void);
void handovers_free(struct handovers *h); /* NULL is fine */

/** Counts a hand-over of region @name at @now_us (clock_us()), which is expensive whatever comes of it. 0: it
 * may be; -EBUSY: there were too many; -ENOSPC: HANDOVERS_MAX regions are known; -ENOMEM. */
int handovers_admit(struct handovers *h, const char *name, uint64_t now_us);
/** Keeps a copy of @fd, which stays the caller's, as the file of region @name, in place of the one before.
 * Counts nothing: the file may be one that was left by the daemon before. Returns the copy, which is
 * borrowed. -EACCES: the file cannot be opened anew; -EINVAL: it is no regular file; -ENOSPC, -ENOMEM as
 * above. */
int handovers_put(struct handovers *h, const char *name, int fd, uint64_t now_us);
/** Another copy of the file of @region: the caller's to close. -ENOENT: there is none of its owner. */
int handovers_copy(const struct handovers *h, const struct catalog_region *region);
/** The name of a region that is known here, and that @catalog has no more, or with another owner than that of
 * the file; NULL: there is none. */
const char *handovers_useless(const struct handovers *h, const struct catalog *catalog);
/** Forgets the file of region @name, which may be a string that handovers_useless() returned. */
void handovers_drop(struct handovers *h, const char *name);

#endif
