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

/* ---- reddnc-device.c: the device, opened and tried as reddnd tries it ---- */

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

/* ---- reddnc-run.c ---- */

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

/* ---- reddnc-result.c: the reply, the work requests as the chain has left them, and the scratch ---- */

struct reddnc_result {
	const struct program *program;
	const struct chain_image *image;
	unsigned slots;                        /* in each ring; the first was executed, the second is armed */
	const uint8_t *ring[CHAIN_MAX_QUEUES]; /* of WQEs, by queue */
	const uint8_t *reply, *scratch, *sent; /* sent: what a SEND has brought, or nothing */
	uint32_t sent_len;
	const struct session_loop *loop; /* of an endless program, or NULL */
	uint64_t took_us;
	bool answered;
};

/** For people. A WQE that has another opcode than when it was armed is followed by what it was. */
void reddnc_result_text(const struct reddnc_result *r, FILE *out);
/** reddnc(1) has the members. */
void reddnc_result_json(const struct reddnc_result *r, FILE *out);

#endif
