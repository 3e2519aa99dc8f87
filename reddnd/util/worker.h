/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h - threads for what may wait: a neighbour that does not answer, gigabytes to be pinned, files.
 * The event loop submits a job and goes on; when the job has run, the loop is called back.
 *
 * Jobs belong to somebody, their key, and are of a kind. One key cannot take all threads with jobs of one
 * kind, nor fill the queue: .running of these run at a time, and .pending are waiting or running. They begin
 * in the order in which they were submitted.
 *
 * Thread rules: all functions, and done(), are for the thread of the event loop; only run() is called on
 * another. What run() uses, the loop leaves alone until done().
 */
#ifndef UTIL_WORKER_H
#define UTIL_WORKER_H

#include <stdbool.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

struct worker;

struct worker_limits {
	unsigned threads;
	unsigned running, pending; /* jobs of one key and kind */
};

/** Belongs to the caller again when done() is called, who may free it there. */
struct worker_job {
	const void *key;
	unsigned kind;
	void (*run)(struct worker_job *job);
	void (*done)(struct worker_job *job);
	bool canceled; /* the worker was freed before the job ran */
	TAILQ_ENTRY(worker_job) link;
};

/** -errno: no memory, no threads, or that of sd-event. */
int worker_new(struct worker **w, sd_event *event, const char *name, const struct worker_limits *limits);
/** Waits for the jobs that run. Calls done() of every job that is left. */
void worker_free(struct worker *w);

/** -EBUSY: the key has as many jobs of that kind as it may have; the job stays with the caller. */
int worker_submit(struct worker *w, struct worker_job *job);

#endif
