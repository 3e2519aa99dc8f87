/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - private to probe: what checks share, and their functions. Each returns as probe_check.run does.
 */
#ifndef PROBE_CHECK_H
#define PROBE_CHECK_H

#include "reddnd/probe/load.h"
#include "reddnd/probe/probe.h"

struct probe {
	struct master_qp *master;
	struct load *load; /* NULL: none */
	const struct probe_visitors *visitors;
	bool thorough;
};

/** Trials of a check that wants @n: @n, or 100 times as many. */
static inline unsigned probe_trials(const struct probe *probe, unsigned n)
{
	return probe->thorough ? 100 * n : n;
}

/** Writes the words, and returns 0: the assumption does not hold. */
int probe_denies(struct probe_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Writes the words, and returns @error, a negative errno: it cannot be tried. */
int probe_cannot(struct probe_result *result, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** Writes what was measured, and returns 1. */
int probe_measured(struct probe_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* With the queues of bed.h */
int check_atomics(struct bed *bed, struct probe_result *result);
int check_chain(struct bed *bed, struct probe_result *result);
int check_smaller_enable(struct bed *bed, struct probe_result *result);
int check_doorbell(struct bed *bed, struct probe_result *result);
int check_flush(struct bed *bed, struct probe_result *result);
int check_fenced_write(struct bed *bed, struct probe_result *result);
int check_wqe_wrap(struct bed *bed, struct probe_result *result);
int check_cqe_wrap(struct bed *bed, struct probe_result *result);

/* Others */
int check_long_wqes(struct probe *probe, struct probe_result *result);
int check_timestamps(struct probe *probe, struct probe_result *result);
int check_waits(struct probe *probe, struct probe_result *result);
int check_flushed_recv(struct probe *probe, struct probe_result *result);
int check_recv_enable(struct probe *probe, struct probe_result *result);
int check_smaller_recv_enable(struct probe *probe, struct probe_result *result);
int check_fetch(struct probe *probe, struct probe_result *result);
int check_recv_fetch(struct probe *probe, struct probe_result *result);
int check_read_patch(struct probe *probe, struct probe_result *result);
int check_recv_patch(struct probe *probe, struct probe_result *result);
int check_awaited_read(struct probe *probe, struct probe_result *result);
int check_fenced_enable(struct probe *probe, struct probe_result *result);
int check_wqe_checks(struct probe *probe, struct probe_result *result);
int check_failing_read(struct probe *probe, struct probe_result *result);
int check_message_limit(struct probe *probe, struct probe_result *result);
int check_masked_atomics(struct probe *probe, struct probe_result *result);
int check_calc(struct probe *probe, struct probe_result *result);
int check_events(struct probe *probe, struct probe_result *result);
int check_forced_loopback(struct probe *probe, struct probe_result *result);
int check_own_address(struct probe *probe, struct probe_result *result);
int check_accepted(struct probe *probe, struct probe_result *result);
int check_memory_file(struct probe *probe, struct probe_result *result);
int check_huge_file(struct probe *probe, struct probe_result *result);
int check_disk_file(struct probe *probe, struct probe_result *result);

#endif
