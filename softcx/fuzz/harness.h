/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * harness.h - a NIC and the programs on it: the bystander, the applications with wild queues, and programs to
 * be recorded. The harness checks what must hold at all times.
 */
#ifndef SOFTCX_FUZZ_HARNESS_H
#define SOFTCX_FUZZ_HARNESS_H

#include "softcx/fuzz/conv.h"
#include "softcx/fuzz/shared.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { HARNESS_WHAT = 400 };

struct harness {
	char tools[PATH_MAX]; /* directory of this program: the others are found from there */
	char dir[64];
	uint64_t seed;
	pid_t nic, bystander, app[FUZZ_APPS];
	struct fuzz_shared *shared;
	unsigned patience;       /* seconds to wait for what must happen */
	uint64_t rounds;         /* of the bystander, when it was last looked at */
	unsigned fds;            /* of the NIC with the bystander alone */
	char *counts;            /* of its objects then, as text */
	char what[HARNESS_WHAT]; /* what is wrong */
};

/** Starts a NIC in a directory of its own, and the bystander. False: harness->what has the reason. */
bool harness_start(struct harness *harness, uint64_t seed, unsigned patience);
/** The NIC must end well, and without a leak. */
bool harness_stop(struct harness *harness);
/** Ends what still runs and removes the directory. */
void harness_remove(struct harness *harness);

/** The applications with wild queues, with choices of their own. */
bool harness_start_apps(struct harness *harness);
bool harness_stop_apps(struct harness *harness);

/** Starts a command line on the NIC and records its conversation under number @n. */
pid_t harness_record(struct harness *harness, const char *command, unsigned n);
/** Waits for its end and reads the record. False: there is none. */
bool harness_recorded(struct harness *harness, pid_t pid, unsigned n, struct conv *conv);

/** True if the NIC answers and the bystander makes progress. */
bool harness_check(struct harness *harness);
/** The same, and programs that ended left no objects, descriptors or memory. The applications must have been
 * stopped. */
bool harness_check_clean(struct harness *harness);
/** Prints the end of the NIC's messages. */
void harness_print_log(const struct harness *harness);

#endif
