/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - the NIC process: its devices, the sockets of the device files (proto.h), and the loop that runs
 * both.
 *
 * One or more threads execute queues (hardware.h), and that of server_run() does everything else. Messages of
 * drivers are checked. A malformed one ends its connection, with a line on standard error, and has no other
 * effect.
 */
#ifndef SOFTCX_NIC_SERVER_H
#define SOFTCX_NIC_SERVER_H

#include "softcx/hw/hw.h"
#include "softcx/nic/event-loop.h"
#include "softcx/nic/fault.h"
#include "softcx/nic/files.h"
#include "softcx/nic/trace.h"
#include "softcx/proto/hosts.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/queue.h>

struct server_config {
	const struct hosts *hosts; /* their directories exist; outlives the server */
	struct hw_config hw;       /* complete */
	const char *device;        /* name or file of hw.profile, as it was given */
	const char *clock;         /* name of hw.costs, or NULL */
	unsigned pus;              /* threads that execute queues: not more than devices */
	unsigned linger;           /* end this many seconds after the last client left; 0: never */
};

struct server;

/** Creates devices, sysfs trees and sockets. -EADDRINUSE when another NIC lives in the directory. */
int server_new(struct server **server, const struct server_config *cfg);
void server_free(struct server *server); /* removes the sockets; NULL is fine */
/** Runs until server_stop(), a "stop" command, or lack of clients. 0 or a negative errno. */
int server_run(struct server *server);
/** May be called from a signal handler. */
void server_stop(struct server *server);

/*
 * control.c: the connections of tools: each message is a word with its arguments, and is answered, except
 * for "trace", whose answer are the records (trace.h), and "stop".
 *
 * A connection that has sent "hold" keeps the process alive without clients; one that has sent "watch" can
 * ask later what was left behind. Its end is the end of all that.
 *
 * The caller of each function has the hardware (hardware.h).
 */

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

#endif
