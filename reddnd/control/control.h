/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - the Unix socket that controls and inspects a running daemon: lines of JSON (commands.h).
 *
 * Every peer that can open the socket may read; root and the user of the daemon may also change things. The
 * kernel identifies the peer. A peer that sends no line in time, or does not read its answer in time, is
 * disconnected. So is one that only reads, when a user who has fewer peers needs its place, or has none and
 * this one follows the audit. Peers are answered one at a time; those that may only read take turns, and
 * together a tenth of the event loop's time.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include "reddnd/control/commands.h"

enum {
	CONTROL_PEERS_MAX = 32,
	CONTROL_READERS_MAX = 24, /* of these, who may not change anything: root finds a seat */
	CONTROL_USER_MAX = 12,    /* of these, of one user */
	CONTROL_LINE_MAX = 65536, /* bytes of a request */
	CONTROL_IDLE_US = 30000000,
};

struct control;

/** 0, or what a restart of the daemon does not mend, which has been logged: the directory of @path is
 * missing, or something else than a socket is there. */
int control_check(const char *path);

/**
 * Listens at @path. Replaces a socket that a dead daemon left there; -EADDRINUSE if a daemon answers on it.
 * Errors have been logged. @commands is copied; what it points to must outlive the control.
 */
int control_new(struct control **control, const char *path, const struct commands *commands, sd_event *event);
void control_free(struct control *control); /* removes the socket */

/** Reload @number is over, with an error or 0, and all before it: answers the peers that wait for them.
 * @errors: what was logged. */
void control_reloaded(struct control *control, uint64_t number, int error, const char *errors);

/** Hand-over @number is over, and no other request. */
void control_taken(struct control *control, uint64_t number, int error, const char *errors);

#endif
