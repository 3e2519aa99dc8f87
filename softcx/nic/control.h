/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - the connections of tools: each message is a word with its arguments, and is answered, except
 * for "trace", whose answer are the records (trace.h), and "stop".
 *
 * A connection that has sent "hold" keeps the process alive without clients; one that has sent "watch" can
 * ask later what was left behind. Its end is the end of all that.
 *
 * The caller of each function has the hardware (hardware.h).
 */
#ifndef SOFTCX_NIC_CONTROL_H
#define SOFTCX_NIC_CONTROL_H

#include "softcx/nic/event-loop.h"
#include "softcx/nic/fault.h"
#include "softcx/nic/files.h"
#include "softcx/nic/trace.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/queue.h>

/*
 * The objects of open files in JSON, for the tool: those that exist now, and those that files
 * left behind when they were closed.
 *
 * A file is {"file", "pid", "program", "objects": [...]}; each object has "kind" and members that depend on
 * it. The tool prints members that it does not know as they are.
 */

/** Watches of process trees: notes of what the files of a process's descendants leave behind. */
struct watch;
struct watches {
	LIST_HEAD(, watch) list;
	unsigned last;
};

struct server_config;

struct controls {
	const struct server_config *cfg;
	struct event_loop *loop;
	struct files *files;
	struct faults *faults;
	struct tracers tracers;
	struct watches watches;
	LIST_HEAD(, control) list;
	unsigned holds; /* connections that keep the process alive */
	bool stop;      /* one has asked for the end of the process */
};

/** What is passed outlives @all. */
void controls_init(struct controls *all, const struct server_config *cfg, struct event_loop *loop,
	struct files *files, struct faults *faults);
/** Serves the accepted connection @fd, which it takes over. */
int controls_add(struct controls *all, int fd);
/** Closes all connections. They are freed by the event loop. */
void controls_clear(struct controls *all);

struct server_config;

#endif
