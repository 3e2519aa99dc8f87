/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - the connections of tools: each message is a word with its arguments, and is answered, except
 * for "trace", whose answer are the records (trace.h), and "stop".
 *
 * A connection that has sent "hold" keeps the process alive without clients; one that has sent "watch" can
 * ask later what was left behind (objects.h). Its end is the end of all that.
 *
 * The caller of each function has the hardware (hardware.h).
 */
#ifndef SOFTCX_NIC_CONTROL_H
#define SOFTCX_NIC_CONTROL_H

#include "softcx/nic/event-loop.h"
#include "softcx/nic/fault.h"
#include "softcx/nic/files.h"
#include "softcx/nic/objects.h"
#include "softcx/nic/trace.h"

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

#endif
