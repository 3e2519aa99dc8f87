/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnc-run.h - sends one request to a program on a device, without a daemon: the client is a queue pair of
 * this process.
 */
#ifndef TOOLS_REDDNC_RUN_H
#define TOOLS_REDDNC_RUN_H

#include "reddnd/program/program.h"
#include "tools/reddnc-device.h"

#include <stdio.h>

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
