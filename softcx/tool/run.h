/* SPDX-License-Identifier: BSD-2-Clause */
/* run.h - "softcx run": runs a command with the driver in it. */
#ifndef SOFTCX_TOOL_RUN_H
#define SOFTCX_TOOL_RUN_H

#include "softcx/tool/nic.h"

/**
 * Finds @command and checks that the driver can be loaded into it. 0 and its path, or an exit status after a
 * message; dies if the check fails.
 */
int tool_run_find(const char *command, char path[static PATH_MAX]);
/** Sets the environment in which programs use the NIC in tool_dir. */
void tool_run_env(void);
/** Runs a command on @host (NULL: the first) of a NIC, which it starts if none runs. Returns only with an
 * exit status of its own. */
int tool_run(char **argv, const struct tool_nic_options *opt, const char *host, bool leak_check);

/** Puts the time that the command takes for each message, for a modelled clock, into the environment. Dies if
 * it is not a number. */
void tool_run_think(const char *microseconds);

/** The same: it does one thing after the other. */
void tool_run_in_turn(void);

#endif
