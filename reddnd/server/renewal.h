/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * renewal.h - makes another generation beside the one in force: from the configuration, read again, or from
 * the same catalog, because files of regions could not be served and may be right by now.
 *
 * Reading files, pinning them and compiling may take long, so a worker's thread does it. One renewal at a
 * time; what is asked for meanwhile, also by the functions below that report its end, comes after it.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_RENEWAL_H
#define SERVER_RENEWAL_H

#include "reddnd/generation/generation.h"
#include "reddnd/util/worker.h"

#include <stdio.h>

/** Loads the configuration @path. Errors, those of catalog_load(), have been logged, and that it has no
 * offloads. Any thread. */
int renewal_load(const char *path, struct catalog **catalog);

struct renewal_ops {
	/** What is in force. */
	struct generation *(*now)(void *arg);
	/** Looks if the catalog @next may follow. Errors have been logged. */
	int (*check)(void *arg, const struct catalog *next);
	/** Reload @number is over. 0: @next, which is taken, shall be in force; else the error, and what was
	 * logged in @errors, lines of text. */
	void (*reloaded)(void *arg, uint64_t number, int error, struct generation *next, const char *errors);
	/** The same for a renewal_take(); @next is of the same catalog as the generation in force. */
	void (*taken)(void *arg, uint64_t number, int error, struct generation *next, const char *errors);
	/** The end of a renewal_retry() without an error: @next, which is taken, is of the catalog in force.
	 */
	void (*retried)(void *arg, struct generation *next);
	/** A renewal has ended, after one of the above or a retry that failed. */
	void (*over)(void *arg);
};

/** Borrowed, for as long as the worker exists. */
struct renewal_parts {
	struct worker *worker;
	const char *config; /* path */
	struct generation_parts generation;
};

/** What is asked for: the configuration file again, files that have been handed over, or files that could not
 * be served. */
enum renewal_kind { RENEWAL_RELOAD, RENEWAL_TAKE, RENEWAL_RETRY, RENEWAL_KINDS };

struct renewal_request {
	enum renewal_kind kind;
	uint64_t number; /* 0 of a retry */
};

/** Each follows the one before it. AT_WORK: until the last job is done. ENDING: the end is being reported. */
enum renewal_state { RENEWAL_IDLE, RENEWAL_AT_WORK, RENEWAL_ENDING, RENEWAL_STATES };

struct renewal {
	struct worker_job job;
	struct renewal_parts parts;
	const struct renewal_ops *ops;
	void *arg;
	enum renewal_state state;
	struct renewal_request now;                    /* unless it is idle */
	struct renewal_request waiting[RENEWAL_KINDS]; /* in turn, each kind at most once */
	unsigned nwaiting;
	uint64_t last; /* number that was given */
	struct catalog *catalog;
	struct generation *next;
	FILE *log;
	char *errors;
	size_t size;
	int error;
};

void renewal_init(
	struct renewal *rn, const struct renewal_parts *parts, const struct renewal_ops *ops, void *arg);

/** Begins a reload, now or after the renewals that were asked for before. Returns its number. */
uint64_t renewal_reload(struct renewal *rn);
/** The same for files that have been handed over: only they are opened, and the configuration that is in
 * force stays. */
uint64_t renewal_take(struct renewal *rn);
/** Opens files again that cannot be served, unless renewal_is_coming(). */
void renewal_retry(struct renewal *rn);
/** True: a renewal is at work or follows, and over() is called when it has ended. */
bool renewal_is_coming(const struct renewal *rn);

#endif
