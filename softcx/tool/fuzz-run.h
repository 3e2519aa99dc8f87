/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz-run.h - one run of a command under one seed, on a NIC that nothing else uses. The run is a process
 * that starts both, bounds the time, and ends all processes that they leave behind. Several may run at once.
 */
#ifndef SOFTCX_TOOL_FUZZ_RUN_H
#define SOFTCX_TOOL_FUZZ_RUN_H

#include "softcx/tool/nic.h"

#include <stdint.h>
#include <sys/types.h>

struct fuzz_command {
	char *const *argv;
	char path[PATH_MAX];
	const struct tool_nic_options *nic; /* without a seed */
	unsigned timeout;                   /* seconds */
	char base[PATH_MAX];                /* directory for those of the runs */
};

enum fuzz_why {
	FUZZ_PASSED,
	FUZZ_EXIT,      /* an exit status other than 0: @status */
	FUZZ_SIGNAL,    /* ended by signal @status */
	FUZZ_TIMEOUT,   /* did not end in time */
	FUZZ_SANITIZER, /* exit status 0, but a sanitizer's report in its output */
	FUZZ_NIC,       /* the NIC ended too early or badly: @status as in waitpid(2) */
	FUZZ_TROUBLE,   /* the run could not be made; its output has the reason */
	FUZZ_STOPPED,   /* by fuzz_run_stop() */
};

struct fuzz_result {
	enum fuzz_why why;
	int status;
	double seconds; /* of the command alone */
	double overall;
};

/** The parameters of a run, and then the run itself. */
struct fuzz_run {
	uint64_t seed;
	bool lenient;
	bool trace, trace_json; /* leaves what the NIC executed in the file "trace" of its directory */
	/* set by fuzz_run_start() */
	pid_t pid;
	int fd;             /* readable when it has ended */
	char dir[PATH_MAX]; /* of the NIC, with "output" of the command and "nic.log" */
};

/** 0 or a negative errno. */
int fuzz_run_start(struct fuzz_run *run, const struct fuzz_command *cmd);
/** Waits for the end of a run. */
struct fuzz_result fuzz_run_end(struct fuzz_run *run);
/** Ends it early; fuzz_run_end() is still to be called. */
void fuzz_run_stop(const struct fuzz_run *run);
/** Removes what it left in the file system. */
void fuzz_run_clean(const struct fuzz_run *run);
/** A failure in words, such as "exit status 3". */
void fuzz_why_text(const struct fuzz_result *r, char *text, size_t size);
/** Removes a directory and what is in it. */
void fuzz_remove(const char *dir);

#endif
