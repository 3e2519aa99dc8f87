/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * commands.h - the commands of reddnctl. Each sends its request, prints the result on stdout, and returns the
 * exit status: 0, EXIT_FAILURE if the daemon refused, EX_USAGE for a wrong argument. Errors go to stderr.
 */
#ifndef TOOLS_REDDNCTL_COMMANDS_H
#define TOOLS_REDDNCTL_COMMANDS_H

#include "tools/reddnctl/control.h"

#include <stdbool.h>

struct ctl_options {
	const char *socket;
	bool json, follow, help;
	unsigned interval, count;         /* top: seconds between rounds; rounds, 0: no limit */
	const char *by, *sort;            /* top: what is listed, and the column; NULL: not given */
	const char *rate, *burst, *bytes; /* limit; NULL: not given */
	const char *file;                 /* hand-over; NULL: not given */
};

/** @arg: the argument of kick, limit and hand-over, NULL for the others. */
int ctl_status(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_sessions(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_offloads(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_regions(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_tenants(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_reload(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_metrics(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_kick(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_limit(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_hand_over(struct control *l, const struct ctl_options *o, const char *arg);
int ctl_audit(struct control *l, const struct ctl_options *o, const char *arg);

/* top.c */
int ctl_top(struct control *l, const struct ctl_options *o, const char *arg);

#endif
