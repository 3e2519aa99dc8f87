/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inspection.h - looks at the files of regions, one after the other, on a thread. A look that waits for a
 * file system that does not answer keeps its thread, and the next thread goes on with the other regions. It
 * is a look as any other when it comes back. A region may be closed meanwhile, and opened again, and the next
 * look not come back either: when INSPECTION_THREADS_MAX do not, nobody looks until one of them does.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef GENERATION_INSPECTION_H
#define GENERATION_INSPECTION_H

#include "reddnd/generation/region.h"

#include <systemd/sd-event.h>

enum { INSPECTION_THREADS_MAX = 32 };

struct inspection;

struct inspection_ops {
	/** Region @r was looked at; @news: those of region_looked(). */
	void (*looked)(void *arg, struct region *r, unsigned news);
	/** After some of these. @all: of every region that was added, but of those that do not answer. */
	void (*done)(void *arg, bool all);
};

/** -errno: no memory, no descriptor, or that of sd-event. */
int inspection_new(
	struct inspection **inspection, sd_event *event, const struct inspection_ops *ops, void *arg);
/** Does not wait for looks. All regions that were added have been released. */
void inspection_free(struct inspection *in);

/** The file of @r is looked at soon, unless that is already so, or nobody looks now. */
void inspection_add(struct inspection *in, struct region *r);
/** Looks at the files of what was added. Call it now and then: it logs which region does not answer. */
void inspection_go_on(struct inspection *in);
/** True: some that were added have not been looked at, and are not known not to answer, or to wait for such.
 */
bool inspection_is_busy(struct inspection *in);

#endif
