/* SPDX-License-Identifier: BSD-2-Clause */
/* tool.h - the verbs of the softcx command, and what they have in common. */
#ifndef SOFTCX_TOOL_TOOL_H
#define SOFTCX_TOOL_TOOL_H

#include "softcx/proto/hosts.h"
#include "softcx/proto/options.h"
#include "softcx/proto/proto.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * nic.c: the tool's NIC: finds its directory, starts it and talks to it. The tool works on one directory at
 * a time.
 */

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

/* preload-check.c: finds a program and checks that the dynamic linker will load the driver into it. */

/** Path of @command as execvp(3) would find it. 0, or -1 with errno. */
int preload_check_find(const char *command, char *path, size_t size);

/**
 * False if the driver cannot be loaded into the program at @path; @why then has the reason, in words that
 * follow the path. For a script the interpreter counts. A file of unknown kind passes.
 */
bool preload_check_program(const char *path, char *why, size_t size);

/* run.c: "softcx run": runs a command with the driver in it. */

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

/* status.c: what lives in the NIC: "softcx status", and what a command leaves behind. */

/** Returns the exit status. */
int tool_status(bool objects, bool json);

/**
 * Runs the program at @path and waits for its end, then prints on stderr what it and its children left
 * behind.
 * @fd: a control connection of this process, closed on exec. Returns the exit status: the program's; 128 + N
 * when signal N ended it; 3 when it succeeded and left something behind; 125 when it could not be watched.
 */
int tool_run_watched(int fd, const char *path, char **argv);

/*
 * trace.c: "softcx trace": prints what the NIC executes, until it is interrupted, has printed enough
 * records, or the NIC ends.
 */

struct trace_options {
	uint32_t qpns[SOFTCX_TRACE_QPS];
	unsigned nqpns;
	uint32_t pid;   /* 0: any */
	uint32_t kinds; /* of trace_event_kinds(); 0: send WQEs */
	uint64_t count; /* records; 0: no end */
	bool json;
	const char *pcapng; /* file to write instead of lines, or NULL */
};

/** @fd: a control connection. Returns the exit status. */
int tool_trace(int fd, const struct trace_options *opt);

/*
 * fuzz.c: "softcx fuzz": runs one command under many seeds and reports on the first that breaks it.
 */

struct tool_fuzz_options {
	uint64_t first, last;
	unsigned jobs;    /* runs at once, at most OPTIONS_MAX_JOBS */
	unsigned timeout; /* seconds for each */
	unsigned lines;   /* of output and trace to show */
	bool keep_going, json;
};

/** Reads "N" (1 to N) or "FROM-TO". False when @text is neither. */
bool tool_fuzz_seeds(const char *text, uint64_t *first, uint64_t *last);

/**
 * @opt: of the NICs, without a seed. Returns the exit status: 0 when the command passed under every seed, 1
 * when it failed under one, 125 when it could not be tried, 126 or 127 as "softcx run", 130 after an
 * interrupt.
 */
int tool_fuzz(char **argv, const struct tool_nic_options *opt, const struct tool_fuzz_options *fuzz);

#endif
