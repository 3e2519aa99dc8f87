/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * commands.h - what can be asked of a running daemon: a table of commands, each from JSON to JSON.
 *
 * A request is one line, { "command": "NAME", ... }; its answer is one line, { "ok": true, "result": ... } or
 * { "ok": false, "error": "what is wrong; what would be right" }. docs/man/reddnctl.8 lists the members.
 *
 * Thread rules: one thread, that of the server.
 */
#ifndef CONTROL_COMMANDS_H
#define CONTROL_COMMANDS_H

#include "reddnd/server/server.h"

#include <json-c/json.h>

struct commands {
	struct server *server;
	/** Reads the configuration again and puts it in force. Errors have been logged. */
	int (*reload)(void *arg);
	void *arg;
};

/** What a peer gets without asking again, after its answer. */
struct commands_follow {
	bool events;   /* lines of audit_line() */
	uint64_t next; /* from this one on */
};

/**
 * The answer to the line @text of @len bytes, an object that the caller puts. @may_change: the peer may use
 * commands that change something. @follow is set by a command that asks for more than its answer. NULL when
 * there is no memory.
 */
struct json_object *commands_answer(const struct commands *c, const char *text, size_t len, bool may_change,
	struct commands_follow *follow);

#endif
