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
#include "softcx/proto/hosts.h"

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

#endif
