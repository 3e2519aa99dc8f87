/* SPDX-License-Identifier: BSD-2-Clause */
/* status.h - what lives in the NIC: "softcx status", and what a command leaves behind. */
#ifndef SOFTCX_TOOL_STATUS_H
#define SOFTCX_TOOL_STATUS_H

#include <stdbool.h>

/** Returns the exit status. */
int tool_status(bool objects, bool json);

/**
 * Runs the program at @path and waits for its end, then prints on stderr what it and its children left
 * behind.
 * @fd: a control connection of this process, closed on exec. Returns the exit status: the program's; 128 + N
 * when signal N ended it; 3 when it succeeded and left something behind; 125 when it could not be watched.
 */
int tool_run_watched(int fd, const char *path, char **argv);

#endif
