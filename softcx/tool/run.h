/* SPDX-License-Identifier: BSD-2-Clause */
/* tool-run.h - "softcx run": a command with the driver in it. */
#ifndef SOFTCX_TOOL_RUN_H
#define SOFTCX_TOOL_RUN_H

#include "softcx/tool/nic.h"

/**
 * Finds @command and sees whether it can be hosted. 0 and its path, or the exit status after a message; dies
 * when it cannot be hosted.
 */
int tool_run_find(const char *command, char path[static PATH_MAX]);
/** Sets the environment in which programs use the NIC in tool_dir. */
void tool_run_env(void);
/** Runs a command on @host (NULL: the first) of a NIC, which it starts if none runs. Returns only with an
 * exit status of its own. */
int tool_run(char **argv, const struct tool_nic_options *opt, const char *host, bool leak_check);

/** Microseconds that the command takes for each message, by a modelled clock: into the environment. Dies of
 * what is no number. */
void tool_run_think(const char *microseconds);

#endif
