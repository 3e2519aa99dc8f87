/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - requests to a running reddnd, one JSON object per line on its control socket. reddnctl(8) has
 * the protocol.
 */
#ifndef TOOLS_REDDNCTL_CONTROL_H
#define TOOLS_REDDNCTL_CONTROL_H

#include "util/cleanup.h"

#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>

/** A connection to the daemon. All 0: none. */
struct control {
	FILE *to, *from;
};

/** Connect to the socket at @path. 0, or after an error on stderr an exit status of sysexits.h. */
int control_open(struct control *l, const char *path);
void control_close(struct control *l);

/** A request, which the caller completes with the command's members. */
struct json_object *control_request(const char *command);

/**
 * Send @request, which it consumes, and wait for the answer. Returns the answer's "result", which the caller
 * frees, or NULL after an error on stderr.
 */
struct json_object *control_call(struct control *l, struct json_object *request);
/** The same, with the descriptor @fd. */
struct json_object *control_call_with(struct control *l, struct json_object *request, int fd);

/** The next line that follows an answer (audit with "follow"), which the caller frees. NULL: the daemon
 * closed the connection. */
struct json_object *control_next(struct control *l);

/** A number of @o, 0 if it is absent. */
uint64_t control_member(struct json_object *o, const char *name);

DEFINE_CLEANUP(struct json_object *, json_object_put)

#endif
