/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - the Unix socket through which a running daemon is asked and told: lines of JSON (commands.h).
 *
 * Anybody who can open the socket may look; root and the user of the daemon may change things: the kernel
 * names the peer. A peer that sends no line, or does not read its answer, in time is disconnected; one at a
 * time is answered.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include "reddnd/control/commands.h"

enum {
	CONTROL_PEERS_MAX = 32,
	CONTROL_LINE_MAX = 65536, /* bytes of a request */
	CONTROL_IDLE_US = 30000000,
};

struct control;

/**
 * Listens at @path. A socket that a dead daemon left there is replaced; one that answers is not: -EADDRINUSE.
 * Errors have been logged. What @commands points to must outlive it.
 */
int control_new(struct control **control, const char *path, const struct commands *commands, sd_event *event);
void control_free(struct control *control); /* removes the socket */

#endif
