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
/** Of one that is SESSION_GONE. */
void session_free(struct session *s);

#endif
