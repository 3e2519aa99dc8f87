/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * audit.h - events as JSON, for the command "audit" and for peers that follow it.
 *
 * Thread rules: one thread, that of the server.
 */
#ifndef CONTROL_AUDIT_H
#define CONTROL_AUDIT_H

#include "reddnd/server/events.h"

#include <json-c/json.h>

/** All events that are kept, the oldest first. Sets *@next to the number of the event after them. */
struct json_object *audit_list(const struct events *ev, uint64_t *next);

/**
 * The next line for a reader at *@next, and moves *@next on: an event, or { "lost": N } if N events were
 * dropped before the reader got here. The line ends with a newline; the caller frees it. NULL: no event yet,
 * or no memory.
 */
char *audit_line(const struct events *ev, uint64_t *next);

#endif
