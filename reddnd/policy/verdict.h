/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdict.h - what is wrong with a session, in words and in parts; and how long a request may be silent.
 * Pure.
 */
#ifndef POLICY_VERDICT_H
#define POLICY_VERDICT_H

#include "reddnd/catalog/verdicts.h"
#include "reddnd/program/program.h"
#include "reddnd/rnic/queue.h"

#include <stddef.h>

struct verdict {
	enum verdict_kind kind;
	bool fatal;     /* the session cannot go on, whatever the policy says: its queues have failed, say */
	char step[24];  /* of the program, as its label or its verb says; "" if it is none of them */
	char path[128]; /* of the program */
	unsigned line;  /* of the program; 0: none, or all of it */
	uint8_t syndrome; /* of the CQE, 0: there was none */
	uint8_t vendor;
	char text[400]; /* a clause: "step hit failed: remote access error (0x88), hash-get.rdn:19" */
};

/** What an error of a WQE with that syndrome is, when @reply says that it was sent to the client. */
enum verdict_kind verdict_kind_of(uint8_t syndrome, bool reply);

/** The work request at WQEBB @wqebb of an instance in queue @queue failed with @cqe. @path: of the program.
 */
void verdict_of_step(struct verdict *v, const struct program *p, const char *path, unsigned queue,
	uint32_t wqebb, const struct rnic_cqe *cqe);

/** A work request in the ring of its loop failed with @cqe. */
void verdict_of_loop(
	struct verdict *v, const struct program *p, const char *path, const struct rnic_cqe *cqe);

/** Any other. */
void verdict_set(struct verdict *v, enum verdict_kind kind, bool fatal, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** The oldest request that is not answered, as far as the daemon has seen it. */
struct verdict_silence {
	uint64_t request, since; /* us */
	bool seen, reported;
};

/**
 * Looks once more: request @done, the oldest unanswered, has been @taken or not. Returns how long that has
 * been so, in us or whatever else only grows, once, when it exceeds @budget; else 0. It counts from the first
 * look at which it was taken: it is never too long, and too short by the time between two looks at most.
 */
uint64_t verdict_silent(
	struct verdict_silence *s, uint64_t done, bool taken, uint64_t now_us, uint64_t budget_us);

/** Since when a client has asked for nothing, as far as the daemon has looked. */
struct verdict_idle {
	uint64_t done, since; /* us */
};

/**
 * Looks once more: @done requests are answered, and one more is @taken or not. True when nothing has happened
 * for @limit since a look. It is one look per @limit that is needed, at i->since + @limit; so a client is
 * found idle after one to two of them.
 */
bool verdict_is_idle(struct verdict_idle *i, uint64_t done, bool taken, uint64_t now_us, uint64_t limit_us);

#endif
