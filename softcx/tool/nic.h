/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic.h - the tool's NIC: finds its directory, starts it and talks to it. The tool works on one directory at
 * a time.
 */
#ifndef SOFTCX_TOOL_NIC_H
#define SOFTCX_TOOL_NIC_H

#include "softcx/proto/hosts.h"
#include "softcx/proto/options.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

extern char tool_dir[PATH_MAX]; /* of the NIC, absolute; tool_set_dir() sets it */

/** The options of a NIC. */
struct tool_nic_options {
	struct options options; /* those that softcx-nic takes are passed on */
	struct hosts hosts;     /* from --hosts and --devices; tool_nic_hosts() sets it */
};

/** Prints a message and exits with 125, as env(1) and timeout(1) do: the failure is softcx's, not the
 * command's.
 */
__attribute__((format(printf, 1, 2), noreturn)) void tool_die(const char *fmt, ...);

/** Path of a part of softcx: beside this program in a build tree, else where it was installed. Dies without
 * it. */
void tool_find_part(char path[static PATH_MAX], const char *in_tree, const char *installed);
/** Makes the directory if it does not exist. @option: its name, or NULL for that of the environment. */
void tool_set_dir(const char *option);

/** A control connection, or -1 when no NIC runs. */
int tool_nic_connect(void);
/** Sends a word and receives the answer. False when the NIC went away meanwhile. */
bool tool_nic_ask(int fd, const char *word, char *answer, size_t size);
/** NULL when the NIC went away. The caller puts it. */
struct json_object *tool_nic_status(int fd);
/** Prints that no NIC runs; returns the exit status. */
int tool_no_nic(void);

/** Sets opt->hosts, after tool_set_dir(). Dies if the list is wrong. */
void tool_nic_hosts(struct tool_nic_options *opt);
/** Dies if the profile of the device has a mistake. */
void tool_nic_device(const struct tool_nic_options *opt);
/** Dies if the file of the modelled clock has a mistake. */
void tool_nic_clock(const struct tool_nic_options *opt);
/**
 * Starts the NIC unless one runs. Returns a control connection that keeps the NIC alive while it is open,
 * that is, until the command and all its descendants have ended. Of two callers at once, one starts the NIC
 * and the other finds it. A user who may not write to the directory can use a running NIC, but not start one.
 */
int tool_nic_hold(const struct tool_nic_options *opt);
/** Sets tool_dir to the directory of host @name of the NIC at the other end of @fd. Dies if there is no such
 * host.
 */
void tool_nic_enter(int fd, const char *name);
/**
 * Becomes the NIC in tool_dir: call it after fork, in the child. The NIC writes a line to @ready_fd when
 * programs can use it, and its messages to nic.log in the directory. @linger in seconds, 0: for ever.
 */
__attribute__((noreturn)) void tool_nic_exec(
	const struct tool_nic_options *opt, const char *nic, int ready_fd, unsigned linger);

#endif
