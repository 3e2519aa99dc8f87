/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * audit.h - events as JSON: for the command "audit", and for those who follow.
 *
 * Thread rules: one thread, that of the server.
 */
#ifndef CONTROL_AUDIT_H
#define CONTROL_AUDIT_H

#include "reddnd/server/events.h"

#include <json-c/json.h>

/** All events that are kept, the oldest first; *@next becomes the number of the one that comes after them. */
struct json_object *audit_list(const struct events *ev, uint64_t *next);

/**
 * What comes next for a reader at *@next, which moves on: a line with its newline, to be freed: an event, or
 * { "lost": N } when N were dropped before it got here. NULL: nothing has happened yet, or there is no
 * memory.
 */
char *audit_line(const struct events *ev, uint64_t *next);

#endif
