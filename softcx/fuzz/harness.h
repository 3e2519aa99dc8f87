/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * harness.h - a NIC and the programs on it: the bystander, the applications with wild queues, programs to be
 * recorded. What must be true at all times is checked here.
 */
#ifndef SOFTCX_FUZZ_HARNESS_H
#define SOFTCX_FUZZ_HARNESS_H

#include "softcx/fuzz/conv.h"
#include "softcx/fuzz/shared.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { FARM_WHAT = 400 };

struct farm {
	char tools[PATH_MAX]; /* directory of this program: the others are found from there */
	char dir[64];
	uint64_t seed;
	pid_t nic, bystander, app[FUZZ_APPS];
	struct fuzz_shared *shared;
	unsigned patience;    /* seconds to wait for what must happen */
	uint64_t rounds;      /* of the bystander, when it was last looked at */
	unsigned fds;         /* of the NIC with the bystander alone */
	char *counts;         /* of its objects then, as text */
	char what[FARM_WHAT]; /* what is wrong */
};

/** Starts a NIC in a directory of its own, and the bystander. False: farm->what says why not. */
bool farm_start(struct farm *farm, uint64_t seed, unsigned patience);
/** The NIC must end well, and without a leak. */
bool farm_stop(struct farm *farm);
/** Ends whatever still runs and removes the directory. */
void farm_remove(struct farm *farm);

/** The applications with wild queues, with choices of their own. */
bool farm_start_apps(struct farm *farm);
bool farm_stop_apps(struct farm *farm);

/** Starts a command line on the NIC, whose conversation is written down under number @n. */
pid_t farm_record(struct farm *farm, const char *command, unsigned n);
/** Waits for its end and reads what was written. False: nothing was. */
bool farm_recorded(struct farm *farm, pid_t pid, unsigned n, struct conv *conv);

/** The NIC lives and answers, and the bystander goes on. */
bool farm_check(struct farm *farm);
/** Besides, nothing is left of programs that have ended: objects, descriptors, memory. The applications must
 * have been stopped. */
bool farm_check_clean(struct farm *farm);
/** Prints the end of the NIC's messages. */
void farm_print_log(const struct farm *farm);

#endif
