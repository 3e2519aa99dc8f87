/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * release.h - gives back what a session has.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_RELEASE_H
#define SESSION_RELEASE_H

#include "reddnd/session/session.h"

/** What it has of the device, and its slot of the ledger. Of one that did not begin, too. */
void session_release(struct session *s);
/** After session_end() and session_destroy_qps(). */
void session_free(struct session *s);

/** The same, but what it has of the device is kept, ready for a session of the same tenant and image.
 * -EINVAL: it cannot serve another, all is as before; or an error of the device, logged. */
int session_make_spare(struct session *s);
void session_free_spare(struct session *s);

#endif
