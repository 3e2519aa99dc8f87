/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * commands.h - the commands of a running daemon: a table of functions from JSON to JSON.
 *
 * A request is one line, { "command": "NAME", ... }; its answer is one line, { "ok": true, "result": ... } or
 * { "ok": false, "error": "what is wrong; what would be right" }. docs/man/reddnctl.8 lists the members.
 *
 * Thread rules: one thread, that of the server.
 */
#ifndef CONTROL_COMMANDS_H
#define CONTROL_COMMANDS_H

#include "reddnd/server/events.h"
#include "reddnd/server/server.h"
#include "reddnd/server/stats.h"

#include <json-c/json.h>

/* ---- events as JSON, for the command "audit" and for peers that follow it ---- */

/**
 * The next line for a reader at *@next, and moves *@next on: an event, or { "lost": N } if N events were
 * dropped before the reader got here. The line ends with a newline; the caller frees it. NULL: no event yet,
 * or no memory.
 */
char *audit_line(const struct events *ev, uint64_t *next);

struct commands {
	struct server *server;
	/** Begins to read the configuration again; control_reloaded() follows, with the number that this
	 * returns.
	 */
	uint64_t (*reload)(void *arg);
	void *arg;
};

/** What a peer gets after its answer, without another request; or later, in place of it. */
struct commands_follow {
	uint64_t reload; /* the answer is that of commands_reloaded(), when the reload of this number is over
			  */
	bool events;     /* lines of audit_line() */
	uint64_t next;   /* from this one on */
	bool gives;      /* a descriptor comes with the answer */
	int fd;          /* that one, which the caller closes */
};

/** Who asks. */
struct commands_peer {
	bool may_change; /* the peer may use commands that change something */
	uid_t uid;
	int fd; /* that came with the request, the caller's to close; -1: none did */
};

/**
 * Returns the answer to the line @text of @len bytes; the caller puts the object. A command that wants more
 * than an answer sets @follow. NULL: no memory.
 */
struct json_object *commands_answer(const struct commands *c, const char *text, size_t len,
	const struct commands_peer *peer, struct commands_follow *follow);

/** The answer to "reload" when it is over: @error 0, or what was logged is in @errors. NULL: no memory. */
struct json_object *commands_reloaded(const struct commands *c, int error, const char *errors);

/*
 * A snapshot of the daemon as JSON: the answers to the commands of the same names, which docs/man/reddnctl.8
 * describes.
 */

struct json_object *state_status(const struct stats *st);
struct json_object *state_sessions(const struct stats *st);
struct json_object *state_offloads(const struct stats *st);
struct json_object *state_regions(const struct stats *st);
struct json_object *state_tenants(const struct stats *st);

/* Counters of the daemon as OpenMetrics text: by offload and tenant, never by client or key. */

/** Text that ends with "# EOF\n"; the caller frees it. NULL: no memory. */
char *metrics_text(const struct stats *stats);

/** The same in the text format 0.0.4 of Prometheus, where a counter is a family with the name of its samples.
 */
char *metrics_prometheus(const char *openmetrics);

#endif
