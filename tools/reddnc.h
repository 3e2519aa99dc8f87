/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnc.h - "reddnc run": sends one request to a program on a device, without a daemon; the client is a
 * queue pair of this process.
 */
#ifndef TOOLS_REDDNC_H
#define TOOLS_REDDNC_H

#include "reddnd/generation/tenant.h"
#include "reddnd/program/program.h"
#include "reddnd/session/loop-queue.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** The device, opened and tried as reddnd tries it. */
struct reddnc_device {
	struct rnic_arena *arena;
	struct rnic_device *dev;
	struct tenant_domain domain; /* of what runs on it */
};

/**
 * Opens device @name, "": the only one there is, and tries what it does. @target, what the command line asks
 * for, becomes what programs are compiled for: the device without the masked atomics, or with the groups,
 * that were asked for. 0, or an exit status of sysexits.h, with the reason on stderr: the device cannot be
 * used, or does not do what was asked for.
 */
int reddnc_device_open(struct reddnc_device *d, const char *name, struct program_target *target);
void reddnc_device_close(struct reddnc_device *d); /* fine on one that is all zero */

struct reddnc_region {
	const char *name, *path;
};

struct reddnc_run {
	const struct program *program;
	const char *path; /* of its text */
	char **args;      /* words, NULL-terminated */
	struct reddnc_region region[PROGRAM_MAX_REGIONS];
	unsigned nregions;
	struct reddnc_device *on; /* the device, for which it was compiled */
	unsigned timeout_ms;
	bool json;
	bool progress; /* of a loop without a bound: on stderr, every second */
};

/** Runs it and prints the result to @out. Returns the exit status: 0, 1 if the chain failed, or one of
 * sysexits.h. Errors go to stderr. */
int reddnc_run(const struct reddnc_run *run, FILE *out);

#endif
