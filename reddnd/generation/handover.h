/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover.h - files of regions without a path: descriptors that their owners have handed over, such as
 * memfds. They are kept here, so that the data outlives the process that made it.
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

/** Keeps a copy of @fd, which stays the caller's, as the file of region @name, in place of the one before.
 * -EACCES: the file cannot be opened anew; -EINVAL: it is no regular file; -ENOSPC: HANDOVERS_MAX files are
 * kept. */
int handovers_put(struct handovers *h, const char *name, int fd);
/** Another copy of the file of region @name: the caller's to close. -ENOENT: there is none. */
int handovers_copy(const struct handovers *h, const char *name);
/** The name of a region that has a file here, and in @catalog none is handed over for it; NULL: there is
 * none. */
const char *handovers_useless(const struct handovers *h, const struct catalog *catalog);
/** Forgets the file of region @name, which may be a string that handovers_useless() returned. */
void handovers_drop(struct handovers *h, const char *name);

#endif
