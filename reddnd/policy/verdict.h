/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdict.h - a verdict on a session, in words and in parts; and detection of unanswered requests and idle
 * clients. Pure.
 */
#ifndef POLICY_VERDICT_H
#define POLICY_VERDICT_H

#include "reddnd/catalog/verdicts.h"
#include "reddnd/program/program.h"
#include "reddnd/rnic/qp.h"

#include <stddef.h>

struct verdict {
	enum verdict_kind kind;
	bool fatal;     /* the session must end, whatever the policy is, for instance because its queues have
			   failed */
	char step[24];  /* label or verb of the step of the program; "" if no step failed */
	char path[128]; /* of the program */
	unsigned line;  /* of the program; 0: unknown, or the whole program */
	uint8_t syndrome; /* of the CQE; 0: there was no CQE */
	uint8_t vendor;
	char text[400]; /* a clause: "step hit failed: remote access error (0x88), hash-get.rdn:19" */
};

/** The kind of an error CQE with @syndrome; @reply: the WQE was sent to the client. */
enum verdict_kind verdict_kind_of(uint8_t syndrome, bool reply);

/** Makes the verdict for the work request at WQEBB @wqebb of an instance in queue @queue, which failed with
 * @cqe. @path: of the program.
 */
void verdict_of_step(struct verdict *v, const struct program *p, const char *path, unsigned queue,
	uint32_t wqebb, const struct rnic_cqe *cqe);

/** Makes the verdict for a work request in the ring of the program's loop, which failed with @cqe. */
void verdict_of_loop(
	struct verdict *v, const struct program *p, const char *path, const struct rnic_cqe *cqe);

/** Makes any other verdict, with the words of @format. */
void verdict_set(struct verdict *v, enum verdict_kind kind, bool fatal, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** The oldest unanswered request, as the daemon last saw it. */
struct verdict_silence {
	uint64_t request, since; /* us */
	bool seen, reported;
};

/**
 * Looks at request @done, the oldest unanswered one, which the NIC has @taken or not. When it has been taken
 * for longer than @budget_us, returns for how long, once; else 0. The unit is us, or any other count that
 * only grows. Time starts at the first look that saw it taken, so the result is never too long, and too short
 * by at most the interval of looks.
 */
uint64_t verdict_silent(
	struct verdict_silence *s, uint64_t done, bool taken, uint64_t now_us, uint64_t budget_us);

/** Since when a client has sent no request, as the daemon last saw it. */
struct verdict_idle {
	uint64_t done, since; /* us */
};

/**
 * Looks at a session with @done answered requests; the NIC has @taken one more or not. True when nothing has
 * happened for @limit_us since a look. One look per @limit_us is enough, at i->since + @limit_us, so that a
 * client is found idle after once to twice that time.
 */
bool verdict_is_idle(struct verdict_idle *i, uint64_t done, bool taken, uint64_t now_us, uint64_t limit_us);

#endif
